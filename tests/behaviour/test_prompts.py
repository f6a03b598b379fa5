"""Prompts and truncation: in the config and for a call, with Docs and without, and where they
cannot be.
"""

import shutil

import numpy
import pytest
import spacy
from helpers.pipelines import (
    change_json,
    make_example,
    no_warnings,
    one_pipe,
    write_modules,
)
from helpers.small_tokenizers import make_folder
from spacy.tokens import Doc
from tokenizers import Tokenizer, processors

from spacy_sbert import find_sbert
from spacy_sbert.search import identify
from spacy_sbert.search.corpus_search import search_texts
from spacy_sbert.similarity import cos_sim

TEXTS = ["a man is eating food", "the cat sat on the mat", " ", "cannot go"]
PROMPTS = {"query": "the dog ran: ", "passage": "he is "}


def prompted(make_nlp, *, unit="doc", **model):
    return make_nlp(unit=unit, model={"prompts": PROMPTS, **model})


def of_call(nlp, texts=TEXTS, **settings):
    return numpy.stack([doc.vector for doc in nlp.pipe(texts, component_cfg={"sbert": settings})])


@pytest.mark.parametrize("pooling", ["mean", "cls+max"])
def test_a_prompt_is_text_before_the_text(make_nlp, pooling):
    plain = make_nlp(model={"pooling": pooling})
    nlp = prompted(make_nlp, pooling=pooling)
    whole = [TEXTS[0], TEXTS[1], TEXTS[3]]
    expected = plain.get_pipe("sbert").encode([PROMPTS["query"] + text for text in whole])
    assert numpy.allclose(of_call(nlp, whole, prompt_name="query"), expected, atol=1e-6)
    assert numpy.allclose(
        nlp.get_pipe("sbert").encode(whole, prompt_name="query"), expected, atol=1e-6
    )
    assert numpy.allclose(
        nlp.get_pipe("sbert").encode(whole, prompt=PROMPTS["query"]), expected, atol=1e-6
    )
    single = nlp(whole[0], component_cfg={"sbert": {"prompt_name": "query"}})
    assert numpy.allclose(single.vector, expected[0], atol=1e-6)
    # No default prompt
    assert numpy.allclose(of_call(nlp), of_call(plain), atol=1e-6)


def test_default_prompt(make_nlp):
    nlp = prompted(make_nlp, default_prompt_name="passage")
    docs = list(nlp.pipe(TEXTS))
    assert [doc.has_vector for doc in docs] == [True, True, False, True]
    assert not docs[2].vector.any()
    assert numpy.array_equal(of_call(nlp), of_call(nlp, prompt_name="passage"))
    assert not numpy.allclose(of_call(nlp)[0], of_call(nlp, prompt="")[0], atol=1e-3)
    assert numpy.array_equal(of_call(nlp, prompt=""), of_call(make_nlp()))


def test_spans_and_tokens_exclude_the_prompt(make_nlp):
    """Their wordpieces are those of the text, in the context of the prompt."""
    nlp = prompted(make_nlp, normalize=False)
    doc = nlp("cat sat", component_cfg={"sbert": {"prompt": "the dog ran fast: "}})
    other = make_nlp(model={"normalize": False})("the dog ran fast: cat sat")
    assert numpy.allclose(doc[0].vector, other[-2].vector, atol=1e-6)
    assert not numpy.allclose(doc[0].vector, doc.vector, atol=1e-3)


@pytest.mark.parametrize("normalize", [True, False])
def test_truncation_keeps_the_first_dimensions(make_nlp, normalize):
    plain, nlp = (
        make_nlp(model={"normalize": normalize, **config}) for config in ({}, {"truncate_dim": 5})
    )
    assert numpy.array_equal(of_call(nlp), of_call(plain)[:, :5])
    # The call's comes first
    assert numpy.array_equal(of_call(nlp, truncate_dim=9), of_call(plain)[:, :9])
    encoded = nlp.get_pipe("sbert").encode(TEXTS)
    assert numpy.array_equal(encoded, plain.get_pipe("sbert").encode(TEXTS)[:, :5])
    assert nlp.get_pipe("sbert").encode(TEXTS, truncate_dim=2).shape == (4, 2)
    assert nlp.get_pipe("sbert").encode([]).shape == (0, 5)
    span = nlp(TEXTS[0])[1:3]
    whole = plain(TEXTS[0])[1:3]
    assert numpy.allclose(span.vector, whole.vector[:5], atol=1e-7)
    assert nlp("").vector.shape == (5,)


def test_training_sees_what_use_sees(make_nlp):
    """The loss is that of the prompted, truncated vectors, and its gradient moves the encoder."""
    nlp = prompted(make_nlp, default_prompt_name="query", truncate_dim=4)
    examples = [
        make_example(nlp, "a man is eating", "he ran", 0.1),
        make_example(nlp, "the cat sat", "the cat", 0.9),
    ]
    pipe = nlp.get_pipe("sbert")
    nlp.initialize(lambda: examples)
    trained, _ = pipe.model.begin_update([eg.predicted for eg in examples])
    for eg, encoded in zip(examples, trained, strict=True):
        texts = [span.text for span in eg.predicted.spans["sbert"]]
        assert numpy.allclose(encoded.vectors, pipe.encode(texts), atol=1e-5)
    losses = []
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.005
    for _ in range(6):
        losses.append(nlp.update(examples, sgd=optimizer)["sbert"])
    assert losses[-1] < losses[0]


def test_a_query_prompt_and_the_identity(make_nlp, tmp_path):
    configs = (
        {},
        {"default_prompt_name": "query"},
        {"truncate_dim": 5},
        {"default_prompt_name": "passage"},
    )
    identities = [identify(prompted(make_nlp, **config).get_pipe("sbert")) for config in configs]
    assert len({identity.digest for identity in identities}) == 4
    assert [identity.width for identity in identities] == [16, 16, 5, 16]
    texts = ["a man is eating.", "the cat sat."]
    nlp = prompted(make_nlp, unit="doc+sent", default_prompt_name="passage")
    pipe = nlp.get_pipe("sbert")
    doc = nlp(" ".join(texts))
    expected = numpy.sort(
        cos_sim(pipe.encode(["he ran"], prompt_name="query"), pipe.encode(texts))[0]
    )[::-1]
    assert numpy.allclose(
        [one.score for one in doc._.sbert_most_similar("he ran", prompt_name="query")],
        expected,
        atol=1e-6,
    )
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf8")
    (best,) = search_texts(pipe, tmp_path / "texts.txt", ["he ran"], k=2, query_prompt="query")
    assert numpy.allclose([found.score for found in best], expected, atol=1e-6)


@pytest.mark.spacy_transformers
def test_wrong_calls(make_nlp):
    nlp = prompted(make_nlp)
    shared = make_nlp("shared")
    doc = Doc(nlp.vocab, words=["a"])
    with pytest.raises(
        ValueError,
        match=r"prompt_name = 'document': .*'query', 'passage'",
    ):
        nlp.get_pipe("sbert").predict([doc], prompt_name="document")
    with pytest.raises(ValueError, match="Got both prompt_name = 'query' and prompt = 'x'"):
        nlp.get_pipe("sbert").encode(["a"], prompt_name="query", prompt="x")
    with pytest.raises(ValueError, match="to 17 dimensions: they have 16"):
        nlp("a man", component_cfg={"sbert": {"truncate_dim": 17}})
    with pytest.raises(ValueError, match="truncate_dim = 0"):
        nlp.get_pipe("sbert").encode(["a"], truncate_dim=0)
    with pytest.raises(ValueError, match="output of a shared transformer"):
        shared("a man", component_cfg={"sbert": {"prompt": "query: "}})
    expected = make_nlp().get_pipe("sbert").encode(["he ran"])
    # No Docs
    assert numpy.allclose(
        shared.get_pipe("sbert").encode(["ran"], prompt="he "), expected, atol=1e-6
    )
    with pytest.raises(ValueError, match="do not go together"):
        prompted(make_nlp, include_prompt=False, overflow="windows")


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("kind", ["wordpiece", "byte-level BPE", "slow bytes"])
@pytest.mark.parametrize("overflow", ["truncate", "cut"])
def test_a_prompt_that_leaves_no_room_is_refused(tmp_path, kind, include, overflow):
    """The vectors of all texts would be those of the prompt, or zeros."""
    folder = make_folder(tmp_path / "encoder", kind, limit=10)
    nlp = one_pipe(folder, overflow=overflow, include_prompt=include)
    expected = "fills the encoder's limit of 10 wordpieces, and leaves none for a text"
    with pytest.raises(ValueError, match=expected):
        find_sbert(nlp).encode(["a cat", "the dog"], prompt="a b c d e f g h i j k l ")
    with pytest.raises(ValueError, match=expected):
        nlp("a cat", component_cfg={"sbert": {"prompt": "a b c d e f g h i j k l "}})
    assert find_sbert(nlp).encode(["a cat"], prompt="a ").any()


def test_an_unknown_default_prompt_is_refused_when_the_pipe_is_made(make_nlp, tiny_bert, tmp_path):
    expected = (
        "Cannot use default_prompt_name = 'document': the prompts of the encoder are 'query', "
        "'passage'"
    )
    with pytest.raises(ValueError, match=expected):
        prompted(make_nlp, default_prompt_name="document")
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    write_modules(folder, ("Transformer", ""))
    change_json(
        folder / "config_sentence_transformers.json", prompts={"p": "he "}, default_prompt_name="p"
    )
    nlp = make_nlp(name=folder, model={"default_prompt_name": "p"})
    nlp.to_disk(tmp_path / "nlp")
    # The prompts of the folder are saved with the encoder
    shutil.rmtree(folder)
    assert numpy.array_equal(spacy.load(tmp_path / "nlp")("ran").vector, nlp("ran").vector)
    override = {"components.sbert.model.default_prompt_name": "document"}
    with pytest.raises(ValueError, match="Cannot use default_prompt_name = 'document'"):
        spacy.load(tmp_path / "nlp", config=override)


def test_a_folder_without_its_prompt_in_windows(make_nlp, tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"))
    change_json(folder / "1_Pooling" / "config.json", pooling_mode="mean", include_prompt=False)
    sbert = make_nlp(name=folder, model={"overflow": "windows"}).get_pipe("sbert")
    assert sbert.encode(["the cat"]).any()
    with pytest.raises(ValueError, match="do not go together"):
        sbert.encode(["the cat"], prompt="he ")


def test_a_blank_prompt_of_no_wordpieces(tiny_bert, tmp_path):
    """A tokenizer without special tokens makes none of it, so that nothing is left out."""
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"))
    change_json(folder / "1_Pooling" / "config.json", pooling_mode="mean", include_prompt=False)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    tokenizer.save(str(folder / "tokenizer.json"))
    change_json(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    sbert = find_sbert(one_pipe(folder))
    expected = sbert.encode(TEXTS[:2])
    numpy.testing.assert_allclose(sbert.encode(TEXTS[:2], prompt=" "), expected, atol=1e-6)


def test_the_default_prompt_of_a_folder_with_a_shared_transformer(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "encoder")
    write_modules(folder, ("Transformer", ""))
    file = folder / "config_sentence_transformers.json"
    file.write_text('{"prompts": {"p": "the dog ran: "}, "default_prompt_name": "p"}')
    own = one_pipe(folder)
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert_transformer", config={"model": {"name": str(folder)}})
    shared = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}
    nlp.add_pipe("sbert", config={"model": shared})
    with no_warnings():
        assert numpy.allclose(of_call(nlp, TEXTS[:2]), of_call(own, TEXTS[:2]), atol=1e-6)
        vectors = find_sbert(nlp).encode(TEXTS[:2])
    assert numpy.allclose(vectors, find_sbert(own).encode(TEXTS[:2]), atol=1e-6)
    assert not numpy.allclose(vectors, find_sbert(own).encode(TEXTS[:2], prompt=""), atol=1e-3)


def test_a_default_prompt_without_a_name_is_refused(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "encoder")
    write_modules(folder, ("Transformer", ""))
    file = folder / "config_sentence_transformers.json"
    file.write_text('{"prompts": {"": "the dog ran: "}, "default_prompt_name": ""}')
    with pytest.raises(ValueError, match=f"{file.name} names the default prompt ''"):
        one_pipe(folder)("a man")
