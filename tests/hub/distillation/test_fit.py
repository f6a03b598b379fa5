"""The parts of a table from a teacher: words, weights and the fit."""

import json

import numpy
import pytest
from scipy import sparse
from transformers import AutoTokenizer

from spacy_sbert.hub.distillation import (
    _frequency_weights,
    _frequent_words,
    _least_squares,
    _principal_axes,
    _with_words,
    _wordpiece_counts,
)
from spacy_sbert.models.static_embedding import without_special_tokens

RNG = numpy.random.default_rng(3)


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    """The JSON of a tokenizer that lower-cases, and knows few words."""
    return without_special_tokens(AutoTokenizer.from_pretrained(tiny_bert).backend_tokenizer.to_str())


def pieces(tokenizer, text):
    from tokenizers import Tokenizer

    return Tokenizer.from_str(tokenizer).encode(text).tokens


def test_no_special_tokens_no_cut_no_padding(tiny_bert):
    backend = AutoTokenizer.from_pretrained(tiny_bert).backend_tokenizer
    backend.enable_truncation(3)
    backend.enable_padding(length=9)
    assert len(backend.encode("a man is eating").tokens) == 9
    assert pieces(without_special_tokens(backend.to_str()), "a man is eating") == ["a", "man", "is", "eating"]


def test_words_are_counted_by_the_tokenizers_normaliser(tokenizer):
    texts = ["Zebra, ZEBRA zébra zebra's", "the the the the the the", "zebra horse horse horse horse", "ox " * 5]
    assert _frequent_words(tokenizer, texts, 10) == ["zebra", "ox"], "the is known, horse was seen four times"
    assert _frequent_words(tokenizer, texts, 1) == ["zebra"] and _frequent_words(tokenizer, texts, 0) == []
    assert _frequent_words(tokenizer, ["x" * 101 + " "] * 9, 10) == [], "longer than a word may be: it is unknown"


def test_words_stay_whole_and_all_else_is_as_before(tokenizer):
    n = len(json.loads(tokenizer)["model"]["vocab"])
    given = _with_words(tokenizer, ["zebra", "ox"], n)
    assert pieces(given, "A Zebra, an ox.") == ["a", "zebra", ",", "a", "##n", "ox", "."]
    assert json.loads(given)["model"]["vocab"] | {"zebra": n, "ox": n + 1} == json.loads(given)["model"]["vocab"]
    for text in ("The man cannot go.", "he sat on a horse", "axe", "zeb", "", "[MASK] 123"):
        assert pieces(given, text) == pieces(tokenizer, text)
    assert pieces(given, "zebras") == ["zebra", "##s"], "the longest wordpiece that it begins with"


def test_counts(tokenizer):
    ids = json.loads(tokenizer)["model"]["vocab"]
    counts = _wordpiece_counts(tokenizer, ["the cat the", "", "cat"], len(ids)).toarray()
    expected = numpy.zeros((3, len(ids)), dtype="int64")
    expected[0, [ids["the"], ids["cat"]]] = 2, 1
    expected[2, ids["cat"]] = 1
    assert counts.dtype == numpy.int64 and numpy.array_equal(counts, expected)


def test_frequency_weights():
    assert _frequency_weights(numpy.array([1, 0, 99])) == pytest.approx([0.01 / 0.02, 1.0, 0.01 / (0.01 + 0.99)])


def test_a_planted_map_is_found():
    table, planted = RNG.normal(size=(30, 8)), RNG.normal(size=(8, 5))
    counts = RNG.integers(0, 3, size=(50, 30))
    means = numpy.array([row @ table / row.sum() for row in counts])
    assert numpy.allclose(_least_squares(table, sparse.csr_array(counts), means @ planted), planted, atol=1e-12)


def test_no_other_map_is_nearer():
    """The gradient of the error is zero; with fewer texts than numbers, the map is the one of least norm."""
    table, counts, targets = RNG.normal(size=(30, 8)), RNG.integers(0, 3, size=(50, 30)), RNG.normal(size=(50, 5))
    means = counts @ table / counts.sum(axis=1)[:, None]
    found = _least_squares(table, sparse.csr_array(counts), targets)
    assert abs(means.T @ (means @ found - targets)).max() < 1e-12 * abs(means.T @ targets).max() * 100
    few = _least_squares(table, sparse.csr_array(counts[:3]), targets[:3])
    assert numpy.allclose(few, numpy.linalg.pinv(means[:3]) @ targets[:3], atol=1e-12)


def test_principal_axes():
    vectors = RNG.normal(size=(200, 6)) * [5, 4, 3, 2, 1, 0.5] + 1
    axes = _principal_axes(vectors, 2)
    expected = numpy.linalg.eigh(numpy.cov(vectors.T))[1]
    assert axes.shape == (6, 2) and numpy.allclose(axes.T @ axes, numpy.eye(2), atol=1e-12)
    assert numpy.allclose(abs(axes.T @ expected[:, [-1, -2]]), numpy.eye(2), atol=1e-9)
    assert numpy.array_equal(_principal_axes(vectors, 6), numpy.eye(6))
