"""Stored vectors that index as a NumPy array does, whatever files they are in."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy
from numpy.lib.format import read_array_header_1_0, read_magic

from ..validation import short_repr

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import NativeFile

BLOCK_ROWS = 2**12


class StoredVectors(ABC):
    """Vectors in files, read when they are asked for. They index as an array of NumPy does.

    name (str): where they are. shape (tuple): (n, width). dtype, ndim: of what is read.
    encoder (tuple): name and SHA-256 of what made them. digest (str): of all of them.
    """

    name: str
    shape: tuple[int, int]
    encoder: tuple[str, str]
    digest: str
    dtype = numpy.dtype("float32")
    ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[numpy.ndarray]:
        for start in range(0, len(self), BLOCK_ROWS):
            yield from self[start : start + BLOCK_ROWS]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray:
        if copy is False:
            raise ValueError(
                f"Cannot give {self.name} as an array without a copy: its vectors are in files."
            )
        return self[:] if dtype is None else self[:].astype(dtype)

    def __getitem__(self, index: Any) -> numpy.ndarray:
        """Return what an array of the vectors would, float32.

        RAISES (IndexError): where it would raise one.
        """
        if not isinstance(index, tuple):
            try:
                rows = numpy.asarray(numpy.arange(len(self))[index])
            except (IndexError, ValueError):
                # A mask of single numbers, or an error that is raised below
                pass
            else:
                return self._read(rows)
        # The row and the column of each number that is asked for
        n, width = self.shape
        every_row = numpy.broadcast_to(numpy.arange(n)[:, None], self.shape)
        every_column = numpy.broadcast_to(numpy.arange(width), self.shape)
        rows = self._indexed(every_row, index)
        columns = self._indexed(every_column, index)
        wanted, places = numpy.unique(rows, return_inverse=True)
        return self._read(wanted)[places.reshape(rows.shape), columns]

    def rows_at(self, index: Any) -> numpy.ndarray:
        """Return the numbers of the rows that an index of the first axis means: int64, from 0."""
        return self._indexed(numpy.arange(len(self)), index)

    def _indexed(self, numbers: numpy.ndarray, index: Any) -> numpy.ndarray:
        try:
            return numpy.asarray(numbers[index])
        except (IndexError, ValueError) as error:
            raise IndexError(
                f"Cannot take {short_repr(index)} of {self.name}, vectors of shape {self.shape}: "
                f"{error}."
            ) from error

    def _read(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Return the vectors of rows, float32 (*rows.shape, width)."""
        wanted, places = numpy.unique(rows, return_inverse=True)
        read = numpy.empty((0, self.shape[1]))
        if len(wanted):
            read = self._take(wanted)
        return read.astype("float32", copy=False)[places.reshape(rows.shape)]

    @abstractmethod
    def _take(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Return some vectors, float (n, width). rows (int64 (n,)): ascending, at least one."""


class ArrayReader:
    """Reader of a .npy file of vectors. shape (tuple): (rows, width)."""

    def __init__(self, file: "NativeFile"):
        read_magic(file)
        self.shape, _, self._dtype = read_array_header_1_0(file)
        self._file = file
        self._start = file.tell()
        self._row_bytes = int(self.shape[-1] * self._dtype.itemsize)

    def blocks(self) -> Iterator[numpy.ndarray]:
        """Yield all rows in order, float32 or float16 (b, width), b at most 4096."""
        while data := self._file.read(BLOCK_ROWS * self._row_bytes):
            yield numpy.frombuffer(data, dtype=self._dtype).reshape(-1, self.shape[1])

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Return some rows, (n, width). rows (int64 (n,)): from 0, ascending."""
        size = self._row_bytes
        data = b"".join(self._file.read_at(size, self._start + row * size) for row in rows.tolist())
        return numpy.frombuffer(data, dtype=self._dtype).reshape(len(rows), self.shape[1])

    def columns(self, rows: numpy.ndarray) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the ids and texts of some rows: none, as an array has no columns."""
        return [None] * len(rows), [None] * len(rows)


class TableReader:
    """Reader of a .parquet file with the column vector, and maybe id and text; see ArrayReader.

    file: its path, or an open file.
    """

    def __init__(self, file: "NativeFile | str"):
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 (an extra)

        self._file = ParquetFile(file, page_checksum_verification=True)
        self._names = self._file.schema_arrow.names
        self.shape = (
            self._file.metadata.num_rows,
            self._file.schema_arrow.field("vector").type.list_size,
        )

    def blocks(self) -> Iterator[numpy.ndarray]:
        for batch in self._file.iter_batches(BLOCK_ROWS, columns=["vector"]):
            yield self._array(batch.column("vector"))

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        tables = self._tables(rows, ["vector"])
        return numpy.concatenate(
            [self._array(table.column("vector").combine_chunks()) for table in tables]
        )

    def columns(self, rows: numpy.ndarray) -> tuple[Sequence[Any], Sequence[Any]]:
        names = [name for name in ("id", "text") if name in self._names]
        values: dict[str, list[Any]] = {"id": [], "text": []}
        if names:
            for table in self._tables(rows, names):
                for name in names:
                    values[name] += table.column(name).to_pylist()
        missing = [None] * len(rows)
        return values["id"] or missing, values["text"] or missing

    def _array(self, column: "pyarrow.FixedSizeListArray") -> numpy.ndarray:
        return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, self.shape[1])

    def _tables(self, rows: numpy.ndarray, names: list[str]) -> Iterator["pyarrow.Table"]:
        """Yield the rows, a table for each row group that has some of them."""
        sizes = [
            self._file.metadata.row_group(group).num_rows
            for group in range(self._file.num_row_groups)
        ]
        for group, _, own in by_start(numpy.cumsum([0, *sizes]), rows):
            yield self._file.read_row_group(group, columns=names).take(own)


def by_start(
    starts: numpy.ndarray, rows: numpy.ndarray
) -> Iterator[tuple[int, numpy.ndarray, numpy.ndarray]]:
    """Yield the parts that rows are in, in their order.

    starts (int64 (parts + 1,)): the first row of each part, and the end.
    YIELDS (number of the part, places of its rows among `rows`, these rows counted from its start):
        ascending.
    """
    numbers = numpy.searchsorted(starts, rows, side="right") - 1
    for number in numpy.unique(numbers).tolist():
        places = numpy.flatnonzero(numbers == number)
        places = places[numpy.argsort(rows[places], kind="stable")]
        yield number, places, rows[places] - starts[number]
