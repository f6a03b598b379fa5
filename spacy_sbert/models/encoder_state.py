"""How an encoder is saved: as a folder of Hugging Face, and as the bytes of its files."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import srsly
from safetensors import SafetensorError

from ..errors import DivergedError, Errors
from ..files.checksum import digest_of_bytes
from .folder_files import read_file
from .loading import Network, Tokenizer
from .sbert_config import SentenceTransformersConfig
from .transformers_versions import without_bars

# The settings of the encoder's folder, as they were when it was loaded
SETTINGS_FILE = "spacy_sbert.json"


def save_encoder(
    folder: Path, network: Network, tokenizer: Tokenizer, vocab_file: bytes | None
) -> None:
    """Write config, weights as safetensors and tokenizer to a folder of Hugging Face.

    vocab_file (bytes): what a slow tokenizer copies; None if it has no such file.
    """
    with _writing_to(folder), without_bars():
        network.save_pretrained(folder, safe_serialization=True, max_shard_size="2GB")
        # The file that it copies may be gone
        if vocab_file is not None:
            copied = folder / tokenizer.vocab_files_names["vocab_file"]
            copied.write_bytes(vocab_file)
            tokenizer.vocab_file = str(copied)
        tokenizer.save_pretrained(str(folder))


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the content of all files in a folder, by their names."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def write_state(files: dict[str, bytes], settings: SentenceTransformersConfig) -> bytes:
    """Return the bytes of an encoder: its files with their SHA-256, and the settings."""
    content = json.dumps(asdict(settings)).encode("utf8")
    files = dict(sorted({**files, SETTINGS_FILE: content}.items()))
    return srsly.msgpack_dumps({"files": files, "sha256": _digests(files)})


@contextmanager
def read_state(data: bytes) -> Iterator[tuple[Path, SentenceTransformersConfig]]:
    """Yield a folder with the files of an encoder, and the settings among them.

    RAISES (ValueError): if the bytes are not those of write_state, or damaged; and what the with
        block raises, by a name of the folder that users know.
    """
    # Windows keeps a file of weights open a while after it was read.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            for file, content in _read_files(data).items():
                (folder / file).write_bytes(content)
            yield folder, read_file(folder / SETTINGS_FILE, SentenceTransformersConfig)
        except DivergedError:
            raise
        except ValueError as error:
            raise ValueError(str(error).replace(name, "<the saved encoder>")) from error


def _read_files(data: bytes) -> dict[str, bytes]:
    """Return the files in bytes of write_state. RAISES (ValueError): if they are damaged."""
    try:
        state = srsly.msgpack_loads(data)
    except Exception as error:
        # Whatever the bytes lead the parser to
        reason = error or type(error).__name__
        raise _damaged(f"it ends early, or is not a saved encoder ({reason})") from error
    if not isinstance(state, dict):
        state = {}
    files = state.get("files")
    if not isinstance(files, dict) or SETTINGS_FILE not in files:
        raise _damaged(f"{SETTINGS_FILE} is missing")
    for name, content in files.items():
        _check_entry(name, content)
    if state.get("sha256") != _digests(files):
        raise _damaged("the SHA-256 of a file is not the one that was written with it")
    return files


def _check_entry(name: object, content: object) -> None:
    if not _is_file_name(name):
        raise _damaged(f"it names the file '{name}'")
    if not isinstance(content, bytes):
        raise _damaged(f"the file '{name}' holds no bytes")


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
def _writing_to(folder: Path) -> Iterator[None]:
    """Raise an OSError for every failure to write to a folder, whatever a library makes of it."""
    try:
        yield
    except Exception as error:
        # A full disk; the tokenizers library raises no class of its own
        names_no_file = isinstance(error, OSError) and error.filename is None
        if names_no_file or isinstance(error, SafetensorError) or type(error) is Exception:
            raise OSError(Errors.CANNOT_WRITE.format(path=folder, reason=error)) from error
        raise
