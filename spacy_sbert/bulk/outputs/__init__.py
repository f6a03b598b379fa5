"""Files of vectors, a writer for each format: from vectors that are all there to a file that is whole."""

from collections.abc import Callable
from pathlib import Path

from ..errors import Errors
from .npy import write_npy
from .parquet import check_pyarrow, write_parquet
from .result import Result

WRITERS: dict[str, Callable[[Result, Path], Path]] = {".npy": write_npy, ".parquet": write_parquet}


def writer_of(path: Path, *, with_columns: bool) -> Callable[[Result, Path], Path]:
    """The writer of a file, by its name.

    with_columns (bool): whether ids or texts are to be in it.
    RAISES (ValueError): for another name, or .npy with columns. RAISES (ImportError): for .parquet without pyarrow.
    """
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise ValueError(Errors.BULK_UNKNOWN_OUTPUT.format(path=path, expected=", ".join(WRITERS)))
    if suffix == ".npy" and with_columns:
        raise ValueError(Errors.BULK_NO_COLUMNS.format(path=path))
    if suffix == ".parquet":
        check_pyarrow(path)
    return WRITERS[suffix]


__all__ = ["Result", "writer_of"]
