"""Tables in Apache's columnar format."""

from collections.abc import Iterator
from pathlib import Path

from ...errors import Errors
from ...readers.rows import find_columns
from .columns import Columns, Row

BATCH = 1024  # records that are in memory at once


def read_parquet(path: Path, columns: Columns) -> Iterator[Row]:
    """Read a column of strings; messages name the record, counted from 1, in place of the line.

    path (Path): .parquet.
    RAISES (ValueError): for a missing column, a null, or a damaged file.
    RAISES (ImportError): without pyarrow.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError(Errors.NO_PYARROW.format(path=path)) from error
    line = 0
    try:
        with ParquetFile(path) as file:
            find_columns(file.schema_arrow.names, columns.names, path, line)
            for batch in file.iter_batches(batch_size=BATCH, columns=columns.names):
                for values in zip(*(batch.column(name).to_pylist() for name in columns.names), strict=True):
                    line += 1
                    yield columns.row(list(values), path, line)
    except (ArrowException, OSError) as error:
        raise ValueError(Errors.BAD_PARQUET.format(path=path, line=line + 1, reason=error)) from error
