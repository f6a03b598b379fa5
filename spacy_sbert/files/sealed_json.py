"""JSON objects that are read back: checked by their models, and sealed with their own digest, by which damage is
noticed."""

import hashlib
import json
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from .errors import Errors

KEY = "sha256"
SAID = 3  # errors that a message lists
ModelT = TypeVar("ModelT", bound=BaseModel)


def parse_object(model: type[ModelT], data: bytes) -> ModelT:
    """Read an object as a pydantic model, strictly.

    RAISES (ValueError): if it is not such an object, with the reason in one line.
    """
    try:
        return model.model_validate_json(data, strict=True)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in error.errors()]
        raise ValueError("; ".join(found[:SAID])) from error


def parse_sealed(model: type[ModelT], data: bytes) -> ModelT:
    """Read an object that was sealed, see parse_object. RAISES (ValueError): also if it is not what was sealed."""
    found = parse_object(model, data)
    unsealed(json.loads(data))
    return found


def sealed(content: Mapping[str, object]) -> dict[str, object]:
    """An object that JSON holds, with the SHA-256 of the rest of it under "sha256"."""
    said = json.loads(json.dumps({key: value for key, value in content.items() if key != KEY}))  # keys become str
    return {**said, KEY: _digest(said)}


def unsealed(content: Mapping[str, object]) -> dict[str, object]:
    """What `sealed` was given. RAISES (ValueError): if it is not that any more, or was not sealed."""
    said = {key: value for key, value in content.items() if key != KEY}
    if content.get(KEY) != _digest(said):
        raise ValueError(Errors.BAD_SEAL)
    return said


def _digest(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf8")).hexdigest()
