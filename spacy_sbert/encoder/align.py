"""Which wordpieces belong to which token."""

from collections.abc import Sequence
from typing import Any, cast

import numpy
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc, Span
from spacy_alignments.tokenizations import get_alignments
from thinc.types import Ragged

from .engine.windows import spread
from .wordpieces import Wordpieces, WordpieceTokenizer


def align_offsets(spans: list[Span], doc_of: list[int], offsets: numpy.ndarray, span_of: numpy.ndarray) -> Ragged:
    """Align tokens with wordpieces by the characters that both cover.

    A wordpiece belongs to every token of its Span of which it covers a character, the space behind a token counting as
    its own. That is what get_alignment_via_offset_mapping of spacy-transformers does, for all rows at once.

    spans (list[Span]): the Spans that were encoded, in the order of their Docs.
    doc_of (list[int]): the Doc of each Span, as numbers that ascend: a Doc may be in a batch twice.
    offsets (int64 (wordpieces, 2)): the characters of each wordpiece, counted from its Span's start.
    span_of (int64 (wordpieces,)): the Span each wordpiece is of.
    RETURNS (Ragged of int32): for each token of every Doc that has a Span, in the order of the Docs, the ascending
        indices of its wordpieces.
    """
    positions, n_tokens = _doc_positions(spans, doc_of)
    token_starts = _token_starts(spans, positions)
    counts_of = numpy.array([len(starts) for starts in token_starts])
    # Spans are laid end to end on one line of characters, so that a single search finds every token.
    firsts = numpy.array([int(starts[0]) for starts in token_starts])
    lasts = [int(starts[-1]) + len(span[-1].text_with_ws) for starts, span in zip(token_starts, spans, strict=True)]
    lengths = numpy.array(lasts) - firsts
    shifts = numpy.cumsum(lengths) - lengths  # (rows,)
    line = numpy.concatenate(token_starts) + numpy.repeat(shifts - firsts, counts_of)
    shift = shifts[span_of]
    begin, end = offsets[:, 0] + shift, offsets[:, 1] + shift
    end = numpy.minimum(end, shift + lengths[span_of])  # no wordpiece reaches into another Span
    pieces = numpy.flatnonzero(end > begin)
    first = numpy.searchsorted(line, begin[pieces], side="right") - 1
    last = numpy.searchsorted(line, end[pieces] - 1, side="right") - 1

    n_tokens_of = last - first + 1  # of each wordpiece
    owners = spread(first, n_tokens_of)
    places = numpy.array([span.start for span in spans]) + positions  # of rows' first tokens among those of all Docs
    tokens = spread(places, counts_of)[owners]
    pieces = numpy.repeat(pieces, n_tokens_of)
    order = numpy.lexsort((pieces, tokens))
    counts = numpy.bincount(tokens, minlength=n_tokens).astype("int32")
    return Ragged(cast(Any, pieces[order].astype("int32")), cast(Any, counts))


def align_wordpieces(
    tokenizer: WordpieceTokenizer, wordpieces: Wordpieces, spans: list[Span], doc_of: list[int], texts: list[str]
) -> Ragged:
    """For each token of every Doc that has a Span, the ascending indices of its wordpieces; see align_offsets."""
    span_of = numpy.repeat(wordpieces.text_of, wordpieces.lengths)
    if wordpieces.offsets is not None:
        return align_offsets(spans, doc_of, wordpieces.offsets, span_of)
    kept = numpy.flatnonzero(~wordpieces.special)
    borders = numpy.searchsorted(span_of[kept], numpy.arange(1, len(spans)))
    return align_texts(spans, doc_of, tokenizer.pieces_of(texts), numpy.split(kept, borders))


def _doc_positions(spans: list[Span], doc_of: list[int]) -> tuple[list[int], int]:
    """Where the tokens of each Span's Doc begin among those of all Docs, and how many there are."""
    positions: dict[int, int] = {}
    total = 0
    for span, number in zip(spans, doc_of, strict=True):
        if number not in positions:
            positions[number] = total
            total += len(span.doc)
    return [positions[number] for number in doc_of], total


def align_texts(spans: list[Span], doc_of: list[int], pieces: list[list[str]], places: list[numpy.ndarray]) -> Ragged:
    """Align tokens with the wordpieces of a slow tokenizer, which does not say what characters they cover.

    spans (list[Span]), doc_of (list[int]): see align_offsets.
    pieces (list[list[str]]): all wordpieces of each Span, special tokens left out, before it was cut.
    places (list[int64 (kept pieces,)]): the indices of the wordpieces that were kept.
    RETURNS (Ragged of int32): as align_offsets.
    SOURCE: spacy-alignments, which spacy-transformers aligns with, too.
    """
    positions, n_tokens = _doc_positions(spans, doc_of)
    pieces_of: list[set[int]] = [set() for _ in range(n_tokens)]
    for span, position, own, kept in zip(spans, positions, pieces, places, strict=True):
        of_tokens, _ = get_alignments([token.text for token in span], own)
        for token, found in zip(span, of_tokens, strict=True):
            pieces_of[position + token.i].update(int(kept[piece]) for piece in found if piece < len(kept))
    return Ragged(
        cast(Any, numpy.array([piece for own in pieces_of for piece in sorted(own)], dtype="int32")),
        cast(Any, numpy.array([len(own) for own in pieces_of], dtype="int32")),
    )


def piece_characters(align: Ragged, docs: Sequence[Doc], n_pieces: int) -> numpy.ndarray:
    """Where wordpieces stand in their Docs, by the tokens that they belong to.

    align (Ragged of int32): see align_offsets. docs (list[Doc]): whose tokens these are, one Doc after another.
    RETURNS (int32 (n_pieces, 2)): from the first character of the first token to the last of the last one; nowhere,
        (0, 0), for the wordpieces of none.
    """
    found = numpy.concatenate([numpy.asarray(doc.to_array([IDX, LENGTH])).astype("int32") for doc in docs])
    starts, ends = found[:, 0], found[:, 0] + found[:, 1]
    counts, pieces = numpy.asarray(align.lengths), numpy.asarray(align.dataXd).reshape(-1)
    tokens = numpy.repeat(numpy.arange(len(counts)), counts)
    characters = numpy.zeros((n_pieces, 2), dtype="int32")
    characters[pieces[::-1], 0] = starts[tokens[::-1]]
    characters[pieces, 1] = ends[tokens]
    return characters


def _token_starts(spans: list[Span], positions: list[int]) -> list[numpy.ndarray]:
    """For each row its tokens' first characters in the Doc; positions (list[int]): see _doc_positions."""
    found, of_doc, known = [], numpy.zeros(0, dtype="int64"), -1
    for span, position in zip(spans, positions, strict=True):
        if position != known:
            of_doc, known = cast(Any, span.doc).to_array(IDX).astype("int64"), position
        found.append(of_doc[span.start : span.end])
    return found
