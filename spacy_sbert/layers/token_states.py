"""What arbitrary Spans and Tokens need to have vectors: the wordpiece states of each token, summed or maximised."""

from typing import Any, cast

import numpy
from thinc.api import Ops
from thinc.types import Floats2d, Ints1d, Ragged

from ..similarity import as_numpy
from ..span_pooling import TokenStates


def token_states(
    ops: Ops, states: Floats2d, align: Ragged, pooling: str, *, overlapping: int | None = None
) -> TokenStates:
    """Reduce a Doc's wordpiece states to one vector and one count a token, as NumPy arrays.

    A wordpiece counts in the token it begins in and is carried by the others it reaches into (see TokenStates).

    ops (Ops): the ops of the model, on whose device the states are.
    states (float32 (wordpieces, width)): the states of the Doc's rows, padding included, flattened.
    align (Ragged of int32): for each of n tokens, the indices of its wordpieces in states.
    pooling (str): "max" for maxima, sums otherwise.
    overlapping (int): wordpieces in a padded row if rows overlap: a token then counts in the first of its rows only.
    RETURNS (TokenStates): n tokens.
    """
    lengths = as_numpy(align.lengths)
    pieces = as_numpy(align.dataXd).reshape(-1)
    tokens = numpy.repeat(numpy.arange(len(lengths)), lengths)
    if overlapping is not None:
        rows = pieces // overlapping
        starts = numpy.cumsum(lengths) - lengths  # a token's wordpieces ascend: its first one is in its first row
        kept = rows == rows[numpy.repeat(starts, lengths)]
        tokens, pieces = tokens[kept], pieces[kept]
    _, first_seen = numpy.unique(pieces, return_index=True)
    begins = numpy.zeros(len(pieces), dtype=bool)
    begins[first_seen] = True  # tokens ascend, so the first token seen with a wordpiece is the one it begins in
    at, values, counts = _reduce(ops, states, tokens[begins], pieces[begins], pooling)
    all_values = numpy.zeros((len(lengths), states.shape[1]), dtype="float32")
    all_values[at] = values
    all_counts = numpy.zeros(len(lengths), dtype="int32")
    all_counts[at] = counts
    carried_at, carried_values, carried_counts = _reduce(ops, states, tokens[~begins], pieces[~begins], pooling)
    return TokenStates(all_values, all_counts, carried_at, carried_values, carried_counts)


def _reduce(
    ops: Ops, states: Floats2d, tokens: numpy.ndarray, pieces: numpy.ndarray, pooling: str
) -> tuple[Any, Any, Any]:
    at, counts = numpy.unique(tokens, return_counts=True)
    if not len(at):
        return at.astype("int32"), numpy.zeros((0, states.shape[1]), dtype="float32"), counts.astype("int32")
    chosen = states[ops.asarray1i(cast(Ints1d, pieces))]
    lengths = ops.asarray1i(cast(Ints1d, counts))
    values = ops.reduce_max(chosen, lengths)[0] if pooling == "max" else ops.reduce_sum(chosen, lengths)
    return at.astype("int32"), as_numpy(values), counts.astype("int32")
