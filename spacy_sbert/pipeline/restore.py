"""Set the hooks of Docs again, which spaCy drops when Docs are stored, sent or joined."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeVar, overload

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import Warnings, warn
from .doc_vectors import install_hooks, no_vectors, set_pipe
from .lost_hooks import next_to_restore
from .records import names, notice_joining

ItemT = TypeVar("ItemT")


@overload
def restore(doc: Doc, nlp: Language | None = None) -> Doc: ...  # type: ignore[overload-overlap]  # a Doc is no stream
@overload
def restore(doc: Collection[ItemT], nlp: Language | None = None) -> list[ItemT]: ...  # type: ignore[overload-overlap]  # a list is no stream
@overload
def restore(doc: Iterable[ItemT], nlp: Language | None = None) -> Iterator[ItemT]: ...
def restore(doc: Any, nlp: Language | None = None) -> Any:
    """Set the hooks of Docs again that spaCy has dropped.

    Then `vector`, `has_vector` and `similarity` answer.

    Needed after `Doc.to_bytes`, `DocBin`, `nlp.pipe(n_process=2)` and `Doc.from_docs`; does no harm
    elsewhere.

    doc (Doc, Collection[Doc] or Iterable[Doc]): one Doc, and a collection such as a list, are
        restored at once; a stream such as `nlp.pipe(texts, n_process=2)` while it is read. In place
        of a Doc there may be a Doc and its context, as in `nlp.pipe(..., as_tuples=True)`.
    nlp (Language): the pipeline that made the vectors, which then encodes queries that are str.
    RETURNS (Doc, list[Doc] or Iterator[Doc]): the same Docs, with their contexts. A stream that is
        never read warns when it is deleted.
    RAISES (ValueError): if a Doc carries no stored vectors. (TypeError): if something is not a Doc.

    Example:
        docs = spacy_sbert.restore(list(doc_bin.get_docs(nlp.vocab)), nlp)
        docs[0].similarity(docs[1])

    """
    if isinstance(doc, Doc | Span) or not isinstance(doc, Iterable):
        return _restored(doc, nlp)
    if not isinstance(doc, Collection):
        return _RestoredStream(iter(doc), nlp)
    return [_restored(item, nlp) for item in doc]


class _RestoredStream(Iterator[Any]):
    """Docs of a stream, each restored when it is read."""

    def __init__(self, docs: Iterator[Any], nlp: Language | None):
        self._docs = docs
        self._nlp = nlp
        self._is_read = False

    def __next__(self) -> Any:
        self._is_read = True
        return _restored(next_to_restore(self._docs), self._nlp)

    def __del__(self) -> None:
        if not self._is_read:
            # The statement whose result was dropped
            warn(Warnings.RESTORE_UNUSED)


def _restored(item: Any, nlp: Language | None) -> Any:
    """Return a Doc, or a Doc and its context, with the hooks set."""
    doc = item
    if isinstance(item, tuple) and len(item) == 2:
        doc = item[0]
    if not isinstance(doc, Doc):
        raise TypeError(
            f"Cannot restore {repr(item)[:50]}: expected a Doc, a list of Docs, or a stream of "
            "them such as nlp.pipe(texts, n_process=2) or doc_bin.get_docs(nlp.vocab). With "
            "as_tuples=True each Doc has its context."
        )
    stored = names(doc)
    if not stored:
        raise no_vectors(doc)
    install_hooks(doc)
    notice_joining(doc)
    if nlp is not None:
        for name, pipe in nlp.components:
            if name in stored:
                set_pipe(doc, name, pipe)
    return item
