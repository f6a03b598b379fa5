"""SHA-256 digests of files, and of what results depend on."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from .regular import check_input

BLOCK = 2**20  # bytes


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's bytes. RAISES (OSError, ValueError): if it cannot be read, or is not a file."""
    check_input(path)
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            found.update(block)
    return found.hexdigest()


def digest_of_parts(*parts: object) -> str:
    """The SHA-256 of names, numbers, digests, and what JSON holds of them."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf8")).hexdigest()


def digest_of_stream(parts: Iterable[str | bytes]) -> str:
    """The SHA-256 of strings that need not be in memory together, each with its length before it."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode("utf8") if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "big") + data)
    return found.hexdigest()
