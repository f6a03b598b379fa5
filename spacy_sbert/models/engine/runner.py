"""From wordpieces to their states without a graph: sorted or packed, in batches of a budget, each text once."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Protocol, cast

import numpy
import torch
from thinc.api import torch2xp
from thinc.types import Floats2d

from ..span_batch import TokenEmbeddings
from ..tokenization import TokenizedBatch
from .concurrency import parallel_map
from .packing import Batch, ragged_arange

CPU_BUDGET = 2048  # wordpieces whose states stay in the cache
SMALLEST_BUDGET = 512  # less is not worth a thread
GPU_BUDGET = 32768


class Backend(Protocol):
    """A model that encodes batches of windows.

    device: of its weights. merges_equal: whether equal windows are encoded once. in_parallel: whether several threads
    may encode at a time.
    """

    merges_equal: bool
    in_parallel: bool

    @property
    def device(self) -> torch.device: ...

    def passes(self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int) -> list[Batch]:
        """Return the passes that encode some windows, int64 (k,), each of at most so many wordpieces."""

    def encode(self, wordpieces: TokenizedBatch, rows: Batch) -> torch.Tensor:
        """Return the states of a pass, float (rows * width, hidden)."""


def run(engine: Backend, wordpieces: TokenizedBatch, *, budget: int = 0) -> Iterator[TokenEmbeddings]:
    """Encode windows. They come in whatever order is quick, and each once.

    engine (Engine): what encodes.
    wordpieces (TokenizedBatch): of n windows.
    budget (int): the most wordpieces in a forward pass, padding included, but a row at least; 0 for what suits the
        device. It has no effect on an engine with batches of its own.
    """
    on_cpu = engine.device.type == "cpu"
    budget = budget or (_cpu_budget(len(wordpieces.ids)) if on_cpu else GPU_BUDGET)
    equal = _equal_windows(wordpieces) if engine.merges_equal else {i: [i] for i in range(len(wordpieces.lengths))}
    passes = engine.passes(wordpieces, numpy.fromiter(equal, dtype="int64"), budget)
    map_passes = parallel_map if engine.in_parallel and on_cpu and len(passes) > 1 else map
    for done, states in zip(passes, map_passes(partial(engine.encode, wordpieces), passes), strict=True):
        same = [equal[window] for window in done.windows.tolist()]
        windows = numpy.concatenate(same)
        lengths = wordpieces.lengths[windows]
        places = ragged_arange(numpy.repeat(done.starts, [len(each) for each in same]), lengths)
        found = states[torch.from_numpy(places).to(engine.device)].float()
        yield TokenEmbeddings(windows, lengths, cast(Floats2d, torch2xp(found)))


def _cpu_budget(n_wordpieces: int) -> int:
    """Return a pass for each thread, as far as it is worth it: more and smaller ones take longer in all."""
    return min(CPU_BUDGET, max(SMALLEST_BUDGET, math.ceil(n_wordpieces / torch.get_num_threads())))


def _equal_windows(wordpieces: TokenizedBatch) -> dict[int, list[int]]:
    """For the first of equal windows all that are equal to it."""
    starts, ids = wordpieces.starts.tolist(), wordpieces.ids
    if wordpieces.type_ids is not None:
        ids = numpy.column_stack([ids, wordpieces.type_ids])
    first_of: dict[bytes, int] = {}
    equal: dict[int, list[int]] = {}
    for window, (start, length) in enumerate(zip(starts, wordpieces.lengths.tolist(), strict=True)):
        first = first_of.setdefault(ids[start : start + length].tobytes(), window)
        equal.setdefault(first, []).append(window)
    return equal
