"""A table: row number or id, text if asked for, and vector, a list of a fixed size; a row group for each window."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ...files.regular import open_new
from ..durable import writing
from ..errors import Errors
from .result import Result

if TYPE_CHECKING:
    import pyarrow


def check_pyarrow(path: Path) -> None:
    """RAISES (ImportError): if there is no pyarrow."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(Errors.BULK_NO_PYARROW.format(path=path)) from error


def write_parquet(result: Result, path: Path) -> Path:
    """Write the table under another name; on failure nothing of it stays.

    RETURNS (Path): `path`, whole.
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
