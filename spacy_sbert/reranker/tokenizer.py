"""From pairs of texts to wordpieces: both in one window, of which the longer text is cut."""

from collections.abc import Sequence
from dataclasses import replace

import numpy
from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

from ..encoder.settings import FolderSettings
from ..encoder.wordpieces import Wordpieces, WordpieceTokenizer, flat, lower_case

Pair = tuple[str, str]
Row = tuple[list[int], list[int], int]  # ids, type ids, and how many wordpieces were cut


class PairTokenizer(WordpieceTokenizer):
    """The tokenizer of a cross-encoder, for many pairs at a time.

    tokenizer: of Hugging Face. settings (FolderSettings): of the encoder.
    limit (int): the most wordpieces of a pair, special tokens included; None for no limit.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, settings: FolderSettings, limit: int | None):
        super().__init__(tokenizer, replace(settings, max_length=None), "truncate")
        self.limit = limit

    def tokenize_pairs(self, pairs: Sequence[Pair]) -> Wordpieces:
        """Tokenise pairs, not none; a window a pair."""
        if self.settings.lowercase:
            pairs = [(lower_case(first), lower_case(second)) for first, second in pairs]
        if self._slow is not None:
            rows = list(map(self._slow_row, pairs))
        else:
            rows = list(map(self._fast_row, self._fast.encode_batch_fast(list(pairs))))
        lengths = numpy.array([len(ids) for ids, _, _ in rows])
        type_ids = flat(types for _, types, _ in rows)
        return Wordpieces(
            text_of=numpy.arange(len(rows)),
            lengths=lengths,
            ids=flat(ids for ids, _, _ in rows),
            type_ids=type_ids if self.has_type_ids and type_ids.any() else None,
            special=numpy.zeros(int(lengths.sum()), dtype=bool),  # nobody asks
            offsets=None,
            n_cut=numpy.array([n_cut for _, _, n_cut in rows]),
        )

    def _fast_row(self, encoding: Encoding) -> Row:
        """Whole pairs are tokenised and then cut: the tokenizer's own truncation makes as many windows of two long
        texts as the product of theirs."""
        if self.limit is None or len(encoding) <= self.limit:
            return encoding.ids, encoding.type_ids, 0
        owners = numpy.array([-1 if owner is None else owner for owner in encoding.sequence_ids])
        first, second, special = (int((owners == owner).sum()) for owner in (0, 1, -1))
        kept = owners < 0
        for member, most in enumerate(shares(first, second, self.limit - special)):
            kept[numpy.flatnonzero(owners == member)[:most]] = True
        ids, types = (numpy.array(values)[kept].tolist() for values in (encoding.ids, encoding.type_ids))
        return ids, types, len(encoding) - len(ids)

    def _slow_row(self, pair: Pair) -> Row:
        first, second = (self._slow.encode(text, add_special_tokens=False, verbose=False) for text in pair)
        n_special = self._slow.num_special_tokens_to_add(pair=True)
        room = None if self.limit is None else self.limit - n_special
        firsts, seconds = (len(first), len(second)) if room is None else shares(len(first), len(second), room)
        window = self._slow.prepare_for_model(first[:firsts], second[:seconds])
        ids = window["input_ids"]
        return ids, window.get("token_type_ids", [0] * len(ids)), len(first) + len(second) - firsts - seconds


def shares(first: int, second: int, room: int) -> tuple[int, int]:
    """How many wordpieces of each text fit: the longer one is cut, both to half of the room if the shorter one is
    longer than that, as transformers' "longest_first".

    first, second: wordpieces of each text, without special tokens. room: the most of both.
    """
    shorter = min(first, second)
    if first + second <= room:
        return first, second
    kept = shorter if 2 * shorter <= room else room // 2
    return (room - kept, kept) if first > second else (kept, room - kept)
