"""What the searches share: the blocks that bound their memory, and scores that do not depend on them."""

from collections.abc import Iterator
from math import isqrt
from typing import Annotated

import numpy
from pydantic import Field

from .errors import Errors

BlockBytes = Annotated[int, Field(ge=4)]  # room for a product
BLOCK_BYTES = 2**23  # of products: 1448 by 1448 in float32, which wastes little below a diagonal


def side(block_bytes: int) -> int:
    """How many rows and columns a square block of float32 products has."""
    return isqrt(block_bytes // 4)


def slices(n: int, size: int, start: int = 0) -> Iterator[slice]:
    """Blocks of `size` rows, the last maybe smaller, from row `start` to row n."""
    return (slice(first, min(first + size, n)) for first in range(start, n, size))


def upper_blocks(n: int, size: int) -> Iterator[tuple[slice, slice]]:
    """The blocks of a square on and above its diagonal."""
    return ((left, right) for left in slices(n, size) for right in slices(n, size, left.start))


def check_widths(ours: int, theirs: int) -> None:
    """RAISES (ValueError): if vectors of these widths cannot be compared."""
    if ours != theirs:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=ours, theirs=theirs))


def rounding(width: int) -> float:
    """How much lower than another score a product may be, and yet be the better pair once both are scored alike.

    A float32 dot product of unit vectors is within width 2^-24 of the true one, up to second order, in whatever order
    it is summed. Two are compared, each computed twice: 4 width 2^-24.

    width (int): of the vectors.
    RETURNS (float): 2^-22 width.
    SOURCE: Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1.
    """
    return 2**-22 * width


def scores_of(
    u: numpy.ndarray, v: numpy.ndarray, i: numpy.ndarray, j: numpy.ndarray, block_bytes: int
) -> numpy.ndarray:
    """Cosine similarity of the rows u_i and v_j, as similarity.cosine computes it: the same bits in whatever block.

    u, v (float32 arrays of shape (n, width), (m, width)): of length 1 or 0. i, j (int64 arrays of shape (pairs,)).
    block_bytes (int): how much is gathered of each at once.
    RETURNS (float32 array of shape (pairs,)).
    """
    scores = numpy.empty(len(i), dtype="float32")
    for part in slices(len(i), max(1, block_bytes // (4 * u.shape[1]))):
        scores[part] = (u[i[part]] * v[j[part]]).sum(axis=1)
    return scores
