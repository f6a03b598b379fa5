"""From the rows of Docs to the padded batch that components of spacy-transformers know."""

from typing import Any, cast

import numpy
from spacy.tokens import Span
from thinc.types import Ragged

from ...spans import trimmed
from ..align import align_offsets, align_texts
from ..rows import RowBatch
from ..wordpieces import Wordpieces, WordpieceTokenizer
from .windows import spread


def encode_spans(
    tokenizer: WordpieceTokenizer, spans: list[list[Span]], prompt: str = ""
) -> tuple[list[list[Span]], Wordpieces, RowBatch, Ragged]:
    """Tokenise the rows of a batch of Docs.

    tokenizer (WordpieceTokenizer): of the encoder.
    spans (list[list[Span]]): the rows of each Doc, in the order of the text.
    prompt (str): what is put before each.
    RETURNS (list[list[Span]], Wordpieces, RowBatch, Ragged): the rows once for each of their windows, the wordpieces,
        the same in a padded batch, and for each token of the Docs the indices of its wordpieces in the flattened batch.
    """
    flat = [span for doc_spans in spans for span in doc_spans]
    texts = [row_text(span) for span in flat]
    wordpieces = tokenizer(texts, offsets=True, prompt=prompt)
    places = padded_places(wordpieces)
    batch = _pad(tokenizer, wordpieces, places, flat, texts)
    doc_of = [number for number, doc_spans in enumerate(spans) for _ in doc_spans]
    align = align_wordpieces(tokenizer, wordpieces, flat, doc_of, texts)
    align = Ragged(cast(Any, places[align.dataXd].astype("int32")), align.lengths)
    counts = iter(numpy.bincount(wordpieces.text_of, minlength=len(flat)).tolist())
    nested = [[same for span in doc_spans for same in [span] * next(counts)] for doc_spans in spans]
    return nested, wordpieces, batch, align


def row_text(span: Span) -> str:
    """What is tokenised of a row: that of a whole Doc as it was given, whose last space no Span has in its text."""
    return span.doc.text if len(span) == len(span.doc) else span.text


def align_wordpieces(
    tokenizer: WordpieceTokenizer, wordpieces: Wordpieces, spans: list[Span], doc_of: list[int], texts: list[str]
) -> Ragged:
    """For each token of every Doc that has a Span, the ascending indices of its wordpieces; see align_offsets."""
    span_of = numpy.repeat(wordpieces.text_of, wordpieces.lengths)
    if wordpieces.offsets is not None:
        return align_offsets(spans, doc_of, wordpieces.offsets, span_of)
    kept = numpy.flatnonzero(~wordpieces.special)
    borders = numpy.searchsorted(span_of[kept], numpy.arange(1, len(spans)))
    return align_texts(spans, tokenizer.pieces_of(texts), numpy.split(kept, borders))


def span_places(spans: list[Span]) -> numpy.ndarray:
    """int64 (n, 2): start and end token of each Span."""
    return numpy.array([(span.start, span.end) for span in spans])


def row_characters(spans: list[Span], texts: list[str]) -> numpy.ndarray:
    """int64 (n, 2): where each Span begins and ends in its Doc, without white space at its ends."""
    return numpy.array([trimmed(text, span.start_char) for span, text in zip(spans, texts, strict=True)])


def doc_characters(wordpieces: Wordpieces, spans: list[Span]) -> numpy.ndarray | None:
    """int32 (wordpieces, 2): where each begins and ends in its Doc, nowhere for special tokens; None for a slow
    tokenizer."""
    if wordpieces.offsets is None:
        return None
    starts = numpy.array([span.start_char for span in spans])[wordpieces.text_of]
    return (wordpieces.offsets + numpy.repeat(starts, wordpieces.lengths)[:, None]).astype("int32")


def padded_places(wordpieces: Wordpieces) -> numpy.ndarray:
    """int64 (N,): where each wordpiece stands in the flattened padded batch, a row a window."""
    rows = numpy.arange(len(wordpieces.lengths)) * int(wordpieces.lengths.max())
    return spread(rows, wordpieces.lengths)


def _pad(
    tokenizer: WordpieceTokenizer, wordpieces: Wordpieces, places: numpy.ndarray, spans: list[Span], texts: list[str]
) -> RowBatch:
    shape = (len(wordpieces.lengths), int(wordpieces.lengths.max()))
    ids = numpy.full(shape, tokenizer.pad_id, dtype="int64")
    ids.reshape(-1)[places] = wordpieces.ids
    mask = numpy.zeros(shape, dtype="float32")
    mask.reshape(-1)[places] = 1
    type_ids = numpy.full(shape, tokenizer.pad_type_id, dtype="int64") if tokenizer.has_type_ids else None
    if type_ids is not None:
        type_ids.reshape(-1)[places] = 0 if wordpieces.type_ids is None else wordpieces.type_ids
    text_of = wordpieces.text_of
    characters = doc_characters(wordpieces, spans)
    return RowBatch(
        strings=tokenizer.strings[ids].tolist(),
        input_ids=cast(Any, ids),
        attention_mask=cast(Any, mask),
        lengths=wordpieces.lengths.tolist(),
        token_type_ids=cast(Any, type_ids),
        spans=numpy.column_stack([text_of, span_places(spans)[text_of]]),
        n_text=wordpieces.n_text,
        n_cut=wordpieces.n_cut,
        row_characters=row_characters(spans, texts)[text_of],
        characters=None if characters is None else _pad_characters(characters, places, shape),
        settings=tokenizer.settings,
        n_lead=wordpieces.n_lead,
    )


def _pad_characters(characters: numpy.ndarray, places: numpy.ndarray, shape: tuple[int, int]) -> numpy.ndarray:
    padded = numpy.zeros((*shape, 2), dtype="int32")
    padded.reshape(-1, 2)[places] = characters
    return padded
