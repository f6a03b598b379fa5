"""Writers of embeddings: .npy, .npz, JSONL and Parquet."""

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy
from numpy.lib.format import dtype_to_descr, write_array_header_1_0
from pydantic import BaseModel, NonNegativeInt

from ..errors import Errors
from ..files import atomic
from ..files.atomic import open_new, open_own
from ..files.serialization import parse_object
from ..files.tables import TextRow

if TYPE_CHECKING:
    import pyarrow


def rewriting_os_errors(path: Path) -> AbstractContextManager[None]:
    """Name the file, and how to go on, where writing it fails. RAISES (OSError): in place of another."""
    return atomic.rewrite_os_errors(path, Errors.BULK_CANNOT_WRITE)


def write_all(file: BinaryIO, data: memoryview) -> None:
    """Write to an unbuffered file, which may take only a part at a time, as where the disk is nearly full.

    A buffered one would try to write the rest once more when it is closed.
    """
    left = data.cast("B")
    while left:
        left = left[file.write(left) :]


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file of a locked folder whole or not at all: what a killed run left under the other name is replaced."""
    new = path.with_name(path.name + ".new")
    with atomic.atomic_write(path, temporary=new, message=Errors.BULK_CANNOT_WRITE) as file:
        file.write(data)


DTYPES = ("float32", "float16")


@dataclass(frozen=True)
class Layout:
    """Where the vectors of each window stand in the file.

    rows: n of all vectors. width: of a vector. dtype: "float32" or "float16". window: rows in each, but the last.
    """

    rows: int
    width: int
    dtype: str
    window: int

    @cached_property
    def stored(self) -> numpy.dtype:
        """The dtype in the file, little-endian."""
        return numpy.dtype(self.dtype).newbyteorder("<")

    @cached_property
    def header(self) -> bytes:
        """What stands before the vectors. SOURCE: numpy.lib.format, version 1.0."""
        made, shape = io.BytesIO(), (self.rows, self.width)
        write_array_header_1_0(made, {"descr": dtype_to_descr(self.stored), "fortran_order": False, "shape": shape})
        return made.getvalue()

    @property
    def n_windows(self) -> int:
        return -(-self.rows // self.window)

    def rows_in(self, number: int) -> int:
        """How many rows the window of that number (from 0) has."""
        return min(self.window, self.rows - number * self.window)

    def start(self, number: int) -> int:
        """The byte where a window starts."""
        return len(self.header) + min(number * self.window, self.rows) * self.width * self.stored.itemsize


class Entry(BaseModel):
    """A line of the journal: a window that is done, how many of its texts were cut, and the digests of the vectors and
    of the rest of the line."""

    window: NonNegativeInt
    cut: int
    sha256: str
    line: str = ""

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.window} {self.cut} {self.sha256}".encode()).hexdigest()[:16]


class VectorFile:
    """Vectors, window by window, in any order. A window counts as done if the journal has it, and its bytes are those
    that the journal has the SHA-256 of: what a power loss left half-written is found and encoded anew.

    path (Path): the .npy file. journal (Path): a JSON object a line, {"window", "cut", "sha256", "line"}; the first
        digest is of the vectors, the second of the rest of the line.
    layout (Layout): where the windows stand.
    done (dict): of each window that is done how many of its texts were cut. n_zero (int): zero vectors in them.
    """

    def __init__(self, path: Path, journal: Path, layout: Layout):
        self.path = path
        self.layout = layout
        self.n_zero = 0
        with rewriting_os_errors(path), open_own(path, "ab"):
            pass  # now it is there
        whole = self._whole(journal)
        self.done = {number: entry.cut for number, entry in whole.items()}
        # Anew, for a line that broke off would spoil the one appended to it.
        write_atomically(journal, b"".join(map(_line, whole.values())))
        self._file = open_own(path, "r+b", buffering=0)
        self._journal = open_own(journal, "ab", buffering=0)

    def __enter__(self) -> "VectorFile":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._journal.close()

    @property
    def missing(self) -> list[int]:
        """The windows that are not done."""
        return [number for number in range(self.layout.n_windows) if number not in self.done]

    @property
    def rows_done(self) -> int:
        return sum(map(self.layout.rows_in, self.done))

    def write(self, number: int, vectors: numpy.ndarray, n_cut: int) -> None:
        """Write a window, and then that it is done.

        number (int): of the window. vectors (float32 (rows, width)): of its texts. n_cut (int): texts that were cut.
        RAISES (ValueError): for a number that is not finite, or not in the dtype of the file.
        RAISES (OSError): if that fails, as on a full disk; what was done stays.
        """
        with numpy.errstate(over="ignore"):  # it is looked at below
            stored = numpy.ascontiguousarray(vectors, dtype=self.layout.stored)
        finite = numpy.isfinite(stored).all(axis=1)
        if not finite.all():
            row = number * self.layout.window + int(finite.argmin())
            raise ValueError(
                f"The vector of row {row} (from 0) is not finite in {self.layout.dtype}. Write float32, or "
                "encode in another precision (--precision float32)."
            )
        with rewriting_os_errors(self.path):
            self._file.seek(self.layout.start(number))
            write_all(self._file, stored.data)
            entry = Entry(window=number, cut=n_cut, sha256=hashlib.sha256(stored.data).hexdigest())
            write_all(self._journal, memoryview(_line(entry)))
        self.done[number] = n_cut
        self.n_zero += _count_zero(stored)

    def finish(self) -> None:
        """Make it a .npy file that is on the disk: all windows are done."""
        with rewriting_os_errors(self.path):
            self._file.seek(0)
            write_all(self._file, memoryview(self.layout.header))
            self._file.truncate(self.layout.start(self.layout.n_windows))
            os.fsync(self._file.fileno())

    def windows(self) -> Iterator[numpy.ndarray]:
        """The vectors of each window, in order, in the dtype of the file."""
        with open_own(self.path, "rb") as file:
            for number in range(self.layout.n_windows):
                yield self._array(number, self._read(file, number))

    def _whole(self, journal: Path) -> dict[int, Entry]:
        """The windows of the journal whose vectors are there."""
        entries = {entry.window: entry for entry in _entries(journal, self.layout)}
        whole = {}
        with open_own(self.path, "rb") as file:
            for number, entry in sorted(entries.items()):
                data = self._read(file, number)
                if hashlib.sha256(data).hexdigest() == entry.sha256:
                    whole[number] = entry
                    self.n_zero += _count_zero(self._array(number, data))
        return whole

    def _read(self, file: BinaryIO, number: int) -> bytes:
        start = file.seek(self.layout.start(number))
        return file.read(self.layout.start(number + 1) - start)

    def _array(self, number: int, data: bytes) -> numpy.ndarray:
        return numpy.frombuffer(data, dtype=self.layout.stored).reshape(self.layout.rows_in(number), self.layout.width)


def _count_zero(vectors: numpy.ndarray) -> int:
    return int((~vectors.any(axis=1)).sum())


def _line(entry: Entry) -> bytes:
    return json.dumps({**entry.model_dump(), "line": entry.digest}).encode("utf8") + b"\n"


def _entries(journal: Path, layout: Layout) -> Iterator[Entry]:
    """What the journal says; lines that are not whole say nothing."""
    if not journal.exists():
        return
    with open_own(journal, "rb") as file:
        lines = file.read().splitlines()
    for line in lines:
        with suppress(ValueError):
            entry = parse_object(Entry, line)
            if entry.window < layout.n_windows and entry.line == entry.digest:
                yield entry


@dataclass(frozen=True)
class Result:
    """All vectors of a run, and the rows they are of.

    vectors: all windows are done. rows: reads the rows again. id_type: "int64" or "string", None for row numbers.
    with_text: whether the texts are written, too.
    """

    vectors: VectorFile
    rows: Callable[[], Iterator[TextRow]]
    id_type: str | None
    with_text: bool


def writer_of(path: Path, *, with_columns: bool) -> Callable[[Result, Path], Path]:
    """The writer of a file, by its name: from a result and a name that it may use to the file that is made.

    with_columns (bool): whether ids or texts are to be in it.
    RAISES (ValueError): for another name, or .npy with columns. RAISES (ImportError): for .parquet without pyarrow.
    """
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise ValueError(f"Cannot write vectors to {path}: expected a name that ends in one of {', '.join(WRITERS)}.")
    if suffix == ".npy" and with_columns:
        raise ValueError(
            f"Cannot write ids or texts to {path}: an array has none. Give the output a name that ends in "
            ".parquet, or leave --id-column and --with-text out."
        )
    if suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ImportError(Errors.BULK_NO_PYARROW.format(path=path)) from error
    return WRITERS[suffix]


def write_npy(result: Result, path: Path) -> Path:
    """An array: the file that the vectors stand in anyway; path (Path): is not used."""
    result.vectors.finish()
    return result.vectors.path


def write_parquet(result: Result, path: Path) -> Path:
    """A table: row number or id, text if asked for, and vector, a list of a fixed size; a row group for each window.

    path (Path): the file; on failure nothing of it stays.
    RAISES (OSError): if that fails.
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetWriter

    with rewriting_os_errors(path):
        try:
            with open_new(path) as file:
                with ParquetWriter(file, _schema(result), write_page_checksum=True) as writer:
                    for table in _tables(result):
                        writer.write_table(table)
                file.flush()
                os.fsync(file.fileno())
        except (ArrowException, OSError):
            path.unlink(missing_ok=True)
            raise
    return path


WRITERS: dict[str, Callable[[Result, Path], Path]] = {".npy": write_npy, ".parquet": write_parquet}


def _schema(result: Result) -> "pyarrow.Schema":
    import pyarrow

    layout = result.vectors.layout
    number = pyarrow.float32() if layout.dtype == "float32" else pyarrow.float16()
    ids = pyarrow.string() if result.id_type == "string" else pyarrow.int64()
    fields = [("row" if result.id_type is None else "id", ids), ("vector", pyarrow.list_(number, layout.width))]
    if result.with_text:
        fields.insert(1, ("text", pyarrow.string()))
    return pyarrow.schema([pyarrow.field(name, kind, nullable=False) for name, kind in fields])


def _tables(result: Result) -> "Iterator[pyarrow.Table]":
    import pyarrow

    schema, rows, first = _schema(result), result.rows(), 0
    for vectors in result.vectors.windows():
        own = list(islice(rows, len(vectors)))
        ids = range(first, first + len(own)) if result.id_type is None else [row.id for row in own]
        columns = [pyarrow.array(ids, schema.field(0).type)]
        if result.with_text:
            columns.append(pyarrow.array([row.text for row in own], pyarrow.string()))
        flat = pyarrow.array(vectors.ravel(), schema.field("vector").type.value_type)
        columns.append(pyarrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1]))
        yield pyarrow.table(columns, schema=schema)
        first += len(own)
