"""Serialize models, pipes and arrays, with a checksum; the versions that results depend on."""

from __future__ import annotations

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
from spacy.pipeline import TrainablePipe
from thinc.api import Model, get_current_ops

from ..errors import DivergedError, Errors, Warnings, warn
from .atomic import atomic_write, check_input, rewrite_os_errors
from .checksum import CAUSE, CorruptedState, add_checksum, digest_of_bytes, verify_checksum

# In the cfg of a pipe: digests of the settings that its weights decide
_SETTLED = "settled"
# Names of the settings of an architecture that its weights decide
_DECIDED = ("name", "n_outputs")
# Whose versions scores and vectors may depend on
PACKAGES = (
    "spacy-sbert",
    "spacy",
    "spacy-transformers",
    "thinc",
    "torch",
    "transformers",
    "tokenizers",
    "numpy",
    "scipy",
    "scikit-learn",
)
# What zipfile and NumPy raise for bytes they did not write; RuntimeError if these seem to be
# encrypted
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
_InT = TypeVar("_InT")
_OutT = TypeVar("_OutT")
_PipeT = TypeVar("_PipeT", bound="ChecksummedPipe")


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

    def from_bytes(self, bytes_data: bytes) -> ChecksummedModel[_InT, _OutT]:
        """Load the model from what to_bytes returned.

        RAISES (ValueError): if the bytes are damaged.
        """
        state = cast(bytes, verify_checksum(bytes_data))
        try:
            super().from_bytes(state)
        except ValueError as error:
            if "mismatched structure" in str(error):
                raise ValueError(Errors.OTHER_LAYERS.format(name=self.name)) from error
            raise
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
    """Pipe whose model has a checksum.

    Damage is reported by file, and a pipe only loads with the config it was saved with.
    _in_pipeline: holds the pipeline that it is in, as nlp.
    """

    _in_pipeline: Any

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the state of the pipe."""
        self._note_settings()
        return super().to_bytes(exclude=exclude)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the state of the pipe to a folder.

        RAISES (OSError): naming it, if it cannot be written.
        """
        self._note_settings()
        with rewrite_os_errors(Path(path)):
            super().to_disk(path, exclude=exclude)

    def from_bytes(self: _PipeT, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> _PipeT:
        """Load the pipe from what to_bytes returned.

        RAISES (ValueError): if the bytes are damaged.
        """
        parts = check_parts(bytes_data, ("cfg", "model"), exclude)
        if "cfg" in parts:
            _parse_object("cfg", parts["cfg"])
        return super().from_bytes(bytes_data, exclude=exclude)

    def from_disk(self: _PipeT, path: str | Path, *, exclude: Iterable[str] = ()) -> _PipeT:
        """Load the pipe from a folder that to_disk wrote.

        RAISES (ValueError): naming the file that is missing, empty, cut or damaged, or a setting
            that was overridden and that the weights decide.
        """
        folder = Path(path)
        with naming(folder / "cfg"):
            self._check_settings(folder / "cfg")
        with naming(folder / "model"):
            super().from_disk(folder, exclude=exclude)
        return self

    def _note_settings(self) -> None:
        """Put digests of the settings that the weights decide into cfg."""
        self.cfg[_SETTLED] = {
            setting: _setting_digest(value) for setting, value in self._decided_settings()
        }

    def _check_settings(self, file: Path) -> None:
        """Refuse another value of a setting than its digest in a saved cfg is of."""
        saved: Mapping[str, str] = {}
        if file.exists():
            saved = _parse_object("it", file.read_bytes()).get(_SETTLED, {})
        for setting, given in self._decided_settings():
            if setting in saved and saved[setting] != _setting_digest(given):
                raise ValueError(
                    f"Cannot load the pipe with {setting} = {given!r}: by {file} its weights were "
                    "saved with another value, that of the saved config.cfg. Leave the setting as "
                    "it is there; to use another encoder, make a new pipe with nlp.add_pipe."
                )

    def _decided_settings(self) -> Iterator[tuple[str, Any]]:
        """Yield the settings of the model that its weights decide, by their names in the config."""
        nlp = self._in_pipeline.nlp
        if nlp is None:
            return
        for name, pipe in nlp.components:
            if pipe is self:
                config = nlp.get_pipe_config(name)
                if "$" in str(config):
                    config = nlp.config.interpolate()["components"][name]
                yield from _decided(config.get("model"), "model")
                return


def _decided(block: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(block, Mapping):
        return
    for key, value in block.items():
        if key in _DECIDED and "@architectures" in block:
            yield f"{path}.{key}", value
        yield from _decided(value, f"{path}.{key}")


def _setting_digest(value: object) -> str:
    """Return the digest of a setting, which may be a path, with "$" or, in a saved config, "$$"."""
    text = re.sub(r"\$+", "$", str(value))
    return digest_of_bytes(text.encode("utf8", "surrogatepass"))[:12]


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Name the file if a state proves to be damaged."""
    try:
        yield
    except CorruptedState as error:
        raise _damaged(file, error.reason) from error
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        if Path(error.filename or "") != file:
            raise
        raise _damaged(file, "it is missing, or not a file") from error


def _damaged(file: Path, reason: str) -> ValueError:
    return ValueError(f"The file {file} of the saved pipeline is damaged: {reason}. {CAUSE}")


def check_parts(data: bytes, names: Iterable[str], exclude: Iterable[str]) -> dict[str, bytes]:
    """Return the parts of a pipe's bytes; spaCy would leave a missing one as it was.

    names (list[str]): of the parts that were written. exclude (list[str]): those that are not to be
        read.
    """
    try:
        parts = srsly.msgpack_loads(data)
    except Exception as error:
        # Whatever the bytes lead the parser to
        raise CorruptedState(
            f"it ends early, or is not a saved state ({error or type(error).__name__})"
        ) from error
    if not isinstance(parts, dict):
        raise CorruptedState(f"expected parts by name, found {type(parts).__name__}")
    missing = [name for name in names if name not in exclude and name not in parts]
    if missing and parts:
        raise CorruptedState(f"its part '{missing[0]}' is missing")
    return parts


def _parse_object(name: str, data: bytes | str) -> dict[str, Any]:
    try:
        if isinstance(data, bytes):
            # srsly accepts bytes that are not UTF-8, and spaCy, which reads them again, does not
            data = data.decode("utf8")
        found = srsly.json_loads(data)
    except ValueError as error:
        raise CorruptedState(f"{name} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise CorruptedState(f"{name} is not a JSON object but {type(found).__name__}")
    return found


def write_arrays(path: Path, arrays: Mapping[str, Any], *, temporary: Path | None = None) -> None:
    """Write named arrays to a .npz file, whole or not at all, which read_arrays reads.

    arrays (dict): from names to arrays of NumPy. temporary (Path): see atomic_write.
    """
    with atomic_write(path, temporary=temporary) as file:
        numpy.savez(file, **arrays)


def read_arrays(
    path: Path, expected: Mapping[str, tuple[str, int]], *, message: str = Errors.SEARCH_BAD_ARRAYS
) -> dict[str, numpy.ndarray]:
    """Read named arrays from a .npz file, see write_arrays.

    expected (dict): dtype and number of dimensions by name. message (str): of errors, with {path}
        and {reason}.
    RAISES (ValueError): if it is damaged, or another.
    """
    check_input(path)
    try:
        _check_sizes(path)
        with numpy.load(path, allow_pickle=False) as saved:
            found = {name: saved[name] for name in expected}
    except (*_DAMAGED, OSError, zipfile.BadZipFile) as error:
        # The system names the file; zipfile seeks before its beginning, an OSError without a name
        if getattr(error, "filename", None) is not None:
            raise
        raise ValueError(message.format(path=path, reason=error)) from error
    for name, (dtype, ndim) in expected.items():
        array = found[name]
        if array.dtype != dtype or array.ndim != ndim:
            reason = f"{name} is {array.dtype} of shape {array.shape}"
            raise ValueError(message.format(path=path, reason=reason))
    return found


def _check_sizes(path: Path) -> None:
    """Refuse headers that promise more than the file holds, or less.

    More would fill the memory.
    """
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


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that scores may depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def device() -> str:
    """Return where vectors are computed: "cpu" or "gpu"."""
    return get_current_ops().device_type
