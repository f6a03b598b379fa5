"""Vectors that stand in files and are more than memory holds: searched exactly, a block at a time."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy
from numpy.typing import ArrayLike

from ..errors.progress import progress_bar
from ..similarity.rows import check_count, checked
from .blocks import check_widths
from .encoder import EncoderIdentity
from .nearest import Best, best_of, nearest


class SignedVectors(Protocol):
    """Vectors that say what made them.

    name (str): where they stand. shape (tuple): (n, width). encoder (tuple): name and digest of what made them.
    digest (str): of all of them.
    """

    name: str
    shape: tuple[int, int]
    encoder: tuple[str, str]
    digest: str


class StoredVectors(SignedVectors, Protocol):
    """What is asked of them, as bulk.PartVectors answers."""

    def blocks(self, start: int = 0) -> Iterator[numpy.ndarray]:
        """All from a row on, in order, (b, width)."""

    def __getitem__(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Some, (n, width). rows (int64 (n,)): from 0."""

    def where(self, rows: numpy.ndarray) -> Sequence[tuple[str, int, str | int | None, str | None]]:
        """Of some their file, their row in it, and their id and text where they were written."""


def identity_of(vectors: SignedVectors) -> EncoderIdentity:
    """What made stored vectors, as an index says it."""
    name, digest = vectors.encoder
    return EncoderIdentity(name, vectors.shape[1], digest)


def nearest_stored(queries: ArrayLike, vectors: StoredVectors, *, k: int, progress: bool = False) -> Best:
    """As `nearest`, of vectors that are read once, a block at a time.

    queries (float array of shape (n, width)): what to search for. vectors (StoredVectors): what to search in.
    k (int): how many of each, from 1 to as many as there are. progress (bool): whether to show a progress bar.
    RETURNS (float32 array of shape (n, k), int64 array of shape (n, k)): the similarities, and the rows.
    RAISES (ValueError): see nearest; if a file is not the one that was written.
    """
    rows, (n, width) = checked(queries, "queries"), vectors.shape
    check_widths(rows.shape[1], width)
    check_count(k, n, f"nearest of {n} vectors")
    best = numpy.empty((len(rows), 0), dtype="float32"), numpy.empty((len(rows), 0), dtype="int64")
    start = 0
    with progress_bar(n, shown=progress, unit="vectors", desc="Searching") as bar:
        for block in vectors.blocks():
            scores, found = nearest(rows, block, k=min(k, len(block)))
            best, start = best_of(best, (scores, found + start), k), start + len(block)
            bar.update(len(block))
    return best


def rescored(queries: numpy.ndarray, candidates: numpy.ndarray, vectors: StoredVectors, *, k: int) -> Best:
    """The k best of the candidates of each query by their own vectors, which are read for this.

    queries (float32 (n, width)). candidates (int64 (n, c)): rows of vectors, other ones in each row.
    """
    wanted, places = numpy.unique(candidates, return_inverse=True)
    read = vectors[wanted]
    scores, found = [], []
    for query, own in zip(queries, places.reshape(candidates.shape), strict=True):
        own = numpy.sort(own)
        score, best = nearest(query[None], read[own], k=k)
        scores.append(score[0])
        found.append(wanted[own[best[0]]])
    return numpy.stack(scores), numpy.stack(found)
