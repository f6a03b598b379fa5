"""Checkpoints: all that a training needs to go on as if it had not been interrupted."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from spacy.language import Language
from thinc.api import Optimizer

from ..files.digests import digest_of_parts, file_digest
from ..files.sealed_json import parse_sealed, sealed
from ..files.whole import new_folder
from .epochs import Epochs
from .errors import Errors
from .improving import Progress
from .moments import moments_of, scalers_of, set_moments
from .random_states import python_arrays, python_state, random_states, set_random_states
from .ranks import Ranks

STEP = re.compile(r"step-(\d+)")
UNFINISHED = re.compile(r"\.step-\d+-\w+(-former)?")  # what new_folder leaves of a process that was killed
STATE, PIPELINE, ARRAYS, RANDOM = "state.json", "pipeline", "optimizer.safetensors", "random-{}.safetensors"
ORDER, BEGUN = "order", "begun"  # see Epochs
SECTIONS = ("nlp", "components", "corpora", "training")  # of a config, which decide the steps
ModelT = TypeVar("ModelT", bound=BaseModel)


class State(BaseModel):
    """What state.json holds.

    step, results, losses, words, seconds: see Progress. epoch, taken, content: see Epochs.
    updates: how often each parameter was changed. scalers: of float16, the scale and the steps without overflow.
    settings: the SHA-256 of sections of the config. ranks: how many trained. files: the SHA-256 of each other file.
    """

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    step: int
    results: list[tuple[float, int]]
    losses: dict[str, float]
    words: int
    seconds: float
    epoch: int
    taken: int
    content: str
    updates: dict[str, int]
    scalers: dict[str, tuple[float, int]]
    settings: dict[str, str]
    ranks: int
    files: dict[str, str]
    sha256: str = ""


def latest(folder: Path) -> Path | None:
    """The checkpoint of the last step in a folder; None where there is none."""
    found = {int(name[1]): path for path in folder.glob("step-*") if (name := STEP.fullmatch(path.name))}
    return found[max(found)] if found else None


def save_checkpoint(
    folder: Path, nlp: Language, optimizer: Optimizer, progress: Progress, epochs: Epochs, ranks: Ranks
) -> None:
    """Save where a training stands, after a step. All ranks call it, and rank 0 writes.

    The new checkpoint is there when it is whole, and only then the one before is removed.

    folder (Path): which gets a folder for the step.
    RAISES (OSError): if it cannot be written. (ValueError): if the optimizer has moments of what is in no component.
    """
    drawn = ranks.bytes_of_all(save_arrays(random_states()))
    if not ranks.is_first:
        return
    former = _own(folder)
    with new_folder(folder / f"step-{progress.step}", replace=True) as made:
        nlp.to_disk(made / PIPELINE)
        arrays, updates = moments_of(nlp, optimizer)
        arrays |= {ORDER: epochs.order, **python_arrays(BEGUN, epochs.begun)}
        (made / ARRAYS).write_bytes(save_arrays(arrays))
        for rank, data in enumerate(drawn):
            (made / RANDOM.format(rank)).write_bytes(data)
        state = State(
            step=progress.step,
            results=progress.results,
            losses={name: float(loss) for name, loss in progress.losses.items()},
            words=progress.words,
            seconds=progress.seconds,
            epoch=epochs.epoch,
            taken=epochs.taken,
            content=epochs.content,
            updates=updates,
            scalers={name: (float(one._scale), int(one._growth_tracker)) for name, one in scalers_of(nlp).items()},
            settings=_settings(nlp),
            ranks=ranks.size,
            files=_digests(made),
        )
        (made / STATE).write_text(json.dumps(sealed(state.model_dump(exclude={"sha256"}))), encoding="utf8")
    for path in former:
        if path.name != f"step-{progress.step}":
            shutil.rmtree(path)


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints in a folder, and the folder if it holds nothing else."""
    own = _own(folder)
    for path in own:
        shutil.rmtree(path)
    if own and not any(folder.iterdir()):
        folder.rmdir()


def _own(folder: Path) -> list[Path]:
    """The checkpoints in a folder, finished or not."""
    inside = folder.iterdir() if folder.is_dir() else ()
    return [path for path in inside if path.is_dir() and (STEP.fullmatch(path.name) or UNFINISHED.fullmatch(path.name))]


def load_checkpoint(path: Path, nlp: Language, optimizer: Optimizer, epochs: Epochs, ranks: Ranks) -> Progress:
    """Give a pipeline, its optimizer and its batches the state that was saved.

    path (Path): see latest. nlp (Language): initialised from the same config. optimizer (Optimizer): a new one.
    epochs (Epochs): not begun.
    RETURNS (Progress): how far it came.
    RAISES (ValueError): if a file is not as it was saved, or config or ranks are others.
    """
    state = _read_state(path)
    settings = _settings(nlp)
    if others := [name for name in SECTIONS if state.settings.get(name) != settings[name]]:
        raise ValueError(Errors.CHECKPOINT_OF_OTHER_CONFIG.format(path=path, given=", ".join(others)))
    if state.ranks != ranks.size:
        raise ValueError(Errors.CHECKPOINT_OF_OTHER_RANKS.format(path=path, given=state.ranks, expected=ranks.size))
    arrays, drawn = _read_arrays(path / ARRAYS), _read_arrays(path / RANDOM.format(ranks.rank))
    nlp.from_disk(path / PIPELINE)
    set_moments(nlp, optimizer, arrays, state.updates)
    for name, scaler in scalers_of(nlp).items():
        if name not in state.scalers:  # the checkpoint was made without float16
            continue
        scale, tracker = state.scalers[name]
        scaler._scale.fill_(scale)
        scaler._growth_tracker.fill_(tracker)
    for _ in range(state.step):
        optimizer.step_schedules()
    epochs.content = state.content
    begun = python_state(BEGUN, arrays)
    epochs.go_on(state.epoch, state.taken, arrays[ORDER], begun, lambda: set_random_states(drawn))
    return Progress(state.step, state.epoch, list(state.results), dict(state.losses), state.words, state.seconds)


def _settings(nlp: Language) -> dict[str, str]:
    config: dict[str, Any] = json.loads(json.dumps(nlp.config.interpolate(), default=str))
    config["training"].pop("logger", None)
    return {name: digest_of_parts(config.get(name)) for name in SECTIONS}


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in files}


def _read_state(path: Path) -> State:
    """What state.json says, which says what the other files are."""
    try:
        state = parse_sealed(State, (path / STATE).read_bytes())
        found = _digests(path)
    except (OSError, ValueError) as error:
        raise ValueError(Errors.CHECKPOINT_DAMAGED.format(path=path, reason=error)) from error
    found.pop(STATE, None)
    if unlike := sorted(name for name, _ in state.files.items() ^ found.items()):
        reason = f"{unlike[0]} is missing, or not as it was"
        raise ValueError(Errors.CHECKPOINT_DAMAGED.format(path=path, reason=reason))
    return state


def _read_arrays(path: Path) -> Mapping[str, numpy.ndarray]:
    try:
        return load_arrays(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise ValueError(Errors.CHECKPOINT_DAMAGED.format(path=path.parent, reason=error)) from error
