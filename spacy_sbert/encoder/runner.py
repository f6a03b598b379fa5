"""From wordpieces to their states: sorted or packed, in batches of a budget, each text once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from .packed_bert import PackedBert
from .packing import pack
from .wordpieces import Wordpieces

CPU_BUDGET = 2048  # wordpieces that keep two cores busy, and whose states stay in the cache
GPU_BUDGET = 32768


@dataclass
class Part:
    """The states of some windows, one after another without padding.

    windows: int64 (k,), which they are.
    lengths: int64 (k,), their wordpieces, special tokens included.
    states: float32 (sum of lengths, width), on the encoder's device.
    """

    windows: numpy.ndarray
    lengths: numpy.ndarray
    states: torch.Tensor


@torch.inference_mode()
def run(encoder: Any, wordpieces: Wordpieces, *, budget: int = 0) -> Iterator[Part]:
    """Encode windows, equal ones once. Parts come in whatever order is quick; together they hold every window once.

    encoder: a PackedBert, or a model of Hugging Face for all that is no BERT.
    wordpieces (Wordpieces): of n windows.
    budget (int): the most wordpieces in a forward pass, padding included; 0 for what suits the device. A window that
        is longer by itself is a pass of its own.
    """
    device = encoder.words.device if isinstance(encoder, PackedBert) else encoder.device
    budget = budget or (CPU_BUDGET if device.type == "cpu" else GPU_BUDGET)
    first_of, twins = _find_twins(wordpieces)
    passes = _packed_passes if isinstance(encoder, PackedBert) else _padded_passes
    for windows, states, starts in passes(encoder, wordpieces, first_of, budget, device):
        all_windows = numpy.concatenate([twins[window] for window in windows.tolist()])
        counts = [len(twins[window]) for window in windows.tolist()]
        lengths = wordpieces.lengths[all_windows]
        places = spread(numpy.repeat(starts, counts), lengths)
        yield Part(all_windows, lengths, states[torch.from_numpy(places).to(device)].float())


def spread(starts: numpy.ndarray, lengths: numpy.ndarray) -> numpy.ndarray:
    """start, start + 1, ... of each stretch, one stretch after another.

    starts, lengths: int64 (n,).
    RETURNS (int64 (sum of lengths,)).
    """
    return numpy.arange(lengths.sum()) + numpy.repeat(starts - (numpy.cumsum(lengths) - lengths), lengths)


def _find_twins(wordpieces: Wordpieces) -> tuple[numpy.ndarray, dict[int, list[int]]]:
    """The windows that differ, and for each all that are equal to it."""
    starts, ids = wordpieces.starts.tolist(), wordpieces.ids
    seen: dict[bytes, int] = {}
    twins: dict[int, list[int]] = {}
    for window, (start, length) in enumerate(zip(starts, wordpieces.lengths.tolist(), strict=True)):
        first = seen.setdefault(ids[start : start + length].tobytes(), window)
        twins.setdefault(first, []).append(window)
    return numpy.fromiter(twins, dtype="int64"), twins


def _packed_passes(
    encoder: PackedBert, wordpieces: Wordpieces, windows: numpy.ndarray, budget: int, device: torch.device
) -> Iterator[tuple[numpy.ndarray, torch.Tensor, numpy.ndarray]]:
    """For each pass the windows in it, their states (rows * width, hidden), and where each window begins in these."""
    packing = pack(wordpieces.lengths[windows])
    by_row = numpy.argsort(packing.row_of, kind="stable")
    rows = packing.row_of[by_row]
    for first, last, width in _passes(packing.widths, budget):
        chosen = by_row[numpy.searchsorted(rows, first) : numpy.searchsorted(rows, last)]
        starts = (packing.row_of[chosen] - first) * width + packing.column_of[chosen]
        arrays = _lay_out(wordpieces, windows[chosen], starts, (last - first, width))
        ids, columns, types, owners = (None if a is None else torch.from_numpy(a).to(device) for a in arrays)
        yield windows[chosen], encoder(ids, columns, types, owners), starts  # type: ignore[arg-type]


def _passes(widths: numpy.ndarray, budget: int) -> Iterator[tuple[int, int, int]]:
    """First row, last row (exclusive) and width of each pass: rows of one width, as many as the budget allows."""
    for width in numpy.unique(widths).tolist():
        start, end = numpy.searchsorted(widths, [width, width + 1]).tolist()
        step = max(1, budget // width)
        for first in range(start, end, step):
            yield first, min(first + step, end), width


def _lay_out(
    wordpieces: Wordpieces, windows: numpy.ndarray, starts: numpy.ndarray, shape: tuple[int, int]
) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray | None, numpy.ndarray]:
    """ids, columns, types and windows of the places in packed rows, int64 of a shape; see PackedBert."""
    lengths = wordpieces.lengths[windows]
    to, of = spread(starts, lengths), spread(wordpieces.starts[windows], lengths)
    ids, columns, types = (numpy.zeros(shape, dtype="int64") for _ in range(3))
    owners = numpy.full(shape, -1, dtype="int64")
    ids.reshape(-1)[to] = wordpieces.ids[of]
    columns.reshape(-1)[to] = spread(numpy.zeros_like(starts), lengths)
    owners.reshape(-1)[to] = numpy.repeat(numpy.arange(len(windows)), lengths)
    if wordpieces.type_ids is None:
        return ids, columns, None, owners
    types.reshape(-1)[to] = wordpieces.type_ids[of]
    return ids, columns, types, owners


def _padded_passes(
    encoder: Any, wordpieces: Wordpieces, windows: numpy.ndarray, budget: int, device: torch.device
) -> Iterator[tuple[numpy.ndarray, torch.Tensor, numpy.ndarray]]:
    """The same for an encoder of any kind: windows of similar length, each a row of its own."""
    windows = windows[numpy.argsort(-wordpieces.lengths[windows], kind="stable")]
    lengths = wordpieces.lengths[windows]
    first = 0
    while first < len(windows):
        width = int(lengths[first])
        last = min(first + max(1, budget // width), len(windows))
        starts = numpy.arange(last - first) * width
        ids, _, types, owners = _lay_out(wordpieces, windows[first:last], starts, (last - first, width))
        ids[owners < 0] = encoder.config.pad_token_id or 0
        inputs = {"input_ids": ids, "attention_mask": (owners >= 0).astype("int64")}
        if types is not None:
            inputs["token_type_ids"] = types
        output = encoder(**{key: torch.from_numpy(value).to(device) for key, value in inputs.items()})
        yield windows[first:last], output.last_hidden_state.flatten(0, 1), starts
        first = last
