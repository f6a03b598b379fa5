"""Pack sequences into batches without padding: batching, positions and attention masks."""

import math
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch.nn import functional

from ..loading import Network
from ..private_attributes import uses_amx
from ..tokenization import TokenizedBatch

WIDTHS = (64, 128)  # of the narrowest rows; both are tried
CPU_BUDGET = 2048  # wordpieces in a pass, whose states stay in the cache
ATTENTION_SHARE = 0.15  # of the time for a wordpiece in a row of 64, where it attends to 64; grows with the width


@dataclass(frozen=True)
class Packing:
    """The places of n windows in rows.

    row_of, column_of: int64 (n,), the row of each window and where it begins in it. widths: int64 (rows,), ascending.
    """

    row_of: numpy.ndarray
    column_of: numpy.ndarray
    widths: numpy.ndarray

    @property
    def cost(self) -> float:
        """The time it takes to encode the rows, as multiples of a wordpiece's in a row of 64."""
        attention = ATTENTION_SHARE * self.widths / 64
        return float((self.widths * (1 - ATTENTION_SHARE + attention)).sum())


def pack(lengths: numpy.ndarray, *, one_width: bool = False) -> Packing:
    """Put windows into few rows: the longest first, each into the fullest row it fits in.

    A window that fits nowhere opens a row of 64 or of 128, whichever costs less in all; one that is longer has a row of
    its own, since attention costs more the wider a row is.

    lengths (int64 (n,)): the wordpieces in each window.
    one_width (bool): whether all rows must be as wide as the longest window, for those that are encoded as one batch.
    SOURCE: Johnson 1973, Near-Optimal Bin Packing Algorithms (best fit decreasing); packing of sequences with a
        block-diagonal mask as in Krell et al. 2021, Efficient Sequence Packing without Cross-contamination, section 3.
    """
    longest = int(lengths.max(initial=0))
    widths = [max(WIDTHS[0], longest)] if one_width else WIDTHS
    return min((_pack(lengths, width) for width in widths), key=lambda packing: packing.cost)


def _pack(lengths: numpy.ndarray, narrowest: int) -> Packing:
    order = numpy.argsort(-lengths, kind="stable")
    row_of = [0] * len(lengths)
    column_of = [0] * len(lengths)
    widths: list[int] = []
    with_room: dict[int, list[tuple[int, int]]] = {}  # free places -> (row, its next column)
    free_sizes = 0  # the keys of with_room, as bits
    for window, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        fitting = free_sizes >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1  # the smallest that is large enough
            row, column = with_room[room].pop()
            if not with_room[room]:
                free_sizes ^= 1 << room
        else:
            room = max(narrowest, length)
            row, column = len(widths), 0
            widths.append(room)
        row_of[window], column_of[window] = row, column
        left = room - length
        if left:
            with_room.setdefault(left, []).append((row, column + length))
            free_sizes |= 1 << left
    by_width = numpy.argsort(widths, kind="stable")
    new_place = numpy.empty_like(by_width)
    new_place[by_width] = numpy.arange(len(widths))
    return Packing(new_place[row_of], numpy.array(column_of), numpy.array(widths)[by_width])


def ragged_arange(starts: numpy.ndarray, lengths: numpy.ndarray) -> numpy.ndarray:
    """start, start + 1, ... of each stretch, one stretch after another.

    starts, lengths: int64 (n,).
    RETURNS (int64 (sum of lengths,)).
    """
    return numpy.arange(lengths.sum()) + numpy.repeat(starts - (numpy.cumsum(lengths) - lengths), lengths)


def block_diagonal_mask(windows: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what is added to the attention scores so that a place attends to its own window alone.

    windows: int64 (rows, width), the number of the window that a place belongs to; -1 for padding.
    RETURNS (dtype (rows, 1, width, width)): 0 within a window, minus infinity between windows.
    """
    same = windows[:, None, :, None] == windows[:, None, None, :]
    return torch.zeros(same.shape, dtype=dtype, device=windows.device).masked_fill_(~same, -torch.inf)


def positions_after(padding: int, ids: torch.Tensor, columns: torch.Tensor, windows: torch.Tensor) -> torch.Tensor:
    """Positions as RoBERTa counts them: from padding + 1 on, leaving out padding, even where a text spells it.

    padding: the id of padding, and its position.
    ids, columns, windows: int64 (rows, width), see PackedBert.
    RETURNS (int64 (rows, width)).
    """
    spelled = ((ids == padding) & (windows >= 0)).long()  # whether there are any, a GPU would have to be asked
    seen = spelled.cumsum(dim=1) - spelled  # before each place, in its row
    window_starts = torch.arange(ids.shape[1], device=ids.device) - columns
    positions = columns + padding + 1 - (seen - seen.gather(1, window_starts))
    return positions.masked_fill(ids == padding, padding)


# oneDNN makes a kernel for each shape of a product, of half a MB, and keeps a thousand. So passes are of few shapes.
WIDTHS_APART = 8  # wordpieces
PLACES_APART = 64
FEW_PLACES_APART = 16  # of no more than PLACES_APART: for a short text alone, which has a quarter of them
SIMILAR = 0.75  # the narrowest row of a pass, as a share of the widest, to which it is padded
REFERENCE_BATCH = 32  # texts; what SentenceTransformer.encode takes by default


@dataclass
class Batch:
    """A forward pass: rows of similar width.

    windows: int64 (k,), those in it.
    starts: int64 (k,), where each begins in the flattened rows.
    shape: rows and width.
    """

    windows: numpy.ndarray
    starts: numpy.ndarray
    shape: tuple[int, int]


def packed_batches(lengths: numpy.ndarray, windows: numpy.ndarray, budget: int, *, at_a_time: int = 1) -> list[Batch]:
    """Return passes with several windows in a row; at_a_time (int): how many threads share the passes."""
    packing = pack(lengths[windows])
    n_left = math.ceil(int(packing.widths.sum()) / budget)
    if n_left > at_a_time:  # as many for each thread, so that none waits for the others' last one
        n_left = at_a_time * math.ceil(n_left / at_a_time)
    by_row = numpy.argsort(packing.row_of, kind="stable")
    rows = packing.row_of[by_row]
    passes, last = [], len(packing.widths)
    while last:
        width = width_for(packing.widths[last - 1])  # the widest row that is left
        similar = int(numpy.searchsorted(packing.widths, SIMILAR * width))
        share = int(packing.widths[:last].sum()) / max(1, n_left)  # of those that are left
        most = budget // width
        n_rows = min(most, math.ceil(share / width))
        n_rows += n_rows % 2 if n_rows < most else 0  # even numbers are fewer shapes
        first = max(similar, last - max(1, n_rows))
        chosen = by_row[numpy.searchsorted(rows, first) : numpy.searchsorted(rows, last)]
        starts = (packing.row_of[chosen] - first) * width + packing.column_of[chosen]
        passes.append(Batch(windows[chosen], starts, (last - first, width)))
        last, n_left = first, n_left - 1
    return passes


def width_for(longest: numpy.integer) -> int:
    """Return the width of the rows of a pass by its longest."""
    return WIDTHS_APART * math.ceil(longest / WIDTHS_APART)


def places_for(n_used: int) -> int:
    """Return how many places products are made of, by how many are used."""
    apart = PLACES_APART if n_used > PLACES_APART else FEW_PLACES_APART
    return apart * math.ceil(n_used / apart)


def padded_batches(lengths: numpy.ndarray, windows: numpy.ndarray, budget: int) -> list[Batch]:
    """Return passes with a row a window, of similar length, of at most so many wordpieces a pass."""
    windows = windows[numpy.argsort(-lengths[windows], kind="stable")]
    passes, first = [], 0
    while first < len(windows):
        width = int(lengths[windows[first]])
        passes.append(single_batch(lengths, windows[first : first + max(1, budget // max(1, width))]))
        first += len(passes[-1].windows)
    return passes


def reference_batches(wordpieces: TokenizedBatch) -> list[Batch]:
    """Return the batches of sentence-transformers: texts by their number of characters, 32 together."""
    n_characters: Any = wordpieces.n_characters
    order = numpy.argsort(-n_characters)  # not stable, as there: texts of one length must come in the same order
    batches = [order[first : first + REFERENCE_BATCH] for first in range(0, len(order), REFERENCE_BATCH)]
    return [single_batch(wordpieces.lengths, batch) for batch in batches]


def single_batch(lengths: numpy.ndarray, windows: numpy.ndarray) -> Batch:
    """Return one pass with a row a window."""
    width = max(1, int(lengths[windows].max()))
    return Batch(windows, numpy.arange(len(windows)) * width, (len(windows), width))


_Layout = tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray, numpy.ndarray]


def padded_inputs(
    encoder: Network, wordpieces: TokenizedBatch, device: torch.device, rows: Batch
) -> dict[str, torch.Tensor]:
    """Return what a Hugging Face model takes of a pass, int64 (rows, width)."""
    ids, _, types, owners = on_device(lay_out(wordpieces, rows, encoder.config.pad_token_id or 0), device)
    inputs = {"input_ids": ids, "attention_mask": (owners >= 0).long()}
    return inputs if wordpieces.type_ids is None else {**inputs, "token_type_ids": types}


def lay_out(wordpieces: TokenizedBatch, rows: Batch, padding: int = 0) -> _Layout:
    """Return ids, columns, types and windows of the places in a pass, int64 (rows, width); see PackedBert."""
    lengths = wordpieces.lengths[rows.windows]
    to, of = ragged_arange(rows.starts, lengths), ragged_arange(wordpieces.starts[rows.windows], lengths)
    ids = numpy.full(rows.shape, padding, dtype="int64")
    columns, types = numpy.zeros(rows.shape, dtype="int64"), numpy.zeros(rows.shape, dtype="int64")
    owners = numpy.full(rows.shape, -1, dtype="int64")
    ids.reshape(-1)[to] = wordpieces.ids[of]
    columns.reshape(-1)[to] = ragged_arange(numpy.zeros_like(lengths), lengths)
    owners.reshape(-1)[to] = numpy.repeat(numpy.arange(len(lengths)), lengths)
    if wordpieces.type_ids is not None:
        types.reshape(-1)[to] = wordpieces.type_ids[of]
    return ids, columns, types, owners


def on_device(layout: _Layout, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Return the same as tensors."""
    return tuple(torch.from_numpy(values).to(device) for values in layout)


def with_places(states: torch.Tensor, n_places: int) -> torch.Tensor:
    """Return the first n_places, or all and zeros behind them, for products of few shapes."""
    n_more = n_places - len(states)
    return functional.pad(states, (0, 0) * (states.dim() - 1) + (0, n_more)) if n_more > 0 else states[:n_places]


BLOCK = 2**19  # scores at a time, which stay in the cache of a core


def attention(heads: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
    """softmax(Q K' / sqrt(size) + added) V for each head.

    In bfloat16 on a CPU without AMX as products of their own for a few rows at a time: PyTorch's fused kernel takes a
    quarter more time there. Scores are then rounded to bfloat16 before the softmax.

    heads: (places, 3, heads, size), queries, keys and values; places are those of rows, one row after another, maybe
        without the last of them, which mean nothing, or with more behind them.
    added_scores: (rows, 1 or heads, width, width), of the same dtype: -inf where a place does not attend to another.
    RETURNS ((places, heads * size)): what each place attends to; 0 behind the rows.
    SOURCE: Vaswani et al. 2017, section 3.2.
    """
    n_rows, width = added_scores.shape[::3]
    rows = with_places(heads, n_rows * width).view(n_rows, width, *heads.shape[1:])
    query, key, value = (rows[:, :, i].transpose(1, 2) for i in range(3))  # (rows, heads, width, size)
    if heads.is_cpu and heads.dtype == torch.bfloat16 and not uses_amx():
        attended = _by_products(query, key, value, added_scores)
    else:
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=added_scores).transpose(1, 2)
    return with_places(attended.reshape(n_rows * width, -1), len(heads))


def _by_products(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, added_scores: torch.Tensor
) -> torch.Tensor:
    """(rows, width, heads, size), of what is (rows, heads, width, size)."""
    n_rows, n_heads, width, size = query.shape
    attended = query.new_empty(n_rows, width, n_heads, size)
    first, most = 0, BLOCK // (n_heads * width**2)
    while first < n_rows:  # in blocks of powers of two, the largest first: products of few shapes
        block = slice(first, first + 2 ** (max(1, min(n_rows - first, most)).bit_length() - 1))
        first = block.stop
        q, k, v = (part[block].reshape(-1, width, size) for part in (query, key, value))
        scores = torch.bmm(q, k.transpose(1, 2)).view(-1, n_heads, width, width)
        torch.add(added_scores[block], scores, alpha=size**-0.5, out=scores)
        mixed = torch.bmm(scores.softmax(-1).view(-1, width, width), v)
        attended[block] = mixed.view(-1, n_heads, width, size).transpose(1, 2)
    return attended
