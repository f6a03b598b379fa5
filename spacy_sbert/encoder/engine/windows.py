"""Where windows stand in rows, and which places may attend to one another."""

import numpy
import torch


def spread(starts: numpy.ndarray, lengths: numpy.ndarray) -> numpy.ndarray:
    """start, start + 1, ... of each stretch, one stretch after another.

    starts, lengths: int64 (n,).
    RETURNS (int64 (sum of lengths,)).
    """
    return numpy.arange(lengths.sum()) + numpy.repeat(starts - (numpy.cumsum(lengths) - lengths), lengths)


def attend_within(windows: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """What is added to the attention scores so that a place attends to its own window alone.

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
