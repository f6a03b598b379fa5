"""Which wordpieces belong to each token: those that share a character with it."""

from collections.abc import Sequence
from typing import Any, cast

import numpy
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc
from spacy_alignments.tokenizations import get_alignments
from thinc.types import Ragged

from .ragged import group_of, ragged_arange
from .spans import SpansByDoc
from .tokenization import BatchTokenizer, TokenizedBatch


def align_wordpieces(
    tokenizer: BatchTokenizer, wordpieces: TokenizedBatch, spans: SpansByDoc, texts: list[str]
) -> Ragged:
    """Return the ascending indices of the wordpieces of each token, as int32.

    The tokens are those of all Docs that have a Span. Wordpieces of a slow tokenizer, which does
    not know their characters, are aligned by spacy-alignments.

    spans (SpansByDoc): those of each Doc. texts (list[str]): of each Span.
    """
    span_of = numpy.repeat(wordpieces.text_of, wordpieces.lengths)
    if wordpieces.offsets is not None:
        return _align_offsets(spans, wordpieces.offsets, span_of)
    return _align_texts(tokenizer, wordpieces, span_of, spans, texts)


def _align_texts(
    tokenizer: BatchTokenizer,
    wordpieces: TokenizedBatch,
    span_of: numpy.ndarray,
    spans: SpansByDoc,
    texts: list[str],
) -> Ragged:
    """Align tokens with the wordpieces of a slow tokenizer by their texts.

    span_of (int64 (wordpieces,)): the Spans.
    """
    own = numpy.flatnonzero(~wordpieces.special)
    of_spans = numpy.split(own, numpy.searchsorted(span_of[own], numpy.arange(1, len(texts))))
    numbers = cast(numpy.ndarray, wordpieces.pieces)
    tokenized = iter(zip(tokenizer.pieces_of(texts), of_spans, strict=True))
    # Of each token of all Docs; Spans may overlap
    aligned: list[set[int]] = []
    for doc_spans in filter(None, spans):
        of_doc: list[set[int]] = [set() for _ in doc_spans[0].doc]
        for span in doc_spans:
            pieces, indices = next(tokenized)
            index_of = dict(zip(numbers[indices].tolist(), indices.tolist(), strict=True))
            of_tokens, _ = get_alignments([token.text for token in span], pieces)
            for token, of_token in zip(span, of_tokens, strict=True):
                # Pieces that were cut off have no index
                of_doc[token.i].update(index_of[piece] for piece in of_token if piece in index_of)
        aligned += of_doc
    ascending = [index for indices in aligned for index in sorted(indices)]
    return _ragged(ascending, list(map(len, aligned)))


def _ragged(indices: Sequence[int] | numpy.ndarray, counts: Any) -> Ragged:
    """Return the wordpieces of tokens, and how many each has, as int32."""
    return Ragged(
        cast(Any, numpy.asarray(indices, dtype="int32")),
        cast(Any, numpy.asarray(counts, dtype="int32")),
    )


def _align_offsets(spans: SpansByDoc, offsets: numpy.ndarray, span_of: numpy.ndarray) -> Ragged:
    """Align tokens with wordpieces by the characters that both cover.

    spacy-transformers does the same row by row.

    offsets (int64 (wordpieces, 2)): characters, from the Span's start. span_of (int64
        (wordpieces,)): the Spans.
    """
    token_starts = []
    span_bounds = []
    # Docs are laid end to end on one line of characters
    doc_start = 0
    for doc_spans in filter(None, spans):
        doc = doc_spans[0].doc
        token_starts.append(doc.to_array(IDX).astype("int64") + doc_start)
        for span in doc_spans:
            span_bounds.append((doc_start + span.start_char, doc_start + _end_of(span[-1])))
        doc_start += _end_of(doc[-1])
    starts, ends = numpy.array(span_bounds)[span_of].T
    # No wordpiece reaches into another Span
    piece_ends = numpy.minimum(offsets[:, 1] + starts, ends)
    return align_characters(numpy.concatenate(token_starts), offsets[:, 0] + starts, piece_ends)


def _end_of(token: Any) -> int:
    """Return where a token and the space behind it end in the Doc."""
    return token.idx + len(token.text_with_ws)


def align_characters(line: numpy.ndarray, begin: numpy.ndarray, end: numpy.ndarray) -> Ragged:
    """Return the ascending indices of the wordpieces of each token, as int32.

    They are those that share a character with it.

    line (int64 (tokens,)): where tokens begin, ascending. begin, end (int64 (wordpieces,)): of each
        wordpiece on the same line; one without characters belongs to no token.
    """
    pieces = numpy.flatnonzero(end > begin)
    first_tokens = numpy.searchsorted(line, begin[pieces], side="right") - 1
    last_tokens = numpy.searchsorted(line, end[pieces] - 1, side="right") - 1
    n_tokens = last_tokens - first_tokens + 1
    tokens = ragged_arange(first_tokens, n_tokens)
    pieces = numpy.repeat(pieces, n_tokens)
    by_token = numpy.lexsort((pieces, tokens))
    return _ragged(pieces[by_token], numpy.bincount(tokens, minlength=len(line)))


def piece_characters(align: Ragged, docs: Sequence[Doc], n_pieces: int) -> numpy.ndarray:
    """Return the characters of wordpieces in their Docs, int32 (n_pieces, 2).

    They are those of the tokens that they belong to.
    """
    bounds = [numpy.asarray(doc.to_array([IDX, LENGTH])).astype("int32") for doc in docs]
    starts, sizes = numpy.concatenate(bounds).T
    counts = numpy.asarray(align.lengths)
    pieces = numpy.asarray(align.dataXd).reshape(-1)
    tokens = group_of(counts)
    characters = numpy.zeros((n_pieces, 2), dtype="int32")
    # The last that is written counts: from the start of the first token to the end of the last
    characters[pieces[::-1], 0] = starts[tokens[::-1]]
    characters[pieces, 1] = (starts + sizes)[tokens]
    return characters
