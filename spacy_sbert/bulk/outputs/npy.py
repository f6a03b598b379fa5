"""An array: numpy.load(OUT, mmap_mode="r")."""

from pathlib import Path

from .result import Result


def write_npy(result: Result, path: Path) -> Path:
    """The file that the vectors stand in anyway.

    path (Path): is not used.
    RETURNS (Path): the file, whole.
    """
    result.vectors.finish()
    return result.vectors.path
