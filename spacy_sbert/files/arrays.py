"""Named arrays in files, read with care."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError

import numpy

from .errors import Errors
from .regular import check_input
from .whole import whole_file

# What zipfile and NumPy say of bytes they did not write; RuntimeError where these seem to be encrypted.
DAMAGED = (EOFError, KeyError, RuntimeError, SyntaxError, TokenError, TypeError, ValueError, zipfile.BadZipFile)


def write_arrays(path: Path, arrays: Mapping[str, numpy.ndarray]) -> None:
    """Write named arrays as .npz, without compression."""
    with whole_file(path) as file:
        numpy.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(
    path: Path, expected: Mapping[str, tuple[str, int]], *, message: str = Errors.SEARCH_BAD_ARRAYS
) -> dict[str, numpy.ndarray]:
    """Read named arrays from .npz.

    expected (dict): from a name to the dtype and the number of dimensions. message (str): of errors, with {path} and
        {reason}.
    RAISES (ValueError): if the file is damaged, or other arrays are in it.
    """
    check_input(path)
    try:
        _check_sizes(path)
        with numpy.load(path, allow_pickle=False) as saved:
            found = {name: saved[name] for name in expected}
    except (*DAMAGED, OSError) as error:
        if getattr(error, "filename", None) is not None:  # but an OSError of a place before the file's beginning
            raise
        raise ValueError(message.format(path=path, reason=error)) from error
    for name, (dtype, ndim) in expected.items():
        if found[name].dtype != dtype or found[name].ndim != ndim:
            reason = f"{name} is {found[name].dtype} of shape {found[name].shape}"
            raise ValueError(message.format(path=path, reason=reason))
    return found


def _check_sizes(path: Path) -> None:
    """A header that promises more than the file holds would have the memory filled."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{member.filename} is compressed")
            with archive.open(member) as file:
                version = numpy.lib.format.read_magic(file)
                if version != (1, 0):
                    raise ValueError(f"{member.filename} has the format {version}")
                shape, _, dtype = numpy.lib.format.read_array_header_1_0(file)
                needed = dtype.itemsize * int(numpy.prod(shape, dtype=object)) + file.tell()
            if needed != member.file_size or needed > path.stat().st_size:
                raise ValueError(f"{member.filename} has {member.file_size} bytes, its header promises {needed}")
