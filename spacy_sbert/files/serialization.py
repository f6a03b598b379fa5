"""Serialize arrays, models, their configs and JSON, with a checksum."""

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
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from thinc.api import Config, Model, get_current_ops

from ..errors import Errors
from .atomic import atomic_write, check_input

# Configs that spaCy reads again as they were: it writes `$` doubled, and reads it as it is written.
_KEPT, _SETTLED = "kept_config", "settled"  # in the cfg of a pipe
_DECIDED = ("name", "n_outputs")  # settings of a model that its weights decide once they are there
_OTHERS = ("nlp", "components")  # sections that spaCy fills from the pipes


def config_text(config: Config) -> str:
    """Return the text of a config whose values spaCy reads as they are, interpolated or not."""
    return config.to_str(interpolate=False).replace("$$", r"\u0024")


def check_value(value: str) -> None:
    """Refuse a text that a config cannot hold: spaCy would read it as a variable."""
    if "${" in value:
        raise ValueError(
            f"Cannot write {value!r} to a config, where '${{' begins a variable. Rename the file, folder or column."
        )


def _as_read(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what spaCy reads from the file that it writes for a config."""
    return Config().from_str(Config({_KEPT: config}).to_str(), interpolate=False)[_KEPT]


def _kept_config(nlp: Language | None, pipe: object) -> dict[str, Any] | None:
    """Return what spaCy would not read as it is, of a pipe's config and of other sections; None if there is nothing."""
    name = _name_in(nlp, pipe)
    if nlp is None or name is None:
        return None
    config = _changed_by_reading(_config_of(nlp, name))
    others = {key: _changed_by_reading(section) for key, section in nlp.config.items() if key not in _OTHERS}
    sections = {key: section for key, section in others.items() if section}
    return {"pipe": config or None, "sections": sections} if config or sections else None


def _changed_by_reading(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what spaCy would read as something else, in its blocks."""
    plain = srsly.json_loads(srsly.json_dumps(config))  # tuples are lists in both
    return _differences(plain, _as_read(plain))


def _differences(config: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, Any]:
    if config.keys() != read.keys():
        return dict(config)
    found = {key: value for key, value in config.items() if value != read[key]}
    blocks = {key for key, value in found.items() if isinstance(value, dict) and isinstance(read[key], dict)}
    return {key: _differences(value, read[key]) if key in blocks else value for key, value in found.items()}


def _restore_config(nlp: Language | None, pipe: object, kept: Mapping[str, Any]) -> object:
    """Put what was kept in place of what spaCy read, and return the pipe, made again if its own config changes."""
    name = _name_in(nlp, pipe)
    if nlp is None or name is None:
        return pipe
    config = nlp.config
    given = config.interpolate()["components"][name]
    for key in kept["sections"].keys() & config.keys():
        config[key] = _restored(config[key], _as_read(kept["sections"][key]), kept["sections"][key])
    found = given if kept["pipe"] is None else _restored(given, _as_read(kept["pipe"]), kept["pipe"])
    if found == given:
        return pipe
    settings = {key: value for key, value in found.items() if key != "factory"}
    return nlp.create_pipe(nlp.get_pipe_meta(name).factory, name, config=settings)


def _check_settled(nlp: Language | None, pipe: object, saved: Mapping[str, str], file: Path) -> None:
    """Refuse a config with other settings than those that the weights were saved with, which a file names."""
    for setting, given in _settled(nlp, pipe).items():
        if _setting_digest(given) != saved.get(setting, _setting_digest(given)):
            raise ValueError(
                f"Cannot load '{_name_in(nlp, pipe)}' with {setting} = {given!r}: by {file} its weights were saved "
                "with another value, that of the saved config.cfg. Leave the setting as it is there; to use another "
                "encoder, make a new pipe with nlp.add_pipe."
            )


def _settled(nlp: Language | None, pipe: object) -> dict[str, Any]:
    """Return the settings of a pipe's model that its weights decide, by their names in the config."""
    name = _name_in(nlp, pipe)
    return {} if nlp is None or name is None else dict(_decided(_config_of(nlp, name).get("model"), "model"))


def _setting_digest(value: object) -> str:
    """Return the digest of a setting: a name may be a path, which is nobody else's business."""
    return hashlib.sha256(str(value).encode("utf8", "surrogatepass")).hexdigest()[:12]


def _decided(block: Any, path: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (any value of a config)
    for key, value in block.items() if isinstance(block, Mapping) else ():
        if key in _DECIDED and "@architectures" in block:
            yield f"{path}.{key}", value
        yield from _decided(value, f"{path}.{key}")


def _config_of(nlp: Language, name: str) -> Mapping[str, Any]:
    """Return the config of a pipe, without variables."""
    config = nlp.get_pipe_config(name)
    return nlp.config.interpolate()["components"][name] if "$" in str(config) else config


def _restored(given: Any, read: Any, saved: Any) -> Any:  # noqa: ANN401 (any value of a config)
    """Return the saved values where those given are what spaCy read, and the others, which are overrides."""
    if given == read:
        return saved
    if not all(isinstance(one, Mapping) for one in (given, read, saved)):
        return given
    known = read.keys() & saved.keys()
    return {key: _restored(value, read[key], saved[key]) if key in known else value for key, value in given.items()}


def _name_in(nlp: Language | None, pipe: object) -> str | None:
    """Return the name of a pipe in a pipeline; None if it is not in it."""
    return None if nlp is None else next((name for name, other in nlp.components if other is pipe), None)


MARK = b"SHA-256:"
_LENGTH = len(MARK) + hashlib.sha256().digest_size
_CAUSE = (
    "It was changed after it was written, or writing or copying it was cut short. Save or copy the pipeline again; if "
    "'spacy train' was stopped while it wrote model-last, try model-best beside it."
)
_InT = TypeVar("_InT")
_OutT = TypeVar("_OutT")
_PipeT = TypeVar("_PipeT", bound="ChecksummedPipe")


class _CorruptedState(ValueError):
    """A saved state is not what was written. reason (str): what shows it."""

    def __init__(self, reason: str):
        super().__init__(
            f"The saved model (the file 'model' in the folder of its component, or bytes of it) is damaged: {reason}. "
            f"{_CAUSE}"
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
        self.cfg.pop(_KEPT, None)
        settled = _settled(self._in_pipeline.nlp, self)
        self.cfg[_SETTLED] = {setting: _setting_digest(value) for setting, value in settled.items()}
        kept = _kept_config(self._in_pipeline.nlp, self)
        if kept is not None:
            self.cfg[_KEPT] = kept

    def _restore_config(self, cfg: Mapping[str, Any]) -> None:
        made = _restore_config(self._in_pipeline.nlp, self, cfg[_KEPT]) if _KEPT in cfg else self
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
        _check_settled(self._in_pipeline.nlp, self, cfg.get(_SETTLED, {}), folder / "cfg")
        with naming(folder / "model"):
            super().from_disk(folder, exclude=exclude)
        return self


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Name the file where a state proves to be damaged."""
    try:
        yield
    except (_CorruptedState, FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        if isinstance(error, OSError) and Path(error.filename or "") != file:
            raise
        reason = error.reason if isinstance(error, _CorruptedState) else "it is missing, or not a file"
        raise ValueError(f"The file {file} of the saved pipeline is damaged: {reason}. {_CAUSE}") from error


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
