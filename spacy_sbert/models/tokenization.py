"""Tokenization of texts and spans. What is read of long texts: overflow.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy

from .encoder_checks import REPAIR_TOKENS
from .loading import Tokenizer as HuggingFaceTokenizer
from .overflow import OVERFLOW
from .ragged import group_of
from .sbert_config import SentenceTransformersConfig
from .tokenizer_kinds import FastTokenizer, Limit, SlowTokenizer


@dataclass
class TokenizedBatch:
    """The wordpieces of texts in n windows, one after another without padding: N in all.

    text_of: int64 (n,), the text each window is of; a text's windows follow one another.
    lengths: int64 (n,), wordpieces in each window, special tokens included.
    ids: int64 (N,); type_ids too, None if they are all 0 or the tokenizer returns none.
    special: bool (N,), whether a wordpiece is a special token, or of the prompt.
    offsets: int64 (N, 2), the characters of each wordpiece in its text, as a row of NumPy arrays;
        None for a slow tokenizer, and where nobody asked.
    n_cut: int64 (n,), wordpieces of the text that are in no window, at the text's first.
    pieces: int64 (N,), which of its text's wordpieces each one is, a prompt's not counted; -1 for
        special ones and those of a prompt. None for a fast tokenizer.
    n_lead: how many wordpieces at the start of each window are not pooled.
    n_characters: int64 (n,), those of the text that a window is of, a prompt included; None for
        pairs of texts.
    has_type_ids: whether the tokenizer returns token types, of which type_ids leaves out those that
        are all 0.
    pads_left: whether sentence-transformers puts padding before a window.
    """

    text_of: numpy.ndarray
    lengths: numpy.ndarray
    ids: numpy.ndarray
    type_ids: numpy.ndarray | None
    special: numpy.ndarray
    offsets: numpy.ndarray | None
    n_cut: numpy.ndarray
    pieces: numpy.ndarray | None = None
    n_lead: int = 0
    n_characters: numpy.ndarray | None = None
    has_type_ids: bool = False
    pads_left: bool = False

    @classmethod
    def of_window(
        cls, ids: numpy.ndarray, type_ids: numpy.ndarray | None, *, has_type_ids: bool
    ) -> TokenizedBatch:
        """Return a text of one window, of which nothing is known but its wordpieces."""
        zero = numpy.zeros(1, dtype="int64")
        special = numpy.zeros(len(ids), dtype=bool)
        lengths = numpy.array([len(ids)])
        return cls(zero, lengths, ids, type_ids, special, None, zero, has_type_ids=has_type_ids)

    @property
    def starts(self) -> numpy.ndarray:
        """int64 (n,): where each window begins among all wordpieces."""
        return numpy.cumsum(self.lengths) - self.lengths

    @property
    def n_text(self) -> numpy.ndarray:
        """int64 (n,): wordpieces of each window without special tokens."""
        windows = group_of(self.lengths)[~self.special]
        return numpy.bincount(windows, minlength=len(self.lengths))


# Texts that show what a tokenizer does beyond its JSON: special tokens, case, accents, scripts
# without spaces, length.
PROBES = (
    "It CAN'T be: naïve café, İstanbul!",
    "日本語のテキスト 한국어 \U0001f600",
    "[CLS] <s> spelt [SEP] </s> out [MASK] <mask> <pad>",
    "\ttabs\nand  spaces   ",
    "one two three four five six seven eight nine ten eleven twelve",
)
# Wordpieces of a probe beside the special tokens
PROBED_LENGTH = 6


class BatchTokenizer:
    """The tokenizer of an encoder, for many texts at a time; a fast one is copied.

    settings (SentenceTransformersConfig): of the encoder; max_length limits a window.
    overflow (str): what is read of a text that is longer, a name of OVERFLOW (overflow.py).
    include_prompt (bool): whether the wordpieces of a prompt are pooled.
    n_embeddings (int): how many wordpieces the encoder has an embedding of; None if there is no
        such limit.
    """

    def __init__(
        self,
        tokenizer: HuggingFaceTokenizer,
        settings: SentenceTransformersConfig,
        overflow: str,
        *,
        include_prompt: bool = True,
        n_embeddings: int | None = None,
    ):
        self.settings = settings
        self.overflow = OVERFLOW[overflow]
        self.include_prompt = include_prompt
        self.n_embeddings = n_embeddings
        self._special_ids = set(tokenizer.all_special_ids)
        is_left = tokenizer.truncation_side == "left"
        self.cuts_left = is_left and not self.overflow.as_spacy_transformers
        self.pads_left = tokenizer.padding_side == "left"
        self.has_type_ids = "token_type_ids" in tokenizer.model_input_names
        self.pad_id = tokenizer.pad_token_id or 0
        self.pad_type_id = tokenizer.pad_token_type_id
        self._given: Any = tokenizer
        self._limit = Limit(settings.max_length, self.overflow, cuts_left=self.cuts_left)
        kind = FastTokenizer if tokenizer.is_fast else SlowTokenizer
        self._tokenizer = kind(tokenizer, settings, self._limit)

    def check(self) -> None:
        """Check that wordpieces are those of the tokenizer's own call.

        RAISES (ValueError): if they are not.
        """
        called = self._tokenizer.huggingface
        texts = [text for text in self._probes() if _can_split(called, text)]
        if not texts:
            return
        # The call without a limit comes last: a fast tokenizer keeps the limit of its last call,
        # and saves it.
        lengths: list[int | None] = [None]
        if self.overflow.is_of_library:
            lengths.insert(0, called.num_special_tokens_to_add() + PROBED_LENGTH)
        for length in lengths:
            truncated = Limit(length, OVERFLOW["truncate"], cuts_left=self.cuts_left)
            self._tokenizer.set_limit(truncated)
            given = self._windows(texts, offsets=False)
            expected = called(
                texts, truncation=length is not None, max_length=length, verbose=False
            )
            self._compare(texts, given, expected)
        self._tokenizer.set_limit(self._limit)

    def _probes(self) -> list[str]:
        if self.settings.lowercase:
            return [text.lower() for text in PROBES]
        return list(PROBES)

    def _compare(
        self, texts: Sequence[object], given: TokenizedBatch, expected: Mapping[str, Any]
    ) -> None:
        """Compare wordpieces, and their types, with what the tokenizer's own call returned."""
        borders = given.starts[1:]
        types = given.type_ids
        if types is None:
            types = numpy.zeros_like(given.ids)
        fields = {"input_ids": given.ids, "token_type_ids": types}
        for key, values in fields.items():
            rows = numpy.split(values, borders)
            for text, row, wanted in zip(texts, rows, expected.get(key, rows), strict=True):
                if list(row) != list(wanted):
                    raise ValueError(
                        f"The tokenizer {type(self._given).__name__} of '{self.settings.name}' is "
                        f"not supported: called with {text!r}, it returns other {key} than its "
                        f"rules make ({list(wanted)}, not {row.tolist()}). Use an encoder with "
                        "another tokenizer."
                    )

    @cached_property
    def strings(self) -> numpy.ndarray:
        """Object (vocabulary,): all wordpieces by their ids."""
        # Some ids may be nobody's
        last_id = max(self._given.get_vocab().values(), default=-1)
        n_ids = max(len(self._given), last_id + 1)
        return numpy.array(self._given.convert_ids_to_tokens(list(range(n_ids))), dtype=object)

    def __call__(self, texts: Sequence[str], *, offsets: bool, prompt: str = "") -> TokenizedBatch:
        """Tokenize texts, one at least.

        offsets (bool): whether to return the characters that wordpieces cover.

        prompt (str): what is put before each text; its wordpieces count as special tokens do.
        RAISES (ValueError): if the encoder has no embedding of a wordpiece, a prompt leaves no
            room for texts, or the tokenizer cannot split one.
        """
        if prompt:
            wordpieces = self._with_prompt(texts, prompt)
        else:
            wordpieces = self._windows(texts, offsets=offsets)
        self._check_ids(wordpieces.ids)
        return wordpieces

    def _with_prompt(self, texts: Sequence[str], prompt: str) -> TokenizedBatch:
        """Tokenize texts with a prompt before each, whose wordpieces count as special tokens do."""
        prompted = [prompt + text for text in texts]
        wordpieces = self._windows(prompted, offsets=True, prompt=prompt)
        if wordpieces.offsets is not None:
            # A wordpiece that reaches over the end of the prompt is of the text
            is_prompt = wordpieces.offsets[:, 1] <= len(prompt)
            wordpieces.special = wordpieces.special | is_prompt
            wordpieces.offsets = numpy.maximum(wordpieces.offsets - len(prompt), 0)
        if not self.include_prompt:
            wordpieces.n_lead = self._n_lead(prompt)
        self._check_prompt(prompt, wordpieces)
        return wordpieces

    def _n_lead(self, prompt: str) -> int:
        """Return how many wordpieces a prompt has with the special tokens before it."""
        ids = self._tokenizer.encode(prompt)
        # A blank prompt has none where there are no special tokens
        if ids and ids[-1] in self._special_ids:
            return len(ids) - 1
        return len(ids)

    def _check_prompt(self, prompt: str, wordpieces: TokenizedBatch) -> None:
        """Check that a prompt leaves room for texts.

        RAISES (ValueError): if all wordpieces of a text were cut behind it.
        """
        if self.cuts_left or not wordpieces.n_cut.any():
            return
        if ((wordpieces.n_cut > 0) & (wordpieces.n_text == 0)).any():
            raise ValueError(
                f"The prompt {prompt!r} fills the encoder's limit of {self.settings.max_length} "
                "wordpieces, and leaves none for a text. Give a shorter prompt."
            )

    def _check_ids(self, ids: numpy.ndarray) -> None:
        """Check that the encoder has an embedding of each wordpiece.

        RAISES (ValueError): if it has none of one.
        """
        if self.n_embeddings is None:
            return
        largest = int(ids.max(initial=0))
        if largest >= self.n_embeddings:
            raise ValueError(
                f"The encoder '{self.settings.name}' has no embedding of the wordpiece "
                f"{self._given.convert_ids_to_tokens(largest)!r} (id {largest}): it has "
                f"{self.n_embeddings}. {REPAIR_TOKENS}"
            )

    def _windows(self, texts: Sequence[str], *, offsets: bool, prompt: str = "") -> TokenizedBatch:
        """Return the windows of texts, which begin with a prompt already."""
        windows: list[Any] = []
        text_of: list[int] = []
        n_cut: list[int] = []
        split = self._tokenizer.split(texts, offsets=offsets, prompt=prompt)
        for i, (of_text, n_cut_of_text) in enumerate(split):
            windows += of_text
            text_of += [i] * len(of_text)
            n_cut += [n_cut_of_text] + [0] * (len(of_text) - 1)
        batch = TokenizedBatch(
            text_of=numpy.array(text_of),
            lengths=numpy.array([len(window.ids) for window in windows]),
            ids=flat(window.ids for window in windows),
            type_ids=self._types(window.type_ids for window in windows),
            special=flat(window.special_tokens_mask for window in windows).astype(bool),
            offsets=None,
            n_cut=numpy.array(n_cut),
            n_characters=numpy.fromiter(map(len, texts), dtype="int64")[text_of],
            has_type_ids=self.has_type_ids,
            pads_left=self.pads_left,
        )
        if not self._tokenizer.is_fast:
            batch.pieces = flat(window.pieces for window in windows)
        elif offsets:
            covered = flat(chain.from_iterable(window.offsets for window in windows))
            batch.offsets = covered.reshape(-1, 2)
        return batch

    def _types(self, of_windows: Iterable[Iterable[int]]) -> numpy.ndarray | None:
        """Return the token types of windows, int64 (N,).

        None if they are all 0 or the tokenizer returns none.
        """
        if not self.has_type_ids:
            return None
        types = flat(of_windows)
        if not types.any():
            return None
        return types

    def pieces_of(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the wordpieces of a slow tokenizer without special tokens, before any cut."""
        return [self._tokenizer.huggingface.tokenize(text) for text in texts]


def _can_split(tokenizer: HuggingFaceTokenizer, text: str) -> bool:
    """Return whether a tokenizer knows the characters of a text, or has a token for others."""
    try:
        tokenizer(text, verbose=False)
    except Exception as error:
        # The tokenizers library raises errors of no class of their own
        if type(error) is not Exception:
            raise
        return False
    return True


def flat(parts: Iterable[Iterable[int]]) -> numpy.ndarray:
    """Return the items of all parts as one array, int64 (n,)."""
    return numpy.fromiter(chain.from_iterable(parts), dtype="int64")
