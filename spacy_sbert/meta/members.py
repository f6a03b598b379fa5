"""Where a member's vectors come from: a pipe that leaves them on the Doc, or a function of Docs."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy
from spacy.tokens import Doc, Span
from thinc.util import to_numpy

from ..files.digests import file_digest
from ..hooks import doc_vectors
from ..spans import trimmed
from .errors import Errors

Docs = Callable[[], Iterable[Doc]]  # a corpus that can be gone through more than once
Function = Callable[[Sequence[Doc | Span]], numpy.ndarray]


@runtime_checkable
class Saveable(Protocol):
    """A function that is saved with its pipe."""

    def to_bytes(self) -> bytes: ...

    def from_bytes(self, data: bytes) -> object: ...


@runtime_checkable
class Learner(Protocol):
    """A function that learns from the corpus that the meta-embedding is fitted on."""

    def fit(self, docs: Docs) -> None: ...


class PipeMember:
    """A pipe before this one, such as `sbert`, by the vectors that it stores on Docs."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"PipeMember('{self.name}')"

    def found(self, doc: Doc) -> list[doc_vectors.PlacedRecord]:
        """What the pipe left on a Doc, several records after `Doc.from_docs`. RAISES (ValueError): if nothing."""
        found = doc_vectors.find(doc, self.name)
        if not found:
            raise ValueError(Errors.META_NO_MEMBER_VECTORS.format(name=self.name, text=doc.text[:50]))
        return found

    def vectors(self, stretches: Sequence[Doc | Span]) -> numpy.ndarray:
        """float32 (n, width): the vectors of Docs, or of Spans of them."""
        return numpy.stack([self._vector(stretch) for stretch in stretches])

    def _vector(self, stretch: Doc | Span) -> numpy.ndarray:
        if isinstance(stretch, Doc):
            return doc_vectors.doc_vector(stretch, self.found(stretch))[0]
        return doc_vectors.span_vector(stretch, self.found(stretch.doc))[0]


class FunctionMember:
    """A registered function from Docs, or Spans, to vectors."""

    def __init__(self, name: str, function: Function):
        """RAISES (ValueError): if function is not one."""
        if not callable(function):
            raise ValueError(Errors.META_NO_FUNCTION.format(name=name, given=type(function).__name__))
        self.name = name
        self.function = function

    def __repr__(self) -> str:
        return f"FunctionMember('{self.name}')"

    def vectors(self, stretches: Sequence[Doc | Span]) -> numpy.ndarray:
        """float32 (n, width): what the function gives. RAISES (ValueError): if that is not a row for each."""
        found = to_numpy(self.function(list(stretches)))
        n = len(stretches)
        if found.ndim != 2 or len(found) != n:
            raise ValueError(Errors.META_BAD_FUNCTION.format(name=self.name, given=found.shape, expected=n))
        return found.astype("float32", copy=False)

    def identity(self) -> Iterator[str | bytes]:
        """What the function is, so that another one is known by it: its name, the file that defines it, and what it
        learned. What it was made with stands in the config."""
        code = self.function if inspect.isroutine(self.function) else type(self.function)
        yield code.__qualname__
        try:
            file = inspect.getsourcefile(code)
        except TypeError:  # it is a part of Python
            file = None
        if file and Path(file).is_file():  # not what was typed in
            yield file_digest(Path(file))
        if hasattr(self.function, "to_bytes"):
            yield self.function.to_bytes()


Member = PipeMember | FunctionMember


def learner(member: Member) -> Learner | None:
    """The function of a member, if it is one that learns."""
    function = getattr(member, "function", None)
    return function if isinstance(function, Learner) else None


@dataclass
class Rows:
    """The rows of a Doc, as the first pipe among the members has them.

    places: int32 (rows, 2), the characters of each. has_text: bool (rows,). truncated: whether a row was cut.
    """

    places: numpy.ndarray
    has_text: numpy.ndarray
    truncated: bool

    def cut(self, doc: Doc) -> Iterator[Doc | Span]:
        """Each row as a Span, or the Doc itself where it is the only one."""
        if len(self.places) == 1 and tuple(self.places[0].tolist()) == trimmed(doc.text, 0):
            yield doc
            return
        for start, end in self.places.tolist():
            span = doc.char_span(start, end, alignment_mode="expand")
            if span is None:
                raise ValueError(Errors.META_ROW_OUTSIDE.format(start=start, end=end, text=doc.text[:50]))
            yield span
