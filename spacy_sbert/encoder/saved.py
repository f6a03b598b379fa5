"""An encoder as bytes: the files of its folder, the SHA-256 of each, and what is known of it."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import srsly
from safetensors import SafetensorError

from .errors import Errors
from .hugging_face import Tokenizer
from .settings import FolderSettings, read_file

SETTINGS_FILE = "spacy_sbert.json"


def write_state(folder: Path, settings: FolderSettings) -> bytes:
    """The files in a folder, and the settings as one of them."""
    (folder / SETTINGS_FILE).write_text(json.dumps(asdict(settings)), encoding="utf8")
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return srsly.msgpack_dumps({"files": files, "sha256": digests})


def read_state(data: bytes, folder: Path) -> FolderSettings:
    """Write the files that write_state was given to a folder again.

    data (bytes): of write_state. folder (Path): an empty one.
    RAISES (ValueError): if they are others, a file is not what was written, or its name leads out of its folder.
    """
    try:
        state = srsly.msgpack_loads(data)
    except Exception as error:  # whatever the bytes lead the parser to
        raise _damaged(f"it ends early, or is not a saved encoder ({error or type(error).__name__})") from error
    files = state.get("files") if isinstance(state, dict) else None
    if not isinstance(files, dict) or SETTINGS_FILE not in files:
        raise _damaged(f"{SETTINGS_FILE} is missing")
    for name, content in files.items():
        if not isinstance(name, str) or name in ("", ".", "..") or Path(name).name != name or "\0" in name:
            raise _damaged(f"it names the file '{name}'")
        if not isinstance(content, bytes):
            raise _damaged(f"the file '{name}' holds no bytes")
    _check_digests(files, state.get("sha256"))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return read_file(folder / SETTINGS_FILE, FolderSettings)


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """RAISES (OSError): if files cannot be written to a folder, whatever the libraries that write them raise then."""
    try:
        yield
    except Exception as error:  # of a full disk; tokenizers know no other kind
        names_no_file = isinstance(error, OSError) and error.filename is None
        if names_no_file or isinstance(error, SafetensorError) or type(error) is Exception:
            raise OSError(Errors.CANNOT_WRITE.format(path=folder, reason=error)) from error
        raise


def save_tokenizer(tokenizer: Tokenizer, vocab: bytes | None, folder: Path) -> None:
    """Write a tokenizer's files; vocab (bytes): the file of a slow one's, None for others."""
    if vocab is not None:  # slow tokenizers copy this file, and where they were loaded from may be gone
        tokenizer.vocab_file = str(folder / tokenizer.vocab_files_names["vocab_file"])
        Path(tokenizer.vocab_file).write_bytes(vocab)
    tokenizer.save_pretrained(str(folder))


def _check_digests(files: dict[str, bytes], digests: Any) -> None:
    if not isinstance(digests, dict) or digests.keys() != files.keys():
        raise _damaged("its files are not those that were written")
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != digests[name]:
            raise _damaged(f"the SHA-256 of its file '{name}' is not the one that was written with it")


def _damaged(reason: str) -> ValueError:
    return ValueError(Errors.BAD_STATE.format(reason=reason))
