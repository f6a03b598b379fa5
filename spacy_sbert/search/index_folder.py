"""The folder of an index: index.json, and the files that it names with their SHA-256.

Each build has new names, and index.json is replaced last, so that the folder always holds one whole
index.
"""

import json
import re
import uuid
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy
from pydantic import BaseModel, Field

from ..files.atomic import Lock, atomic_write, rewrite_os_errors, write_text
from ..files.checksum import file_digest
from ..files.serialization import read_arrays, write_arrays
from .faiss_index import FaissIndex, Kind, import_faiss, is_of_kind
from .identity import EncoderIdentity
from .index_rows import IndexRow

MANIFEST = "index.json"
# Version 2 had no columns, and no deleted vectors
_FORMAT: Literal["spacy-sbert index 3"] = "spacy-sbert index 3"
_NAME = r"(index-[0-9a-f]{32}\.(faiss|lists)|rows-[0-9a-f]{32}\.jsonl|places-[0-9a-f]{32}\.npz)"
# The files of an index, and those that a killed process left
_OWN = re.compile(
    rf"{_NAME}|building-[0-9a-f]{{32}}-\w+\.faiss|\.(index|rows|places|building)[-.][^/]*\.\d+"
)


class IndexManifest(BaseModel, frozen=True):
    """Contents of index.json.

    kind (str), width (int), count (int): of the index. encoder (EncoderIdentity): what made the
        vectors, if known.
    files (dict): SHA-256 by name: the index, rows with texts and ids, the lists of "ivfpq".
    vectors (str), folder (str): of "ivfpq", the digest and the place of the stored vectors; None if
        in the index.
    """

    format: Literal["spacy-sbert index 2", "spacy-sbert index 3"] = _FORMAT
    kind: Kind
    width: int
    count: int
    encoder: EncoderIdentity | None
    files: dict[Annotated[str, Field(pattern=f"^{_NAME}$")], str] = {}
    vectors: str | None = None
    folder: str | None = None

    @classmethod
    def read(cls, folder: Path) -> "IndexManifest":
        """Read index.json.

        RAISES (OSError): if there is no index; (ValueError): if it is damaged.
        """
        path = folder / MANIFEST
        if not path.is_file():
            raise FileNotFoundError(f"There is no index in {folder}. Build one, and save it there.")
        try:
            manifest = cls.model_validate_json(path.read_bytes(), strict=True)
        except ValueError as error:
            raise _damaged(path, str(error)[:200]) from error
        if manifest.encoder is not None and manifest.encoder.width != manifest.width:
            raise _damaged(
                path, f"the width is {manifest.width}, that of the encoder {manifest.encoder.width}"
            )
        return manifest


def write_folder(
    folder: Path,
    manifest: IndexManifest,
    make: Callable[[Path], Any],
    rows: Sequence[IndexRow] | None = None,
    places: numpy.ndarray | None = None,
    former: IndexManifest | None = None,
) -> IndexManifest:
    """Write an index, and remove the one that it replaces.

    make (Callable): returns the index, and may write its lists to the path that it is given.
    former (IndexManifest): that of the index that should be there; None for any or none.
    RETURNS (IndexManifest): with the names of the files.
    RAISES (RuntimeError): if another process writes there, or has written since.
    """
    with rewrite_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    build = uuid.uuid4().hex
    index_path = folder / f"index-{build}.faiss"
    lists_path = folder / f"index-{build}.lists"
    rows_path = folder / f"rows-{build}.jsonl"
    places_path = folder / f"places-{build}.npz"
    made = [index_path, lists_path, rows_path, places_path]
    lock = Lock(folder / "lock")
    try:
        if former is not None and (folder / MANIFEST).exists():
            _check_same_build(folder, former)
        write_index(index_path, make(lists_path))
        if rows is not None:
            with atomic_write(rows_path) as file:
                file.writelines(f"{json.dumps(row._asdict())}\n".encode() for row in rows)
        if places is not None:
            write_arrays(places_path, {"places": places})
        files = {path.name: file_digest(path) for path in made if path.exists()}
        manifest = manifest.model_copy(update={"files": files})
        write_text(folder / MANIFEST, f"{manifest.model_dump_json(indent=2)}\n")
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
    else:
        _remove_others(folder, made)
        return manifest
    finally:
        lock.release(remove=True)


def _check_same_build(folder: Path, former: IndexManifest) -> None:
    """Raise RuntimeError if a folder has another index than before: it would be lost."""
    if IndexManifest.read(folder).files != former.files:
        raise RuntimeError(
            f"The index in {folder} was changed after this one was loaded from there. Load it "
            "again, and repeat your changes."
        )


def _remove_others(folder: Path, made: Collection[Path]) -> None:
    """Remove the files of former indexes, and those that killed processes left."""
    for path in folder.iterdir():
        if _OWN.fullmatch(path.name) and path not in made:
            path.unlink(missing_ok=True)


def write_index(path: Path, index: Any) -> None:
    """Write a file of FAISS, whole or not at all. RAISES (OSError): if that fails."""
    faiss = import_faiss()
    failures: list[OSError] = []
    with atomic_write(path) as file:

        def write(data: bytes) -> int:
            try:
                return file.write(data)
            except OSError as error:
                # FAISS would raise a RuntimeError without the reason
                failures.append(error)
                raise

        try:
            faiss.write_index(index, faiss.PyCallbackIOWriter(write))
        except RuntimeError:
            raise failures[0] if failures else RuntimeError(f"FAISS cannot write {path}.") from None


def read_index(folder: Path, manifest: IndexManifest) -> FaissIndex:
    """Read the index of FAISS, whose lists stay on disk if it is an "ivfpq".

    RAISES (ValueError): if it is damaged, or another.
    """
    faiss = import_faiss()
    path = _checked_file(folder, manifest, ".faiss")
    is_on_disk = manifest.kind == "ivfpq"
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_SKIP_IVF_DATA if is_on_disk else 0)
    except RuntimeError as error:
        raise _damaged(path, str(error)[:200]) from error
    places = _read_places(folder, manifest)
    has_all = index.ntotal == manifest.count
    if places is not None:
        has_all = index.ntotal > places.max()
    if index.d != manifest.width or not has_all or not is_of_kind(index, manifest.kind):
        raise _damaged(
            path, f"a {type(index).__name__} of {index.ntotal} vectors of width {index.d}"
        )
    if is_on_disk:
        _map_lists(index, _checked_file(folder, manifest, ".lists"))
    return FaissIndex(index, manifest.kind, places)


def _map_lists(index: Any, path: Path) -> None:
    """Let an index read its lists from their file."""
    lists = import_faiss().downcast_InvertedLists(index.invlists)
    if lists.totsize != path.stat().st_size or lists.compute_ntotal() != index.ntotal:
        raise _damaged(path, f"expected {index.ntotal} vectors in {lists.totsize} bytes")
    lists.filename = str(path)
    lists.read_only = True
    lists.do_mmap()


def read_index_rows(folder: Path, manifest: IndexManifest) -> list[IndexRow] | None:
    """Read the texts and ids beside an index; None if there are none."""
    if not any(name.endswith(".jsonl") for name in manifest.files):
        return None
    with _checked_file(folder, manifest, ".jsonl").open(encoding="utf8", newline="\n") as file:
        return [IndexRow(**json.loads(line)) for line in file]


def _read_places(folder: Path, manifest: IndexManifest) -> numpy.ndarray | None:
    """Read the places of rows in a graph, see VectorIndex; None if each has its own."""
    if not any(name.endswith(".npz") for name in manifest.files):
        return None
    path = _checked_file(folder, manifest, ".npz")
    places = read_arrays(path, {"places": ("int64", 1)})["places"]
    if len(places) != manifest.count or not len(places) or places.min() < 0:
        raise _damaged(path, f"it has {len(places)} places of {manifest.count} vectors")
    return places


def _checked_file(folder: Path, manifest: IndexManifest, suffix: str) -> Path:
    """Return the file with a suffix, whose SHA-256 is the one that was written."""
    for name, expected in manifest.files.items():
        if name.endswith(suffix):
            path = folder / name
            if not path.is_file():
                raise _damaged(path, "it is missing")
            if (digest := file_digest(path)) != expected:
                raise _damaged(path, f"its SHA-256 is {digest}, {MANIFEST} says {expected}")
            return path
    raise _damaged(folder / MANIFEST, f"it names no file *{suffix}")


def _damaged(path: Path, reason: str) -> ValueError:
    return ValueError(f"The index is damaged: {path}: {reason}. Build it again.")
