"""JSON objects that hold their own digest, by which damage is noticed; what earlier versions saved has none, and is
read."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from .errors import Errors

KEY = "sha256"


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


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf8")).hexdigest()
