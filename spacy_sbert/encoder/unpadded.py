"""What a transformer that is shared hands out in use: states without padding, until somebody reads them padded.

Sentence encoders read them as they are. Components that work on tokens ask for `wordpieces`, `model_output` or `align`,
and the batch is then padded for them, once.
"""

from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import torch
from spacy.tokens import Span
from spacy_transformers.data_classes import FullTransformerBatch, TransformerData
from thinc.api import xp2torch
from thinc.types import Ragged
from thinc.util import get_array_module
from transformers.modeling_outputs import BaseModelOutputWithPooling

from .padded import RowBatch, SharedRows, pad_states, split
from .rows import borders_of
from .states import Array, States
from .wordpieces import WordpieceTokenizer

FIELDS = ("wordpieces", "model_output", "align")


class Unpadded:
    """The rows of a batch of Docs and their states; no Doc is in it, since it stands on Docs.

    tokenizer (WordpieceTokenizer): that made the rows. shared (SharedRows): the rows.
    parts (list[States]): the states of their windows.
    device (torch.device): of the network, of which the thread that reads them may not know.
    pooler (Module): of the network, None if it has none. It reads the first state of each window, here and now: who
        reads its output may do so when the weights are others.
    """

    def __init__(
        self,
        tokenizer: WordpieceTokenizer,
        shared: SharedRows,
        parts: list[States],
        device: torch.device,
        pooler: torch.nn.Module | None,
    ):
        self.shared = shared
        self._tokenizer, self._parts, self._device = tokenizer, parts, device
        self._pooled = None if pooler is None else _pool(pooler, self.values, device)

    @cached_property
    def starts(self) -> list[int]:
        """Where each window begins among all wordpieces, and where the last ends."""
        return borders_of(self.shared.wordpieces.lengths.tolist())

    @cached_property
    def values(self) -> list[Array]:
        """Of each window float32 (wordpieces, width)."""
        found: list[Array] = [None] * len(self.shared.wordpieces.lengths)
        for part in self._parts:
            ends = part.lengths.cumsum()
            for window, start, end in zip(
                part.windows.tolist(), (ends - part.lengths).tolist(), ends.tolist(), strict=True
            ):
                found[window] = part.values[start:end]
        return found

    @cached_property
    def padded(self) -> tuple[RowBatch, BaseModelOutputWithPooling, Ragged]:
        """The batch as spacy-transformers has it: wordpieces, output of the model, alignment."""
        batch, align = self.shared.padded(self._tokenizer)
        width = self._parts[0].values.shape[1]
        states, _ = pad_states(self.shared.wordpieces, self._parts, width, self._device)
        return batch, BaseModelOutputWithPooling(cast(Any, states), pooler_output=cast(Any, self._pooled)), align

    @cached_property
    def docs(self) -> list[TransformerData]:
        """The same, split by Docs."""
        return split(*self.padded, self.shared.window_borders, self.shared.token_borders)


class UnpaddedBatch(FullTransformerBatch):
    """A FullTransformerBatch whose fields are made when they are read.

    spans (list[list[Span]]): the rows of each Doc, once for each window. unpadded (Unpadded): their states.
    """

    def __init__(self, spans: list[list[Span]], unpadded: Unpadded):
        self.spans, self._unpadded = spans, unpadded
        borders = pairwise(unpadded.shared.borders)
        self.cached_doc_data = [
            UnpaddedDoc(unpadded, number) if first < last else TransformerData.empty()
            for number, (first, last) in enumerate(borders)
        ]

    def __getattr__(self, name: str) -> Any:
        if name not in FIELDS:
            raise AttributeError(name)
        self.wordpieces, self.model_output, self.align = self._unpadded.padded
        return vars(self)[name]


class UnpaddedDoc(TransformerData):
    """A TransformerData whose fields are made when they are read: from then on they are all that it has.

    unpadded (Unpadded): of its batch. number (int): of the Doc in that.
    """

    def __init__(self, unpadded: Unpadded, number: int):
        self.unpadded: tuple[Unpadded, int] | None = (unpadded, number)

    def __getattr__(self, name: str) -> Any:
        if name not in FIELDS or self.unpadded is None:
            raise AttributeError(name)
        unpadded, number = self.unpadded
        vars(self).update(vars(unpadded.docs[number]) | vars(self))
        self.unpadded = None
        return vars(self)[name]

    def __setattr__(self, name: str, value: object) -> None:
        if name in FIELDS and name not in vars(self):
            getattr(self, name)  # what is set counts, for all who read
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[type, tuple]:
        return TransformerData, (self.wordpieces, self.model_output, self.align)


@torch.no_grad()
def _pool(pooler: torch.nn.Module, windows: list[Array], device: torch.device) -> torch.Tensor:
    """float32 (windows, width): the pooler's output, which has no dropout."""
    firsts = get_array_module(windows[0]).stack([values[:1] for values in windows])
    return pooler(xp2torch(firsts, device=device))
