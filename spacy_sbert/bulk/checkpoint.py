"""Vectors that an interrupted run of encode_file keeps: the rows done, fsync, and an atomic rename."""

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import BinaryIO, Literal

import numpy
from numpy.lib.format import dtype_to_descr, write_array_header_1_0
from pydantic import BaseModel, NonNegativeInt

from ..errors import Errors, reason_of
from ..files import atomic
from ..files.serialization import checksummed_json, parse_checksummed

Values = Mapping[str, str | bool | int | None]  # what vectors are made of, by what messages call it
IdType = Literal["int64", "string"] | None
BLOCK_BYTES = 2**20


def rewriting_os_errors(path: Path) -> AbstractContextManager[None]:
    """Name the file, and how to go on, where writing it fails. RAISES (OSError): in place of another."""
    return atomic.rewrite_os_errors(path, Errors.BULK_CANNOT_WRITE)


def write_json(path: Path, content: BaseModel) -> None:
    """Write an object with its checksum to a file of a locked folder, whole or not at all."""
    new = path.with_name(path.name + ".new")
    data = json.dumps(checksummed_json(content.model_dump()), indent=2)
    with atomic.atomic_write(path, temporary=new, message=Errors.BULK_CANNOT_WRITE) as file:
        file.write(data.encode("utf8"))


def differences(before: Mapping[str, object], now: Mapping[str, object]) -> str:
    """Return what differs between two descriptions, for a message; nothing if they are equal."""
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return "; ".join(f"{key} was {before.get(key)}, now {now.get(key)}" for key in keys)


class RunState(BaseModel):
    """What run.json says.

    made_of (dict): input, encoder and options. rows, width (int): the shape of all vectors. dtype (str): theirs.
    id_type (str): "int64" or "string"; None where rows are numbered.
    done, cut, zero (int): how many rows are on the disk, how many of them were cut, and how many are zero.
    vectors_sha256 (str): of vectors.npy up to the last row that is done.
    """

    format: Literal["spacy-sbert encode 2"] = "spacy-sbert encode 2"
    made_of: dict[str, str | bool | int | None]
    rows: NonNegativeInt
    width: NonNegativeInt
    dtype: Literal["float32", "float16"]
    id_type: IdType
    done: NonNegativeInt = 0
    cut: NonNegativeInt = 0
    zero: NonNegativeInt = 0
    vectors_sha256: str = ""


class Checkpoint:
    """OUT.partial: the folder of a run, locked while it is used, and removed when nothing is left to keep.

    vectors.npy grows window by window. A window counts as done when it is on the disk and run.json, which is replaced
    atomically, says so. Rows that run.json does not count are written again, and all of them if they are not those
    whose SHA-256 it has.

    output (Path): OUT. Its folder is made.
    RAISES (RuntimeError): if another process writes the same output.
    """

    state: RunState

    def __init__(self, output: Path):
        self.folder = output.with_name(output.name + ".partial")
        self.vectors = self.folder / "vectors.npy"
        self.assembled = self.folder / "assembled"  # a table that is made of the vectors
        self._run = self.folder / "run.json"
        self._file: BinaryIO | None = None
        self._digest = hashlib.sha256()

    def __enter__(self) -> "Checkpoint":
        atomic.check_folder(self.folder)
        with rewriting_os_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = atomic.Lock(self.folder / "lock")
        return self

    def __exit__(self, *error: object) -> None:
        self._close()
        is_empty = not self._run.is_file()
        self._lock.release(remove=is_empty)
        if is_empty:
            with suppress(OSError):  # a file that is not ours is in it
                self.folder.rmdir()

    def resume(self, made_of: Values) -> bool:
        """Go on with what an interrupted run kept, and return whether there was one.

        made_of (dict): input, encoder and options, which must be those of that run.
        RAISES (ValueError): if they are others, or run.json is damaged.
        """
        if not self._run.is_file():
            return False
        with atomic.open_own(self._run, "rb") as file:
            data = file.read()
        try:
            self.state = parse_checksummed(RunState, data)
        except ValueError as error:
            raise ValueError(
                f"{self.folder} holds an interrupted run whose run.json cannot be read ({reason_of(error)}). "
                "Start over with --restart."
            ) from error
        if differing := differences(self.state.made_of, made_of):
            raise ValueError(
                f"{self.folder} holds an interrupted run that was begun otherwise: {differing}. Go on with the "
                "input and the options of that run, or start over with --restart."
            )
        self._open()
        return True

    def begin(self, state: RunState) -> None:
        """Begin a run. What is there without a run.json is removed."""
        self.clear()
        self.state = state
        write_json(self._run, state)
        self._open()

    def clear(self) -> None:
        """Remove what a run kept; run.json first, so that no run goes on with the rest."""
        self._close()
        for path in (self._run, self.vectors, self.assembled):
            path.unlink(missing_ok=True)

    def write(self, vectors: numpy.ndarray, n_cut: int) -> None:
        """Append a window.

        vectors (float32 (rows, width)): of its texts. n_cut (int): how many of them were cut.
        RAISES (ValueError): for a number that is not finite in the dtype of the file. (OSError): if writing fails, as
            on a full disk; what was done stays.
        """
        state, file = self.state, self._file
        assert file is not None
        with numpy.errstate(over="ignore"):  # infinite numbers are looked for below
            stored = numpy.ascontiguousarray(vectors, dtype=numpy.dtype(state.dtype).newbyteorder("<"))
        finite = numpy.isfinite(stored).all(axis=1)
        if not finite.all():
            raise ValueError(
                f"The vector of row {state.done + int(finite.argmin())} (from 0) is not finite in {state.dtype}. "
                "Write float32, or encode in another precision (--precision float32)."
            )
        self._append(file, stored.data)
        state.done += len(stored)
        state.cut += n_cut
        state.zero += int((~stored.any(axis=1)).sum())
        state.vectors_sha256 = self._digest.hexdigest()
        write_json(self._run, state)

    def blocks(self, size: int) -> Iterator[numpy.ndarray]:
        """Yield the vectors, which are all done, in blocks of so many rows."""
        if self.state.rows:
            vectors = numpy.load(self.vectors, mmap_mode="r", allow_pickle=False)
            for start in range(0, len(vectors), size):
                yield vectors[start : start + size]

    def _open(self) -> None:
        state = self.state
        header = _header((state.rows, state.width), state.dtype)
        end = len(header) + state.done * state.width * numpy.dtype(state.dtype).itemsize
        with rewriting_os_errors(self.vectors):
            atomic.open_own(self.vectors, "ab").close()  # makes it
            self._file = file = atomic.open_own(self.vectors, "r+b", buffering=0)
            self._digest = hashlib.sha256()
            while data := file.read(min(BLOCK_BYTES, end - file.tell())):
                self._digest.update(data)
            if state.done and self._digest.hexdigest() == state.vectors_sha256:
                file.truncate(end)
                return
            state.done = state.cut = state.zero = 0
            self._digest = hashlib.sha256()
            file.seek(0)
            file.truncate()
        self._append(file, memoryview(header))

    def _append(self, file: BinaryIO, data: memoryview) -> None:
        """Write to the end of the file, which may take only a part at a time, and to the disk."""
        left = data.cast("B")
        with rewriting_os_errors(self.vectors):
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        self._digest.update(data)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _header(shape: tuple[int, int], dtype: str) -> bytes:
    """Return what stands before the numbers of a .npy file. SOURCE: numpy.lib.format, version 1.0."""
    stream = io.BytesIO()
    descr = dtype_to_descr(numpy.dtype(dtype).newbyteorder("<"))
    write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()
