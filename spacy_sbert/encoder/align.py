"""Which wordpieces belong to which token."""

from typing import Any, cast

import numpy
from spacy.attrs import IDX
from spacy.tokens import Doc, Span
from thinc.types import Ragged


def align_offsets(spans: list[Span], offsets: numpy.ndarray) -> Ragged:
    """Align tokens with wordpieces by the characters that both cover.

    Does what spacy_transformers.align.get_alignment_via_offset_mapping does, for all rows at once: a wordpiece belongs
    to every token of which it covers a character, the space behind a token counting as its own.

    spans (list[Span]): the Span of each row; a Span that was cut into windows stands once for each.
    offsets (int64 (rows, wordpieces, 2)): the characters of each wordpiece, counted from its Span's start.
    RETURNS (Ragged of int32): for each token of every Doc that has a Span, in the order of the Docs, the ascending
        indices of its wordpieces in the flattened rows.
    """
    positions, n_tokens = _doc_positions(spans)
    token_starts, token_positions = _row_tokens(spans, positions)
    # Rows are laid end to end on one line of characters, so that a single search finds every token.
    ends = [int(starts[-1]) + len(span[-1].text_with_ws) for starts, span in zip(token_starts, spans, strict=True)]
    lengths = numpy.array(ends)
    shifts = numpy.cumsum(lengths) - lengths  # (rows,)
    line = numpy.concatenate([starts + shift for starts, shift in zip(token_starts, shifts, strict=True)])
    begin, end = offsets[:, :, 0] + shifts[:, None], offsets[:, :, 1] + shifts[:, None]  # (rows, wordpieces)
    pieces = numpy.flatnonzero(end > begin)
    first = numpy.searchsorted(line, begin.reshape(-1)[pieces], side="right") - 1
    last = numpy.searchsorted(line, end.reshape(-1)[pieces] - 1, side="right") - 1

    spread = last - first + 1
    owners = numpy.repeat(first, spread) + _ranges(spread)
    tokens = numpy.concatenate(token_positions)[owners]
    pieces = numpy.repeat(pieces, spread)
    order = numpy.lexsort((pieces, tokens))
    counts = numpy.bincount(tokens, minlength=n_tokens).astype("int32")
    return Ragged(cast(Any, pieces[order].astype("int32")), cast(Any, counts))


def _doc_positions(spans: list[Span]) -> tuple[dict[Doc, int], int]:
    """Where each Doc's tokens begin among those of all Docs, and how many there are."""
    positions: dict[Doc, int] = {}
    total = 0
    for span in spans:
        if span.doc not in positions:
            positions[span.doc] = total
            total += len(span.doc)
    return positions, total


def _row_tokens(spans: list[Span], positions: dict[Doc, int]) -> tuple[list[numpy.ndarray], list[numpy.ndarray]]:
    """For each row, its tokens' first characters (from the row's start) and places among the tokens of all Docs."""
    starts = []
    places = []
    for span in spans:
        characters = cast(Any, span).to_array([IDX]).reshape(-1).astype("int64")
        starts.append(characters - characters[0])
        places.append(numpy.arange(span.start, span.end) + positions[span.doc])
    return starts, places


def _ranges(lengths: numpy.ndarray) -> numpy.ndarray:
    """0 .. n-1 for each n, one after another."""
    return numpy.arange(lengths.sum()) - numpy.repeat(numpy.cumsum(lengths) - lengths, lengths)
