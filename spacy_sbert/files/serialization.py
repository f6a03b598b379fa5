"""Serialize arrays, models and JSON with a checksum."""

import hashlib
import json
import platform
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

from ..errors import Errors
from .atomic import atomic_write, check_input
from .saved_config import KEPT, SETTLED, check_settled, kept_config, restore_config, settled

MARK = b"SHA-256:"
_LENGTH = len(MARK) + hashlib.sha256().digest_size
_OTHER_FOLDER = {"model-last": "model-best", "model-best": "model-last"}  # of what `spacy train` writes
_InT = TypeVar("_InT")
_OutT = TypeVar("_OutT")
_PipeT = TypeVar("_PipeT", bound="ChecksummedPipe")


class _CorruptedState(ValueError):
    """A saved state is not what was written. reason (str): what shows it."""

    def __init__(self, reason: str):
        super().__init__(
            "The saved model (the file 'model' in the folder of its component, or bytes of it) is damaged: "
            f"{reason}. It was changed after it was written, or writing or copying it was cut short. Save or "
            "copy the pipeline again; if 'spacy train' was stopped while it wrote model-last, try model-best "
            "beside it."
        )
        self.reason = reason


def add_checksum(state: bytes) -> bytes:
    """Return a state, which is one MessagePack object, with its SHA-256 behind it."""
    return b"".join((state, MARK, hashlib.sha256(state).digest()))


def verify_checksum(data: bytes) -> memoryview:
    """Return the state that add_checksum was given, not copied. RAISES (_CorruptedState): if it was changed."""
    if not data:
        raise _CorruptedState("it is empty")
    if not data[-_LENGTH:].startswith(MARK):
        raise _CorruptedState("it ends early, or is not a saved state: there is no SHA-256 behind it")
    state = memoryview(data)[:-_LENGTH]
    if hashlib.sha256(state).digest() != data[-_LENGTH + len(MARK) :]:
        raise _CorruptedState("its SHA-256 is not the one that was written behind it")
    return state


class ChecksummedModel(Model[_InT, _OutT]):
    """A Thinc model whose bytes have a checksum."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def to_bytes(self) -> bytes:
        return add_checksum(super().to_bytes())

    def from_bytes(self, bytes_data: bytes) -> "ChecksummedModel[_InT, _OutT]":
        """Load the model from what to_bytes returned. RAISES (ValueError): if the bytes are damaged."""
        super().from_bytes(cast(bytes, verify_checksum(bytes_data)))
        return self


class ChecksummedPipe(TrainablePipe):
    """Pipe whose model has a checksum: damage is reported by file, and it loads with the config it was saved with.

    _in_pipeline: holds the pipeline that it is in, as nlp.
    """

    _in_pipeline: Any

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the state of the pipe."""
        self._keep_config()
        return super().to_bytes(exclude=exclude)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the state of the pipe to a folder."""
        self._keep_config()
        super().to_disk(path, exclude=exclude)

    def _keep_config(self) -> None:
        self.cfg.pop(KEPT, None)
        self.cfg[SETTLED] = settled(self._in_pipeline.nlp, self)
        kept = kept_config(self._in_pipeline.nlp, self)
        if kept is not None:
            self.cfg[KEPT] = kept

    def _restore_config(self, cfg: Mapping[str, Any]) -> None:
        made = restore_config(self._in_pipeline.nlp, self, cfg[KEPT]) if KEPT in cfg else self
        if made is not self:
            self.__dict__.update(made.__dict__)
            for attribute in ("model", "scorer"):  # which spaCy keeps elsewhere
                setattr(self, attribute, getattr(made, attribute))

    def from_bytes(self: _PipeT, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> _PipeT:
        """Load the pipe from what to_bytes returned. RAISES (ValueError): if the bytes are damaged."""
        parts = check_parts(bytes_data, ("cfg", "model"), exclude)
        if "cfg" in parts:
            self._restore_config(_check_object("cfg", parts["cfg"]))
        return super().from_bytes(bytes_data, exclude=exclude)

    def from_disk(self: _PipeT, path: str | Path, *, exclude: Iterable[str] = ()) -> _PipeT:
        """Load the pipe from a folder that to_disk wrote.

        RAISES (ValueError): naming the file that is missing, empty, cut or damaged, or a setting that was overridden
            and that the weights decide.
        """
        folder = Path(path)
        with naming(folder / "cfg"):
            cfg = _check_object_in(folder / "cfg")
        self._restore_config(cfg)
        check_settled(self._in_pipeline.nlp, self, cfg.get(SETTLED, {}), folder / "cfg")
        with naming(folder / "model"):
            super().from_disk(folder, exclude=exclude)
        return self


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Name the file where a state proves to be damaged, and the folder that is whole where `spacy train` left one."""
    try:
        yield
    except (_CorruptedState, FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        if isinstance(error, OSError) and Path(error.filename or "") != file:
            raise
        reason = error.reason if isinstance(error, _CorruptedState) else "it is missing, or not a file"
        whole = _undamaged_folder(file)
        remedy = f"; {whole} is whole" if whole else ""
        raise ValueError(
            f"The file {file} of the saved pipeline is damaged: {reason}. It was changed after it was written, "
            f"or writing or copying it was cut short. Save or copy the pipeline again{remedy}."
        ) from error


def check_parts(data: bytes, names: Iterable[str], exclude: Iterable[str]) -> dict[str, bytes]:
    """Return the parts of a pipe's bytes, of which spaCy would leave a missing one as it was.

    names (list[str]): of the parts that were written. exclude (list[str]): those that are not to be read.
    RAISES (_CorruptedState): if there are no such parts.
    """
    try:
        parts = srsly.msgpack_loads(data)
    except Exception as error:  # whatever the bytes lead the parser to
        raise _CorruptedState(f"it ends early, or is not a saved state ({error or type(error).__name__})") from error
    if not isinstance(parts, dict):
        raise _CorruptedState(f"expected parts by name, found {type(parts).__name__}")
    missing = [name for name in names if name not in exclude and name not in parts]
    if missing and parts:
        raise _CorruptedState(f"its part '{missing[0]}' is missing")
    return parts


def _check_object_in(file: Path) -> dict[str, Any]:
    """Return the object in a file; a missing file is an empty object, as older versions of spaCy write none."""
    return _check_object("it", file.read_bytes()) if file.exists() else {}


def _check_object(name: str, data: bytes | str) -> dict[str, Any]:
    try:
        found = srsly.json_loads(data)
    except ValueError as error:
        raise _CorruptedState(f"{name} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise _CorruptedState(f"{name} is not a JSON object but {type(found).__name__}")
    return found


def _undamaged_folder(file: Path) -> Path | None:
    """Return the other folder of a training, if it was written to its end and its models are not damaged."""
    pipeline = file.parent.parent
    other = pipeline.parent / _OTHER_FOLDER.get(pipeline.name, "")
    same = other / file.parent.name / file.name
    if pipeline.name not in _OTHER_FOLDER or not same.is_file() or not (other / "vocab").is_dir():
        return None
    try:
        _check_object_in(other / file.parent.name / "cfg")
        for model in {same, *other.glob("*/model")} - {same.with_name("cfg")}:
            verify_checksum(model.read_bytes())
    except (OSError, _CorruptedState):
        return None
    return other


_BLOCK = 2**20  # bytes


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes. RAISES (OSError, ValueError): if it cannot be read, or is not a file."""
    check_input(path)
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


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


# What zipfile and NumPy say of bytes they did not write; RuntimeError where these seem to be encrypted.
_DAMAGED = (EOFError, KeyError, RuntimeError, SyntaxError, TokenError, TypeError, ValueError, zipfile.BadZipFile)


def write_arrays(path: Path, arrays: Mapping[str, numpy.ndarray]) -> None:
    """Write named arrays as .npz, without compression."""
    with atomic_write(path) as file:
        numpy.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(
    path: Path, expected: Mapping[str, tuple[str, int]], *, message: str = Errors.SEARCH_BAD_ARRAYS
) -> dict[str, numpy.ndarray]:
    """Read named arrays from .npz.

    expected (dict): from a name to the dtype and the number of dimensions. message (str): of errors, with {path} and
        {reason}.
    RAISES (ValueError): if the file is damaged, or other arrays are in it.
    """
    check_input(path)
    try:
        _check_sizes(path)
        with numpy.load(path, allow_pickle=False) as saved:
            found = {name: saved[name] for name in expected}
    except (*_DAMAGED, OSError) as error:
        if getattr(error, "filename", None) is not None:  # but an OSError of a place before the file's beginning
            raise
        raise ValueError(message.format(path=path, reason=error)) from error
    for name, (dtype, ndim) in expected.items():
        if found[name].dtype != dtype or found[name].ndim != ndim:
            reason = f"{name} is {found[name].dtype} of shape {found[name].shape}"
            raise ValueError(message.format(path=path, reason=reason))
    return found


def _check_sizes(path: Path) -> None:
    """Refuse headers that promise more than the file holds, which would fill the memory."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{member.filename} is compressed")
            with archive.open(member) as file:
                version = numpy.lib.format.read_magic(file)
                if version != (1, 0):
                    raise ValueError(f"{member.filename} has the format {version}")
                shape, _, dtype = numpy.lib.format.read_array_header_1_0(file)
                needed = dtype.itemsize * int(numpy.prod(shape, dtype=object)) + file.tell()
            if needed != member.file_size or needed > path.stat().st_size:
                raise ValueError(f"{member.filename} has {member.file_size} bytes, its header promises {needed}")


KEY = "sha256"
_SHOWN = 3  # errors that a message lists
ModelT = TypeVar("ModelT", bound=BaseModel)


def parse_object(model: type[ModelT], data: bytes) -> ModelT:
    """Read an object as a pydantic model, strictly.

    RAISES (ValueError): if it is not such an object, with the reason in one line.
    """
    try:
        return model.model_validate_json(data, strict=True)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in error.errors()]
        raise ValueError("; ".join(found[:_SHOWN])) from error


def parse_checksummed(model: type[ModelT], data: bytes) -> ModelT:
    """Read an object that has a checksum, see parse_object. RAISES (ValueError): also if it was changed."""
    found = parse_object(model, data)
    unsealed(json.loads(data))
    return found


def checksummed_json(content: Mapping[str, object]) -> dict[str, object]:
    """Return an object that JSON holds, with the SHA-256 of the rest of it under "sha256"."""
    rest = json.loads(json.dumps({key: value for key, value in content.items() if key != KEY}))  # keys become str
    return {**rest, KEY: _digest(rest)}


def unsealed(content: Mapping[str, object]) -> dict[str, object]:
    """Return what checksummed_json was given. RAISES (ValueError): if it was changed, or has no checksum."""
    rest = {key: value for key, value in content.items() if key != KEY}
    if content.get(KEY) != _digest(rest):
        raise ValueError("its SHA-256 is not the one that was saved with it: it was damaged or changed")
    return rest


def _digest(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf8")).hexdigest()


_PACKAGES = ["spacy-sbert", "spacy", "spacy-transformers", "thinc", "torch", "transformers", "tokenizers", "numpy"]
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
