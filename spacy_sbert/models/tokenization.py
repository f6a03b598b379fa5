"""Tokenization of texts and spans, prompts, and what happens to long texts: truncate, windows or error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy
from tokenizers import Tokenizer, normalizers

from .loading import Tokenizer as HuggingFaceTokenizer
from .sbert_config import SentenceTransformersConfig


@dataclass
class TokenizedBatch:
    """The wordpieces of texts in n windows, one after another without padding: N in all.

    text_of: int64 (n,), the text each window is of; a text's windows follow one another.
    lengths: int64 (n,), wordpieces in each window, special tokens included.
    ids: int64 (N,); type_ids too, None if they are all 0 or the encoder has none.
    special: bool (N,), whether a wordpiece is a special token, or of the prompt.
    offsets: int64 (N, 2), the characters of each wordpiece in its text, as a row of NumPy arrays; None for a slow
        tokenizer, and where nobody asked.
    n_cut: int64 (n,), wordpieces of the text that were cut off behind a window.
    n_lead: how many wordpieces at the start of each window are not pooled.
    n_characters: int64 (n,), those of the text that a window is of, a prompt included; None for pairs of texts.
    """

    text_of: numpy.ndarray
    lengths: numpy.ndarray
    ids: numpy.ndarray
    type_ids: numpy.ndarray | None
    special: numpy.ndarray
    offsets: numpy.ndarray | None
    n_cut: numpy.ndarray
    n_lead: int = 0
    n_characters: numpy.ndarray | None = None

    @property
    def starts(self) -> numpy.ndarray:
        """int64 (n,): where each window begins among all wordpieces."""
        return numpy.cumsum(self.lengths) - self.lengths

    @property
    def n_text(self) -> numpy.ndarray:
        """int64 (n,): wordpieces of each window without special tokens."""
        windows = numpy.repeat(numpy.arange(len(self.lengths)), self.lengths)
        return numpy.bincount(windows[~self.special], minlength=len(self.lengths))


class BatchTokenizer:
    """The tokenizer of an encoder, for many texts at a time; a fast one is copied.

    settings (SentenceTransformersConfig): of the encoder; max_length limits a window.
    overflow (str): what happens to a text that is longer: "truncate" cuts its end, "windows" makes several windows of
        it. Every window begins and ends with the special tokens.
    include_prompt (bool): whether the wordpieces of a prompt are pooled.
    """

    def __init__(
        self,
        tokenizer: HuggingFaceTokenizer,
        settings: SentenceTransformersConfig,
        overflow: str,
        *,
        include_prompt: bool = True,
    ):
        self.settings, self.overflow, self.include_prompt = settings, overflow, include_prompt
        self._special_ids = set(tokenizer.all_special_ids)
        self._given: Any = tokenizer
        self._slow: Any = None if tokenizer.is_fast else tokenizer
        self.has_type_ids = "token_type_ids" in tokenizer.model_input_names
        self.pad_id, self.pad_type_id = tokenizer.pad_token_id or 0, tokenizer.pad_token_type_id
        if tokenizer.is_fast:
            self._fast = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
            self._fast.no_padding()
            self._fast.no_truncation()
            if settings.max_length is not None:
                self._fast.enable_truncation(settings.max_length)
        if settings.lowercase:
            _lower_case(self._fast if tokenizer.is_fast else tokenizer)

    @cached_property
    def strings(self) -> numpy.ndarray:
        """Object (vocabulary,): all wordpieces by their ids."""
        n_ids = max(len(self._given), *(i + 1 for i in self._given.get_vocab().values()))  # some ids may be nobody's
        return numpy.array(self._given.convert_ids_to_tokens(list(range(n_ids))), dtype=object)

    def __call__(self, texts: Sequence[str], *, offsets: bool, prompt: str = "") -> TokenizedBatch:
        """Tokenize texts, one at least; offsets (bool): whether to return the characters that wordpieces cover.

        prompt (str): what is put before each text; its wordpieces count as special tokens do.
        """
        prompted = [prompt + text for text in texts] if prompt else texts
        if self._slow is not None:
            wordpieces = self._tokenize_slowly(prompted, prompt)
        else:
            wordpieces = self._tokenize(prompted, offsets or bool(prompt))
        if prompt and wordpieces.offsets is not None:  # a wordpiece that reaches over its end is of the text
            wordpieces.special = wordpieces.special | (wordpieces.offsets[:, 1] <= len(prompt))
            wordpieces.offsets = numpy.maximum(wordpieces.offsets - len(prompt), 0)
        if prompt and not self.include_prompt:
            ids = self._fast.encode(prompt).ids if self._slow is None else self._slow.encode(prompt, verbose=False)
            wordpieces.n_lead = len(ids) - (ids[-1] in self._special_ids)
            if self.settings.max_length is not None and wordpieces.n_lead >= self.settings.max_length:
                raise ValueError(
                    f"The prompt {prompt!r} fills the encoder's limit of {self.settings.max_length} wordpieces, and "
                    "include_prompt = false leaves no wordpiece of a text. Give a shorter prompt."
                )
        return wordpieces

    def _tokenize(self, texts: Sequence[str], offsets: bool) -> TokenizedBatch:
        encode = self._fast.encode_batch if offsets else self._fast.encode_batch_fast
        firsts = encode(texts)
        windows, text_of = firsts, numpy.arange(len(firsts))
        n_cut = numpy.zeros(len(firsts), dtype="int64")
        longer = [i for i, first in enumerate(firsts) if first.overflowing]
        if longer and self.overflow == "windows":
            windows = [window for first in firsts for window in (first, *first.overflowing)]
            text_of = numpy.repeat(text_of, [1 + len(first.overflowing) for first in firsts])
            n_cut = numpy.zeros(len(windows), dtype="int64")
        elif longer:
            n_cut[longer] = [sum(w.special_tokens_mask.count(0) for w in firsts[i].overflowing) for i in longer]
        batch = _batch_of(windows, list(map(len, windows)), texts, text_of, n_cut)
        if offsets:
            batch.offsets = flat(chain.from_iterable(window.offsets) for window in windows).reshape(-1, 2)
        return batch

    def _tokenize_slowly(self, texts: Sequence[str], prompt: str) -> TokenizedBatch:
        tokenizer, limit = self._slow, self.settings.max_length
        pieces = [tokenizer.encode(text, add_special_tokens=False, verbose=False) for text in texts]
        n_prompt = len(tokenizer.encode(prompt, add_special_tokens=False, verbose=False)) if prompt else 0
        body = max(map(len, pieces)) if limit is None else limit - tokenizer.num_special_tokens_to_add()
        places = [(i, at) for i, ids in enumerate(pieces) for at in range(0, max(len(ids), 1), max(body, 1))]
        n_cut = numpy.zeros(len(places), dtype="int64")
        if self.overflow == "truncate":
            places = [(i, 0) for i in range(len(pieces))]
            n_cut = numpy.array([max(len(ids) - body, 0) for ids in pieces])
        windows = []
        for i, at in places:
            made = tokenizer.prepare_for_model(pieces[i][at : at + body], return_special_tokens_mask=True)
            ids, mask = made["input_ids"], made["special_tokens_mask"]
            for place in [place for place, special in enumerate(mask) if not special][: n_prompt if at == 0 else 0]:
                mask[place] = 1
            windows.append(SimpleNamespace(ids=ids, type_ids=made.get("token_type_ids", [0]), special_tokens_mask=mask))
        lengths = [len(window.ids) for window in windows]
        return _batch_of(windows, lengths, texts, numpy.array([i for i, _ in places]), n_cut)

    def pieces_of(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the wordpieces of a slow tokenizer, special tokens left out, before anything is cut."""
        return [self._slow.tokenize(text) for text in texts]


def _lower_case(tokenizer: Any) -> None:  # noqa: ANN401 (of the tokenizers library, or a slow one of Transformers)
    """Let a tokenizer lower-case texts, but not the special tokens in them, as do_lower_case does."""
    if not isinstance(tokenizer, Tokenizer):
        try:
            tokenizer.do_lower_case = True
        except AttributeError:  # a property of its basic tokenizer's
            tokenizer.basic_tokenizer.do_lower_case = True
        return
    given = tokenizer.normalizer
    steps = list(given) if isinstance(given, normalizers.Sequence) else [] if given is None else [given]
    if not any(isinstance(step, normalizers.Lowercase) for step in steps):
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *steps])


def flat(parts: Iterable[Iterable[int]]) -> numpy.ndarray:
    """Return the items of all parts as one array, int64 (n,)."""
    return numpy.fromiter(chain.from_iterable(parts), dtype="int64")


def _batch_of(
    windows: Sequence[Any], lengths: list[int], texts: Sequence[str], text_of: numpy.ndarray, n_cut: numpy.ndarray
) -> TokenizedBatch:
    """Return windows, Encodings of the tokenizers library or the like, as a batch without offsets."""
    type_ids = flat(window.type_ids for window in windows)
    return TokenizedBatch(
        text_of=text_of,
        lengths=numpy.array(lengths),
        ids=flat(window.ids for window in windows),
        type_ids=type_ids if type_ids.any() else None,
        special=flat(window.special_tokens_mask for window in windows).astype(bool),
        offsets=None,
        n_cut=n_cut,
        n_characters=numpy.fromiter(map(len, texts), dtype="int64")[text_of],
    )


@dataclass(frozen=True)
class Prompts:
    """The prompts of an encoder.

    own: prompts by name, beside those that the encoder's folder names; equal names win over them.
    default_name: the one that is used if nobody asks for another; "" for none, None for that of the folder.
    include: whether the wordpieces of a prompt are pooled with those of the text; None to do as the folder says.
    """

    own: Mapping[str, str] = field(default_factory=dict)
    default_name: str | None = None
    include: bool | None = None

    def __post_init__(self) -> None:
        for name, prompt in (*self.own.items(), ("default_prompt_name", self.default_name or "")):
            if "$" in prompt or not _is_key(name):
                raise ValueError(
                    f"Cannot save the prompt {name!r} = {prompt!r} in a config: expected a name without ':', '=', '$' "
                    "and line breaks, nor '#', ';', '[' or white space at its ends, and a text without '$'. Give such "
                    "a prompt with each call: encode(texts, prompt=...), or encode(texts, prompt_name=...)."
                )

    def includes(self, settings: SentenceTransformersConfig) -> bool:
        """Return whether the wordpieces of a prompt are pooled; settings: of the folder."""
        return settings.include_prompt if self.include is None else self.include

    def find(self, settings: SentenceTransformersConfig, name: str | None = None) -> str:
        """Return the prompt of a name, None for the default one; "" if there is none. settings: of the folder.

        RAISES (ValueError): if there is none of that name.
        """
        known = {**settings.prompts, **self.own}
        by_folder = name is None and self.default_name is None
        wanted = settings.default_prompt_name if by_folder else self.default_name if name is None else name
        if name is None and not wanted:
            return ""
        if wanted not in known:
            asked = "prompt_name" if name is not None else "default_prompt_name"
            asked += " of its folder" if by_folder else ""
            names = ", ".join(f"'{each}'" for each in known) or "none"
            raise ValueError(
                f"Cannot use {asked} = '{wanted}': the prompts of the encoder are {names}. Name it in the config of "
                f'the encoder, prompts = {{"{wanted}": "..."}}, or give the text itself as prompt.'
            )
        return known[wanted]


def _is_key(name: str) -> bool:
    """Return True if a config reads the name as it was written."""
    return name == name.strip() and name[:1] not in ("", *"#;[") and not any(one in name for one in ":=$\n")
