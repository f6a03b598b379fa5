"""The rows of Docs in tokens, which stand for wordpieces where spaCy's own models encode."""

from dataclasses import dataclass
from typing import cast

import numpy
from spacy.attrs import IDX, IS_SPACE, LEMMA, LENGTH, MORPH, NORM, POS, TAG
from spacy.tokens import Doc, Span
from thinc.types import Ints2d

from .rows import Pieces, Rows, RowStates, borders_of, row_characters, span_places

FEATURES = [NORM, LEMMA, TAG, POS, MORPH]  # what models embed of a token beside its text


@dataclass
class TokenRows:
    """The tokens of the rows of a batch of Docs, white space left out, N in all.

    spans: the rows of all Docs, one after another.
    places: int64 (N,), where each token stands among the tokens of all Docs of the batch.
    batch: the rows, whose states are still to come; a window has the tokens of its row.
    """

    spans: list[Span]
    places: numpy.ndarray
    batch: RowStates


def read_tokens(docs: list[Doc], spans: list[list[Span]], *, with_pieces: bool) -> TokenRows:
    """The tokens of the rows of a batch of Docs.

    spans (list[list[Span]]): the rows of each Doc, in the order of the text; one at least.
    with_pieces (bool): whether to say where the tokens stand.
    """
    flat = [span for doc_spans in spans for span in doc_spans]
    starts = borders_of(map(len, docs))
    stretches = [
        (start + span.start, start + span.end)
        for start, doc_spans in zip(starts, spans, strict=False)
        for span in doc_spans
    ]
    places = numpy.concatenate([numpy.arange(start, end) for start, end in stretches])
    tokens = numpy.concatenate([doc.to_array([IDX, LENGTH, IS_SPACE]).astype("int64") for doc in docs])[places]
    kept, row_of = tokens[:, 2] == 0, numpy.repeat(numpy.arange(len(flat)), [len(span) for span in flat])
    lengths = numpy.bincount(row_of[kept], minlength=len(flat))
    rows = Rows(
        span_places(flat),
        row_of=numpy.arange(len(flat)),
        window_weights=lengths,
        has_text=lengths > 0,
        n_cut=numpy.zeros(len(flat), dtype="int64"),
        settings=None,
        characters=row_characters(flat, [span.text for span in flat]),
    )
    batch = RowStates(rows, borders_of(map(len, spans)), lengths)
    if with_pieces:
        characters = numpy.cumsum(tokens[kept, :2], axis=1).astype("int32")  # (N, 2): from a start and a length
        batch.pieces = Pieces.of_rows(rows, batch.borders, lengths, numpy.ones(len(characters), bool), characters)
    return TokenRows(flat, places[kept], batch)


def row_doc(span: Span) -> Doc:
    """The tokens of a row that are not white space as a Doc of their own, so that nothing beside them is read with
    them; the Doc itself if it is that."""
    doc, kept = span.doc, [token for token in span if not token.is_space]
    if len(kept) == len(doc) and not kept[-1].whitespace_:
        return doc
    spaces = [bool(token.whitespace_) for token in kept[:-1]]
    alone = Doc(doc.vocab, words=[token.text for token in kept], spaces=[*spaces, False])
    return alone.from_array(FEATURES, cast(Ints2d, doc.to_array(FEATURES)[[token.i for token in kept]]))
