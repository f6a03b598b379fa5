"""The folder of a saved index: index.json, and the files that it names with their SHA-256.

Each build has new names, and index.json is replaced last, so that the folder always holds one whole index.
"""

import json
import re
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from ..files.atomic import Lock, atomic_write, write_text
from ..files.serialization import file_digest, parse_object
from .memory_mapped import EncoderIdentity

MANIFEST = "index.json"
Kind = Literal["flat", "hnsw", "ivf", "ivfpq"]
BuiltKind = Literal["flat", "hnsw", "ivf"]  # by VectorIndex.build; "ivfpq" by build_ivfpq
_NAME = r"(index-[0-9a-f]{32}\.(faiss|lists)|rows-[0-9a-f]{32}\.jsonl)"
# The files of an index, and those that a killed process left.
_OWN = re.compile(rf"{_NAME}|building-[0-9a-f]{{32}}-\w+\.faiss|\.(index|rows|building)[-.][^/]*\.\d+")


class IndexRow(NamedTuple):
    """Row that is saved beside a vector: its text, an id, and the row in the file it comes from; None if not known."""

    text: str | None
    id: str | int | None
    row: int | None = None


class Manifest(BaseModel, frozen=True):
    """Contents of index.json.

    kind (str), width (int), count (int): of the index. encoder (EncoderIdentity): what made the vectors, if known.
    files (dict): SHA-256 by name: the index, rows with texts and ids, the lists of "ivfpq".
    vectors (str), folder (str): of "ivfpq", the digest and the place of the stored vectors; None if in the index.
    """

    format: Literal["spacy-sbert index 2"] = "spacy-sbert index 2"
    kind: Kind
    width: int
    count: int
    encoder: EncoderIdentity | None
    files: dict[Annotated[str, Field(pattern=f"^{_NAME}$")], str] = {}
    vectors: str | None = None
    folder: str | None = None


def import_faiss() -> ModuleType:
    """Return FAISS. RAISES (ImportError): if it is not installed."""
    try:
        import faiss  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ImportError("An index needs FAISS. Install it: pip install 'spacy-sbert[search]'.") from error
    return faiss


def write_folder(
    folder: Path, manifest: Manifest, make: Callable[[Path], Any], rows: Sequence[IndexRow] | None
) -> None:
    """Write an index, and remove the one that it replaces. RAISES (RuntimeError): if another process writes there.

    make (Callable): returns the index, and may write its lists to the path that it is given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    build = uuid.uuid4().hex
    made = [folder / name for name in (f"index-{build}.faiss", f"index-{build}.lists", f"rows-{build}.jsonl")]
    index_path, lists_path, rows_path = made
    lock = Lock(folder / "lock")
    try:
        write_index(index_path, make(lists_path))
        if rows is not None:
            with atomic_write(rows_path) as file:
                file.writelines((json.dumps(row._asdict()) + "\n").encode("utf8") for row in rows)
        files = {path.name: file_digest(path) for path in made if path.exists()}
        write_text(folder / MANIFEST, manifest.model_copy(update={"files": files}).model_dump_json(indent=2) + "\n")
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
    else:
        for path in folder.iterdir():
            if _OWN.fullmatch(path.name) and path not in made:
                path.unlink(missing_ok=True)
    finally:
        lock.release(remove=True)


def write_index(path: Path, index: Any) -> None:  # noqa: ANN401 (FAISS has no types)
    """Write a file of FAISS, whole or not at all. RAISES (OSError): if that fails."""
    faiss = import_faiss()
    failures: list[OSError] = []
    with atomic_write(path) as file:

        def write(data: bytes) -> int:
            try:
                return file.write(data)
            except OSError as error:  # FAISS would raise a RuntimeError without the reason
                failures.append(error)
                raise

        try:
            faiss.write_index(index, faiss.PyCallbackIOWriter(write))
        except RuntimeError:
            raise failures[0] if failures else RuntimeError(f"FAISS cannot write {path}.") from None


def read_manifest(folder: Path) -> Manifest:
    """Read index.json. RAISES (OSError): if there is no index; (ValueError): if it is damaged."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"There is no index in {folder}. Build one, and save it there.")
    try:
        manifest = parse_object(Manifest, path.read_bytes())
    except ValueError as error:
        raise _damaged(path, str(error)[:200]) from error
    if manifest.encoder is not None and manifest.encoder.width != manifest.width:
        raise _damaged(path, f"the width is {manifest.width}, that of the encoder {manifest.encoder.width}")
    return manifest


def read_index(folder: Path, manifest: Manifest) -> Any:  # noqa: ANN401 (FAISS has no types)
    """Read the index, after its SHA-256 is checked.

    RAISES (ValueError): if it is not the one that was written; (ImportError): if FAISS is not installed.
    """
    faiss = import_faiss()
    path = _checked_file(folder, manifest, ".faiss")
    on_disk = manifest.kind == "ivfpq"
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_SKIP_IVF_DATA if on_disk else 0)
    except RuntimeError as error:
        raise _damaged(path, str(error)[:200]) from error
    kinds = {"flat": "IndexFlat", "hnsw": "IndexHNSWFlat", "ivf": "IndexIVFFlat", "ivfpq": "IndexIVFPQ"}
    is_expected = isinstance(index, getattr(faiss, kinds[manifest.kind])) and index.metric_type == 0  # inner product
    if not is_expected or (index.d, index.ntotal) != (manifest.width, manifest.count):
        raise _damaged(path, f"a {type(index).__name__} of {index.ntotal} vectors of width {index.d}")
    if on_disk:
        lists_path, lists = _checked_file(folder, manifest, ".lists"), faiss.downcast_InvertedLists(index.invlists)
        if lists.totsize != lists_path.stat().st_size or lists.compute_ntotal() != index.ntotal:
            raise _damaged(lists_path, f"expected {index.ntotal} vectors in {lists.totsize} bytes")
        lists.filename, lists.read_only = str(lists_path), True
        lists.do_mmap()
    return index


def read_rows(folder: Path, manifest: Manifest) -> list[IndexRow] | None:
    """Read texts and ids, None if there are none. RAISES (ValueError): if they are not those that were written."""
    if not any(name.endswith(".jsonl") for name in manifest.files):
        return None
    path = _checked_file(folder, manifest, ".jsonl")
    with path.open(encoding="utf8", newline="\n") as file:
        try:
            return [IndexRow(**json.loads(line)) for line in file]
        except (TypeError, ValueError) as error:
            raise _damaged(path, str(error)) from error


def _checked_file(folder: Path, manifest: Manifest, suffix: str) -> Path:
    name = next((name for name in manifest.files if name.endswith(suffix)), None)
    if name is None:
        raise _damaged(folder / MANIFEST, f"it names no file *{suffix}")
    path, expected = folder / name, manifest.files[name]
    if not path.is_file():
        raise _damaged(path, "it is missing")
    if (digest := file_digest(path)) != expected:
        raise _damaged(path, f"its SHA-256 is {digest}, {MANIFEST} says {expected}")
    return path


def _damaged(path: Path, reason: str) -> ValueError:
    return ValueError(f"The index is damaged: {path}: {reason}. Build it again.")
