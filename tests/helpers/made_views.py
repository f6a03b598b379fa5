"""Vectors of made encoders, and sentences for the tiny BERT: what meta-embeddings are fitted on."""

import numpy

WORDS = [
    "a",
    "man",
    "is",
    "eating",
    "food",
    "someone",
    "having",
    "meal",
    "the",
    "cat",
    "sat",
    "on",
    "mat",
]
WORDS += ["he", "can", "go", "dog", "ran", "fast"]
SENTENCES = [
    " ".join(numpy.random.default_rng(i).choice(WORDS, 3 + i % 5)) + "." for i in range(120)
]


def make_views(n=300, widths=(7, 5, 4), seed=2):
    """Views that share a signal of three numbers, with noise and means of their own."""
    rng = numpy.random.default_rng(seed)
    signal = rng.normal(size=(n, 3))
    return [
        (
            signal @ rng.normal(size=(3, width))
            + 0.5 * rng.normal(size=(n, width))
            + rng.normal(size=width)
        ).astype("f4")
        for width in widths
    ]


def unit(rows):
    """float64: of length 1, or of zeros."""
    rows = rows.astype("float64")
    norms = numpy.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / numpy.where(norms > 0, norms, 1)
