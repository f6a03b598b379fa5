"""precision = "reference": float32 in the batches of sentence-transformers, to the last bit."""

import numpy
import pytest
import torch
from helpers.pipelines import HOLDER, TRANSFORMERS, gradients
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

WORDS = [
    "a",
    "man",
    "is",
    "eating",
    "food",
    "the",
    "cat",
    "sat",
    "on",
    "the",
    "mat",
    "and",
    "he",
    "ran",
    "fast",
]


def make_texts(n):
    """Of many lengths, in characters and in wordpieces, some equal."""
    rng = numpy.random.default_rng(6)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 15))) for _ in range(n)]


def make_pipeline(make_nlp, encoder="own", **settings):
    transformer = {"precision": "reference", **settings}
    return make_nlp(encoder, transformer=transformer, model={"pooling": "cls", "normalize": False})


@pytest.fixture
def theirs(tiny_bert):
    transformer = Transformer(str(tiny_bert))
    return SentenceTransformer(modules=[transformer, Pooling(16, "cls")], device="cpu")


@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_the_same_bits(make_nlp, theirs, encoder):
    texts = make_texts(300)
    nlp = make_pipeline(make_nlp, encoder)
    expected = theirs.encode(texts)
    piped = numpy.stack([doc.vector for doc in nlp.pipe(texts)])
    if encoder == "own":
        assert numpy.array_equal(piped, expected)
    else:
        # A `transformer` makes batches of its own from those of `nlp.pipe`
        assert numpy.allclose(piped, expected, atol=3e-6)
    assert numpy.array_equal(nlp.get_pipe("sbert").encode(texts), expected)
    one = nlp(texts[5]).vector
    assert numpy.array_equal(one, theirs.encode(texts[5]))


def test_prompts(make_nlp, theirs):
    texts = make_texts(100)
    given = make_pipeline(make_nlp).get_pipe("sbert").encode(texts, prompt="the cat: ")
    assert numpy.array_equal(given, theirs.encode(texts, prompt="the cat: "))


@pytest.mark.parametrize("encoder", ["own", pytest.param("shared", marks=pytest.mark.slow)])
def test_training_is_that_of_float32(make_nlp, examples, encoder):
    found = []
    for precision in ("reference", "float32"):
        nlp = make_pipeline(
            make_nlp, encoder, precision=precision, transformer_config={"hidden_dropout_prob": 0.0}
        )
        torch.manual_seed(0)
        nlp.update(examples(nlp), sgd=False)
        found.append(gradients(nlp, HOLDER[encoder]))
    assert found[0]
    assert all(numpy.array_equal(found[0][key], found[1][key]) for key in found[1])


def test_no_budget_beside_it(make_nlp):
    with pytest.raises(
        ValueError, match='max_batch_items = 100 and precision = "reference" do not go together'
    ):
        make_pipeline(make_nlp, max_batch_items=100)
    encoder = make_pipeline(make_nlp).get_pipe("sbert").text_encoder()
    with pytest.raises(ValueError, match='max_batch_items = 64 and precision = "reference"'):
        encoder.budget(64, [])
    assert encoder.budget(0, []) > 0
