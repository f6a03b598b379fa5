"""The tokenizer of a cross-encoder, which truncates both texts of a pair."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy
from transformers import PreTrainedTokenizerBase

from ..models.sbert_config import SentenceTransformersConfig
from ..models.tokenization import PROBED_LENGTH, BatchTokenizer, TokenizedBatch, flat
from ..models.tokenizer_kinds import SlowTokenizer

Pair = tuple[str, str]


class _PairIds(NamedTuple):
    """The wordpieces of a pair, with special tokens.

    ids, type_ids: of each. n_cut: how many were cut at the limit.
    """

    ids: list[int]
    type_ids: list[int]
    n_cut: int


class PairTokenizer(BatchTokenizer):
    """The tokenizer of a cross-encoder.

    limit: the most wordpieces of a pair, special tokens included. Of longer pairs the longer text
        is truncated, as by "longest_first" of Hugging Face.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        settings: SentenceTransformersConfig,
        limit: int | None,
        *,
        n_embeddings: int | None = None,
    ):
        super().__init__(
            tokenizer, replace(settings, max_length=None), "truncate", n_embeddings=n_embeddings
        )
        self.limit = limit
        self._made_of = tokenizer

    def is_made_of(self, tokenizer: PreTrainedTokenizerBase) -> bool:
        """Return whether it was made of this tokenizer of Hugging Face."""
        return self._made_of is tokenizer

    def check(self) -> None:
        super().check()
        called = self._tokenizer.huggingface
        texts = self._probes()
        others = texts[::-1]
        pairs = list(zip(texts, others, strict=True))
        short = called.num_special_tokens_to_add(pair=True) + PROBED_LENGTH
        for limit in (short, None):
            given = self._pairs(pairs, limit)
            expected = called(
                texts, others, truncation=limit is not None, max_length=limit, verbose=False
            )
            self._compare(pairs, given, expected)

    def tokenize_pairs(self, pairs: Sequence[Pair]) -> TokenizedBatch:
        """Tokenize one pair or more; a window a pair."""
        wordpieces = self._pairs(pairs, self.limit)
        self._check_ids(wordpieces.ids)
        return wordpieces

    def _pairs(self, pairs: Sequence[Pair], limit: int | None) -> TokenizedBatch:
        if isinstance(self._tokenizer, SlowTokenizer):
            tokenized = [self._slow_ids(self._tokenizer, pair, limit) for pair in pairs]
        else:
            encodings = self._tokenizer.library.encode_batch_fast(list(pairs))
            tokenized = [self._fast_ids(encoding, limit) for encoding in encodings]
        lengths = numpy.array([len(pair.ids) for pair in tokenized])
        return TokenizedBatch(
            text_of=numpy.arange(len(tokenized)),
            lengths=lengths,
            ids=flat([pair.ids for pair in tokenized]),
            type_ids=self._types([pair.type_ids for pair in tokenized]),
            # Not used
            special=numpy.zeros(int(lengths.sum()), dtype=bool),
            offsets=None,
            n_cut=numpy.array([pair.n_cut for pair in tokenized]),
            has_type_ids=self.has_type_ids,
        )

    def _fast_ids(self, encoding: Any, limit: int | None) -> _PairIds:
        if limit is None or len(encoding) <= limit:
            return _PairIds(encoding.ids, encoding.type_ids, 0)
        # 0 or 1 for a wordpiece of the first or second text, -1 for a special token
        owners = numpy.array([-1 if owner is None else owner for owner in encoding.sequence_ids])
        first = numpy.flatnonzero(owners == 0)
        second = numpy.flatnonzero(owners == 1)
        is_kept = owners == -1
        room = limit - int(is_kept.sum())
        n_first, n_second = _truncated_lengths(len(first), len(second), room)
        is_kept[self._truncated(first, n_first)] = True
        is_kept[self._truncated(second, n_second)] = True
        ids = numpy.array(encoding.ids)[is_kept].tolist()
        type_ids = numpy.array(encoding.type_ids)[is_kept].tolist()
        return _PairIds(ids, type_ids, len(encoding) - len(ids))

    def _slow_ids(self, tokenizer: SlowTokenizer, pair: Pair, limit: int | None) -> _PairIds:
        first = tokenizer.encode_text(pair[0])
        second = tokenizer.encode_text(pair[1])
        n_first = len(first)
        n_second = len(second)
        if limit is not None:
            room = limit - tokenizer.huggingface.num_special_tokens_to_add(pair=True)
            n_first, n_second = _truncated_lengths(n_first, n_second, room, odd_to_first=True)
        window = tokenizer.huggingface.prepare_for_model(
            self._truncated(first, n_first), self._truncated(second, n_second)
        )
        ids = window["input_ids"]
        type_ids = window.get("token_type_ids", [0] * len(ids))
        return _PairIds(ids, type_ids, len(first) + len(second) - n_first - n_second)

    def _truncated(self, wordpieces: Any, n: int) -> Any:
        """Return the first n wordpieces of a text; the last, if the tokenizer cuts on the left."""
        if self.cuts_left:
            return wordpieces[len(wordpieces) - n :]
        return wordpieces[:n]


def _truncated_lengths(
    first: int, second: int, room: int, *, odd_to_first: bool = False
) -> tuple[int, int]:
    """Return how many wordpieces of each text fit, as by "longest_first".

    The longer is cut, or both to half.

    odd_to_first (bool): whether the first of two halves is the larger one, as in slow tokenizers;
        else the longer text.
    """
    if first + second <= room:
        return first, second
    half = room // 2
    if odd_to_first and half < min(first, second):
        return room - half, half
    kept = min(first, second, half)
    if first > second:
        return room - kept, kept
    return kept, room - kept
