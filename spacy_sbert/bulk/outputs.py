"""Files of vectors, a writer for each format: from vectors that are all there to a file that is whole."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ..files.regular import open_new
from ..files.texts import TextRow
from .durable import writing
from .errors import Errors
from .vectors import VectorFile

if TYPE_CHECKING:
    import pyarrow


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
        raise ValueError(Errors.BULK_UNKNOWN_OUTPUT.format(path=path, expected=", ".join(WRITERS)))
    if suffix == ".npy" and with_columns:
        raise ValueError(Errors.BULK_NO_COLUMNS.format(path=path))
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

    with writing(path):
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
