"""Static vectors as members of a meta-embedding: their mean, or their mean by smooth inverse frequency."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy
import srsly
from spacy.tokens import Doc, Span
from spacy.util import registry

from ..errors.checks import PositiveFloat, validated
from ..files.word_counts import read_counts
from ..similarity.static_vectors import SMOOTHING, first_component_of, sif_weights, weighted_mean
from .errors import Errors
from .members import Docs, Function

BLOCK = 1024


@registry.misc("spacy-sbert.MeanStaticVectors.v1")
def mean_static_vectors() -> Function:
    """Make `spacy-sbert.MeanStaticVectors.v1`: the mean of the static vectors of the tokens that have one."""
    return MeanStaticVectors()


@registry.misc("spacy-sbert.SmoothInverseFrequency.v1")
@validated
def smooth_inverse_frequency(a: PositiveFloat = SMOOTHING, counts: str | Path | None = None) -> Function:
    """Make `spacy-sbert.SmoothInverseFrequency.v1`, see SmoothInverseFrequency."""
    return SmoothInverseFrequency(a, counts)


class MeanStaticVectors:
    """v(s) = 1 / |s| sum_{w in s} v_w over the tokens that have a static vector, and 0 where none has one."""

    def __repr__(self) -> str:
        return "MeanStaticVectors()"

    def __call__(self, stretches: Sequence[Doc | Span]) -> numpy.ndarray:
        """RETURNS (float32 (n, width)). RAISES (ValueError): if the vocab has no vectors."""
        return _means(stretches, {})


class SmoothInverseFrequency:
    """Smooth inverse frequency (SIF): a weighted mean of static vectors, without its first principal component.

    v(s) = 1 / |s| sum_{w in s} a / (a + p(w)) v_w; then v(s) - u u' v(s), where u is the first singular vector of the
    v(s) of the corpus, which is not centred.

    a (float): the smoothing.
    counts (str): a file of words and counts, see read_counts, read when the meta-embedding is fitted; by default the
        words of the corpus are counted.
    SOURCE: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings, algorithm 1.
    """

    @validated
    def __init__(self, a: PositiveFloat = SMOOTHING, counts: str | Path | None = None):
        self.a = a
        self.counts = counts
        self.weights: dict[str, float] = {}
        self.component = numpy.zeros(0)

    def __repr__(self) -> str:
        state = f"{len(self.component)} numbers" if len(self.component) else "not fitted yet"
        return f"SmoothInverseFrequency(a={self.a:g}, counts={self.counts!r}: {state})"

    def fit(self, docs: Docs) -> None:
        """Count words, unless there is a file of counts, and find the component that sentences have in common.

        docs (Callable): the Docs of the corpus, as often as it is called.
        """
        if self.counts is not None:
            counted: Mapping[str, int] = read_counts(Path(self.counts))
        else:
            counted = Counter(token.lower_ for doc in docs() for token in doc if not token.is_space)
        self.weights = sif_weights(counted, self.a) if counted else {}
        squares = numpy.zeros(())
        stream = iter(docs())
        while block := list(islice(stream, BLOCK)):
            rows = _means(block, self.weights).astype("float64")
            squares = squares + rows.T @ rows
        self.component = first_component_of(squares) if squares.ndim else numpy.zeros(0)

    def __call__(self, stretches: Sequence[Doc | Span]) -> numpy.ndarray:
        """RETURNS (float32 (n, width)). RAISES (ValueError): if it is not fitted, or the vocab has no vectors."""
        if not self.component.size:
            raise ValueError(Errors.META_FUNCTION_NOT_FITTED)
        rows = _means(stretches, self.weights).astype("float64")
        return (rows - numpy.outer(rows @ self.component, self.component)).astype("float32")

    def to_bytes(self) -> bytes:
        """The weights and the component."""
        return srsly.msgpack_dumps({"weights": self.weights, "component": self.component})

    def from_bytes(self, data: bytes) -> "SmoothInverseFrequency":
        """Take what to_bytes gave. RAISES (ValueError): if it is something else."""
        state = srsly.msgpack_loads(data)
        weights, component = state.get("weights"), state.get("component")
        if not (isinstance(weights, dict) and isinstance(component, numpy.ndarray) and component.ndim == 1):
            raise ValueError(Errors.META_BAD_STATE.format(what="weights and component", given=sorted(state)))
        self.weights, self.component = weights, numpy.array(component, dtype="float64")
        return self


def _means(stretches: Sequence[Doc | Span], weights: dict[str, float]) -> numpy.ndarray:
    if stretches and not stretches[0].vocab.vectors.size:
        raise ValueError(Errors.META_NO_STATIC_VECTORS)
    width = stretches[0].vocab.vectors_length if stretches else 0
    rows = [weighted_mean(stretch, weights) for stretch in stretches]
    return numpy.array(rows, dtype="float32").reshape(len(rows), width)
