"""Sentence vectors over a `transformer` of spacy-transformers, as it is."""

import shutil

import numpy
import pytest
import spacy
from helpers.pipelines import make_example, reloaded, stock_nlp, write_modules
from spacy.util import registry

TEXT = "A man is eating food. He cannot go."
SHARED = {"model": {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}}


@pytest.mark.spacy_transformers
@pytest.mark.parametrize(
    "getter", ["spacy-transformers.doc_spans.v1", "spacy-sbert.sentence_spans.v1"]
)
def test_stock_transformer_with_whole_docs_is_exact(make_nlp, tiny_bert, getter, tmp_path):
    nlp = stock_nlp(tiny_bert, getter)
    own = make_nlp()
    doc = nlp(TEXT)
    expected = own(TEXT)
    assert numpy.allclose(doc.vector, expected.vector, atol=1e-5)
    assert numpy.allclose(doc[6:9].vector, expected[6:9].vector, atol=1e-5)
    nlp.replace_listeners("transformer", "sbert", ["model.tok2vec"])
    assert numpy.array_equal(nlp(TEXT).vector, doc.vector)
    assert numpy.array_equal(
        reloaded(nlp, tmp_path / "nlp", exclude=["transformer"])(TEXT).vector, doc.vector
    )


@pytest.mark.spacy_transformers
def test_stock_transformer_with_sentences(make_nlp, tiny_bert):
    nlp = stock_nlp(tiny_bert, "spacy-transformers.sent_spans.v1")
    own = make_nlp(unit="sent")
    nlp.add_pipe("sentencizer", first=True)
    doc = nlp(TEXT)
    expected = own(TEXT)
    for given, wanted in ((doc, expected), *zip(doc.sents, expected.sents, strict=True)):
        assert numpy.allclose(given.vector, wanted.vector, atol=1e-6)
    doc = nlp("The cat sat. \n\n he can go. \n")
    # The white space begins the second sentence
    doc[4].is_sent_start = True
    for sentence, text in zip(doc.sents, ["The cat sat.", "he can go."], strict=False):
        assert numpy.allclose(sentence.vector, nlp(text).vector, atol=1e-5)
    with pytest.raises(ValueError, match="is not of this package"):
        nlp.get_pipe("sbert").encode([TEXT])


@pytest.mark.spacy_transformers
def test_normalize_auto_of_a_stock_transformer(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    write_modules(
        folder, ("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")
    )
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_mean_tokens": true}', encoding="utf8"
    )
    nlp = stock_nlp(folder, "spacy-transformers.doc_spans.v1")
    assert nlp(TEXT).vector_norm == pytest.approx(1.0)
    late = reloaded(nlp, tmp_path / "nlp", exclude=["sbert"])
    # Never initialised
    late.add_pipe("sbert", name="late", config=SHARED)
    assert late(TEXT).vector_norm == pytest.approx(1.0)
    # On another machine
    shutil.rmtree(folder)
    loaded = spacy.load(tmp_path / "nlp")
    loaded.initialize()
    assert loaded(TEXT).vector_norm == pytest.approx(1.0)


@pytest.mark.spacy_transformers
@pytest.mark.parametrize(
    "architecture", ["spacy-transformers.TransformerModel.v3", "spacy-sbert.TransformerModel.v1"]
)
def test_overlapping_windows_count_no_token_twice(tiny_bert, architecture):
    nlp = stock_nlp(tiny_bert, architecture=architecture, window=8, stride=6)
    with pytest.warns(UserWarning, match="overlapping windows") as caught:
        doc = nlp("the cat sat on a mat he is eating food a man ran")
        other = nlp("the cat sat on a mat he is eating food a man ran fast")
    assert len(caught) == 1
    # Each a single wordpiece
    tokens = numpy.array([token.vector for token in doc])
    assert numpy.allclose(doc.vector, tokens.mean(axis=0), atol=1e-5)
    assert doc.has_vector
    assert doc.similarity(other) > 0.9


@pytest.mark.spacy_transformers
def test_pairs_on_overlapping_windows_are_refused(tiny_bert):
    nlp = stock_nlp(tiny_bert)
    pair = make_example(nlp, "A man is eating.", "The cat sat.")
    for learn in (
        lambda: nlp.update([pair]),
        lambda: nlp.initialize(lambda: [pair]),
        lambda: nlp.evaluate([pair]),
    ):
        with pytest.raises(ValueError, match=r"spacy-sbert\.sentence_spans\.v1"):
            learn()


@pytest.mark.parametrize("architecture", ["TransformerModel", "Tok2VecTransformer"])
def test_without_spacy_transformers(monkeypatch, architecture):
    monkeypatch.setattr("spacy_sbert.architectures.is_installed", lambda: False)
    block = {"@architectures": f"spacy-sbert.{architecture}.v1"}
    block |= (
        {"pooling": {"@layers": "reduce_mean.v1"}} if architecture == "Tok2VecTransformer" else {}
    )
    message = rf'spacy-sbert\.{architecture}\.v1 needs .* pip install "spacy-sbert\[transformers\]"'
    with pytest.raises(ImportError, match=message):
        registry.resolve({"model": block})
