"""Static vectors of words, and their weights by smooth inverse frequency (SIF)."""

from collections.abc import Mapping

import numpy
from spacy.tokens import Doc, Span
from thinc.util import to_numpy

from ..validation import PositiveFloat, check

SMOOTHING = 1e-3  # a, of Arora et al. 2017


def token_vectors(stretch: Doc | Span) -> tuple[list[str], numpy.ndarray]:
    """Return the static vectors of the tokens of a Doc or Span, whatever its hooks answer.

    Tokens without a vector are left out.

    RETURNS (n str, float32 (n, width)): the lower-cased tokens that have a vector, and those.
    """
    vocab = stretch.vocab
    found = [token for token in stretch if vocab.has_vector(token.orth) and not token.is_space]
    rows = [to_numpy(vocab.get_vector(token.orth)) for token in found]
    matrix = numpy.stack(rows) if rows else numpy.zeros((0, vocab.vectors_length))
    return [token.lower_ for token in found], matrix.astype("float32", copy=False)


def sif_weights(counts: Mapping[str, int], a: float = SMOOTHING) -> dict[str, float]:
    """Return a / (a + p(w)) of each word, p being its share of all counts.

    counts (Mapping): by lower-cased word. a (float): the smoothing.
    RETURNS (dict): the weights; words that are not counted weigh 1.
    RAISES (ValueError): if a is not above 0.
    SOURCE: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings, algorithm 1.
    """
    check("a", a, PositiveFloat)
    total = sum(counts.values())
    return {word: a / (a + count / total) for word, count in counts.items()}


def weighted_mean(stretch: Doc | Span, weights: Mapping[str, float]) -> numpy.ndarray:
    """1 / |s| sum_{w in s} weight(w) v_w over the tokens of s that have a vector, and 0 where none has.

    weights (Mapping): by lower-cased word; others weigh 1.
    RETURNS (float64 (width,)).
    """
    words, vectors = token_vectors(stretch)
    if not words:
        return numpy.zeros(vectors.shape[1])
    return numpy.array([weights.get(word, 1.0) for word in words]) @ vectors / len(words)


def first_component(rows: numpy.ndarray) -> numpy.ndarray:
    """Return the first right singular vector of rows that are not centred; 0 where all rows are.

    rows (float64 (n, width)). RETURNS (float64 (width,)): of length 1; its sign does not matter.
    """
    return first_component_of(rows.T @ rows)


def first_component_of(squares: numpy.ndarray) -> numpy.ndarray:
    """As first_component, of rows' squares X' X, float64 (width, width): a size that does not grow with n."""
    return numpy.linalg.eigh(squares)[1][:, -1] if squares.any() else numpy.zeros(len(squares))
