"""Pipelines over spacy-transformers, converted: the same annotations without it."""

import numpy
import pytest
import spacy
from helpers.invoking import said
from helpers.pipelines import CNN, MINILM, STOCK, STOCK_LISTENER, TOK2VEC_LISTENER, blank, slow
from helpers.small_tokenizers import make_folder
from spacy.training import Example
from spacy.util import registry
from thinc.api import fix_random_seed

from spacy_sbert.hub.convert_transformer import convert_transformer
from spacy_sbert.models.resolve import resolve
from spacy_sbert.models.spans import strided_spans

OURS = "spacy-sbert.TransformerModel.v1"
GETTERS = {
    "doc": {"@span_getters": "spacy-transformers.doc_spans.v1"},
    "sent": {"@span_getters": "spacy-transformers.sent_spans.v1"},
    "strided": {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 6, "stride": 4},
    "ours": {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc"},
}
TRAINING = [
    (
        "a man is eating food on the mat .",
        [(2, 5, "PERSON"), (16, 20, "FOOD")],
        {"x": 1.0, "y": 0.0},
    ),
    ("the dog ran fast . he can not go .", [(4, 7, "ANIMAL")], {"x": 0.0, "y": 1.0}),
    ("someone is having a meal .", [(0, 7, "PERSON"), (20, 24, "FOOD")], {"x": 1.0, "y": 0.0}),
]
pytestmark = pytest.mark.spacy_transformers

TEXTS = [text for text, _, _ in TRAINING] + [
    "The cat sat on the mat.  He can't go! ",
    "  \n",
    "a man " * 40,
]


def listener(**settings):
    return {**STOCK_LISTENER, **settings}


def add_components(nlp, tok2vec=None):
    tok2vec = tok2vec or listener()
    nlp.add_pipe(
        "sbert", config={"model": {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}}
    )
    nlp.add_pipe("ner", config={"model": {"tok2vec": tok2vec}})
    nlp.add_pipe(
        "textcat",
        config={"model": {"@architectures": "spacy.TextCatEnsemble.v2", "tok2vec": tok2vec}},
    )


def make(folder, getter="strided", architecture=STOCK, train=True, **model):
    """A pipeline of ner, textcat and sbert over a `transformer`, trained for a few steps."""
    fix_random_seed(0)
    nlp = blank("en")
    nlp.add_pipe("sentencizer")
    settings = {
        "@architectures": architecture,
        "name": str(folder),
        "get_spans": GETTERS[getter],
        **model,
    }
    nlp.add_pipe("transformer", config={"model": settings})
    add_components(nlp)
    if train:
        fit(nlp)
    return nlp


def examples_of(nlp):
    return [
        Example.from_dict(nlp.make_doc(text), {"entities": entities, "cats": cats})
        for text, entities, cats in TRAINING
    ]


def fit(nlp, steps=8):
    examples = examples_of(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    for _ in range(steps):
        nlp.update(
            [Example(nlp(eg.reference.text), eg.reference) for eg in examples],
            sgd=optimizer,
            exclude=["sbert"],
        )
    return nlp


def annotations(nlp, texts=TEXTS):
    docs = list(nlp.pipe(texts))
    labels = [
        (doc.to_json().get("ents"), doc.to_json()["tokens"], sorted(doc.cats)) for doc in docs
    ]
    cats = [list(doc.cats.values()) for doc in docs]
    vectors = (
        [nlp.get_pipe("sbert").vector(doc) for doc in docs] if "sbert" in nlp.pipe_names else []
    )
    return labels, numpy.array(cats), numpy.array(vectors)


def check_same(nlp, folder, texts=TEXTS, tolerance=1e-6):
    expected = annotations(nlp, texts)
    nlp.to_disk(folder / "old")
    convert_transformer(folder / "old", folder / "new")
    converted = spacy.load(folder / "new")
    found = annotations(converted, texts)
    assert "spacy-transformers" not in converted.config.to_str()
    assert converted.pipe_names == nlp.pipe_names
    assert found[0] == expected[0]
    for new, old in zip(found[1:], expected[1:], strict=True):
        numpy.testing.assert_allclose(
            new, old, rtol=0, atol=tolerance * max(1, numpy.abs(old).max(initial=0))
        )
    return converted


CASES = [
    (STOCK, "doc"),
    (STOCK, "strided"),
    (OURS, "strided"),
    *slow((STOCK, "sent"), (STOCK, "ours"), (OURS, "ours")),
]
TOK2VEC = "spacy-sbert.TransformerTok2Vec.v1"


@pytest.mark.parametrize("case", CASES)
def test_annotates_as_before(tiny_bert, tmp_path, case):
    architecture, getter = case
    converted = check_same(make(tiny_bert, getter, architecture), tmp_path)
    assert converted.get_pipe_meta("transformer").factory == "sbert_transformer"
    assert any(doc.ents for doc in converted.pipe(TEXTS))


@pytest.mark.slow
@pytest.mark.parametrize("getter", ["doc", "strided"])
def test_minilm_is_normalized_as_before(tmp_path, getter):
    converted = check_same(make(resolve(MINILM), getter), tmp_path)
    # Normalize = "auto" of its folder
    assert converted("a man is eating").vector_norm == pytest.approx(1)
    # Of the tokenizer: spacy-transformers reads no other file
    assert converted.get_pipe("sbert").max_length == 512


def test_last_space_is_not_read(tmp_path):
    """SentencePiece and byte-level BPE make a wordpiece of it, in sentence-transformers."""
    folder = make_folder(tmp_path / "encoder", "unigram", "xlm-roberta", limit=None)
    check_same(
        make(folder, "doc"),
        tmp_path,
        texts=["a man is eating. ", "a man is eating.", "a man  \n is "],
    )


@pytest.mark.parametrize("fast", [True, *slow(False)])
def test_cut_at_the_limit_of_the_tokenizer(tiny_bert, tmp_path, fast):
    nlp = make(tiny_bert, "doc", tokenizer_config={"use_fast": fast, "model_max_length": 12})
    if fast:
        assert (
            check_same(nlp, tmp_path).config["components"]["transformer"]["model"]["overflow"]
            == "cut"
        )
        return
    # Its [UNK]s are no text in spacy-transformers
    nlp.to_disk(tmp_path / "old")
    with pytest.raises(ValueError, match=r"gives other vectors of 'sbert' for the text '日本語"):
        convert_transformer(tmp_path / "old", tmp_path / "new")


@pytest.mark.parametrize(
    "case", [(STOCK, ["ner", "sbert"]), *slow((OURS, ["ner", "textcat", "sbert"]))]
)
def test_replaced_listeners(tiny_bert, tmp_path, case):
    architecture, names = case
    nlp = make(tiny_bert, "doc", architecture)
    for name in names:
        nlp.replace_listeners("transformer", name, ["model.tok2vec"])
    converted = check_same(nlp, tmp_path)
    for name in names:
        assert converted.get_pipe_config(name)["model"]["tok2vec"]["@architectures"] == TOK2VEC


@pytest.mark.parametrize("version", [1, *slow(2, 3)])
def test_transformer_in_a_component(tiny_bert, tmp_path, version):
    tok2vec = {
        "@architectures": f"spacy-transformers.Tok2VecTransformer.v{version}",
        "name": str(tiny_bert),
    }
    tok2vec |= {
        "get_spans": GETTERS["strided"],
        "tokenizer_config": {"use_fast": True},
        "grad_factor": 0.5,
    }
    nlp = blank("en")
    nlp.add_pipe(
        "ner", config={"model": {"tok2vec": {**tok2vec, "pooling": {"@layers": "reduce_max.v1"}}}}
    )
    converted = check_same(fit(nlp), tmp_path, texts=[text for text, _, _ in TRAINING])
    found = next(
        node
        for node in converted.get_pipe("ner").model.walk()
        if node.name == "transformer_tok2vec"
    )
    assert (found.grad_factor, found.pooling.name) == (0.5, "reduce_max")


def test_listeners_of_every_component(tiny_bert, tmp_path):
    nlp = blank("en")
    nlp.add_pipe(
        "transformer",
        name="trf",
        config={"model": {"name": str(tiny_bert), "get_spans": GETTERS["strided"]}},
    )
    tok2vec = listener(upstream="trf", grad_factor=0.5)
    for name in (
        "tagger",
        "morphologizer",
        "trainable_lemmatizer",
        "parser",
        "spancat",
        "textcat_multilabel",
    ):
        settings = {"min_action_freq": 1} if name == "parser" else {}
        nlp.add_pipe(name, config={"model": {"tok2vec": tok2vec}, **settings})
    examples = []
    for text, entities, cats in TRAINING:
        doc = nlp.make_doc(text)
        n = len(doc)
        gold = {
            "tags": ["A", "B"] * (n // 2) + ["A"] * (n % 2),
            "pos": ["NOUN"] * n,
            "morphs": ["Number=Sing"] * n,
        }
        gold |= {
            "heads": [0] * n,
            "deps": ["ROOT"] + ["dep"] * (n - 1),
            "sent_starts": [1] + [-1] * (n - 1),
        }
        gold |= {"lemmas": [token.text for token in doc], "cats": cats, "spans": {"sc": entities}}
        examples.append(Example.from_dict(doc, gold))
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(4):
        nlp.update(examples, sgd=optimizer)
    nlp.disable_pipe("spancat")
    nlp.meta["requirements"] = ["spacy-transformers>=1.3,<1.4", "other"]
    converted = check_same(nlp, tmp_path)
    assert converted.disabled == ["spancat"]
    assert converted.meta["requirements"] == ["other"]
    listeners = converted.get_pipe("trf").listeners
    # One is disabled
    assert {node.grad_factor for node in listeners} == {0.5}
    assert len(listeners) >= 5
    before = converted("a man").tensor.copy()
    sgd = converted.resume_training()
    sgd.learn_rate = 0.01
    converted.update(examples, sgd=sgd)
    assert numpy.abs(converted("a man").tensor - before).max() > 1e-4


def test_spans_are_those_of_spacy_transformers():
    nlp = spacy.blank("xx")
    docs = [nlp.make_doc("a " * length) for length in range(25)]
    for window in range(1, 12):
        for stride in range(1, window + 1):
            given = strided_spans(window=window, stride=stride)(docs)
            block = {**GETTERS["strided"], "window": window, "stride": stride}
            expected = registry.resolve({"spans": block})["spans"](docs)
            places = [
                [[(span.start, span.end) for span in of_doc] for of_doc in each]
                for each in (given, expected)
            ]
            assert places[0] == places[1]


def refused_pipeline(what, tiny_bert):
    """A pipeline that cannot be converted."""
    if what == "nothing to convert":
        nlp = blank("en")
        nlp.add_pipe("sentencizer")
        return nlp
    if what == "without weights":
        return make(tiny_bert, train=False)
    if what == "left padding":
        return make(tiny_bert, tokenizer_config={"padding_side": "left"})
    nlp = blank("en")
    if what == "tok2vec":
        nlp.add_pipe("tok2vec", config={"model": CNN})
    settings = {"model": {"name": str(tiny_bert), "get_spans": GETTERS["strided"]}}
    if what == "annotations":
        settings["set_extra_annotations"] = {"@annotation_setters": "own.annotations.v1"}
    nlp.add_pipe("transformer", config=settings)
    nlp.add_pipe(
        "textcat",
        config={"model": {"@architectures": "spacy.TextCatEnsemble.v2", "tok2vec": listener()}},
    )
    nlp.add_pipe(
        "ner", config={"model": {"tok2vec": TOK2VEC_LISTENER if what == "tok2vec" else listener()}}
    )
    return fit(nlp, steps=0)


REFUSED = {
    "nothing to convert": r"no transformer of spacy-transformers: its components are sentencizer",
    "without weights": r"transformer of the component 'transformer' has no weights",
    "left padding": r'padding_side = "left"',
    "tok2vec": r"'ner' behind 'transformer' reads or sets doc\.tensor",
    "annotations": r"set_extra_annotations = 'own\.annotations\.v1' of the component 'transformer'",
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_by_name(tiny_bert, tmp_path, what):
    if what == "annotations":
        registry.annotation_setters("own.annotations.v1")(lambda: lambda docs, output: None)
    refused_pipeline(what, tiny_bert).to_disk(tmp_path / "old")
    with pytest.raises(ValueError, match=REFUSED[what]):
        convert_transformer(tmp_path / "old", tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_no_folder_if_anything_differs(tiny_bert, tmp_path, monkeypatch):
    make(tiny_bert).to_disk(tmp_path / "old")
    monkeypatch.setattr(
        "spacy_sbert.hub.convert_transformer._state_of", lambda *args, **_: other_state(args[1])
    )
    with pytest.raises(ValueError, match=r"gives other vectors of tokens for the text"):
        convert_transformer(tmp_path / "old", tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def other_state(model):
    """The state of a transformer one of whose weights was changed."""
    from spacy_sbert.models.sbert_config import TransformerConfig
    from spacy_sbert.models.shim import TransformerShim

    shim = TransformerShim(model.attrs["name"], TransformerConfig())
    shim.load()
    next(shim.network.parameters()).data *= 1.001
    return shim.to_bytes()


def test_command(tiny_bert, tmp_path):
    make(tiny_bert).to_disk(tmp_path / "old")
    output = said("convert-transformer", tmp_path / "old", tmp_path / "new", "--quiet")
    assert "loads without spacy-transformers" in output
    assert spacy.load(tmp_path / "new").get_pipe_meta("transformer").factory == "sbert_transformer"
    output = said("convert-transformer", tmp_path / "old", tmp_path / "new", "--quiet", code=1)
    assert "something at" in output


def test_without_spacy_transformers(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_sbert.hub.convert_transformer.is_installed", lambda: False)
    output = said("convert-transformer", tmp_path, tmp_path / "new", code=1)
    assert 'pip install "spacy-sbert[transformers]"' in output
