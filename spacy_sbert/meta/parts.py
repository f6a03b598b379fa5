"""The parts of a pipe that are saved."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..files.sealed_states import naming, seal, unseal


class Part(NamedTuple):
    """How a part of a pipe is written and read: as bytes that are sealed."""

    to_bytes: Callable[[], bytes]
    from_bytes: Callable[[bytes], object]

    @classmethod
    def of(cls, write: Callable[[], bytes], read: Callable[[bytes], object]) -> "Part":
        """A part of something that seals nothing itself."""
        return cls(lambda: seal(write()), lambda data: read(bytes(unseal(data))))

    def to_file(self, path: Path) -> None:
        path.write_bytes(self.to_bytes())

    def from_file(self, path: Path) -> None:
        with naming(path):
            self.from_bytes(path.read_bytes())
