"""Manifests: JSON with a checksum, which says what the files beside it hold."""

import json
from pathlib import Path
from typing import Self

from pydantic import BaseModel

from .atomic import atomic_write
from .checksum import checksummed_json, parse_checksummed


class Manifest(BaseModel):
    """What files hold, written when they are whole: files without one were not finished.

    Example:
        class Vectors(Manifest):
            digest: str

        Vectors(digest=file_digest(path)).write(path.with_suffix(".json"))

    """

    def to_json(self) -> bytes:
        """Return the manifest as JSON with its SHA-256."""
        return json.dumps(checksummed_json(self.model_dump()), indent=2).encode("utf8")

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Return a manifest. RAISES (ValueError): if it is damaged, or another."""
        return parse_checksummed(cls, data)

    def write(self, path: Path, *, temporary: Path | None = None) -> None:
        """Write the manifest to a file, whole or not at all; see atomic_write."""
        with atomic_write(path, temporary=temporary) as file:
            file.write(self.to_json())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a manifest.

        RAISES (OSError): if there is none; (ValueError): if it is damaged, or another.
        """
        return cls.from_json(path.read_bytes())
