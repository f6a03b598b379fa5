"""Vectors in fewer bytes: a byte or a bit per dimension; and search among them."""

from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import numpy
from numpy.typing import ArrayLike

from ..arrays import as_rows, checked
from ..bulk import StoredVectors
from ..errors import Errors, Warnings, warn
from ..files.serialization import read_arrays, write_arrays
from ..similarity import check_widths, unit_length
from ..validation import NonNegative, validated
from .exact import (
    BLOCK_BYTES,
    Best,
    BlockBytes,
    checked_queries,
    nearest,
    nearest_in_blocks,
    slices,
)

# Steps between the 256 codes of a byte
_LEVELS = 255
# The share of numbers that may be outside of the ranges of a sample
_CLIPPED = 0.05
# How many candidates there are for each vector wanted
_RESCORED = 4
# The share of a vector's signs that another precision may change
_ROUNDED = 0.125


@dataclass(frozen=True)
class Int8Vectors:
    """Vectors of length 1 in a byte per dimension, a quarter of float32.

    codes (int8 (n, width)): round((v - low) / step) - 128. low, step (float32 (width,)): of each
        dimension.
    """

    codes: numpy.ndarray
    low: numpy.ndarray
    step: numpy.ndarray

    def __repr__(self) -> str:
        return f"Int8Vectors({len(self.codes)} vectors of {self.codes.shape[1]} numbers)"

    @classmethod
    def fit(cls, sample: ArrayLike) -> "Int8Vectors":
        """Learn the range of each dimension: low = min v, step = (max v - min v) / 255.

        sample (float array of shape (n, width), NumPy or CuPy): vectors such as will be stored.
        RETURNS (Int8Vectors): the ranges, and no vectors.
        RAISES (ValueError): if the array is of another shape, a number is not finite, or a vector
            is zero.
        SOURCE: Jacob et al. 2018, Quantization and training of neural networks, section 2.1.

        Example:
            stored = Int8Vectors.fit(vectors).apply(vectors)
            scores, rows = stored.search(queries, k=3)

        """
        rows = _unit_rows(sample, "sample")
        low = rows.min(axis=0)
        step = (rows.max(axis=0) - low) / numpy.float32(_LEVELS)
        # A dimension with one value has no range
        step = numpy.where(step > 0, step, numpy.float32(1))
        codes = numpy.zeros((0, rows.shape[1]), dtype="int8")
        return cls(codes, low, step)

    def apply(self, vectors: ArrayLike) -> "Int8Vectors":
        """Return vectors, float (n, width), quantised by these ranges; numbers outside are clipped.

        Warn if many are. Errors: see fit.
        """
        rows = _unit_rows(vectors, "vectors")
        check_widths(rows.shape[1], len(self.low))
        levels = numpy.rint((rows - self.low) / self.step)
        # Where the sample had one value, the step is 1
        is_another = (self.step == 1) & (rows != self.low)
        is_outside = (levels < 0) | (levels > _LEVELS) | is_another
        if is_outside.mean() > _CLIPPED:
            warn(Warnings.INT8_CLIPPED.format(percent=100 * is_outside.mean()))
        codes = levels.clip(0, _LEVELS) - 128
        return replace(self, codes=codes.astype("int8"))

    def decode(self, rows: slice | numpy.ndarray = slice(None)) -> numpy.ndarray:
        """Return low + step (code + 128) of some rows, float32 (rows, width)."""
        return self.low + self.step * (self.codes[rows].astype("float32") + 128)

    @validated
    def search(self, queries: ArrayLike, *, k: int, block_bytes: BlockBytes = BLOCK_BYTES) -> Best:
        """Find the k vectors most similar to each query, by the cosine of the decoded vectors.

        See `nearest`.
        """
        n, width = self.codes.shape
        blocks = map(self.decode, slices(n, max(1, block_bytes // (4 * width))))
        return nearest_in_blocks(queries, blocks, (n, width), k, block_bytes=block_bytes)

    @validated
    def save(self, path: str | Path) -> None:
        """Write codes, low and step as plain arrays (.npz), whole or not at all."""
        write_arrays(Path(path), {"codes": self.codes, "low": self.low, "step": self.step})

    @classmethod
    @validated
    def load(cls, path: str | Path) -> "Int8Vectors":
        """Read what `save` wrote. RAISES (ValueError): if the file is damaged, or another."""
        expected = {"codes": ("int8", 2), "low": ("float32", 1), "step": ("float32", 1)}
        arrays = read_arrays(Path(path), expected)
        widths = {array.shape[-1] for array in arrays.values()}
        if len(widths) > 1:
            raise ValueError(
                Errors.SEARCH_BAD_ARRAYS.format(path=path, reason=f"they have the widths {widths}")
            )
        return cls(**arrays)


@dataclass(frozen=True)
class BinaryVectors:
    """Vectors in a bit per dimension, a 32nd of float32: whether the number is positive.

    bits (uint8 (n, ceil(width / 8))): the first dimension is the highest bit. width (int): of the
        vectors.
    """

    bits: numpy.ndarray
    width: int

    def __repr__(self) -> str:
        return f"BinaryVectors({len(self.bits)} vectors of {self.width} numbers)"

    @classmethod
    def of(cls, vectors: ArrayLike) -> "BinaryVectors":
        """Quantise vectors, float (n, width). RAISES (ValueError): see Int8Vectors.fit.

        SOURCE: Charikar 2002, Similarity estimation techniques from rounding algorithms, section 3:
            signs keep angles.
        """
        rows = _unit_rows(vectors, "vectors")
        return cls(numpy.packbits(rows > 0, axis=1), rows.shape[1])

    def decode(self, rows: slice | numpy.ndarray = slice(None)) -> numpy.ndarray:
        """Return 1 for each positive number of some rows and -1 for others, float32 (n, width)."""
        is_positive = numpy.unpackbits(self.bits[rows], axis=1, count=self.width)
        return is_positive.astype("float32") * 2 - 1

    @validated
    def search(
        self,
        queries: ArrayLike,
        *,
        k: int,
        rescore: NonNegative = _RESCORED,
        vectors: ArrayLike | None = None,
    ) -> Best:
        """Find the k vectors most similar to each query.

        They are the nearest by Hamming distance, in the order of their cosines to the query.

        h(q, v) = number of dimensions whose signs differ; the cosine of the signs is 1 - 2 h /
        width

        queries (float array of shape (n, width), NumPy or CuPy): what to search for. k (int): how
            many of each.
        rescore (int): of rescore * k candidates by Hamming distance the best k by cosine(query,
            signs of v) are kept; 0 to keep the k nearest by Hamming distance, the lower index first
            of equal ones.
        vectors (float array of shape (m, width)): the stored vectors, maybe memory-mapped, to
            rescore by in place of their signs.
        RETURNS (float32 array of shape (n, k), int64 array of shape (n, k)): the cosines that
            decided, and the rows.
        RAISES (ValueError): see `nearest`; if vectors are not those that are stored, or rescore is
            negative.
        """
        n = len(self.bits)
        rows = checked_queries(queries, (n, self.width), k)
        if vectors is not None:
            vectors = self._checked_vectors(vectors)
        # (words, n): a pass over each word of all vectors
        words = numpy.ascontiguousarray(_words(self.bits).T)
        n_candidates = min(n, max(1, rescore) * k)
        scores = numpy.empty((len(rows), k), dtype="float32")
        indices = numpy.empty((len(rows), k), dtype="int64")
        for i, query in enumerate(_words(numpy.packbits(rows > 0, axis=1))):
            distances, near = _nearest_by_hamming(words, query, n_candidates)
            if not rescore:
                scores[i] = 1 - distances * numpy.float32(2 / self.width)
                indices[i] = near
                continue
            near = numpy.sort(near)
            candidates = self.decode(near) if vectors is None else self._stored(vectors, near)
            (scores[i],), (best,) = nearest(rows[i : i + 1], candidates, k=k)
            indices[i] = near[best]
        return scores, indices

    def _checked_vectors(self, vectors: ArrayLike) -> numpy.ndarray | StoredVectors:
        """Return vectors to rescore by. RAISES (ValueError): if they are of another shape."""
        rows = vectors if isinstance(vectors, StoredVectors) else as_rows(vectors, "vectors")
        expected = (len(self.bits), self.width)
        if numpy.shape(rows) != expected:
            raise ValueError(
                f"Cannot rescore by vectors of shape {numpy.shape(rows)}: expected {expected}, "
                "those quantised."
            )
        return rows

    def _stored(self, vectors: numpy.ndarray | StoredVectors, rows: numpy.ndarray) -> numpy.ndarray:
        """Return some of the vectors.

        RAISES (ValueError): if their signs are others than those that are stored.
        """
        read = vectors[rows]
        other_signs = numpy.packbits(read > 0, axis=1) ^ self.bits[rows]
        differing = numpy.unpackbits(other_signs, axis=1).sum(axis=1)
        if (differing > _ROUNDED * self.width).any():
            place = rows[int(differing.argmax())]
            raise ValueError(
                f"Vector {place} is not the one that was quantised: expected the same vectors, in "
                "their order."
            )
        return read

    @validated
    def save(self, path: str | Path) -> None:
        """Write bits and width as plain arrays (.npz), whole or not at all."""
        width = numpy.array([self.width], dtype="int64")
        write_arrays(Path(path), {"bits": self.bits, "width": width})

    @classmethod
    @validated
    def load(cls, path: str | Path) -> "BinaryVectors":
        """Read what `save` wrote. RAISES (ValueError): if the file is damaged, or another."""
        arrays = read_arrays(Path(path), {"bits": ("uint8", 2), "width": ("int64", 1)})
        bits = arrays["bits"]
        widths = arrays["width"]
        width = int(widths[0]) if len(widths) == 1 else 0
        if width < 1 or bits.shape[1] != ceil(width / 8):
            reason = f"bits of shape {bits.shape} and the width {widths.tolist()}"
            raise ValueError(Errors.SEARCH_BAD_ARRAYS.format(path=path, reason=reason))
        return cls(bits, width)


def _unit_rows(vectors: ArrayLike, name: str) -> numpy.ndarray:
    rows = unit_length(checked(vectors, name))
    zero = ~rows.any(axis=1)
    if zero.any():
        raise ValueError(
            f"Cannot quantise row {int(zero.argmax())} of the {name}: it is zero. Leave it out."
        )
    return rows


def _words(bits: numpy.ndarray) -> numpy.ndarray:
    """Return the bits, padded with zeros, in words of 8 bytes: uint64 (n, words)."""
    filled = numpy.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
    return numpy.ascontiguousarray(filled).view("uint64")


def _count_bits(words: numpy.ndarray) -> numpy.ndarray:
    """Return the number of bits that are set in each word: uint8 (n,), words uint64 (n,)."""
    # NumPy 2 has it
    if hasattr(numpy, "bitwise_count"):
        return numpy.bitwise_count(words)
    bits = numpy.unpackbits(words.view("uint8").reshape(-1, 8), axis=1)
    return bits.sum(axis=1, dtype="uint8")


def _nearest_by_hamming(words: numpy.ndarray, query: numpy.ndarray, k: int) -> Best:
    """Return the distances and indices of the nearest, uint16 (k,) and int64 (k,).

    words (uint64 (words, n)): of the vectors. query (uint64 (words,)): of one vector.
    """
    distances = numpy.zeros(words.shape[1], dtype="uint16")
    for row, word in zip(words, query, strict=True):
        distances += _count_bits(row ^ word)
    near = numpy.flatnonzero(distances <= numpy.partition(distances, k - 1)[k - 1])
    near = near[numpy.argsort(distances[near], kind="stable")[:k]]
    return distances[near], near
