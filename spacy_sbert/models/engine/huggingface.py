"""Hugging Face's models as backends: of any kind, on rows with a window each."""

from typing import Any

import numpy
import torch

from ..encoder_checks import (
    attention_mask,
    configured_positions,
    padding_id,
    takes_token_types,
)
from ..loading import Network
from ..tokenization import TokenizedBatch
from .packing import Batch, lay_out, padded_batches, single_batch

# Texts that sentence-transformers encodes together, unless it is asked for others
_REFERENCE_ROWS = 32


def padded_inputs(
    model: Network, wordpieces: TokenizedBatch, batch: Batch
) -> dict[str, torch.Tensor]:
    """Return what a Hugging Face model takes of a batch, int64 (rows, width): a window a row."""
    ids, _, types, owners = lay_out(wordpieces, batch, model.device, padding_id(model))
    inputs = {"input_ids": ids, **attention_mask(model, (owners >= 0).long())}
    if wordpieces.has_type_ids and takes_token_types(model):
        # Those that are all 0, too: XLM, FlauBERT and GPT-2 add an embedding of them
        inputs["token_type_ids"] = types
    return inputs


def call(model: Network, wordpieces: TokenizedBatch, batch: Batch) -> Any:
    """Return the ModelOutput of a Hugging Face model for a batch with a window a row."""
    return model(**padded_inputs(model, wordpieces, batch))


class HFBackend:
    """A Hugging Face model of any kind, in evaluation mode, on rows of similar length.

    pads (bool): whether rows of a batch may be padded, see loading.ignores_padding.
    """

    merges_equal = True
    # Some models keep things of a forward pass that another thread would change
    in_parallel = False

    def __init__(self, model: Network, *, pads: bool = True):
        self.model = model
        self.pads = pads

    @property
    def device(self) -> torch.device:
        return self.model.device

    def batches(
        self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int
    ) -> list[Batch]:
        return padded_batches(wordpieces.lengths, windows, budget, of_equal_length=not self.pads)

    # In inference mode training could not use what some models keep of a forward pass
    @torch.no_grad()
    def encode(self, wordpieces: TokenizedBatch, batch: Batch) -> torch.Tensor:
        # Training leaves it in the other mode
        self.model.eval()
        try:
            return call(self.model, wordpieces, batch).last_hidden_state.flatten(0, 1)
        except (IndexError, RuntimeError) as error:
            width = batch.shape[1]
            limit = configured_positions(self.model.config)
            if limit is not None and width > limit:
                raise ValueError(
                    f"The encoder ({self.model.config.model_type}) cannot encode {width} "
                    f"wordpieces at once: it was made for {limit}. Set tokenizer_config = "
                    f"{{'model_max_length': {limit}}}."
                ) from error
            raise


class ReferenceBackend(HFBackend):
    """A Hugging Face model in the batches of sentence-transformers, equal to the last bit."""

    merges_equal = False

    def batches(
        self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int
    ) -> list[Batch]:
        """Return the batches of sentence-transformers: texts by their length in characters."""
        if not self.pads:
            return super().batches(wordpieces, windows, budget)
        n_characters: Any = wordpieces.n_characters
        # Not stable, as there: texts of one length must come in the same order
        order = numpy.argsort(-n_characters)
        return [
            single_batch(
                wordpieces.lengths,
                order[first : first + _REFERENCE_ROWS],
                pads_left=wordpieces.pads_left,
            )
            for first in range(0, len(order), _REFERENCE_ROWS)
        ]
