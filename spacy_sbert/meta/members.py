"""Members of a meta-embedding: pipes of the pipeline, and functions.

A function is, for example, a mean of static vectors.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
import srsly
from spacy.tokens import Doc, Span
from thinc.util import to_numpy

from ..files.text_lines import read_counts
from ..models.fingerprint import sample_of
from ..models.word_layers import SMOOTHING, first_component, sif_weights, weighted_mean
from ..pipeline import doc_vectors
from ..pipeline.digest import code_digest
from ..validation import PositiveFloat, validated

# A corpus that is read more than once
Docs = Callable[[], Iterable[Doc]]
Function = Callable[[Sequence[Doc | Span]], numpy.ndarray]


class PipeMember:
    """A pipe before the meta-embedding, such as `sbert`, by the vectors that it stores on Docs.

    name (str): of the pipe.
    """

    function: Any = None

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"PipeMember('{self.name}')"

    def records(self, doc: Doc) -> doc_vectors.Records:
        """Return what the pipe stored on a Doc; several records after `Doc.from_docs`.

        RAISES (ValueError): if none.
        """
        records = doc_vectors.find(doc, self.name)
        if not records:
            raise ValueError(
                f"The member '{self.name}' of a meta-embedding left no vector on a Doc: it is "
                "disabled, or comes later."
            )
        return records

    def vectors(self, spans: Sequence[Doc | Span]) -> numpy.ndarray:
        """Return the vectors of Docs, or of Spans of them, float32 (n, width)."""
        rows = []
        for span in spans:
            # Raises the error that names the member
            self.records(doc_vectors.doc_of(span))
            rows.append(doc_vectors.vector(span, self.name))
        return numpy.stack(rows)


class FunctionMember:
    """A registered function from Docs, or Spans, to vectors.

    It may have `fit`, which is given the Docs of the corpus (a function that iterates over them),
    and `to_bytes` and `from_bytes`, with which it is saved.
    """

    def __init__(self, name: str, function: Any):
        if not callable(function):
            raise ValueError(
                f"The member '{name}' of a meta-embedding is not a function but a "
                f"{type(function).__name__}."
            )
        self.name = name
        self.function = function

    def __repr__(self) -> str:
        return f"FunctionMember('{self.name}')"

    def vectors(self, spans: Sequence[Doc | Span]) -> numpy.ndarray:
        """Return the rows of the function, float32 (n, width).

        RAISES (ValueError): if they are not one a text.
        """
        rows = to_numpy(self.function(list(spans)))
        if rows.ndim != 2 or len(rows) != len(spans):
            raise ValueError(
                f"The function '{self.name}' gave an array of shape {rows.shape}: expected a row "
                "for each text."
            )
        return rows.astype("float32", copy=False)

    def learned(self) -> tuple[list[object], list[object]]:
        """Return what a function that learns holds, and some of the numbers in it.

        They change when it learns again.
        """
        if not hasattr(self.function, "to_bytes"):
            return [], []
        held = list(getattr(self.function, "__dict__", {}).values())
        numbers: list[object] = [
            sample_of(value) for value in held if isinstance(value, numpy.ndarray)
        ]
        numbers += [len(value) for value in held if isinstance(value, Collection)]
        return held, numbers

    def state(self) -> bytes:
        """Return what the function has learned; nothing of one that does not learn."""
        if not hasattr(self.function, "to_bytes"):
            return b""
        return self.function.to_bytes()

    def identity(self) -> Iterator[str | bytes]:
        """Yield what identifies the function: its name, its file, and what it learned.

        Its settings are in the config.
        """
        code = self.function if inspect.isroutine(self.function) else type(self.function)
        yield code.__qualname__
        yield code_digest(self.function)
        yield self.state()


Member = PipeMember | FunctionMember


# Docs whose vectors are made at once
BLOCK = 1024


def _weighted_means(spans: Sequence[Doc | Span], weights: dict[str, float]) -> numpy.ndarray:
    if spans and not spans[0].vocab.vectors.size:
        raise ValueError(
            "The vocab has no static vectors for a meta-embedding. Load them with spacy init "
            "vectors."
        )
    width = spans[0].vocab.vectors_length if spans else 0
    rows = [weighted_mean(span, weights) for span in spans]
    return numpy.array(rows, dtype="float32").reshape(len(rows), width)


def mean_static_vectors() -> Function:
    """Make `spacy-sbert.MeanStaticVectors.v1`.

    The mean of the static vectors of the tokens that have one:

    v(s) = 1 / |s| sum_{w in s} v_w, and 0 where no token has one
    """
    return _mean_static_vectors


def _mean_static_vectors(spans: Sequence[Doc | Span]) -> numpy.ndarray:
    return _weighted_means(spans, {})


@validated
def smooth_inverse_frequency(
    a: PositiveFloat = SMOOTHING, counts: str | Path | None = None
) -> Function:
    """Make `spacy-sbert.SmoothInverseFrequency.v1`.

    A weighted mean of static vectors, without the direction that all sentences share:

    v(s) = 1 / |s| sum_{w in s} a / (a + p(w)) v_w; then v(s) - u u' v(s), where u is the first
    singular vector of the v(s) of the corpus, which is not centred.

    a (float): the smoothing.
    counts (str): a file of words and counts, see read_counts, read when the meta-embedding is
        fitted; by default the words of the corpus are counted.
    SOURCE: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings,
        algorithm 1.
    """
    return _SmoothInverseFrequency(a, counts)


class _SmoothInverseFrequency:
    """Smooth inverse frequency, see smooth_inverse_frequency.

    weights: of words. component: u. Both are known once it is fitted.
    """

    def __init__(self, a: float, counts: str | Path | None):
        self.a = a
        self.counts = counts
        self.weights: dict[str, float] = {}
        self.component = numpy.zeros(0)

    def __repr__(self) -> str:
        state = f"{len(self.component)} numbers" if len(self.component) else "not fitted yet"
        return f"SmoothInverseFrequency(a={self.a:g}, counts={self.counts!r}: {state})"

    def fit(self, docs: Docs) -> None:
        """Count words, unless there is a file of counts, and find the component u.

        docs (Callable): the Docs of the corpus, as often as it is called.
        """
        if self.counts is not None:
            counted: Mapping[str, int] = read_counts(Path(self.counts))
        else:
            counted = Counter(token.lower_ for doc in docs() for token in doc if not token.is_space)
        self.weights = sif_weights(counted, self.a) if counted else {}
        self.component = numpy.zeros(0)
        squares: numpy.ndarray | None = None
        stream = iter(docs())
        while block := list(islice(stream, BLOCK)):
            rows = _weighted_means(block, self.weights).astype("float64")
            if squares is None:
                squares = numpy.zeros((rows.shape[1], rows.shape[1]))
            squares += rows.T @ rows
        if squares is not None:
            self.component = first_component(squares)

    def __call__(self, spans: Sequence[Doc | Span]) -> numpy.ndarray:
        """Return the vectors, float32 (n, width).

        RAISES (ValueError): if not fitted, or without static vectors.
        """
        if not self.component.size:
            raise ValueError(
                "Weights of smooth inverse frequency are not known yet. Fit them with "
                "nlp.initialize."
            )
        rows = _weighted_means(spans, self.weights).astype("float64")
        return (rows - numpy.outer(rows @ self.component, self.component)).astype("float32")

    def to_bytes(self) -> bytes:
        """Return the weights and the component."""
        return srsly.msgpack_dumps({"weights": self.weights, "component": self.component})

    def from_bytes(self, data: bytes) -> "_SmoothInverseFrequency":
        """Load what to_bytes returned."""
        state = srsly.msgpack_loads(data)
        self.weights = state["weights"]
        self.component = numpy.array(state["component"], dtype="float64")
        return self
