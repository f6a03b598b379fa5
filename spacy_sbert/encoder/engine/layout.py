"""What encoders take of a pass: the wordpieces of its windows, laid out in rows."""

import numpy
import torch
from torch.nn import functional

from ..hugging_face import Network
from ..wordpieces import Wordpieces
from .passes import Pass
from .windows import spread

Layout = tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray, numpy.ndarray]


def padded_inputs(
    encoder: Network, wordpieces: Wordpieces, device: torch.device, rows: Pass
) -> dict[str, torch.Tensor]:
    """What a Hugging Face model takes of a pass, int64 (rows, width)."""
    ids, _, types, owners = on_device(lay_out(wordpieces, rows, encoder.config.pad_token_id or 0), device)
    inputs = {"input_ids": ids, "attention_mask": (owners >= 0).long()}
    return inputs if wordpieces.type_ids is None else {**inputs, "token_type_ids": types}


def lay_out(wordpieces: Wordpieces, rows: Pass, padding: int = 0) -> Layout:
    """ids, columns, types and windows of the places in a pass, int64 (rows, width); see PackedBert.

    padding (int): the id where no window is.
    """
    lengths = wordpieces.lengths[rows.windows]
    to, of = spread(rows.starts, lengths), spread(wordpieces.starts[rows.windows], lengths)
    ids = numpy.full(rows.shape, padding, dtype="int64")
    columns, types = (numpy.zeros(rows.shape, dtype="int64") for _ in range(2))
    owners = numpy.full(rows.shape, -1, dtype="int64")
    ids.reshape(-1)[to] = wordpieces.ids[of]
    columns.reshape(-1)[to] = spread(numpy.zeros_like(lengths), lengths)
    owners.reshape(-1)[to] = numpy.repeat(numpy.arange(len(lengths)), lengths)
    if wordpieces.type_ids is not None:
        types.reshape(-1)[to] = wordpieces.type_ids[of]
    return ids, columns, types, owners


def on_device(layout: Layout, device: torch.device) -> tuple[torch.Tensor, ...]:
    """The same as tensors."""
    return tuple(torch.from_numpy(values).to(device) for values in layout)


def with_places(states: torch.Tensor, n_places: int) -> torch.Tensor:
    """(n_places, ...): the first places, or all and zeros behind them, for products of few shapes, see passes."""
    n_more = n_places - len(states)
    return functional.pad(states, (0, 0) * (states.dim() - 1) + (0, n_more)) if n_more > 0 else states[:n_places]
