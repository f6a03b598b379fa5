"""Digests of bytes, files, streams and settings, and bytes and JSON with a checksum: all SHA-256.

What is read again has its checksum with it: a state has it behind its bytes (add_checksum), an
object of JSON under the key "sha256" (checksummed_json), files have theirs in such an object.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from io import BufferedIOBase
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from .atomic import check_input

# Behind a state, before its digest
MARK = b"SHA-256:"
_LENGTH = len(MARK) + hashlib.sha256().digest_size
# Of the digest in an object of JSON
KEY = "sha256"
CAUSE = (
    "It was changed after it was written, or writing or copying it was cut short. Save or copy the "
    "pipeline again; if 'spacy train' was stopped while it wrote model-last, try model-best beside "
    "it."
)
# How many errors a message lists
_SHOWN = 3
_ModelT = TypeVar("_ModelT", bound=BaseModel)


def digest_of_bytes(data: bytes | memoryview) -> str:
    """Return the SHA-256 of bytes, in hexadecimal digits as all digests here."""
    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes.

    RAISES (OSError, ValueError): if it cannot be read, or is not a file.
    """
    check_input(path)
    with path.open("rb") as file:
        return open_file_digest(file)


def open_file_digest(file: BufferedIOBase) -> str:
    """Return the SHA-256 of what is left to read of an open file."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_stream(parts: Iterable[str | bytes]) -> str:
    """Return the SHA-256 of strings that need not be in memory together, each after its length."""
    found = hashlib.sha256()
    for part in parts:
        data = part
        if isinstance(data, str):
            data = data.encode("utf8")
        found.update(len(data).to_bytes(8, "big"))
        found.update(data)
    return found.hexdigest()


def digest_of_parts(*parts: object) -> str:
    """Return the SHA-256 of names, numbers, digests, and what JSON holds of them."""
    return _json_digest(parts)


def _json_digest(content: object) -> str:
    return digest_of_bytes(json.dumps(content, sort_keys=True).encode("utf8"))


class CorruptedState(ValueError):
    """A saved state is not what was written. reason (str): what shows it."""

    def __init__(self, reason: str):
        super().__init__(
            "The saved model (the file 'model' in the folder of its component, or bytes of it) is "
            f"damaged: {reason}. {CAUSE}"
        )
        self.reason = reason


def add_checksum(state: bytes) -> bytes:
    """Return a state with its SHA-256 behind it."""
    return b"".join((state, MARK, hashlib.sha256(state).digest()))


def verify_checksum(data: bytes) -> memoryview:
    """Return the state that add_checksum was given, not copied.

    RAISES (CorruptedState): if it was changed.
    """
    if not data:
        raise CorruptedState("it is empty")
    state = memoryview(data)[:-_LENGTH]
    checksum = data[-_LENGTH:]
    if not checksum.startswith(MARK):
        raise CorruptedState(
            "it ends early, or is not a saved state: there is no SHA-256 behind it"
        )
    if hashlib.sha256(state).digest() != checksum.removeprefix(MARK):
        raise CorruptedState("its SHA-256 is not the one that was written behind it")
    return state


def checksummed_json(content: Mapping[str, object]) -> dict[str, object]:
    """Return an object that JSON holds, with the SHA-256 of the rest of it under "sha256"."""
    rest = {key: value for key, value in content.items() if key != KEY}
    # As it will be read, with keys that are str
    rest = json.loads(json.dumps(rest))
    return {**rest, KEY: _json_digest(rest)}


def verify_json(content: Mapping[str, object]) -> dict[str, object]:
    """Return what checksummed_json was given.

    RAISES (ValueError): if it was changed, or has no checksum.
    """
    rest = {key: value for key, value in content.items() if key != KEY}
    if content.get(KEY) != _json_digest(rest):
        raise ValueError(
            "its SHA-256 is not the one that was saved with it: it was damaged or changed"
        )
    return rest


def parse_checksummed(model: type[_ModelT], data: bytes) -> _ModelT:
    """Read an object that has a checksum as a pydantic model.

    RAISES (ValueError): if it is another, or was changed.
    """
    try:
        found = model.model_validate_json(data, strict=True)
    except ValidationError as error:
        reasons = []
        for one in error.errors()[:_SHOWN]:
            place = ".".join(map(str, one["loc"])) or "it"
            reasons.append(f"{place}: {one['msg']}")
        raise ValueError("; ".join(reasons)) from error
    verify_json(json.loads(data))
    return found
