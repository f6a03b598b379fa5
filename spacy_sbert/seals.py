"""Digests inside what is saved, by which damage is noticed; what earlier versions saved has none, and is read."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from .errors import Errors

KEY = "sha256"
MARK = b"spacy-sbert sealed 1\n"
LENGTH = hashlib.sha256().digest_size


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """An object that JSON holds, with the SHA-256 of the rest of it under "sha256"."""
    said = json.loads(json.dumps({key: value for key, value in content.items() if key != KEY}))  # keys become str
    return {**said, KEY: _digest(said)}


def unsealed(content: dict[str, Any]) -> dict[str, Any]:
    """What `sealed` was given.

    RAISES (ValueError): if it is not that any more.
    """
    said = {key: value for key, value in content.items() if key != KEY}
    if KEY in content and content[KEY] != _digest(said):
        raise ValueError(Errors.BAD_SEAL)
    return said


def sealed_bytes(data: bytes) -> bytes:
    """Bytes with a mark and their SHA-256 before them."""
    return MARK + hashlib.sha256(data).digest() + data


def unsealed_bytes(data: bytes) -> bytes:
    """The bytes that `sealed_bytes` was given.

    RAISES (ValueError): if they are not those any more.
    """
    if not data.startswith(MARK):
        return data
    start = len(MARK) + LENGTH
    if data[len(MARK) : start] != hashlib.sha256(data[start:]).digest():
        raise ValueError(Errors.BAD_SEAL)
    return data[start:]


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf8")).hexdigest()
