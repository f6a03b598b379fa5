"""Members of a meta-embedding: sentence encoders and static vectors."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy
import srsly
from spacy.tokens import Doc, Span
from spacy.util import registry
from thinc.util import to_numpy

from ..errors import Errors
from ..files.serialization import file_digest
from ..files.text_lines import read_counts
from ..models.spans import trimmed
from ..models.word_layers import SMOOTHING, first_component_of, sif_weights, weighted_mean
from ..pipeline import doc_vectors
from ..validation import PositiveFloat, validated

Docs = Callable[[], Iterable[Doc]]  # a corpus that is read more than once
Function = Callable[[Sequence[Doc | Span]], numpy.ndarray]


@runtime_checkable
class Saveable(Protocol):
    """A function that is saved with its pipe."""

    def to_bytes(self) -> bytes: ...

    def from_bytes(self, data: bytes) -> object: ...


@runtime_checkable
class _Learner(Protocol):
    """A function that learns from the corpus that the meta-embedding is fitted on."""

    def fit(self, docs: Docs) -> None: ...


class PipeMember:
    """A pipe before this one, such as `sbert`, by the vectors that it stores on Docs."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"PipeMember('{self.name}')"

    def records(self, doc: Doc) -> list[doc_vectors.PlacedRecord]:
        """Return what the pipe stored on a Doc; several records after `Doc.from_docs`. RAISES (ValueError): if none."""
        records = doc_vectors.find(doc, self.name)
        if not records:
            raise ValueError(
                f"The member '{self.name}' of a meta-embedding left no vector on the Doc '{doc.text[:50]}': "
                "its pipe is disabled, or stands behind the meta-embedding. Enable it, or move it before."
            )
        return records

    def vectors(self, stretches: Sequence[Doc | Span]) -> numpy.ndarray:
        """Return the vectors of Docs, or of Spans of them, float32 (n, width)."""
        return numpy.stack([self._vector(stretch) for stretch in stretches])

    def _vector(self, stretch: Doc | Span) -> numpy.ndarray:
        if isinstance(stretch, Doc):
            return doc_vectors.doc_vector(stretch, self.records(stretch))[0]
        return doc_vectors.span_vector(stretch, self.records(stretch.doc))[0]


class FunctionMember:
    """A registered function from Docs, or Spans, to vectors."""

    def __init__(self, name: str, function: object):
        """Create the member. RAISES (ValueError): if function cannot be called."""
        if not callable(function):
            raise ValueError(
                f"The member '{name}' of a meta-embedding is not a function but a {type(function).__name__}: "
                f"expected a registered function, such as [components.sbert_meta.functions.{name}] @misc = "
                '"spacy-sbert.MeanStaticVectors.v1".'
            )
        self.name = name
        self.function: Function = function

    def __repr__(self) -> str:
        return f"FunctionMember('{self.name}')"

    def vectors(self, stretches: Sequence[Doc | Span]) -> numpy.ndarray:
        """Return the rows of the function, float32 (n, width). RAISES (ValueError): if they are not one a text."""
        rows = to_numpy(self.function(list(stretches)))
        n = len(stretches)
        if rows.ndim != 2 or len(rows) != n:
            raise ValueError(
                f"The function '{self.name}' of a meta-embedding gave an array of shape {rows.shape} for {n} "
                "texts: expected a row for each."
            )
        return rows.astype("float32", copy=False)

    def identity(self) -> Iterator[str | bytes]:
        """Yield what identifies the function: its name, the file that defines it, and what it learned.

        Its settings are in the config.
        """
        code = self.function if inspect.isroutine(self.function) else type(self.function)
        yield code.__qualname__
        try:
            file = inspect.getsourcefile(code)
        except TypeError:  # a builtin
            file = None
        if file and Path(file).is_file():  # code that was typed in has none
            yield file_digest(Path(file))
        if hasattr(self.function, "to_bytes"):
            yield self.function.to_bytes()


Member = PipeMember | FunctionMember


def learner(member: Member) -> _Learner | None:
    """Return the function of a member if it has fit, else None."""
    function = getattr(member, "function", None)
    return function if isinstance(function, _Learner) else None


@dataclass
class Rows:
    """The rows of a Doc, as the first pipe among the members has them.

    places: int32 (rows, 2), the characters of each. has_text: bool (rows,). truncated: whether a row was cut.
    """

    places: numpy.ndarray
    has_text: numpy.ndarray
    truncated: bool

    def cut(self, doc: Doc) -> Iterator[Doc | Span]:
        """Yield each row as a Span, or the Doc itself if it is the only row."""
        if len(self.places) == 1 and tuple(self.places[0].tolist()) == trimmed(doc.text, 0):
            yield doc
            return
        for start, end in self.places.tolist():
            first = start - 1 if start == end else start  # a row of white space is the empty range at its end
            span = doc.char_span(first, end, alignment_mode="expand")
            if span is None:
                raise ValueError(
                    f"A member's row, characters {start} to {end}, reaches beyond the Doc '{doc.text[:50]}', "
                    "which is a part of another one. Process its text again."
                )
            yield span


_BLOCK = 1024


@registry.misc("spacy-sbert.MeanStaticVectors.v1")
def mean_static_vectors() -> Function:
    """Make `spacy-sbert.MeanStaticVectors.v1`: the mean of the static vectors of the tokens that have one."""
    return _MeanStaticVectors()


@registry.misc("spacy-sbert.SmoothInverseFrequency.v1")
@validated
def smooth_inverse_frequency(a: PositiveFloat = SMOOTHING, counts: str | Path | None = None) -> Function:
    """Make `spacy-sbert.SmoothInverseFrequency.v1`, see SmoothInverseFrequency."""
    return SmoothInverseFrequency(a, counts)


class _MeanStaticVectors:
    """v(s) = 1 / |s| sum_{w in s} v_w over the tokens that have a static vector, and 0 where none has one."""

    def __repr__(self) -> str:
        return "MeanStaticVectors()"

    def __call__(self, stretches: Sequence[Doc | Span]) -> numpy.ndarray:
        """Return the means, float32 (n, width). RAISES (ValueError): if the vocab has no vectors."""
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
        while block := list(islice(stream, _BLOCK)):
            rows = _means(block, self.weights).astype("float64")
            squares = squares + rows.T @ rows
        self.component = first_component_of(squares) if squares.ndim else numpy.zeros(0)

    def __call__(self, stretches: Sequence[Doc | Span]) -> numpy.ndarray:
        """Return the vectors, float32 (n, width). RAISES (ValueError): if not fitted, or without static vectors."""
        if not self.component.size:
            raise ValueError(
                "Weights by smooth inverse frequency are not known yet: fit the meta-embedding that the "
                "function is a member of, with nlp.initialize or python -m spacy sbert fit-meta."
            )
        rows = _means(stretches, self.weights).astype("float64")
        return (rows - numpy.outer(rows @ self.component, self.component)).astype("float32")

    def to_bytes(self) -> bytes:
        """Return the weights and the component."""
        return srsly.msgpack_dumps({"weights": self.weights, "component": self.component})

    def from_bytes(self, data: bytes) -> "SmoothInverseFrequency":
        """Load what to_bytes returned. RAISES (ValueError): if it is something else."""
        state = srsly.msgpack_loads(data)
        weights, component = state.get("weights"), state.get("component")
        if not (isinstance(weights, dict) and isinstance(component, numpy.ndarray) and component.ndim == 1):
            raise ValueError(Errors.META_BAD_STATE.format(what="weights and component", given=sorted(state)))
        self.weights, self.component = weights, numpy.array(component, dtype="float64")
        return self


def _means(stretches: Sequence[Doc | Span], weights: dict[str, float]) -> numpy.ndarray:
    if stretches and not stretches[0].vocab.vectors.size:
        raise ValueError(
            "A member of the meta-embedding takes static vectors, and the pipeline's vocab has none. Load "
            "them, for example with python -m spacy init vectors, or take the member out."
        )
    width = stretches[0].vocab.vectors_length if stretches else 0
    rows = [weighted_mean(stretch, weights) for stretch in stretches]
    return numpy.array(rows, dtype="float32").reshape(len(rows), width)
