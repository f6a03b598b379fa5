"""Serialize arrays, models, their configs and JSON, with a checksum."""

import hashlib
import json
import math
import platform
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeVar, cast

import numpy
import srsly
from pydantic import BaseModel, ValidationError
from spacy.pipeline import TrainablePipe
from thinc.api import Model, get_current_ops

from ..errors import DivergedError, Errors, Warnings, warn
from .atomic import atomic_write, check_input, rewrite_os_errors

# In the cfg of a pipe: digests of the settings that its weights decide
_SETTLED = "settled"
# These settings
_DECIDED = ("name", "n_outputs")


def _decided(block: Any, path: str) -> Iterator[tuple[str, Any]]:
    for key, value in block.items() if isinstance(block, Mapping) else ():
        if key in _DECIDED and "@architectures" in block:
            yield f"{path}.{key}", value
        yield from _decided(value, f"{path}.{key}")


def _setting_digest(value: object) -> str:
    """Return the digest of a setting: a name may be a path, which is nobody else's business, with "$" or "$$"."""
    return hashlib.sha256(
        re.sub(r"\$+", "$", str(value)).encode("utf8", "surrogatepass")
    ).hexdigest()[:12]


MARK = b"SHA-256:"
_LENGTH = len(MARK) + hashlib.sha256().digest_size
_CAUSE = (
    "It was changed after it was written, or writing or copying it was cut short. Save or copy "
    "the pipeline again; if "
    "'spacy train' was stopped while it wrote model-last, try model-best beside it."
)
_InT = TypeVar("_InT")
_OutT = TypeVar("_OutT")
_PipeT = TypeVar("_PipeT", bound="ChecksummedPipe")


class _CorruptedState(ValueError):
    """A saved state is not what was written. reason (str): what shows it."""

    def __init__(self, reason: str):
        super().__init__(
            "The saved model (the file 'model' in the folder of its component, or bytes of it) "
            f"is damaged: {reason}. "
            f"{_CAUSE}"
        )
        self.reason = reason


def add_checksum(state: bytes) -> bytes:
    """Return a state, which is one MessagePack object, with its SHA-256 behind it."""
    return b"".join((state, MARK, hashlib.sha256(state).digest()))


def verify_checksum(data: bytes) -> memoryview:
    """Return the state that add_checksum was given, not copied.

    RAISES (_CorruptedState): if it was changed.
    """
    if not data:
        raise _CorruptedState("it is empty")
    if not data[-_LENGTH:].startswith(MARK):
        raise _CorruptedState(
            "it ends early, or is not a saved state: there is no SHA-256 behind it"
        )
    state = memoryview(data)[:-_LENGTH]
    if hashlib.sha256(state).digest() != data[-_LENGTH + len(MARK) :]:
        raise _CorruptedState("its SHA-256 is not the one that was written behind it")
    return state


class ChecksummedModel(Model[_InT, _OutT]):
    """A Thinc model whose bytes have a checksum."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def to_bytes(self) -> bytes:
        if name := params_not_finite(self):
            warn(Warnings.DIVERGED.format(name=name))
        return add_checksum(super().to_bytes())

    def to_disk(self, path: str | Path) -> None:
        """Write the model to a file, whole or not at all.

        RAISES (OSError): naming it, if it cannot be written.
        """
        state = self.to_bytes()
        with atomic_write(Path(path)) as file:
            file.write(state)

    def from_bytes(self, bytes_data: bytes) -> "ChecksummedModel[_InT, _OutT]":
        """Load the model from what to_bytes returned.

        RAISES (ValueError): if the bytes are damaged.
        """
        super().from_bytes(cast(bytes, verify_checksum(bytes_data)))
        if name := params_not_finite(self):
            raise DivergedError(Errors.DIVERGED_WEIGHTS.format(reason=f"{name} is not finite"))
        return self


def params_not_finite(model: Model) -> str | None:
    """Return the name of a parameter of a model that is not finite, without those of PyTorch.

    None if all are.
    """
    for node in model.walk():
        for name in filter(node.has_param, node.param_names):
            if not bool(node.ops.xp.isfinite(node.get_param(name)).all()):
                return f"{name} of {node.name}"
    return None


class ChecksummedPipe(TrainablePipe):
    """Pipe whose model has a checksum: damage is reported by file, and it loads with the config it was saved with.

    _in_pipeline: holds the pipeline that it is in, as nlp.
    """

    _in_pipeline: Any

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the state of the pipe."""
        self.cfg[_SETTLED] = {setting: _setting_digest(value) for setting, value in self._settled()}
        return super().to_bytes(exclude=exclude)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the state of the pipe to a folder.

        RAISES (OSError): naming it, if it cannot be written.
        """
        self.cfg[_SETTLED] = {setting: _setting_digest(value) for setting, value in self._settled()}
        with rewrite_os_errors(Path(path)):
            super().to_disk(path, exclude=exclude)

    def from_bytes(self: _PipeT, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> _PipeT:
        """Load the pipe from what to_bytes returned.

        RAISES (ValueError): if the bytes are damaged.
        """
        parts = check_parts(bytes_data, ("cfg", "model"), exclude)
        if "cfg" in parts:
            _check_object("cfg", parts["cfg"])
        return super().from_bytes(bytes_data, exclude=exclude)

    def from_disk(self: _PipeT, path: str | Path, *, exclude: Iterable[str] = ()) -> _PipeT:
        """Load the pipe from a folder that to_disk wrote.

        RAISES (ValueError): naming the file that is missing, empty, cut or damaged, or a setting
            that was overridden and that the weights decide.
        """
        folder = Path(path)
        with naming(folder / "cfg"):
            cfg = (
                _check_object("it", (folder / "cfg").read_bytes())
                if (folder / "cfg").exists()
                else {}
            )
        for setting, given in self._settled():
            if _setting_digest(given) != cfg.get(_SETTLED, {}).get(setting, _setting_digest(given)):
                raise ValueError(
                    f"Cannot load the pipe with {setting} = {given!r}: by {folder / 'cfg'} its "
                    "weights "
                    "were saved with another value, that of the saved config.cfg. Leave the "
                    "setting as it is there; to "
                    "use another encoder, make a new pipe with nlp.add_pipe."
                )
        with naming(folder / "model"):
            super().from_disk(folder, exclude=exclude)
        return self

    def _settled(self) -> Iterator[tuple[str, Any]]:
        """Yield the settings of the model that its weights decide, by their names in the config."""
        nlp = self._in_pipeline.nlp
        name = (
            None
            if nlp is None
            else next((name for name, pipe in nlp.components if pipe is self), None)
        )
        if name is not None:
            config = nlp.get_pipe_config(name)
            config = nlp.config.interpolate()["components"][name] if "$" in str(config) else config
            yield from _decided(config.get("model"), "model")


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Name the file where a state proves to be damaged."""
    try:
        yield
    except (_CorruptedState, FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        if isinstance(error, OSError) and Path(error.filename or "") != file:
            raise
        reason = (
            error.reason if isinstance(error, _CorruptedState) else "it is missing, or not a file"
        )
        raise ValueError(
            f"The file {file} of the saved pipeline is damaged: {reason}. {_CAUSE}"
        ) from error


def check_parts(data: bytes, names: Iterable[str], exclude: Iterable[str]) -> dict[str, bytes]:
    """Return the parts of a pipe's bytes; spaCy would leave a missing one as it was.

    names (list[str]): of the parts that were written. exclude (list[str]): those that are not to be
        read.
    """
    try:
        parts = srsly.msgpack_loads(data)
    except Exception as error:
        # Whatever the bytes lead the parser to
        raise _CorruptedState(
            f"it ends early, or is not a saved state ({error or type(error).__name__})"
        ) from error
    if not isinstance(parts, dict):
        raise _CorruptedState(f"expected parts by name, found {type(parts).__name__}")
    missing = [name for name in names if name not in exclude and name not in parts]
    if missing and parts:
        raise _CorruptedState(f"its part '{missing[0]}' is missing")
    return parts


def _check_object(name: str, data: bytes | str) -> dict[str, Any]:
    try:
        found = srsly.json_loads(data)
    except ValueError as error:
        raise _CorruptedState(f"{name} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise _CorruptedState(f"{name} is not a JSON object but {type(found).__name__}")
    return found


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes.

    RAISES (OSError, ValueError): if it cannot be read, or is not a file.
    """
    check_input(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_parts(*parts: object) -> str:
    """Return the SHA-256 of names, numbers, digests, and what JSON holds of them."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf8")).hexdigest()


def digest_of_stream(parts: Iterable[str | bytes]) -> str:
    """Return the SHA-256 of strings that need not be in memory together, each with its length before it."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode("utf8") if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "big") + data)
    return found.hexdigest()


# What zipfile and NumPy say of bytes they did not write; RuntimeError where these seem to be
# encrypted.
_DAMAGED = (
    EOFError,
    KeyError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    TokenError,
    TypeError,
    ValueError,
)


def read_arrays(
    path: Path, expected: Mapping[str, tuple[str, int]], *, message: str = Errors.SEARCH_BAD_ARRAYS
) -> dict[str, numpy.ndarray]:
    """Read named arrays from a .npz file that numpy.savez wrote.

    RAISES (ValueError): if it is damaged, or another.

    expected (dict): dtype and number of dimensions by name. message (str): of errors, with {path}
        and {reason}.
    """
    check_input(path)
    try:
        _check_sizes(path)
        with numpy.load(path, allow_pickle=False) as saved:
            found = {name: saved[name] for name in expected}
    except (*_DAMAGED, OSError, zipfile.BadZipFile) as error:
        # But an OSError of a place before the file's beginning
        if getattr(error, "filename", None) is not None:
            raise
        raise ValueError(message.format(path=path, reason=error)) from error
    for name, (dtype, ndim) in expected.items():
        if found[name].dtype != dtype or found[name].ndim != ndim:
            reason = f"{name} is {found[name].dtype} of shape {found[name].shape}"
            raise ValueError(message.format(path=path, reason=reason))
    return found


def _check_sizes(path: Path) -> None:
    """Refuse headers that promise more than the file holds, which would fill the memory, or less."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                numpy.lib.format.read_magic(file)
                shape, _, dtype = numpy.lib.format.read_array_header_1_0(file)
                needed = dtype.itemsize * math.prod(shape) + file.tell()
            # Nothing is compressed
            if needed != member.compress_size:
                raise ValueError(
                    f"{member.filename} has {member.compress_size} bytes, its header promises "
                    f"{needed}"
                )


KEY = "sha256"
# Errors that a message lists
_SHOWN = 3
_ModelT = TypeVar("_ModelT", bound=BaseModel)


def parse_checksummed(model: type[_ModelT], data: bytes) -> _ModelT:
    """Read an object that has a checksum as a pydantic model.

    RAISES (ValueError): if it is another, or was changed.
    """
    try:
        found = model.model_validate_json(data, strict=True)
    except ValidationError as error:
        reasons = [
            f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in error.errors()
        ]
        raise ValueError("; ".join(reasons[:_SHOWN])) from error
    unsealed(json.loads(data))
    return found


def checksummed_json(content: Mapping[str, object]) -> dict[str, object]:
    """Return an object that JSON holds, with the SHA-256 of the rest of it under "sha256"."""
    # Keys become str
    rest = json.loads(json.dumps({key: value for key, value in content.items() if key != KEY}))
    return {**rest, KEY: _digest(rest)}


def unsealed(content: Mapping[str, object]) -> dict[str, object]:
    """Return what checksummed_json was given.

    RAISES (ValueError): if it was changed, or has no checksum.
    """
    rest = {key: value for key, value in content.items() if key != KEY}
    if content.get(KEY) != _digest(rest):
        raise ValueError(
            "its SHA-256 is not the one that was saved with it: it was damaged or changed"
        )
    return rest


def _digest(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf8")).hexdigest()


_PACKAGES = [
    "spacy-sbert",
    "spacy",
    "spacy-transformers",
    "thinc",
    "torch",
    "transformers",
    "tokenizers",
    "numpy",
]
_PACKAGES += ["scipy", "scikit-learn"]


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that scores may depend on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def device() -> str:
    """Return where vectors are computed: "cpu" or "gpu"."""
    return get_current_ops().device_type
