"""The same vectors and scores as sentence-transformers, on the real model."""

import numpy
import pytest
import spacy
from helpers.pipelines import MINILM, SHARING, mpnet, one_pipe, real_data, slow
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from spacy_sbert.evaluation import evaluate
from spacy_sbert.models.resolve import resolve
from spacy_sbert.readers import read_sts

MADE_UP = [
    "A man is eating food.",
    "Someone is having a meal.",
    "",
    "He cannot go, don't you  think?",
    "é中文 😀 a\x00b",
    "word " * 300,
    " leading and trailing ",
]


@pytest.fixture(scope="module")
def sentences():
    """100 STSb sentences where the data is, and a few odd ones everywhere."""
    try:
        path = real_data() / "sts" / "STSBenchmark" / "sts-dev.csv"
    except pytest.skip.Exception:
        return MADE_UP
    return (
        MADE_UP
        + [sentence for first, second, _ in read_sts(path) for sentence in (first, second)][:100]
    )


def vectors(nlp, texts, batch_size=32):
    return numpy.array([doc.vector for doc in nlp.pipe(texts, batch_size=batch_size)])


@pytest.fixture(scope="module")
def expected(sentences):
    return SentenceTransformer(str(resolve(MINILM)), device="cpu").encode(sentences, batch_size=32)


@pytest.mark.filterwarnings("ignore:.*rows were longer")
@pytest.mark.parametrize("batch_size", [pytest.param(1, marks=pytest.mark.slow), 1000])
def test_default_equals_the_packaged_model(minilm, sentences, expected, batch_size):
    given = vectors(minilm, sentences, batch_size)
    text = [bool(sentence.strip()) for sentence in sentences]
    assert numpy.abs(given[text] - expected[text]).max() < 1e-5
    assert not given[[not t for t in text]].any(), "no text, no vector: the one difference"


@pytest.mark.filterwarnings("ignore:.*rows were longer")
@pytest.mark.parametrize("encoder", ["own", *slow(*SHARING)])
def test_poolings_equal_sentence_transformers(sentences, encoder):
    """Side by side, in the order of sentence-transformers."""
    texts = [sentence for sentence in sentences if sentence.strip()][:40]
    transformer = Transformer(str(resolve(MINILM)), max_seq_length=256)
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode=("cls", "max", "mean"))
    expected = SentenceTransformer(modules=[transformer, pooling], device="cpu").encode(texts)
    nlp = spacy.blank("en")
    model = {"pooling": "cls+max+mean", "normalize": False}
    if encoder in SHARING:
        factory, architecture = SHARING[encoder]
        nlp.add_pipe(
            factory, name="transformer", config={"model": {"@architectures": architecture}}
        )
        model["@architectures"] = "spacy-sbert.SharedSentenceEncoder.v1"
    nlp.add_pipe("sbert", config={"model": model})
    assert numpy.abs(vectors(nlp, texts) - expected).max() < 1e-5


def test_zero_shot_on_stsb_dev(minilm):
    scores = evaluate(minilm, real_data() / "sts" / "STSBenchmark" / "sts-dev.csv")
    assert scores["pairs"] == 1500
    assert 100 * scores["sts_spearman"] == pytest.approx(86.72, abs=0.01)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*rows were longer")
def test_mpnet(sentences):
    folder = mpnet()
    texts = [sentence for sentence in sentences if sentence.strip()]
    expected = SentenceTransformer(str(folder), device="cpu").encode(texts, batch_size=32)
    given = one_pipe(folder, precision="float32").get_pipe("sbert").encode(texts)
    assert numpy.abs(given - expected).max() < 1e-5
    # One word 300 times is far off in half precision
    short = numpy.array([len(text) < 1000 for text in texts])
    half = one_pipe(folder, precision="bfloat16").get_pipe("sbert").encode(texts)
    cosines = (half * expected).sum(1)
    assert cosines[short].min() > 0.9998
    assert cosines.min() > 0.99
    assert cosines.max() < 1.0


@pytest.mark.slow
def test_mpnet_on_stsb_dev():
    scores = evaluate(
        one_pipe(mpnet(), precision="float32"), real_data() / "sts" / "STSBenchmark" / "sts-dev.csv"
    )
    assert scores["pairs"] == 1500
    assert 100 * scores["sts_spearman"] == pytest.approx(88.11, abs=0.02)
