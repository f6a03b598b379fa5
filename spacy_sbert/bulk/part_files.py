"""Files of vectors as encode_file writes them, read in blocks or a few rows at a time, from whichever file system."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy
from numpy.lib.format import read_array_header_1_0, read_magic

from .vectors import DTYPES

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import NativeFile

BLOCK_ROWS = 2**12
Beside = tuple[Sequence[Any], Sequence[Any]]  # ids and texts of rows, None where none are kept


class VectorReader(Protocol):
    """A file of vectors; shape (tuple): (rows, width)."""

    shape: tuple[int, int]

    def blocks(self) -> Iterator[numpy.ndarray]:
        """All rows in order, float32 or float16 (b, width), b at most 4096."""

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Some rows, (n, width). rows (int64 (n,)): from 0, ascending."""

    def beside(self, rows: numpy.ndarray) -> Beside:
        """Their ids and texts."""


class ArrayReader:
    """A .npy file. RAISES (ValueError): if it is none of numbers that vectors are written in."""

    def __init__(self, file: "NativeFile"):
        read_magic(file)
        shape, fortran, self._dtype = read_array_header_1_0(file)
        if fortran or self._dtype.name not in DTYPES or len(shape) != 2:
            raise ValueError(f"an array of {self._dtype} of shape {shape}")
        self.shape = shape[0], shape[1]
        self._file, self._start = file, file.tell()

    @property
    def _row_bytes(self) -> int:
        return int(self.shape[1] * self._dtype.itemsize)

    def blocks(self) -> Iterator[numpy.ndarray]:
        self._file.seek(self._start)
        while data := self._file.read(BLOCK_ROWS * self._row_bytes):
            yield numpy.frombuffer(data, dtype=self._dtype).reshape(-1, self.shape[1])

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        size, start = self._row_bytes, self._start
        found = [self._file.read_at(size, start + row * size) for row in rows.tolist()]
        return numpy.frombuffer(b"".join(found), dtype=self._dtype).reshape(len(rows), self.shape[1])

    def beside(self, rows: numpy.ndarray) -> Beside:
        return [None] * len(rows), [None] * len(rows)


class TableReader:
    """A .parquet file with the column vector, and maybe id and text. RAISES (ValueError): if it is another."""

    def __init__(self, file: "NativeFile"):
        from pyarrow.parquet import ParquetFile
        from pyarrow.types import is_fixed_size_list

        self._file = ParquetFile(file, page_checksum_verification=True)
        schema = self._file.schema_arrow
        if "vector" not in schema.names or not is_fixed_size_list(schema.field("vector").type):
            raise ValueError(f"a table of {', '.join(f'{field.name}: {field.type}' for field in schema)}")
        self.shape = self._file.metadata.num_rows, schema.field("vector").type.list_size

    @cached_property
    def _starts(self) -> numpy.ndarray:
        """The first row of each row group, and the end."""
        groups = range(self._file.num_row_groups)
        return numpy.cumsum([0, *(self._file.metadata.row_group(group).num_rows for group in groups)])

    def blocks(self) -> Iterator[numpy.ndarray]:
        for batch in self._file.iter_batches(BLOCK_ROWS, columns=["vector"]):
            yield _vectors(batch.column("vector"), self.shape[1])

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        taken = [table.column("vector").combine_chunks() for table in self._tables(rows, ["vector"])]
        return numpy.concatenate([_vectors(column, self.shape[1]) for column in taken])

    def beside(self, rows: numpy.ndarray) -> Beside:
        tables = list(self._tables(rows, ["id", "text"]))
        ids, texts = ([one for table in tables for one in _values(table, name)] for name in ("id", "text"))
        return ids, texts

    def _tables(self, rows: numpy.ndarray, columns: list[str]) -> Iterator["pyarrow.Table"]:
        """The rows, a table for each row group that has some of them."""
        known = [name for name in columns if name in self._file.schema_arrow.names]
        groups = numpy.searchsorted(self._starts, rows, side="right") - 1
        for group in numpy.unique(groups).tolist():
            own = rows[groups == group] - self._starts[group]
            yield self._file.read_row_group(group, columns=known or ["vector"]).take(own)


def open_vectors(file: "NativeFile", name: str) -> VectorReader:
    """The reader of a file, by its name. RAISES (ValueError): if it is no such file."""
    return TableReader(file) if name.endswith(".parquet") else ArrayReader(file)


def _vectors(column: "pyarrow.FixedSizeListArray", width: int) -> numpy.ndarray:
    return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)


def _values(table: "pyarrow.Table", name: str) -> list[Any]:
    return table.column(name).to_pylist() if name in table.column_names else [None] * len(table)
