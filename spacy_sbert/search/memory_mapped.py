"""Stored vectors, searched with exact scores, and the identity of the encoder that made them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy
from numpy.typing import ArrayLike

from ..pipeline.sbert import SentenceBert
from ..progress import progress_bar
from ..similarity import check_count, checked
from ..validation import short_repr
from .exact import Best, best_of, check_widths, nearest

if TYPE_CHECKING:
    from ..bulk import FileVectors


@dataclass(frozen=True)
class EncoderIdentity:
    """Identity that tells the vectors of one encoder from those of another.

    name (str): of the transformer, for messages. width (int): of the vectors. digest (str): see encoder_digest.
    """

    name: str
    width: int
    digest: str


def check_encoder(theirs: EncoderIdentity | None, ours: EncoderIdentity, where: Path | str) -> None:
    """Check which encoder made stored vectors. RAISES (ValueError): if not ours, or not known."""
    if theirs is None:
        raise ValueError(
            f"The index in {where} does not say which encoder made its vectors. Build it again with "
            "encoder = identify(pipe), or load it without an encoder if you know that it fits."
        )
    if (theirs.width, theirs.digest) != (ours.width, ours.digest):
        differing = f"width {theirs.width} and {ours.width}" if theirs.width != ours.width else "weights or settings"
        raise ValueError(
            f"The index in {where} was built with another encoder, '{theirs.name}', than '{ours.name}' (other "
            f"{differing}). Search it with the pipeline that it was built with, or build it again."
        )


def identify(pipe: SentenceBert) -> EncoderIdentity:
    """Return the identity of the encoder of an `sbert` pipe; it changes with training, not with use or saving.

    RAISES (TypeError): if the pipe is another one. (OSError, ValueError): if the encoder is not found, or the
        transformer is not of this package.
    """
    if not isinstance(pipe, SentenceBert):
        raise TypeError(
            f"Cannot tell the encoder of {short_repr(pipe)} from others: expected an 'sbert' pipe. Build and load "
            "the index of another pipe without encoder, and keep it beside the pipeline."
        )
    encoder = pipe.text_encoder()
    return EncoderIdentity(encoder.name, encoder.width, encoder.digest())


class StoredVectors(Protocol):
    """Vectors that can be searched, such as bulk.PartVectors.

    name (str): where they are. shape (tuple): (n, width). encoder (tuple): name and digest of the encoder.
    digest (str): of all of them.
    """

    name: str
    shape: tuple[int, int]
    encoder: tuple[str, str]
    digest: str

    def blocks(self, start: int = 0) -> Iterator[numpy.ndarray]:
        """Yield all from a row on, in order, (b, width)."""

    def __getitem__(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Return some, (n, width). rows (int64 (n,)): from 0."""

    def where(self, rows: numpy.ndarray) -> Sequence[tuple[str, int, str | int | None, str | None]]:
        """Return the file of some, the row in it, and id and text, None if they are not stored."""


def identity_of(vectors: "StoredVectors | FileVectors") -> EncoderIdentity:
    """Return the encoder that made stored vectors."""
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
    """Return the k best of the candidates of each query by their own vectors, which are read for this.

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
