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
from typing import Literal, NamedTuple, Protocol, get_args

import numpy
from pydantic import BaseModel, Field

from ..files.digests import file_digest
from ..files.lock import Lock
from ..files.sealed_json import parse_object
from ..files.whole import whole_file, write_text
from .encoder import EncoderIdentity
from .errors import Errors

MANIFEST = "index.json"
FORMAT = "spacy-sbert index 2"
FORMER = "spacy-sbert index 1"  # whose encoder's digest is what EncoderIdentity calls the former one
Kind = Literal["flat", "hnsw", "ivf"]
KINDS = get_args(Kind)
LIMIT = 2**20  # bytes of index.json
# The files of an index, and what a killed process left of one.
BUILT = r"(index-[0-9a-f]{32}\.faiss|rows-[0-9a-f]{32}\.jsonl)"
OWN_FILES = rf"{BUILT}|\.({BUILT}|index\.json)\.\d+"


class IndexRow(NamedTuple):
    """What stands beside a vector: its text, and an id of the user's, each None if there is none."""

    text: str | None
    id: str | int | None


class Manifest(BaseModel, frozen=True):
    """What index.json says.

    kind (str), width (int), count (int): of the index. encoder (EncoderIdentity): what made the vectors, if known.
    build (str): 32 hexadecimal digits in the names of the other files. sha256, rows_sha256 (str): of the index, and of
        the texts and ids, None where there are none.
    """

    kind: Kind
    width: int
    count: int
    encoder: EncoderIdentity | None
    build: str = ""
    sha256: str = ""
    rows_sha256: str | None = None

    def check_encoder(self, encoder: EncoderIdentity, folder: Path) -> None:
        """RAISES (ValueError): if the vectors are not of this encoder."""
        if self.encoder is None:
            raise ValueError(Errors.SEARCH_NO_ENCODER.format(folder=folder, name=encoder.name))
        names = {"folder": folder, "name": self.encoder.name, "given": encoder.name}
        if self.width != encoder.width:
            raise ValueError(Errors.SEARCH_OTHER_WIDTH.format(theirs=self.width, ours=encoder.width, **names))
        if not self.encoder.is_same(encoder):
            raise ValueError(Errors.SEARCH_OTHER_ENCODER.format(**names))


class SavedManifest(Manifest, frozen=True):
    """With its format, as it stands in the file."""

    format: Literal["spacy-sbert index 2", "spacy-sbert index 1"]
    build: str = Field(pattern="^[0-9a-f]{32}$")
    sha256: str

    def current(self) -> Manifest:
        """RAISES (ValueError): if the encoder's width is not that of the index."""
        said, encoder = self.model_dump(exclude={"format", "encoder"}), self.encoder
        if encoder is not None and encoder.width != self.width:
            raise ValueError(f"the width is {self.width}, that of the encoder {encoder.width}")
        if encoder is not None and self.format == FORMER:
            encoder = EncoderIdentity(encoder.name, encoder.width, "", encoder.digest)
        return Manifest(encoder=encoder, **said)


class FaissIndex(Protocol):
    """What indexes of FAISS have; d: the width of the vectors, ntotal: how many there are.

    storage: of "hnsw", an index of the same vectors. nlist: of "ivf", how many lists there are.
    """

    d: int
    ntotal: int
    metric_type: int
    storage: object
    nlist: int

    def add(self, rows: numpy.ndarray, /) -> None: ...
    def search(self, rows: numpy.ndarray, k: int, /, **kwargs: object) -> tuple[numpy.ndarray, numpy.ndarray]: ...


def import_faiss() -> ModuleType:
    """RAISES (ImportError): if FAISS is not installed."""
    try:
        import faiss
    except ImportError as error:
        raise ImportError(Errors.SEARCH_NO_FAISS) from error
    return faiss


def write_folder(folder: Path, manifest: Manifest, index: FaissIndex, rows: Sequence[IndexRow] | None) -> None:
    """Write an index, and remove the one that it replaces. RAISES (RuntimeError): if another process writes there."""
    faiss = import_faiss()
    folder.mkdir(parents=True, exist_ok=True)
    build = uuid.uuid4().hex
    made = _files(folder, build)
    lock = Lock(folder / "lock")
    try:
        sha256 = _write_hashed(made[0], lambda write: faiss.write_index(index, faiss.PyCallbackIOWriter(write)))
        rows_sha256 = None if rows is None else _write_hashed(made[1], lambda write: _write_rows(rows, write))
        said = {**manifest.model_dump(), "build": build, "sha256": sha256, "rows_sha256": rows_sha256}
        write_text(folder / MANIFEST, json.dumps({"format": FORMAT, **said}, indent=2) + "\n")
        for path in folder.iterdir():
            if re.fullmatch(OWN_FILES, path.name) and path not in made:
                path.unlink(missing_ok=True)
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
    finally:
        lock.release(remove=True)


def read_manifest(folder: Path) -> Manifest:
    """RAISES (OSError): if there is no index; (ValueError): if index.json is not what `write_folder` writes."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(Errors.SEARCH_NO_INDEX.format(folder=folder))
    with path.open("rb") as file:
        raw = file.read(LIMIT + 1)
    try:
        if len(raw) > LIMIT:
            raise ValueError(f"more than {LIMIT} bytes")
        return parse_object(SavedManifest, raw).current()
    except ValueError as error:
        raise ValueError(Errors.SEARCH_BAD_INDEX.format(path=path, reason=str(error)[:200])) from error


def read_index(folder: Path, manifest: Manifest) -> FaissIndex:
    """The index, whose digest is compared before FAISS sees a byte of it.

    RAISES (ValueError): if it is not the one that was written; (ImportError): if FAISS is not installed.
    """
    faiss = import_faiss()
    path, _ = _files(folder, manifest.build)
    _check_digest(path, manifest.sha256)
    try:
        index = faiss.read_index(str(path))
    except RuntimeError as error:
        raise ValueError(Errors.SEARCH_BAD_INDEX.format(path=path, reason=str(error)[:200])) from error
    kinds = {"flat": faiss.IndexFlat, "hnsw": faiss.IndexHNSWFlat, "ivf": faiss.IndexIVFFlat}
    is_as_said = isinstance(index, kinds[manifest.kind]) and index.metric_type == faiss.METRIC_INNER_PRODUCT
    if not is_as_said or (index.d, index.ntotal) != (manifest.width, manifest.count):
        reason = f"{type(index).__name__} of {index.ntotal} vectors of width {index.d}, {MANIFEST} says {manifest}"
        raise ValueError(Errors.SEARCH_BAD_INDEX.format(path=path, reason=reason))
    return index


def read_rows(folder: Path, manifest: Manifest) -> list[IndexRow] | None:
    """Texts and ids, None if there are none. RAISES (ValueError): if they are not those that were written."""
    if manifest.rows_sha256 is None:
        return None
    _, path = _files(folder, manifest.build)
    _check_digest(path, manifest.rows_sha256)
    with path.open(encoding="utf8", newline="\n") as file:
        try:
            return [IndexRow(**json.loads(line)) for line in file]
        except (TypeError, ValueError) as error:
            raise ValueError(Errors.SEARCH_BAD_INDEX.format(path=path, reason=error)) from error


def texts_digest(texts: Sequence[str]) -> str:
    """What rows_sha256 is for an index that was saved with these texts and no ids."""
    found = hashlib.sha256()
    _write_rows([IndexRow(text, None) for text in texts], found.update)
    return found.hexdigest()


def _files(folder: Path, build: str) -> tuple[Path, Path]:
    """The index, and the texts and ids."""
    return folder / f"index-{build}.faiss", folder / f"rows-{build}.jsonl"


def _write_rows(rows: Sequence[IndexRow], write: Callable[[bytes], object]) -> None:
    for row in rows:
        write((json.dumps(row._asdict()) + "\n").encode("utf8"))


def _write_hashed(path: Path, work: Callable[[Callable[[bytes], int]], object]) -> str:
    """Have a file written, and take its SHA-256 on the way."""
    found = hashlib.sha256()
    failures: list[OSError] = []
    with whole_file(path) as file:

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
