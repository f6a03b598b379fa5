"""The vectors of one source: every distinct text is encoded once, and kept on disk if there is a folder for them."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy

from ..files.arrays import read_arrays, write_arrays
from ..files.digests import digest_of_parts
from ..files.environment import device, versions
from ..files.regular import check_folder
from .errors import Errors
from .sources import Source
from .task import Progress

CHUNK = 1024  # texts encoded and saved at once: what an interruption may lose
KEY = 16  # bytes of the digest of a text


class VectorStore:
    """Vectors by text; see Encode for what a call does."""

    def __init__(self, source: Source, folder: Path | None, progress: Progress):
        """source (Source): what encodes. folder (Path): where vectors are kept, None to keep them in memory alone."""
        self.source = source
        made_by = digest_of_parts(source.digest, versions(), device())
        self.folder = None if folder is None else folder / f"vectors-{made_by[:KEY]}"
        self.progress = progress
        self.width: int | None = None  # of the vectors, where it is known yet
        self.encoded = 0  # distinct texts encoded, not read from disk
        self.place: dict[bytes, tuple[int, int]] = {}
        self.shards: list[numpy.ndarray] = []
        if self.folder is not None:
            check_folder(self.folder)
            for path in sorted(self.folder.glob("*.npz")):
                self._add(*_read(path))

    def __call__(self, texts: Sequence[str], *, fit_on: Sequence[str] | None = None) -> numpy.ndarray:
        """texts (n strings); fit_on: see Encode. RETURNS (float32 (n, width))."""
        distinct = list(dict.fromkeys(texts))
        if self.source.learns:
            self.encoded += len(distinct)
            rows = self.source.encode(distinct, list(dict.fromkeys(texts if fit_on is None else fit_on)))
            self.width = rows.shape[1]
            number = {text: i for i, text in enumerate(distinct)}
            return rows[[number[text] for text in texts]]
        # by length: batches of texts of like length waste no work on padding
        new = sorted((text for text in distinct if _key(text) not in self.place), key=len, reverse=True)
        for start in self.progress(range(0, len(new), CHUNK), "encoding") if new else []:
            chunk = new[start : start + CHUNK]
            self._keep(chunk, self.source.encode(chunk, ()).astype("float32", copy=False))
        places = [self.place[_key(text)] for text in texts]
        return numpy.stack([self.shards[shard][row] for shard, row in places])

    def _keep(self, texts: Sequence[str], vectors: numpy.ndarray) -> None:
        keys = numpy.frombuffer(b"".join(map(_key, texts)), dtype="uint8").reshape(-1, KEY)
        self.encoded += len(texts)
        self._add(keys, vectors)
        if self.folder is not None:
            # a name of its own, so that processes may share the folder
            path = self.folder / f"{hashlib.sha256(keys.tobytes()).hexdigest()[:KEY]}.npz"
            write_arrays(path, {"keys": keys, "vectors": vectors})

    def _add(self, keys: numpy.ndarray, vectors: numpy.ndarray) -> None:
        self.width = self.width or vectors.shape[1]
        self.place.update((key.tobytes(), (len(self.shards), row)) for row, key in enumerate(keys))
        self.shards.append(vectors)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf8")).digest()[:KEY]


def _read(path: Path) -> tuple[numpy.ndarray, numpy.ndarray]:
    found = read_arrays(path, {"keys": ("uint8", 2), "vectors": ("float32", 2)}, message=Errors.BAD_CACHE)
    keys, vectors = found["keys"], found["vectors"]
    if keys.shape != (len(vectors), KEY):
        raise ValueError(Errors.BAD_CACHE.format(path=path, reason="arrays of another shape"))
    return keys, vectors
