"""The output of a shared transformer in use: states without padding, and the padded batch for those who read that.

Sentence encoders read `unpadded`. Components that work on tokens read the fields of spacy-transformers (`wordpieces`,
`model_output`, `align`): the batch is padded when the first of them is read.
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
from transformers.utils import ModelOutput

from .padded import RowBatch, SharedRows, pad_states, split
from .rows import borders_of
from .states import Array, States
from .wordpieces import WordpieceTokenizer


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
    """A FullTransformerBatch that is padded when a field is read.

    spans (list[list[Span]]): the rows of each Doc, once for each window. unpadded (Unpadded): their states.
    """

    def __init__(self, spans: list[list[Span]], unpadded: Unpadded):
        self.spans, self.unpadded = spans, unpadded
        borders = pairwise(unpadded.shared.borders)
        self.cached_doc_data = [
            UnpaddedDoc(unpadded, number) if first < last else TransformerData.empty()
            for number, (first, last) in enumerate(borders)
        ]

    @cached_property
    def wordpieces(self) -> RowBatch:  # type: ignore[override]
        return self.unpadded.padded[0]

    @cached_property
    def model_output(self) -> BaseModelOutputWithPooling:  # type: ignore[override]
        return self.unpadded.padded[1]

    @cached_property
    def align(self) -> Ragged:  # type: ignore[override]
        return self.unpadded.padded[2]


class UnpaddedDoc(TransformerData):
    """A TransformerData that is padded when a field is read; fields may be set, too.

    unpadded (Unpadded): of its batch. number (int): of the Doc in that.
    """

    def __init__(self, unpadded: Unpadded, number: int):
        self.unpadded, self.number = unpadded, number

    @property
    def is_padded(self) -> bool:
        """Whether the padded states were read, or others set: then these count."""
        return "model_output" in vars(self)

    @cached_property
    def wordpieces(self) -> RowBatch:  # type: ignore[override]
        return cast(RowBatch, self.unpadded.docs[self.number].wordpieces)

    @cached_property
    def model_output(self) -> ModelOutput:  # type: ignore[override]
        return self.unpadded.docs[self.number].model_output

    @cached_property
    def align(self) -> Ragged:  # type: ignore[override]
        return self.unpadded.docs[self.number].align

    def __reduce__(self) -> tuple[type, tuple]:
        return TransformerData, (self.wordpieces, self.model_output, self.align)


@torch.no_grad()
def _pool(pooler: torch.nn.Module, windows: list[Array], device: torch.device) -> torch.Tensor:
    """float32 (windows, width): the pooler's output, which has no dropout."""
    firsts = get_array_module(windows[0]).stack([values[:1] for values in windows])
    return pooler(xp2torch(firsts, device=device))
