"""What things say of themselves: one line, no addresses, and nothing is loaded for it."""

import re

import numpy
import pytest
import spacy
from pipelines import ENCODERS

from spacy_sbert.search import BinaryVectors, EncoderIdentity, Int8Vectors, VectorIndex

VECTORS = numpy.random.default_rng(0).normal(size=(5, 16)).astype("float32")


def is_a_line(said):
    return "\n" not in said and not re.search("0x[0-9a-f]{6}|array", said)


def test_an_encoder_of_its_own(tiny_bert):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("sbert", name="mine", config={"model": {"name": str(tiny_bert), "pooling": "mean+max"}})
    assert repr(pipe) == f"SentenceBert('mine': {tiny_bert}, mean+max pooling, float32, not loaded yet)"
    (encoded,) = pipe.predict([nlp.make_doc("A man is eating food.")])
    assert repr(pipe) == f"SentenceBert('mine': {tiny_bert}, mean+max pooling, 32 numbers, float32 on cpu)"
    assert repr(encoded) == "EncodedDoc(1 vectors of 32 numbers, mean+max pooling)"


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder(make_nlp, tiny_bert, encoder):
    pipe = make_nlp(encoder, model={"pooling": "max"}).get_pipe("sbert")
    said = repr(pipe)
    assert is_a_line(said) and said.startswith("SentenceBert('sbert': ") and "max pooling" in said
    kinds = {
        "own": f"{tiny_bert}, ",
        "shared": f"{tiny_bert} (shared)",
        "static": f"table of wordpieces of {tiny_bert}",
        "curated": "hears any component",
        "listening": "hears any component",
    }
    assert kinds.get(encoder, "tokens, ") in said


def test_meta_embeddings(make_nlp):
    nlp = make_nlp()
    nlp.add_pipe("sbert", name="other", source=make_nlp())
    meta = nlp.add_pipe("sbert_meta")
    assert repr(meta) == "SentenceMeta('sbert_meta': conc of sbert, other, not fitted yet)"
    nlp("a man")
    assert repr(meta) == "SentenceMeta('sbert_meta': conc of sbert, other, 32 numbers)"


def test_reranker(tiny_bert):
    pipe = spacy.blank("en").add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}})
    assert repr(pipe) == f"SentenceReranker('sbert_reranker': {tiny_bert}, regression, float32, not loaded yet)"
    pipe.score_pairs([("a man", "the dog")])
    assert repr(pipe) == f"SentenceReranker('sbert_reranker': {tiny_bert}, regression, float32 on cpu)"


def test_vectors():
    index = VectorIndex.build(VECTORS, encoder=EncoderIdentity("model-a", 16, "a" * 64), ids=range(5))
    assert repr(index) == "VectorIndex(flat: 5 vectors of 16 numbers by model-a, with texts or ids)"
    assert repr(VectorIndex.build(VECTORS, kind="hnsw")) == "VectorIndex(hnsw: 5 vectors of 16 numbers)"
    assert repr(Int8Vectors.fit(VECTORS).apply(VECTORS)) == "Int8Vectors(5 vectors of 16 numbers)"
    assert repr(BinaryVectors.of(VECTORS)) == "BinaryVectors(5 vectors of 16 numbers)"
