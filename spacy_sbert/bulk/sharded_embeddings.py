"""Vectors of a data set, read as one array: a block at a time, or a few rows of any part."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from numpy.lib.format import read_array_header_1_0, read_magic

from ..files.serialization import digest_of_parts
from .dataset_encoding import INDEX, JOB, Index, Job, ShardManifest
from .dataset_folder import RemoteFolder
from .embeddings_file import ENCODER_DIGEST

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import NativeFile

_BLOCK_ROWS = 2**12


class PartVectors:
    """Vectors that encode_dataset wrote, in the order of the names of the parts.

    folder (str): the target of encode_dataset, or its address.
    name (str): where it is, without a user's key. shape (tuple): (n, width).
    encoder (tuple): name and SHA-256 of what made them. digest (str): of all of them.
    parts (list of ShardManifest): the files.
    RAISES (ValueError): if there is no such folder, or not all of its parts are done. (ImportError): without pyarrow.
    """

    def __init__(self, folder: str | Path):
        self.place = RemoteFolder(str(folder) if "://" in str(folder) else str(Path(folder).absolute()))
        self.name = self.place.name
        index, job = self.place.read_json(INDEX, Index), self.place.read_json(JOB, Job)
        self.parts = [] if index is None else index.parts
        self._starts = numpy.cumsum([0, *(part.made.rows for part in self.parts)])
        if job is None or not self._starts[-1]:
            raise ValueError(
                f"{self.name} is no folder of vectors that is whole: index.json is missing, or has no row. Encode a "
                "folder of texts to it."
            )
        self.shape = int(self._starts[-1]), self.parts[-1].made.width
        self.encoder = str(job.made_of["encoder"]), str(job.made_of[ENCODER_DIGEST])
        self.digest = digest_of_parts([(part.vectors, part.digest) for part in self.parts])

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        (rows, width), (encoder, _), parts = self.shape, self.encoder, len(self.parts)
        return f"PartVectors({self.name}: {rows} vectors of {width} numbers by {encoder}, {parts} parts)"

    def blocks(self, start: int = 0) -> Iterator[numpy.ndarray]:
        """Yield all vectors from a row on, in order, float32 or float16 (b, width), b at most 4096; checked files."""
        for part, first, end in zip(self.parts, self._starts[:-1], self._starts[1:], strict=True):
            if end <= start:
                continue
            with self._reader(part, whole=True) as reader:
                for block in reader.blocks():
                    if first + len(block) > start:
                        yield block[max(0, start - first) :]
                    first += len(block)

    def __getitem__(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Return some vectors, float32 (n, width). rows (int64 (n,)): from 0."""
        vectors = numpy.empty((len(rows), self.shape[1]), dtype="float32")
        for number, places, part_rows in _by_start(self._starts, rows):
            with self._reader(self.parts[number]) as reader:
                vectors[places] = reader.take(part_rows)
        return vectors

    def where(self, rows: numpy.ndarray) -> list[tuple[str, int, Any, Any]]:
        """Return where some vectors are stored, with their ids and texts. rows (int64 (n,)): from 0.

        RETURNS (list of (file, row, id, text)): the file below the folder, the row in it (from 0), and id and text,
            None if they are not stored.
        """
        places: dict[int, tuple[str, int, Any, Any]] = {}
        for number, of_part, part_rows in _by_start(self._starts, rows):
            with self._reader(self.parts[number]) as reader:
                ids, texts = reader.columns(part_rows)
            for place, row, row_id, text in zip(of_part.tolist(), part_rows.tolist(), ids, texts, strict=True):
                places[place] = self.parts[number].vectors, row, row_id, text
        return [places[place] for place in range(len(rows))]

    @contextmanager
    def _reader(self, part: ShardManifest, *, whole: bool = False) -> "Iterator[_ArrayReader | _TableReader]":
        """Open a part. whole (bool): whether its bytes are compared with what was written."""
        try:
            with self.place.open().open_input_file(part.vectors) as file:
                if whole and (digest := hashlib.file_digest(file, "sha256").hexdigest()) != part.digest:
                    raise ValueError(f"its SHA-256 is {digest}, {INDEX} says {part.digest}")
                file.seek(0)
                reader = (_TableReader if part.vectors.endswith(".parquet") else _ArrayReader)(file)
                if reader.shape != (part.made.rows, self.shape[1]):
                    raise ValueError(f"its shape is {reader.shape}, expected {(part.made.rows, self.shape[1])}")
                yield reader
        except (KeyError, OSError, ValueError) as error:
            raise ValueError(
                f"{part.vectors} in {self.name} is not the file that was written ({error}). Remove it and encode again."
            ) from error


def _by_start(starts: numpy.ndarray, rows: numpy.ndarray) -> Iterator[tuple[int, numpy.ndarray, numpy.ndarray]]:
    """Yield the number of each part that rows are in, their places among the rows, and their rows in it, ascending."""
    numbers = numpy.searchsorted(starts, rows, side="right") - 1
    for number in numpy.unique(numbers).tolist():
        places = numpy.flatnonzero(numbers == number)
        places = places[numpy.argsort(rows[places], kind="stable")]
        yield number, places, rows[places] - starts[number]


class _ArrayReader:
    """Reader of a .npy file of vectors. shape (tuple): (rows, width)."""

    def __init__(self, file: "NativeFile"):
        read_magic(file)
        self.shape, _, self._dtype = read_array_header_1_0(file)
        self._file, self._start = file, file.tell()
        self._row_bytes = int(self.shape[-1] * self._dtype.itemsize)

    def blocks(self) -> Iterator[numpy.ndarray]:
        """Yield all rows in order, float32 or float16 (b, width), b at most 4096."""
        while data := self._file.read(_BLOCK_ROWS * self._row_bytes):
            yield numpy.frombuffer(data, dtype=self._dtype).reshape(-1, self.shape[1])

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Return some rows, (n, width). rows (int64 (n,)): from 0, ascending."""
        size = self._row_bytes
        data = b"".join(self._file.read_at(size, self._start + row * size) for row in rows.tolist())
        return numpy.frombuffer(data, dtype=self._dtype).reshape(len(rows), self.shape[1])

    def columns(self, rows: numpy.ndarray) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the ids and texts of some rows: none, as an array has no columns."""
        return [None] * len(rows), [None] * len(rows)


class _TableReader:
    """Reader of a .parquet file with the column vector, and maybe id and text; see _ArrayReader."""

    def __init__(self, file: "NativeFile"):
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 (an extra)

        self._file = ParquetFile(file, page_checksum_verification=True)
        self._names = self._file.schema_arrow.names
        self.shape = self._file.metadata.num_rows, self._file.schema_arrow.field("vector").type.list_size

    def blocks(self) -> Iterator[numpy.ndarray]:
        for batch in self._file.iter_batches(_BLOCK_ROWS, columns=["vector"]):
            yield self._array(batch.column("vector"))

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        tables = self._tables(rows, ["vector"])
        return numpy.concatenate([self._array(table.column("vector").combine_chunks()) for table in tables])

    def columns(self, rows: numpy.ndarray) -> tuple[Sequence[Any], Sequence[Any]]:
        names = [name for name in ("id", "text") if name in self._names]
        tables = list(self._tables(rows, names)) if names else []
        values = {name: [value for table in tables for value in table.column(name).to_pylist()] for name in names}
        return values.get("id", [None] * len(rows)), values.get("text", [None] * len(rows))

    def _array(self, column: "pyarrow.FixedSizeListArray") -> numpy.ndarray:
        return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, self.shape[1])

    def _tables(self, rows: numpy.ndarray, names: list[str]) -> Iterator["pyarrow.Table"]:
        """Yield the rows, a table for each row group that has some of them."""
        sizes = [self._file.metadata.row_group(group).num_rows for group in range(self._file.num_row_groups)]
        for group, _, own in _by_start(numpy.cumsum([0, *sizes]), rows):
            yield self._file.read_row_group(group, columns=names).take(own)
