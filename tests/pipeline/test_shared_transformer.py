"""One transformer for the whole pipeline: no forward pass of our own, and clear errors where it cannot be shared."""

import shutil

import numpy
import pytest
import spacy
from pipelines import (
    LISTENER,
    SHARING,
    add_tagger,
    finish_update,
    make_example,
    reloaded,
    stock_nlp,
    weights,
    write_modules,
)
from spacy.language import Language
from spacy.training import Example
from spacy.util import registry

TEXT = "A man is eating food. He cannot go."
SHARED = {"model": {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}}


def tagged(nlp: Language, text: str) -> Example:
    doc = nlp.make_doc(text)
    return Example.from_dict(doc, {"tags": ["X"] * len(doc)})


@pytest.fixture
def counted(monkeypatch):
    """Counts the forward passes of every BERT, packed or not, in use or in training."""
    from transformers import BertModel

    from spacy_sbert.models.engine import training as forward
    from spacy_sbert.models.engine.packed_bert import PackedBert

    calls = []
    for kind, name in ((BertModel, "forward"), (PackedBert, "__call__"), (forward, "_packed_states")):
        stock = getattr(kind, name)
        monkeypatch.setattr(
            kind, name, lambda self, *args, stock=stock, **kw: calls.append(1) or stock(self, *args, **kw)
        )
    return calls


@pytest.mark.parametrize("encoder", SHARING)
def test_one_forward_pass_for_two_listeners(make_nlp, encoder, counted):
    nlp = make_nlp(encoder)
    add_tagger(nlp)
    nlp.initialize(lambda: [tagged(nlp, TEXT)])
    counted.clear()
    list(nlp.pipe([TEXT, "The cat sat.", "dog"], batch_size=8))
    assert len(counted) == 1
    counted.clear()
    nlp.update([tagged(nlp, TEXT), make_example(nlp, "A man.", "The cat.")], sgd=nlp.create_optimizer())
    assert len(counted) == 1


@pytest.mark.filterwarnings("ignore:.*training batch without pairs")
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("encoder", SHARING)
def test_both_listeners_train_the_same_weights(make_nlp, encoder, first):
    nlp = make_nlp(encoder)
    add_tagger(nlp, before="sbert") if first else add_tagger(nlp)
    pair, tags = make_example(nlp, "A man is eating.", "The cat sat.", 0.9), tagged(nlp, "The dog ran.")
    nlp.initialize(lambda: [tags])
    optimizer = nlp.create_optimizer()
    for batch in ([pair], [tags], [pair, tags]):
        before = weights(nlp, "transformer")
        nlp.update(batch, sgd=False)
        finish_update(nlp, optimizer)
        after = weights(nlp, "transformer")
        moved = [key for key in before if not numpy.array_equal(before[key], after[key])]
        assert any("query" in key for key in moved), "the encoder did not learn"


@pytest.mark.parametrize(
    ("encoder", "architecture"), [("shared", "TransformerTok2Vec"), ("spacy-transformers", "Tok2VecTransformer")]
)
def test_replace_listeners(make_nlp, tmp_path, encoder, architecture):
    nlp = make_nlp(encoder)
    add_tagger(nlp)
    nlp.initialize(lambda: [tagged(nlp, TEXT)])
    expected = nlp(TEXT).vector
    nlp.replace_listeners("transformer", "sbert", ["model.tok2vec"])
    nlp.replace_listeners("transformer", "tagger", ["model.tok2vec"])
    assert nlp.get_pipe("transformer").listener_map == {}
    assert numpy.array_equal(nlp(TEXT).vector, expected)
    loaded = reloaded(nlp, tmp_path / "nlp", exclude=["transformer"])
    assert numpy.array_equal(loaded(TEXT).vector, expected)
    assert loaded.config["components"]["tagger"]["model"]["tok2vec"]["@architectures"] == (
        f"spacy-sbert.{architecture}.v1"
    )
    assert [t.tag_ for t in loaded(TEXT)] == ["X"] * len(loaded(TEXT))


@pytest.mark.spacy_transformers
@pytest.mark.parametrize("getter", ["spacy-transformers.doc_spans.v1", "spacy-sbert.sentence_spans.v1"])
def test_stock_transformer_with_whole_docs_is_exact(make_nlp, tiny_bert, getter, tmp_path):
    nlp, own = stock_nlp(tiny_bert, getter), make_nlp()
    doc, expected = nlp(TEXT), own(TEXT)
    assert numpy.allclose(doc.vector, expected.vector, atol=1e-5)
    assert numpy.allclose(doc[6:9].vector, expected[6:9].vector, atol=1e-5)
    nlp.replace_listeners("transformer", "sbert", ["model.tok2vec"])
    assert numpy.array_equal(nlp(TEXT).vector, doc.vector)
    assert numpy.array_equal(reloaded(nlp, tmp_path / "nlp", exclude=["transformer"])(TEXT).vector, doc.vector)


@pytest.mark.spacy_transformers
def test_stock_transformer_with_sentences(make_nlp, tiny_bert):
    nlp, own = stock_nlp(tiny_bert, "spacy-transformers.sent_spans.v1"), make_nlp(unit="sent")
    nlp.add_pipe("sentencizer", first=True)
    doc, expected = nlp(TEXT), own(TEXT)
    for given, wanted in ((doc, expected), *zip(doc.sents, expected.sents, strict=True)):
        assert numpy.allclose(given.vector, wanted.vector, atol=1e-6)
    doc = nlp("The cat sat. \n\n he can go. \n")
    doc[4].is_sent_start = True  # the white space begins the second sentence
    for sentence, text in zip(doc.sents, ["The cat sat.", "he can go."], strict=False):
        assert numpy.allclose(sentence.vector, nlp(text).vector, atol=1e-5)
    with pytest.raises(ValueError, match="is not of this package"):
        nlp.get_pipe("sbert").encode([TEXT])


@pytest.mark.parametrize("encoder", SHARING)
def test_pairs_with_gaps_beside_a_tagger(make_nlp, encoder):
    nlp = make_nlp(encoder)
    add_tagger(nlp)
    doc = nlp.make_doc("dog The cat sat on the mat. he ran A man is eating. fast")
    example = Example.from_dict(doc, {"tags": ["X"] * len(doc)})
    for one in (example.predicted, example.reference):
        one.spans["sbert"] = [one[10:15], one[1:8]]
    example.reference.spans["sbert"].attrs["score"] = 0.7
    nlp.initialize(lambda: [example])
    losses = nlp.update([tagged(nlp, TEXT), example, tagged(nlp, "dog")], sgd=False)
    assert losses["sbert"] > 0 and "tagger" in losses
    given = nlp(doc.copy())
    assert [token.tag_ for token in given] == ["X"] * len(doc)
    assert not given[0].has_vector and given[1].has_vector


@pytest.mark.spacy_transformers
def test_normalize_auto_of_a_stock_transformer(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}', encoding="utf8")
    nlp = stock_nlp(folder, "spacy-transformers.doc_spans.v1")
    assert nlp(TEXT).vector_norm == pytest.approx(1.0)
    late = reloaded(nlp, tmp_path / "nlp", exclude=["sbert"])
    late.add_pipe("sbert", name="late", config=SHARED)  # never initialised
    assert late(TEXT).vector_norm == pytest.approx(1.0)
    shutil.rmtree(folder)  # on another machine
    loaded = spacy.load(tmp_path / "nlp")
    loaded.initialize()
    assert loaded(TEXT).vector_norm == pytest.approx(1.0)


@pytest.mark.spacy_transformers
@pytest.mark.parametrize("architecture", ["spacy-transformers.TransformerModel.v3", "spacy-sbert.TransformerModel.v1"])
def test_overlapping_windows_count_no_token_twice(tiny_bert, architecture):
    nlp = stock_nlp(tiny_bert, architecture=architecture, window=8, stride=6)
    with pytest.warns(UserWarning, match="overlapping windows") as caught:
        doc = nlp("the cat sat on a mat he is eating food a man ran")
        other = nlp("the cat sat on a mat he is eating food a man ran fast")
    assert len(caught) == 1
    tokens = numpy.array([token.vector for token in doc])  # each a single wordpiece
    assert numpy.allclose(doc.vector, tokens.mean(axis=0), atol=1e-5)
    assert doc.has_vector and doc.similarity(other) > 0.9


@pytest.mark.spacy_transformers
def test_pairs_on_overlapping_windows_are_refused(tiny_bert):
    nlp = stock_nlp(tiny_bert)
    pair = make_example(nlp, "A man is eating.", "The cat sat.")
    for learn in (lambda: nlp.update([pair]), lambda: nlp.initialize(lambda: [pair]), lambda: nlp.evaluate([pair])):
        with pytest.raises(ValueError, match=r"rows are not the members.*spacy-sbert\.sentence_spans\.v1"):
            learn()


@pytest.mark.parametrize("encoder", SHARING)
def test_no_transformer(make_nlp, encoder):
    nlp = make_nlp(encoder)
    with nlp.select_pipes(disable="transformer"), pytest.raises(ValueError, match="it is disabled"):
        nlp(TEXT)
    other = {"tok2vec": {"@architectures": "spacy-sbert.SentenceListener.v1", "upstream": "other"}}
    for tok2vec, message in (({}, "no 'sbert_transformer', 'transformer'"), (other, 'upstream = "other"')):
        nlp = spacy.blank("xx")
        nlp.add_pipe("sbert", config={"model": {**SHARED["model"], **tok2vec}})
        with pytest.raises(ValueError, match=message):
            nlp.initialize()
        with pytest.raises(ValueError, match="has not processed this Doc"):
            nlp(TEXT)


@pytest.mark.parametrize("architecture", ["TransformerModel", "Tok2VecTransformer"])
def test_without_spacy_transformers(monkeypatch, architecture):
    monkeypatch.setattr("spacy_sbert.architectures.is_installed", lambda: False)
    block = {"@architectures": f"spacy-sbert.{architecture}.v1"}
    block |= {"pooling": {"@layers": "reduce_mean.v1"}} if architecture == "Tok2VecTransformer" else {}
    message = rf'spacy-sbert\.{architecture}\.v1 needs .* pip install "spacy-sbert\[transformers\]"'
    with pytest.raises(ImportError, match=message):
        registry.resolve({"model": block})


@pytest.mark.parametrize("first", ["textcat", "ner"])
def test_textcat_ensemble_listens(make_nlp, first):
    """It adds up what the backward passes of its parts return."""
    nlp = make_nlp("shared")
    for name in (first, {"textcat": "ner", "ner": "textcat"}[first]):
        architecture = {"@architectures": "spacy.TextCatEnsemble.v2"} if name == "textcat" else {}
        nlp.add_pipe(name, config={"model": {**architecture, "tok2vec": LISTENER}})
    gold = {"cats": {"x": 1.0, "y": 0.0}, "entities": [(2, 5, "PERSON")]}
    examples = [Example.from_dict(nlp.make_doc("a man is eating"), gold)]
    optimizer = nlp.initialize(lambda: examples)
    before = weights(nlp, "transformer")
    for _ in range(3):  # at first the heads are zeros
        nlp.update(examples, sgd=optimizer, exclude=["sbert"])
    assert any((before[key] != after).any() for key, after in weights(nlp, "transformer").items())
