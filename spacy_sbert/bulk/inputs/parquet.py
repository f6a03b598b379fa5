"""Tables in Apache's columnar format."""

from collections.abc import Iterator
from pathlib import Path

from ...readers.table import parquet_records
from .columns import Columns, Row


def read_parquet(path: Path, columns: Columns) -> Iterator[Row]:
    """Read a column of strings; messages name the record, counted from 1, in place of the line.

    path (Path): .parquet.
    RAISES (ValueError): for a missing column, a null, or a damaged file.
    RAISES (ImportError): without pyarrow.
    """
    for line, values in parquet_records(path, columns.names):
        yield columns.row(list(values), path, line)
