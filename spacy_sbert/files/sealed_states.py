"""Saved states that end in their SHA-256, by which damage is noticed before a byte of them is used."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import srsly
from spacy.pipeline import TrainablePipe
from thinc.api import Model

from .errors import Errors
from .saved_config import KEPT, SETTLED, check_settled, kept_config, restore_config, settled

MARK = b"SHA-256:"
LENGTH = len(MARK) + hashlib.sha256().digest_size
FELLOWS = {"model-last": "model-best", "model-best": "model-last"}  # of what `spacy train` writes
InT = TypeVar("InT")
OutT = TypeVar("OutT")
PipeT = TypeVar("PipeT", bound="SealedPipe")


class Damaged(ValueError):
    """A saved state is not what was written. reason (str): what shows it."""

    def __init__(self, reason: str):
        super().__init__(Errors.DAMAGED_BYTES.format(reason=reason))
        self.reason = reason


def seal(state: bytes) -> bytes:
    """A state, which is one MessagePack object, with its digest behind it."""
    return b"".join((state, MARK, hashlib.sha256(state).digest()))


def unseal(data: bytes) -> memoryview:
    """The state that was sealed, not copied. RAISES (Damaged): if it is not what was sealed."""
    if not data:
        raise Damaged("it is empty")
    if not data[-LENGTH:].startswith(MARK):
        raise Damaged("it ends early, or is not a saved state: there is no SHA-256 behind it")
    state = memoryview(data)[:-LENGTH]
    if hashlib.sha256(state).digest() != data[-LENGTH + len(MARK) :]:
        raise Damaged("its SHA-256 is not the one that was written behind it")
    return state


class SealedModel(Model[InT, OutT]):
    """A Thinc model whose bytes are sealed."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def to_bytes(self) -> bytes:
        return seal(super().to_bytes())

    def from_bytes(self, bytes_data: bytes) -> "SealedModel[InT, OutT]":
        """RAISES (ValueError): if the bytes are damaged."""
        super().from_bytes(cast(bytes, unseal(bytes_data)))
        return self


class SealedPipe(TrainablePipe):
    """A pipe of a SealedModel, which says which file is damaged, and is loaded with the config that it was saved with.

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

    def from_bytes(self: PipeT, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> PipeT:
        """Load the pipe from what to_bytes gave. RAISES (ValueError): if the bytes are damaged."""
        parts = check_parts(bytes_data, ("cfg", "model"), exclude)
        if "cfg" in parts:
            self._restore_config(_check_object("cfg", parts["cfg"]))
        return super().from_bytes(bytes_data, exclude=exclude)

    def from_disk(self: PipeT, path: str | Path, *, exclude: Iterable[str] = ()) -> PipeT:
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
    except (Damaged, FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        if isinstance(error, OSError) and Path(error.filename or "") != file:
            raise
        reason = error.reason if isinstance(error, Damaged) else "it is missing, or not a file"
        whole = _whole_fellow(file)
        remedy = f"; {whole} is whole" if whole else ""
        raise ValueError(Errors.DAMAGED_FILE.format(file=file, reason=reason, remedy=remedy)) from error


def check_parts(data: bytes, names: Iterable[str], exclude: Iterable[str]) -> dict[str, bytes]:
    """The parts of a pipe's bytes, of which spaCy would leave a missing one as it was.

    names (list[str]): of the parts that were written. exclude (list[str]): those that are not to be read.
    RAISES (Damaged): if there are no such parts.
    """
    try:
        parts = srsly.msgpack_loads(data)
    except Exception as error:  # whatever the bytes lead the parser to
        raise Damaged(f"it ends early, or is not a saved state ({error or type(error).__name__})") from error
    if not isinstance(parts, dict):
        raise Damaged(f"expected parts by name, found {type(parts).__name__}")
    missing = [name for name in names if name not in exclude and name not in parts]
    if missing and parts:
        raise Damaged(f"its part '{missing[0]}' is missing")
    return parts


def _check_object_in(file: Path) -> dict[str, Any]:
    """spaCy takes a missing one for an empty one, and older versions of spaCy write none."""
    return _check_object("it", file.read_bytes()) if file.exists() else {}


def _check_object(name: str, data: bytes | str) -> dict[str, Any]:
    try:
        found = srsly.json_loads(data)
    except ValueError as error:
        raise Damaged(f"{name} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Damaged(f"{name} is not a JSON object but {type(found).__name__}")
    return found


def _whole_fellow(file: Path) -> Path | None:
    """The other folder of a training, if it was written to its end and the models in it are whole."""
    pipeline = file.parent.parent
    fellow = pipeline.parent / FELLOWS.get(pipeline.name, "")
    same = fellow / file.parent.name / file.name
    if pipeline.name not in FELLOWS or not same.is_file() or not (fellow / "vocab").is_dir():
        return None
    try:
        _check_object_in(fellow / file.parent.name / "cfg")
        for model in {same, *fellow.glob("*/model")} - {same.with_name("cfg")}:
            unseal(model.read_bytes())
    except (OSError, Damaged):
        return None
    return fellow
