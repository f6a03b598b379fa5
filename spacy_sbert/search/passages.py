"""Passages of documents as rows of an index, which lead back to document, place and neighbours."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from spacy.tokens import Doc, Span

from ..models.spans import CHUNKS_KEY, chunks


class Passage(NamedTuple):
    """A passage of a document.

    id: "d3#0", of the document and the number of the passage in it. text: as it is indexed.
    columns: `document`, its id; `passage`, the number, one less or more in the ids of neighbours;
        `start_char` and `end_char`, its characters.
    span: the Span of the Doc.
    """

    id: str
    text: str
    columns: dict[str, str | int]
    span: Span


def passages(
    docs: Iterable[tuple[Doc, str | int]], *, spans_key: str = CHUNKS_KEY
) -> Iterator[Passage]:
    """Yield the passages that `sbert_chunks` has made of documents, in order.

    docs (Iterable[tuple[Doc, str or int]]): documents with their ids, which are read one by one.
    spans_key (str): where the passages are, doc.spans[spans_key].
    YIELDS (Passage).
    RAISES (ValueError): if a Doc has no passages.

    Example:
        docs = nlp.pipe([("The rent is due on the first.", "d0")], as_tuples=True)
        found = list(passages(docs))
        texts = [passage.text for passage in found]
        ids = [passage.id for passage in found]
        columns = [passage.columns for passage in found]
        index.add(sbert.encode(texts), texts=texts, ids=ids, columns=columns, encoder=sbert)

    """
    for doc, document in docs:
        for number, span in enumerate(chunks(doc, spans_key)):
            columns = {
                "document": document,
                "passage": number,
                "start_char": span.start_char,
                "end_char": span.end_char,
            }
            yield Passage(f"{document}#{number}", span.text, columns, span)
