"""Named arrays in files, read with care."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError

import numpy

from ..errors import Errors
from ..whole import whole_file


def write_arrays(path: Path, arrays: Mapping[str, numpy.ndarray]) -> None:
    """Write named arrays as .npz, without compression."""
    with whole_file(path) as file:
        numpy.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path, expected: Mapping[str, tuple[str, int]]) -> dict[str, numpy.ndarray]:
    """Read named arrays from .npz.

    expected (dict): from a name to the dtype and the number of dimensions.
    RAISES (ValueError): if the file is damaged, or other arrays are in it.
    """
    try:
        _check_sizes(path)
        with numpy.load(path, allow_pickle=False) as saved:
            found = {name: saved[name] for name in expected}
    except (EOFError, KeyError, SyntaxError, TokenError, ValueError, zipfile.BadZipFile) as error:  # as NumPy has it
        raise ValueError(Errors.SEARCH_BAD_ARRAYS.format(path=path, reason=error)) from error
    for name, (dtype, ndim) in expected.items():
        if found[name].dtype != dtype or found[name].ndim != ndim:
            reason = f"{name} is {found[name].dtype} of shape {found[name].shape}"
            raise ValueError(Errors.SEARCH_BAD_ARRAYS.format(path=path, reason=reason))
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
