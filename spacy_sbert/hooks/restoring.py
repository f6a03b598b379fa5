"""Bring hooks back to Docs that arrived without them: at once to those that are there, one by one to a stream."""

import warnings
from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeVar, overload

from spacy.tokens import Doc, Span

from . import arrivals, records
from .errors import Errors, Warnings
from .hooks import install

ContextT = TypeVar("ContextT")


@overload
def restore(doc: Doc) -> Doc: ...
@overload
def restore(doc: Collection[Doc]) -> list[Doc]: ...  # type: ignore[overload-overlap]  # a list is no stream
@overload
def restore(doc: Iterable[Doc]) -> Iterator[Doc]: ...
@overload
def restore(doc: Iterable[tuple[Doc, ContextT]]) -> Iterator[tuple[Doc, ContextT]]: ...
def restore(doc: Any) -> Any:
    """Bring `vector`, `has_vector` and `similarity` back to Docs whose hooks spaCy dropped on the way.

    Needed after `Doc.to_bytes`, `DocBin`, `nlp.pipe(n_process=2)` and `Doc.from_docs`; does no harm elsewhere.

    doc (Doc, Collection[Doc] or Iterable[Doc]): Docs that carry stored vectors. One, and those of a collection, such
        as a list, are restored at once; those of a stream, such as `nlp.pipe(texts, n_process=2)`, which may have no
        end, as they are taken from the result. In place of a Doc there may be a Doc and its context, as
        `nlp.pipe(..., as_tuples=True)` has them.
    RETURNS (Doc, list[Doc] or Iterator[Doc]): the same Docs, with their contexts. A stream of which no Doc was
        ever taken warns when it goes: nothing was restored.
    RAISES (ValueError): if a Doc carries no stored vectors. (TypeError): if something is not a Doc.
    """
    if isinstance(doc, Doc):
        return _restored(doc)
    if isinstance(doc, Span) or not isinstance(doc, Iterable):
        raise TypeError(Errors.RESTORE_NOT_DOCS.format(given=repr(doc)[:50]))
    if not isinstance(doc, Collection):
        return _Stream(iter(doc))
    with arrivals.are_restored():
        docs = list(doc)
    return [_restored(doc) for doc in docs]


class _Stream(Iterator[Any]):
    """Docs of a stream, each restored when it is taken."""

    def __init__(self, docs: Iterator[Any]):
        self._docs = docs
        self._is_used = False

    def __next__(self) -> Any:
        self._is_used = True
        with arrivals.are_restored():
            doc = next(self._docs, None)
        if doc is None:
            raise StopIteration
        return _restored(doc)

    def __del__(self) -> None:
        if not self._is_used:
            warnings.warn(Warnings.RESTORE_UNUSED, stacklevel=2)  # the statement whose result was dropped


def _restored(doc: Any) -> Any:
    if isinstance(doc, tuple) and len(doc) == 2 and isinstance(doc[0], Doc):
        return _restored(doc[0]), doc[1]
    if not isinstance(doc, Doc):
        raise TypeError(Errors.RESTORE_NOT_DOCS.format(given=repr(doc)[:50]))
    if not records.find(doc):
        raise ValueError(Errors.NO_VECTORS.format(kind="Doc", which=""))
    records.welcome(doc)
    install(doc)
    return doc
