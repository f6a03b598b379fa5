"""The members' vectors of a corpus on disk, computed once: more than fits into memory may be read from there."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy
from pydantic import BaseModel, NonNegativeInt

from ..files.digests import file_digest
from ..files.regular import check_folder
from ..files.sealed_json import parse_sealed, sealed
from ..files.whole import whole_file, write_text
from .errors import Errors

MANIFEST = "vectors.json"


class Manifest(BaseModel):
    """What vectors.json says. key: of the cache. names, widths: of the members. n: how many vectors each has.
    files: the digests of their files."""

    key: str
    names: list[str]
    n: NonNegativeInt
    widths: list[NonNegativeInt]
    files: list[str]


class VectorCache:
    """A folder with one file of float32 rows for each member, and what they were made of.

    folder (Path): where; it is made. key (str): a digest of pipeline and corpus, which decides whether what is there
    can be used.
    """

    def __init__(self, folder: Path, key: str):
        self.folder = folder / key[:16]
        self.key = key

    def read(self, names: Sequence[str]) -> list[numpy.ndarray] | None:
        """The members' vectors, memory-mapped, float32 (n, d_j) each; None if they are not there, or not whole."""
        manifest = self._manifest()
        if manifest is None or (manifest.key, manifest.names) != (self.key, list(names)):
            return None
        n, views = manifest.n, []
        for i, width in enumerate(manifest.widths):
            path = self._path(i)
            if not path.is_file() or path.stat().st_size != 4 * n * width:
                return None
            if file_digest(path) != manifest.files[i]:
                return None
            views.append(numpy.memmap(path, dtype="<f4", mode="r", shape=(n, width)) if n else numpy.zeros((0, width)))
        return views

    def write(self, names: Sequence[str], blocks: Iterable[Sequence[numpy.ndarray]]) -> list[numpy.ndarray]:
        """Keep blocks of the members' vectors, float32 (b, d_j) each, as they come; then `read` them.

        RAISES (ValueError): if a member's vectors change their width, or there is no block.
        """
        check_folder(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        n, widths = 0, [0] * len(names)
        found = [hashlib.sha256() for _ in names]
        with ExitStack() as stack:  # another process may write the same, or still read what stands there
            files = [stack.enter_context(whole_file(self._path(i))) for i in range(len(names))]
            for block in blocks:
                for i, (name, rows) in enumerate(zip(names, block, strict=True)):
                    first, widths[i] = widths[i], rows.shape[1]
                    if n and widths[i] != first:
                        raise ValueError(Errors.META_CHANGED_WIDTH.format(name=name, first=first, given=widths[i]))
                    data = numpy.ascontiguousarray(rows, dtype="<f4").data
                    files[i].write(data)
                    found[i].update(data)
                n += len(block[0])
            if not n:
                raise ValueError(Errors.META_EMPTY_CORPUS)
        digests = [one.hexdigest() for one in found]
        manifest = Manifest(key=self.key, names=list(names), n=n, widths=widths, files=digests)
        write_text(self.folder / MANIFEST, json.dumps(sealed(manifest.model_dump())) + "\n")
        views = self.read(names)
        if views is None:
            raise OSError(Errors.META_CACHE_CHANGED.format(folder=self.folder))
        return views

    def _path(self, member: int) -> Path:
        return self.folder / f"{member}.f32"  # a number: names may hold what file systems do not

    def _manifest(self) -> Manifest | None:
        try:
            return parse_sealed(Manifest, (self.folder / MANIFEST).read_bytes())
        except (FileNotFoundError, ValueError):  # not written to its end, or damaged: the vectors are made again
            return None
