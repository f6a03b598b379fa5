"""Similarities of arrays of vectors, under the names that sentence-transformers gives them."""

from typing import Any

import numpy
from numpy.typing import ArrayLike

from . import cosine, unit_length
from .errors import Errors
from .rows import checked


class Similarities:
    """What pipes answer of the vectors that they made."""

    @staticmethod
    def similarity(u: ArrayLike, v: ArrayLike) -> numpy.ndarray:
        """The cosine of each vector of u and each of v; `spacy_sbert.search.nearest` finds the best of many.

        cos(u_i, v_j) = (u_i / ||u_i||) . (v_j / ||v_j||), and 0 where one is the zero vector.

        u, v (float arrays or CPU tensors of shape (n, width) and (m, width)): a single vector is one row.
        RETURNS (float32 (n, m)). RAISES (ValueError): for other shapes, or numbers that are not finite.
        """
        rows, others = _rows(u, v)
        return unit_length(rows) @ unit_length(others).T

    @staticmethod
    def similarity_pairwise(u: ArrayLike, v: ArrayLike) -> numpy.ndarray:
        """The cosine of each vector of u and the one of v in the same row, see `similarity`.

        RETURNS (float32 (n,)). RAISES (ValueError): also if there are not as many of both.
        """
        rows, others = _rows(u, v)
        if len(rows) != len(others):
            raise ValueError(Errors.UNPAIRED_ROWS.format(ours=len(rows), theirs=len(others)))
        return cosine(rows, others)


def _rows(u: ArrayLike, v: ArrayLike) -> tuple[numpy.ndarray, numpy.ndarray]:
    rows, others = _as_rows(u, "u"), _as_rows(v, "v")
    if rows.shape[1] != others.shape[1]:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=rows.shape[1], theirs=others.shape[1]))
    return rows, others


def _as_rows(vectors: Any, name: str) -> numpy.ndarray:
    return checked([vectors] if numpy.ndim(vectors) == 1 else vectors, name)
