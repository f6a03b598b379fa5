"""The folder of a saved index: index.json says what is in it, and names the files beside it by a number of its own.

index.json is replaced last, so that the folder always holds one whole index.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Literal, NamedTuple, Protocol

import numpy
from pydantic import BaseModel, Field

from ..errors import Errors
from ..files.atomic import Lock, atomic_write, write_text
from ..files.serialization import file_digest, parse_object
from .memory_mapped import EncoderIdentity, check_encoder

MANIFEST = "index.json"
_FORMAT = "spacy-sbert index 1"
Kind = Literal["flat", "hnsw", "ivf", "ivfpq"]
BuiltKind = Literal["flat", "hnsw", "ivf"]  # by VectorIndex.build; "ivfpq" is of build_ivfpq
_LIMIT = 2**20  # bytes of index.json
# The files of an index, and what a killed process left of one.
_BUILT = r"(index-[0-9a-f]{32}\.(faiss|lists)|rows-[0-9a-f]{32}\.jsonl|building-[0-9a-f]{32}-\w+\.(faiss|codes))"
_OWN_FILES = rf"{_BUILT}|\.({_BUILT}|index\.json)\.\d+"


class IndexRow(NamedTuple):
    """Row that is saved beside a vector: its text, an id, and the row in the file it comes from; None if not known."""

    text: str | None
    id: str | int | None
    row: int | None = None


class Manifest(BaseModel, frozen=True):
    """Contents of index.json.

    kind (str), width (int), count (int): of the index. encoder (EncoderIdentity): what made the vectors, if known.
    build (str): 32 hexadecimal digits in the names of the other files. sha256, rows_sha256, lists_sha256 (str): of the
        index, of texts and ids, and of the lists of "ivfpq"; None where there are none.
    vectors (str): the digest of the stored vectors it is of; None where they are in the index. folder (str): theirs.
    """

    kind: Kind
    width: int
    count: int
    encoder: EncoderIdentity | None
    build: str = ""
    sha256: str = ""
    rows_sha256: str | None = None
    lists_sha256: str | None = None
    vectors: str | None = None
    folder: str | None = None

    def check_encoder(self, encoder: EncoderIdentity, folder: Path) -> None:
        """Check the encoder. RAISES (ValueError): if the vectors are not of this one."""
        check_encoder(self.encoder, encoder, folder)


class _SavedManifest(Manifest, frozen=True):
    """With its format, as it stands in the file."""

    format: Literal["spacy-sbert index 1"]
    build: str = Field(pattern="^[0-9a-f]{32}$")
    sha256: str

    def current(self) -> Manifest:
        """Return it without the format. RAISES (ValueError): if the encoder's width is not that of the index."""
        values, encoder = self.model_dump(exclude={"format", "encoder"}), self.encoder
        if encoder is not None and encoder.width != self.width:
            raise ValueError(f"the width is {self.width}, that of the encoder {encoder.width}")
        return Manifest(encoder=encoder, **values)


class FaissIndex(Protocol):
    """Index of FAISS; d: the width of the vectors, ntotal: how many there are.

    storage: of "hnsw", an index of the same vectors. nlist: of "ivf" and "ivfpq", how many lists there are.
    """

    d: int
    ntotal: int
    metric_type: int
    storage: object
    nlist: int
    invlists: object

    def add(self, rows: numpy.ndarray, /) -> None: ...
    def search(self, rows: numpy.ndarray, k: int, /, **kwargs: object) -> tuple[numpy.ndarray, numpy.ndarray]: ...


def import_faiss() -> ModuleType:
    """Return FAISS. RAISES (ImportError): if it is not installed."""
    try:
        import faiss  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ImportError("An index needs FAISS. Install it: pip install 'spacy-sbert[search]'.") from error
    return faiss


def write_folder(
    folder: Path, manifest: Manifest, make: Callable[[Path], FaissIndex], rows: Sequence[IndexRow] | None
) -> None:
    """Write an index, and remove the one that it replaces. RAISES (RuntimeError): if another process writes there.

    make (Callable): the index, of the name of a file for lists that are to stand beside it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    build = uuid.uuid4().hex
    made = _files(folder, build)
    lock = Lock(folder / "lock")
    try:
        index_path, rows_path, lists = made
        digests = {"sha256": write_index(index_path, make(lists))}
        if rows is not None:
            digests["rows_sha256"] = _write_hashed(rows_path, lambda write: _write_rows(rows, write))
        if lists.exists():
            digests["lists_sha256"] = file_digest(lists)
        contents = {**manifest.model_dump(), "build": build, **digests}
        write_text(folder / MANIFEST, json.dumps({"format": _FORMAT, **contents}, indent=2) + "\n")
        for path in folder.iterdir():
            if re.fullmatch(_OWN_FILES, path.name) and path not in made:
                path.unlink(missing_ok=True)
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
    finally:
        lock.release(remove=True)


def read_manifest(folder: Path) -> Manifest:
    """Read index.json.

    RAISES (OSError): if there is no index; (ValueError): if it is not what `write_folder` writes.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"There is no index in {folder}. Build one, and save it there.")
    with path.open("rb") as file:
        raw = file.read(_LIMIT + 1)
    try:
        if len(raw) > _LIMIT:
            raise ValueError(f"more than {_LIMIT} bytes")
        return parse_object(_SavedManifest, raw).current()
    except ValueError as error:
        raise ValueError(Errors.SEARCH_BAD_INDEX.format(path=path, reason=str(error)[:200])) from error


def read_index(folder: Path, manifest: Manifest) -> FaissIndex:
    """Read the index, whose digest is compared before FAISS sees a byte of it.

    RAISES (ValueError): if it is not the one that was written; (ImportError): if FAISS is not installed.
    """
    faiss = import_faiss()
    path, _, lists = _files(folder, manifest.build)
    _check_digest(path, manifest.sha256)
    if manifest.kind == "ivfpq":
        _check_digest(lists, manifest.lists_sha256 or "none")
    flags = faiss.IO_FLAG_SKIP_IVF_DATA if manifest.kind == "ivfpq" else 0  # whose data are mapped below
    try:
        index: FaissIndex = faiss.read_index(str(path), flags)
    except RuntimeError as error:
        raise ValueError(Errors.SEARCH_BAD_INDEX.format(path=path, reason=str(error)[:200])) from error
    kinds: dict[str, type] = {
        "flat": faiss.IndexFlat,
        "hnsw": faiss.IndexHNSWFlat,
        "ivf": faiss.IndexIVFFlat,
        "ivfpq": faiss.IndexIVFPQ,
    }
    is_expected = index.metric_type == faiss.METRIC_INNER_PRODUCT and isinstance(index, kinds[manifest.kind])
    if not is_expected or (index.d, index.ntotal) != (manifest.width, manifest.count):
        reason = f"{type(index).__name__} of {index.ntotal} vectors of width {index.d}, {MANIFEST} says {manifest}"
        raise ValueError(Errors.SEARCH_BAD_INDEX.format(path=path, reason=reason))
    if manifest.kind == "ivfpq":
        _map_lists(index, lists)
    return index


def _map_lists(index: FaissIndex, path: Path) -> None:
    """Have an index find its lists in a file, wherever that stood when they were written."""
    lists = import_faiss().downcast_InvertedLists(index.invlists)
    if lists.totsize != path.stat().st_size or lists.compute_ntotal() != index.ntotal:
        raise ValueError(
            Errors.SEARCH_BAD_INDEX.format(
                path=path, reason=f"expected {index.ntotal} vectors in {lists.totsize} bytes"
            )
        )
    lists.filename, lists.read_only = str(path), True
    lists.do_mmap()


def read_rows(folder: Path, manifest: Manifest) -> list[IndexRow] | None:
    """Texts and ids, None if there are none. RAISES (ValueError): if they are not those that were written."""
    if manifest.rows_sha256 is None:
        return None
    _, path, _ = _files(folder, manifest.build)
    _check_digest(path, manifest.rows_sha256)
    with path.open(encoding="utf8", newline="\n") as file:
        try:
            return [IndexRow(**json.loads(line)) for line in file]
        except (TypeError, ValueError) as error:
            raise ValueError(Errors.SEARCH_BAD_INDEX.format(path=path, reason=error)) from error


def rows_digest(rows: Sequence[IndexRow]) -> str:
    """Return the rows_sha256 of an index that was saved with these rows."""
    found = hashlib.sha256()
    _write_rows(rows, found.update)
    return found.hexdigest()


def write_index(path: Path, index: FaissIndex) -> str:
    """Write a file of FAISS, whole or not at all. RETURNS (str): its SHA-256."""
    faiss = import_faiss()
    return _write_hashed(path, lambda write: faiss.write_index(index, faiss.PyCallbackIOWriter(write)))


def _files(folder: Path, build: str) -> tuple[Path, Path, Path]:
    """Return the paths of the index, the texts and ids, and the lists of "ivfpq"."""
    return folder / f"index-{build}.faiss", folder / f"rows-{build}.jsonl", folder / f"index-{build}.lists"


def _write_rows(rows: Sequence[IndexRow], write: Callable[[bytes], object]) -> None:
    for row in rows:
        write((json.dumps(row._asdict()) + "\n").encode("utf8"))


def _write_hashed(path: Path, work: Callable[[Callable[[bytes], int]], object]) -> str:
    """Have a file written, and take its SHA-256 on the way."""
    found = hashlib.sha256()
    failures: list[OSError] = []
    with atomic_write(path) as file:

        def write(data: bytes) -> int:
            try:
                file.write(data)
            except OSError as error:  # FAISS would say "py err" alone
                failures.append(error)
                raise
            found.update(data)
            return len(data)

        try:
            work(write)
        except RuntimeError:
            if failures:
                raise failures[0] from None
            raise
    return found.hexdigest()


def _check_digest(path: Path, expected: str) -> None:
    if not path.is_file():
        raise ValueError(Errors.SEARCH_BAD_INDEX.format(path=path, reason="it is missing"))
    if (given := file_digest(path)) != expected:
        reason = f"its SHA-256 is {given}, {MANIFEST} says {expected}"
        raise ValueError(Errors.SEARCH_BAD_INDEX.format(path=path, reason=reason))
