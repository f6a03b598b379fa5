"""The two kinds of tokenizers behind one interface: from texts to their windows."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy
from tokenizers import Tokenizer, normalizers

from .loading import Tokenizer as HuggingFaceTokenizer
from .overflow import OverflowMode
from .sbert_config import SentenceTransformersConfig

# The windows of a text in its order, and how many of its wordpieces are in none. A window is an
# Encoding of the tokenizers library, or has the same attributes.
_Windows = tuple[list[Any], int]

# Keys of the models BPE and Unigram in tokenizer.json by which wordpieces are drawn
_AT_RANDOM = ("dropout", "alpha", "nbest_size")


@dataclass(frozen=True)
class Limit:
    """How much of a text is read.

    max_length (int): the most wordpieces of a window, special tokens included; None for no limit.
    mode (OverflowMode): what is read of a longer text. cuts_left (bool): whether its beginning is
        cut.
    """

    max_length: int | None
    mode: OverflowMode
    cuts_left: bool

    def kept(self, n: int, n_special: int) -> Sequence[Sequence[int]]:
        """Return the indices of a text's wordpieces in each of its windows.

        n (int): how many it has. n_special (int): the special tokens of a window.
        """
        if self.max_length is None:
            return [range(n)]
        room = max(self.max_length - n_special, 1)
        if n <= room:
            return [range(n)]
        return self.mode.rule(n, room, self.cuts_left)


class FastTokenizer:
    """A copy of a tokenizer of the tokenizers library, which does not pad.

    huggingface: the tokenizer it is a copy of. library: the copy.
    """

    is_fast = True

    def __init__(
        self, tokenizer: HuggingFaceTokenizer, settings: SentenceTransformersConfig, limit: Limit
    ):
        self.huggingface = tokenizer
        self.name = settings.name
        self.library = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._check_is_deterministic()
        self.library.no_padding()
        self.library.encode_special_tokens = tokenizer.split_special_tokens
        if settings.lowercase:
            self._lower_case()
        self.set_limit(limit)

    def _lower_case(self) -> None:
        """Lower-case texts, but no special tokens in them, before all other steps.

        As in sentence-transformers, a tokenizer that has such a step anywhere is left as it is.
        """
        normalizer = self.library.normalizer
        steps: list[Any] = []
        if isinstance(normalizer, normalizers.Sequence):
            steps = list(cast(Any, normalizer))
        elif normalizer is not None:
            steps = [normalizer]
        if not any(isinstance(step, normalizers.Lowercase) for step in steps):
            self.library.normalizer = normalizers.Sequence([normalizers.Lowercase(), *steps])

    def _check_is_deterministic(self) -> None:
        """Check that a text has the same wordpieces each time. RAISES (ValueError): if not."""
        for key in _AT_RANDOM:
            value = getattr(self.library.model, key, None)
            if value:
                raise ValueError(
                    f"The tokenizer of '{self.name}' splits words at random: its tokenizer.json "
                    f"has {key} = {value:g}, for training. Write null there."
                )

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # The JSON that the tokenizers library pickles leaves this out
        self.library.encode_special_tokens = self.huggingface.split_special_tokens

    def set_limit(self, limit: Limit) -> None:
        self.limit = limit
        self.library.no_truncation()
        if limit.max_length is not None and limit.mode.is_of_library:
            direction = "left" if limit.cuts_left else "right"
            self.library.enable_truncation(limit.max_length, direction=direction)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text with special tokens."""
        return self.library.encode(text).ids

    def split(self, texts: Sequence[str], *, offsets: bool, prompt: str) -> list[_Windows]:
        """Return the windows of texts.

        offsets (bool): whether they know their characters. prompt (str): how the texts begin.
        RAISES (ValueError): if the tokenizer cannot split one.
        """
        try:
            if len(texts) == 1:
                # Without the threads of a batch
                encodings = [self.library.encode(texts[0])]
            elif offsets:
                encodings = self.library.encode_batch(texts)
            else:
                encodings = self.library.encode_batch_fast(texts)
        except Exception as error:
            # The tokenizers library raises errors of no class of their own
            if type(error) is not Exception:
                raise
            raise ValueError(
                f"The tokenizer of '{self.name}' cannot split a text ({error}). Add what is "
                "missing to its files, or use another encoder."
            ) from error
        read = self.limit.mode.library_windows
        if read is None:
            return [self._picked_windows(encoding) for encoding in encodings]
        return [self._library_windows(encoding, read) for encoding in encodings]

    def _library_windows(self, encoding: Any, read: slice) -> _Windows:
        """Return those windows of a text that are read, as the tokenizers library makes them."""
        limit = self.limit
        if limit.mode.as_spacy_transformers and limit.max_length is not None:
            encoding.truncate(limit.max_length)
        others = encoding.overflowing
        if not others:
            return [encoding], 0
        made = [encoding, *others]
        windows = made[read]
        n_cut = sum(window.special_tokens_mask.count(0) for window in made[len(windows) :])
        # Cut from the left, the first is the end of the text
        if limit.cuts_left:
            windows.reverse()
        return windows, n_cut

    def _picked_windows(self, encoding: Any) -> _Windows:
        """Return the windows of a text by a rule that the tokenizers library does not have."""
        is_special = numpy.array(encoding.special_tokens_mask, dtype=bool)
        of_text = numpy.flatnonzero(~is_special)
        kept = self.limit.kept(len(of_text), int(is_special.sum()))
        if len(kept) == 1 and len(kept[0]) == len(of_text):
            return [encoding], 0
        windows = []
        for indices in kept:
            is_kept = is_special.copy()
            is_kept[of_text[list(indices)]] = True
            windows.append(_picked(encoding, numpy.flatnonzero(is_kept).tolist()))
        return windows, len(of_text) - sum(map(len, kept))


class SlowTokenizer:
    """A tokenizer in Python, which does not know the characters of wordpieces.

    huggingface: the tokenizer; a copy if it lower-cases texts because the settings say so.
    """

    is_fast = False

    def __init__(
        self, tokenizer: HuggingFaceTokenizer, settings: SentenceTransformersConfig, limit: Limit
    ):
        self.huggingface = tokenizer
        self.limit = limit
        options = getattr(tokenizer, "sp_model_kwargs", None) or {}
        if options.get("enable_sampling"):
            raise ValueError(
                f"The tokenizer of '{settings.name}' splits words at random: its sp_model_kwargs "
                "have enable_sampling, for training. Leave it out."
            )
        if settings.lowercase:
            self.huggingface = deepcopy(tokenizer)
            try:
                self.huggingface.do_lower_case = True
            except AttributeError:
                # A property of what splits words
                self.huggingface.basic_tokenizer.do_lower_case = True

    def set_limit(self, limit: Limit) -> None:
        self.limit = limit

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text with special tokens."""
        return self.huggingface.encode(text, verbose=False)

    def encode_text(self, text: str) -> list[int]:
        """Return the ids of a text without special tokens."""
        return self.huggingface.encode(text, add_special_tokens=False, verbose=False)

    def split(self, texts: Sequence[str], *, offsets: bool, prompt: str) -> list[_Windows]:
        """Return the windows of texts, which know no characters.

        prompt (str): how the texts begin.
        """
        n_prompt = 0
        if prompt:
            n_prompt = len(self.encode_text(prompt))
        return [self._windows(text, n_prompt) for text in texts]

    def _windows(self, text: str, n_prompt: int) -> _Windows:
        limit = self.limit
        ids = self.encode_text(text)
        kept = limit.kept(len(ids), self.huggingface.num_special_tokens_to_add())
        windows = [self._window(ids, indices, n_prompt) for indices in kept]
        if not limit.mode.as_spacy_transformers:
            return windows, len(ids) - sum(map(len, kept))
        (window,) = windows
        if limit.max_length is None:
            return windows, 0
        n_cut = window.special_tokens_mask[limit.max_length :].count(0)
        return [_picked(window, range(len(window.ids))[: limit.max_length])], n_cut

    def _window(self, ids: list[int], indices: Sequence[int], n_prompt: int) -> SimpleNamespace:
        """Return a window of a text.

        ids: the wordpieces of the text. indices: those in the window.
        n_prompt (int): wordpieces of the prompt that the text begins with.
        """
        kept = [ids[index] for index in indices]
        made = self.huggingface.prepare_for_model(kept)
        with_special = made["input_ids"]
        # Some classes add nothing where a text ends with that token already, and return a mask as
        # if they had.
        size = len(kept)
        places = range(len(with_special) - size + 1)
        start = next((at for at in places if with_special[at : at + size] == kept), 0)
        pieces = [-1] * len(with_special)
        pieces[start : start + size] = [max(index - n_prompt, -1) for index in indices]
        return SimpleNamespace(
            ids=with_special,
            type_ids=made.get("token_type_ids", [0] * len(with_special)),
            special_tokens_mask=[int(piece < 0) for piece in pieces],
            pieces=pieces,
        )


def _picked(window: Any, places: Sequence[int]) -> SimpleNamespace:
    """Return some of the wordpieces of a window, special tokens included."""
    picked = SimpleNamespace()
    for name in ("ids", "type_ids", "special_tokens_mask", "offsets", "pieces"):
        if hasattr(window, name):
            values = getattr(window, name)
            setattr(picked, name, [values[place] for place in places])
    return picked
