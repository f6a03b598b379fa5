"""The bytes of a saved encoder: the files of its folder, with their SHA-256."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import srsly
from safetensors import SafetensorError

from ..errors import Errors
from ..files.checksum import digest_of_bytes
from .sbert_config import SentenceTransformersConfig, read_file

# The settings of the encoder's folder, as they were when it was loaded
SETTINGS_FILE = "spacy_sbert.json"


def write_state(files: dict[str, bytes]) -> bytes:
    """Return the bytes of an encoder with these files."""
    return srsly.msgpack_dumps({"files": files, "sha256": _digests(files)})


def read_state(data: bytes, folder: Path) -> SentenceTransformersConfig:
    """Write the files of an encoder to an empty folder, and return the settings among them.

    RAISES (ValueError): if the bytes are not those of write_state, or damaged.
    """
    files = _read_files(data)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return read_file(folder / SETTINGS_FILE, SentenceTransformersConfig)


def _read_files(data: bytes) -> dict[str, bytes]:
    try:
        state = srsly.msgpack_loads(data)
    except Exception as error:
        # Whatever the bytes lead the parser to
        reason = error or type(error).__name__
        raise _damaged(f"it ends early, or is not a saved encoder ({reason})") from error
    files = state.get("files") if isinstance(state, dict) else None
    if not isinstance(files, dict) or SETTINGS_FILE not in files:
        raise _damaged(f"{SETTINGS_FILE} is missing")
    for name, content in files.items():
        if not _is_file_name(name):
            raise _damaged(f"it names the file '{name}'")
        if not isinstance(content, bytes):
            raise _damaged(f"the file '{name}' holds no bytes")
    if state.get("sha256") != _digests(files):
        raise _damaged("the SHA-256 of a file is not the one that was written with it")
    return files


def _is_file_name(name: Any) -> bool:
    """Return whether it names a file in the folder itself."""
    if not isinstance(name, str) or name in ("", ".", "..") or "\0" in name:
        return False
    return Path(name).name == name


def _digests(files: dict[str, bytes]) -> dict[str, str]:
    return {name: digest_of_bytes(content) for name, content in files.items()}


def _damaged(reason: str) -> ValueError:
    return ValueError(Errors.BAD_STATE.format(reason=reason))


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Raise an OSError for every failure to write to a folder, whatever a library makes of it."""
    try:
        yield
    except Exception as error:
        # Of a full disk; tokenizers know no other kind
        names_no_file = isinstance(error, OSError) and error.filename is None
        if names_no_file or isinstance(error, SafetensorError) or type(error) is Exception:
            raise OSError(Errors.CANNOT_WRITE.format(path=folder, reason=error)) from error
        raise
