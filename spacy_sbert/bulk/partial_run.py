"""The folder of an unfinished run of encode_file: windows that are done, and what they are of."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy

from ..files.atomic import Lock, atomic_write, check_output, rewrite_os_errors
from ..files.checksum import file_digest
from ..files.serialization import read_arrays, write_arrays
from ..models.encoded_docs import Encoded
from .embeddings_file import FileRecord, MadeOf, differences


class PartialRun:
    """Folder OUT.partial of an unfinished run, locked while in use, and removed with the run.

    run.json says what the vectors are made of. Each finished window is a file, written atomically.

    source, output (Path): the files of encode_file. dtype (str): of the vectors. window (int): the
        number of texts in a window.
    """

    record: FileRecord

    def __init__(self, source: Path, output: Path, dtype: str, window: int):
        self.source = source
        self.output = output
        self.dtype = dtype
        self.window = window
        self.folder = output.with_name(f"{output.name}.partial")
        self._run = self.folder / "run.json"
        self._new = self.folder / "new"
        self._new_json = self.folder / "new.json"
        self._source_state = self._read_source_state()

    def __enter__(self) -> "PartialRun":
        check_output(self.folder, is_folder=True)
        with rewrite_os_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.folder / "lock")
        return self

    def __exit__(self, *error: object) -> None:
        is_done = not self._run.is_file()
        self._lock.release(remove=is_done)
        if is_done:
            # It stays if it has a file of the user
            with suppress(OSError):
                self.folder.rmdir()

    def begin(self, record: FileRecord) -> None:
        """Begin a run in a folder that was cleared."""
        self.record = record
        record.write(self._run, temporary=self._new_json)

    def resume(self, made_of: MadeOf) -> bool:
        """Return whether there is an interrupted run, and go on with it.

        RAISES (ValueError): if it was made otherwise, or is damaged.
        """
        if not self._run.is_file():
            return False
        check_output(self._run)
        try:
            self.record = FileRecord.read(self._run)
        except ValueError as error:
            raise ValueError(
                f"Cannot resume the run of {self._run}: it is damaged ({error}). Start over with "
                "--restart."
            ) from error
        differing = differences(self.record.made_of, made_of)
        if differing:
            raise ValueError(
                f"{self.folder} holds an interrupted run that was begun otherwise: {differing}. "
                "Resume with its input and options, or start over with --restart."
            )
        return True

    def clear(self) -> None:
        """Remove the run: run.json first, so that nothing resumes with the rest."""
        for path in (self._run, self._new, self._new_json, *self.folder.glob("window-*.npz")):
            path.unlink(missing_ok=True)

    def windows(self) -> Iterator[Encoded]:
        """Yield the finished windows, up to the first that is missing or damaged."""
        n = self.record.texts.rows
        expected = {"vectors": (self.dtype, 2), "cut": ("int64", 0)}
        for number, first in enumerate(range(0, n, self.window)):
            path = self._path(number)
            check_output(path)
            try:
                arrays = read_arrays(path, expected)
            except (FileNotFoundError, ValueError):
                return
            shape = (min(self.window, n - first), self.record.width)
            if arrays["vectors"].shape != shape:
                return
            yield arrays["vectors"], int(arrays["cut"])

    def write(self, number: int, window: Encoded) -> Encoded:
        """Write a finished window, and return it with vectors of the dtype of the output.

        RAISES (ValueError): if a number is not finite, or the input was changed.
        """
        self.check_unchanged()
        rows, n_cut = window
        # Infinite numbers are found below
        with numpy.errstate(over="ignore"):
            vectors = numpy.ascontiguousarray(rows, dtype=self.dtype)
        finite = numpy.isfinite(vectors).all(axis=1)
        if not finite.all():
            row = number * self.window + int(finite.argmin())
            raise ValueError(
                f"The vector of row {row} (from 0) is not finite in {self.dtype}. Write float32, "
                "or use --precision float32."
            )
        arrays = {"vectors": vectors, "cut": numpy.array(n_cut, dtype="int64")}
        write_arrays(self._path(number), arrays, temporary=self._new)
        return vectors, n_cut

    def finish(self, write_output: Callable[[BinaryIO, Iterator[numpy.ndarray]], None]) -> None:
        """Write the output of all windows, and its record, and remove the run.

        write_output (Callable): writes blocks of vectors to a file.
        """
        self.check_unchanged()
        with atomic_write(self.output, temporary=self._new) as file:
            write_output(file, self._blocks())
        self.record = self.record.model_copy(update={"digest": file_digest(self.output)})
        self.record.write(FileRecord.path_of(self.output), temporary=self._new_json)
        self.clear()

    def _blocks(self) -> Iterator[numpy.ndarray]:
        left = self.record.texts.rows
        for vectors, _ in self.windows():
            yield vectors
            left -= len(vectors)
        self.check_unchanged(is_whole=not left)

    def check_unchanged(self, *, is_whole: bool = True) -> None:
        """Raise ValueError if the input was changed since the run began, or lacks rows it had."""
        if not is_whole or self._read_source_state() != self._source_state:
            raise ValueError(
                f"{self.source} was changed while it was read. Change it back and run the same "
                "command again, or start over with --restart."
            )

    def _read_source_state(self) -> tuple[int, int, int]:
        stat = self.source.stat()
        return stat.st_size, stat.st_mtime_ns, stat.st_ino

    def _path(self, number: int) -> Path:
        return self.folder / f"window-{number:08}.npz"
