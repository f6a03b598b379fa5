"""From wordpieces to their states: sorted or packed, in batches of a budget, each text once."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy
import torch

from ..wordpieces import Wordpieces
from .heap import note_work
from .inference import Reference
from .packed_bert import PackedBert
from .passes import Pass, packed_passes, padded_passes, reference_passes
from .threads import parallel_map
from .windows import spread

CPU_BUDGET = 2048  # wordpieces whose states stay in the cache
SMALLEST_BUDGET = 512  # less is not worth a thread
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


def run(encoder: Any, wordpieces: Wordpieces, *, budget: int = 0) -> Iterator[Part]:
    """Encode windows, equal ones once. Parts come in whatever order is quick; together they hold every window once.

    encoder: a PackedBert, or a model of Hugging Face for all that is no BERT; a Reference encodes equal windows each.
    wordpieces (Wordpieces): of n windows.
    budget (int): the most wordpieces in a forward pass, padding included, but a row at least; 0 for what suits the
        device. It is nothing to a Reference.
    """
    is_packed = isinstance(encoder, PackedBert)
    model = encoder.model if isinstance(encoder, Reference) else encoder
    device = model.words.device if is_packed else model.device
    budget = budget or (_cpu_budget(len(wordpieces.ids)) if device.type == "cpu" else GPU_BUDGET)
    if isinstance(encoder, Reference):
        twins, passes = {window: [window] for window in range(len(wordpieces.lengths))}, reference_passes(wordpieces)
    else:
        twins = _find_twins(wordpieces)
        windows = numpy.fromiter(twins, dtype="int64")
        passes = (packed_passes if is_packed else padded_passes)(wordpieces.lengths, windows, budget)
    encode = partial(_encode_packed if is_packed else _encode_padded, model, wordpieces, device)
    # Other models keep things of a pass that another thread would change.
    in_parallel = is_packed and device.type == "cpu" and len(passes) > 1
    map_passes = parallel_map if in_parallel else map
    for done, states in zip(passes, map_passes(encode, passes), strict=True):
        same = [twins[window] for window in done.windows.tolist()]
        all_windows = numpy.concatenate(same)
        lengths = wordpieces.lengths[all_windows]
        places = spread(numpy.repeat(done.starts, [len(equal) for equal in same]), lengths)
        yield Part(all_windows, lengths, states[torch.from_numpy(places).to(device)].float())
    if device.type == "cpu":
        note_work(len(wordpieces.ids))


def _cpu_budget(n_wordpieces: int) -> int:
    """Two passes for each thread, as far as they are worth it."""
    return min(CPU_BUDGET, max(SMALLEST_BUDGET, n_wordpieces // (2 * torch.get_num_threads())))


def _find_twins(wordpieces: Wordpieces) -> dict[int, list[int]]:
    """For each of the windows that differ all that are equal to it."""
    starts, ids = wordpieces.starts.tolist(), wordpieces.ids
    if wordpieces.type_ids is not None:
        ids = numpy.column_stack([ids, wordpieces.type_ids])
    seen: dict[bytes, int] = {}
    twins: dict[int, list[int]] = {}
    for window, (start, length) in enumerate(zip(starts, wordpieces.lengths.tolist(), strict=True)):
        first = seen.setdefault(ids[start : start + length].tobytes(), window)
        twins.setdefault(first, []).append(window)
    return twins


@torch.inference_mode()
def _encode_packed(encoder: PackedBert, wordpieces: Wordpieces, device: torch.device, rows: Pass) -> torch.Tensor:
    """The states of a pass, (rows * width, hidden)."""
    arrays = _lay_out(wordpieces, rows)
    ids, columns, types, owners = (None if a is None else torch.from_numpy(a).to(device) for a in arrays)
    return encoder(ids, columns, types, owners)  # type: ignore[arg-type]


@torch.no_grad()  # what some models keep of a pass would be of no use to training in inference mode
def _encode_padded(encoder: Any, wordpieces: Wordpieces, device: torch.device, rows: Pass) -> torch.Tensor:
    """The states of a pass, (rows * width, hidden)."""
    return encoder(**padded_inputs(encoder, wordpieces, device, rows)).last_hidden_state.flatten(0, 1)


def padded_inputs(encoder: Any, wordpieces: Wordpieces, device: torch.device, rows: Pass) -> dict[str, torch.Tensor]:
    """What a Hugging Face model takes of a pass, int64 (rows, width)."""
    ids, _, types, owners = _lay_out(wordpieces, rows)
    ids[owners < 0] = encoder.config.pad_token_id or 0
    inputs = {"input_ids": ids, "attention_mask": (owners >= 0).astype("int64")}
    if types is not None:
        inputs["token_type_ids"] = types
    return {key: torch.from_numpy(value).to(device) for key, value in inputs.items()}


def _lay_out(
    wordpieces: Wordpieces, rows: Pass
) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray | None, numpy.ndarray]:
    """ids, columns, types and windows of the places in a pass, int64 (rows, width); see PackedBert."""
    lengths = wordpieces.lengths[rows.windows]
    to, of = spread(rows.starts, lengths), spread(wordpieces.starts[rows.windows], lengths)
    ids, columns, types = (numpy.zeros(rows.shape, dtype="int64") for _ in range(3))
    owners = numpy.full(rows.shape, -1, dtype="int64")
    ids.reshape(-1)[to] = wordpieces.ids[of]
    columns.reshape(-1)[to] = spread(numpy.zeros_like(lengths), lengths)
    owners.reshape(-1)[to] = numpy.repeat(numpy.arange(len(lengths)), lengths)
    if wordpieces.type_ids is None:
        return ids, columns, None, owners
    types.reshape(-1)[to] = wordpieces.type_ids[of]
    return ids, columns, types, owners
