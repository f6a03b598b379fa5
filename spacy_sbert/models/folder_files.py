"""The files in the folder of an encoder: reading them, and the errors of what does not fit."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError, create_model

from ..errors import Errors, Warnings, warn
from .folder_keys import (
    MODEL_KEYS,
    MODULE_KEYS,
    SETFIT_KEYS,
    TRANSFORMER_KEYS,
    Keys,
    refused_keys,
    unknown_keys,
)

_FileT = TypeVar("_FileT")
# The longest value that a message repeats
_MAX_SHOWN = 60
# Files of an adapter of peft
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"


def _followed_keys() -> Any:
    """Return a pydantic model of the keys of all tables that are followed; None for one without."""
    fields: dict[str, Any] = {}
    tables = (*MODEL_KEYS.values(), *TRANSFORMER_KEYS.values(), *MODULE_KEYS.values(), SETFIT_KEYS)
    for table in tables:
        for name, key in table.items():
            if key.kind is not None:
                fields[name] = (Annotated[key.kind | None, Field(description=key.expected)], None)
    return create_model("FollowedKeys", **fields)


FollowedKeys = _followed_keys()


def read_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if there is no such file.

    RAISES (ValueError): if it is not an object.
    """
    if not file.exists():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=error)) from error
    if not isinstance(content, dict):
        reason = f"expected a JSON object, found {type(content).__name__}"
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=reason))
    return content


def read_file(file: Path, kind: type[_FileT]) -> _FileT:
    """Read a JSON file of an encoder's folder as a pydantic model, with its defaults.

    RAISES (ValueError): if a value does not fit; the description of its field is what is expected.
    """
    content = read_object(file)
    try:
        return TypeAdapter(kind).validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        expected = kind.__pydantic_fields__[key].description  # type: ignore[attr-defined]
        raise unexpected(file, key, content.get(key), str(expected)) from error


def read_keys(file: Path, keys: Keys) -> Any:
    """Return the values of a file that are followed, and warn of unknown keys; see folder_keys.

    RAISES (ValueError): if a key is refused, or a value does not fit.
    """
    check_keys(file, read_object(file), keys)
    return read_file(file, FollowedKeys)


def check_keys(file: Path, content: Mapping[str, object], keys: Keys) -> None:
    """Warn of unknown keys in a file. RAISES (ValueError): if a value is refused."""
    for name, value, key in refused_keys(content, keys):
        allowed = " or ".join(json.dumps(one) for one in key.allowed)
        raise ValueError(
            f"The file {file} sets {name} = {_shown(value)} ({key.reason}), which is not "
            f"supported: expected {allowed}. Use another encoder, or a copy of the folder without "
            "that key, which has other vectors."
        )
    unknown = ", ".join(unknown_keys(content, keys))
    if unknown:
        warn(Warnings.UNKNOWN_FOLDER_KEYS.format(file=file, names=unknown))


def unexpected(file: Path, key: str, value: object, expected: str) -> ValueError:
    """Return the error for a value in a file of an encoder's folder."""
    return ValueError(
        f"The file {file}, a part of the encoder's folder, says {key} = {_shown(value)}: expected "
        f"{expected}. Correct it, or download the encoder again."
    )


def _shown(value: object) -> str:
    text = repr(value)
    if len(text) <= _MAX_SHOWN:
        return text
    return f"{text[:_MAX_SHOWN]}..."
