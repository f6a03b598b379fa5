"""Checkpoints: weights, optimizer state, random states."""

import json
import random
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy
import torch
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from spacy.language import Language
from thinc.api import Model, Optimizer, PyTorchGradScaler, PyTorchShim, get_current_ops, to_numpy
from thinc.optimizers import KeyT
from thinc.types import Floats1d

from ..errors import Errors
from ..files.atomic import atomic_folder
from ..files.serialization import checksummed_json, digest_of_parts, file_digest, parse_checksummed
from .torch_distributed import TorchDistributed
from .training_state import ResumableBatches, TrainingState

MOMENTS = ("mom1", "mom2", "averages")  # of an optimizer: dicts by parameter
Arrays = dict[str, numpy.ndarray]


def optimizer_state_dict(nlp: Language, optimizer: Optimizer) -> tuple[Arrays, dict[str, int]]:
    """The moments and moving averages of all parameters, and how often each was changed.

    RETURNS (dict, dict): arrays by names like "mom1/sbert/2/W", and numbers by "sbert/2/W": the component, the number
        of the layer in it, the parameter.
    RAISES (ValueError): if a parameter is in no component.
    """
    names = {key: name for name, key in _keys(nlp).items()}

    def name_of(key: KeyT) -> str:
        if key not in names:
            raise ValueError(
                f"The optimizer has moments of a parameter that is in no component of the pipeline ('{key[1]}' "
                f"of the layer number {key[0]}), so that a checkpoint could not give them back: train it "
                "without --checkpoint-every."
            )
        return names[key]

    arrays = {}
    for kind in MOMENTS:
        for key, values in (getattr(optimizer, kind) or {}).items():
            arrays[f"{kind}/{name_of(key)}"] = numpy.ascontiguousarray(to_numpy(values))
    return arrays, {name_of(key): count for key, count in optimizer.nr_update.items()}


def load_optimizer_state_dict(
    nlp: Language, optimizer: Optimizer, arrays: Mapping[str, numpy.ndarray], updates: Mapping[str, int]
) -> None:
    """Give an optimizer what moments_of found; other arrays are passed over."""
    keys, ops = _keys(nlp), get_current_ops()
    for name, values in arrays.items():
        kind, _, rest = name.partition("/")
        if kind in MOMENTS:
            getattr(optimizer, kind)[keys[rest]] = ops.asarray(
                cast(Floats1d, values.copy())
            )  # which is changed in place
    optimizer.nr_update.update({keys[name]: count for name, count in updates.items()})


def scalers_of(nlp: Language) -> dict[str, PyTorchGradScaler]:
    """What scales the gradients of each PyTorch model in float16, by the same names."""
    found = {name: shim._grad_scaler for name, shim in _shims(nlp)}
    return {name: scaler for name, scaler in found.items() if scaler._enabled}


def _keys(nlp: Language) -> dict[str, KeyT]:
    """By names, what an optimizer knows parameters by: with the number of a layer or shim, which differ by process."""
    found = {
        f"{name}/{parameter}": (node.id, parameter) for name, node in _nodes(nlp) for parameter in node.param_names
    }
    for name, shim in _shims(nlp):
        for parameter, _ in [] if shim._model is None else shim._model.named_parameters():
            found[f"{name}/{parameter}"] = (shim.id, parameter)
    return found


def _nodes(nlp: Language) -> Iterator[tuple[str, Model]]:
    """All layers of the components that have a model, in an order that is the same in every process."""
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        for number, node in enumerate(model.walk() if isinstance(model, Model) else ()):
            yield f"{name}/{number}", node


def _shims(nlp: Language) -> Iterator[tuple[str, PyTorchShim]]:
    for name, node in _nodes(nlp):
        for number, shim in enumerate(node.shims):
            if isinstance(shim, PyTorchShim):
                yield f"{name}.{number}", shim


PYTHON, NUMPY, TORCH, CUDA = "python", "numpy", "torch", "cuda"


def rng_states() -> Arrays:
    """Those of Python, NumPy and PyTorch, on a GPU also of its own; CuPy's, of which Thinc's dropout layers draw there,
    cannot be told."""
    _, words, place, has_gauss, gauss = numpy.random.get_state(legacy=True)
    found: Arrays = {
        NUMPY: numpy.asarray(words),
        f"{NUMPY}.place": numpy.array([place, has_gauss, gauss], dtype="float64"),
    }
    found |= {TORCH: torch.get_rng_state().numpy(), **python_arrays(PYTHON, random.getstate())}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found[CUDA] = torch.cuda.get_rng_state().numpy()
    return found


def set_rng_states(states: Mapping[str, numpy.ndarray]) -> None:
    """Go on drawing as where random_states was called."""
    place, has_gauss, gauss = states[f"{NUMPY}.place"].tolist()
    numpy.random.set_state(("MT19937", states[NUMPY], int(place), int(has_gauss), gauss))
    torch.set_rng_state(torch.from_numpy(states[TORCH].copy()))
    if CUDA in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(torch.from_numpy(states[CUDA].copy()))
    random.setstate(python_state(PYTHON, states))


def python_arrays(name: str, state: tuple) -> Arrays:
    """A state of Python's random as arrays under a name."""
    _, words, gauss = state
    return {name: numpy.array(words, dtype="uint32"), f"{name}.gauss": numpy.array([gauss], dtype="float64")}


def python_state(name: str, arrays: Mapping[str, numpy.ndarray]) -> tuple:
    """What python_arrays was given."""
    gauss = float(arrays[f"{name}.gauss"][0])
    return 3, tuple(arrays[name].tolist()), None if numpy.isnan(gauss) else gauss


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
    folder: Path,
    nlp: Language,
    optimizer: Optimizer,
    progress: TrainingState,
    epochs: ResumableBatches,
    ranks: TorchDistributed,
) -> None:
    """Save where a training stands, after a step. All ranks call it, and rank 0 writes.

    The new checkpoint is there when it is whole, and only then the one before is removed.

    folder (Path): which gets a folder for the step.
    RAISES (OSError): if it cannot be written. (ValueError): if the optimizer has moments of what is in no component.
    """
    drawn = ranks.bytes_of_all(save_arrays(rng_states()))
    if not ranks.is_first:
        return
    former = _own(folder)
    with atomic_folder(folder / f"step-{progress.step}", replace=True) as made:
        nlp.to_disk(made / PIPELINE)
        arrays, updates = optimizer_state_dict(nlp, optimizer)
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
        (made / STATE).write_text(json.dumps(checksummed_json(state.model_dump(exclude={"sha256"}))), encoding="utf8")
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


def load_checkpoint(
    path: Path, nlp: Language, optimizer: Optimizer, epochs: ResumableBatches, ranks: TorchDistributed
) -> TrainingState:
    """Give a pipeline, its optimizer and its batches the state that was saved.

    path (Path): see latest. nlp (Language): initialised from the same config. optimizer (Optimizer): a new one.
    epochs (Epochs): not begun.
    RETURNS (Progress): how far it came.
    RAISES (ValueError): if a file is not as it was saved, or config or ranks are others.
    """
    state = _read_state(path)
    settings = _settings(nlp)
    if others := [name for name in SECTIONS if state.settings.get(name) != settings[name]]:
        raise ValueError(
            f"{path} was made with other settings in {', '.join(others)}: expected the same config and "
            "options, but for training.logger. Give those that it was made with, or train in another folder."
        )
    if state.ranks != ranks.size:
        raise ValueError(
            f"{path} was made by {state.ranks} processes, and there are {ranks.size}: start as many as before, "
            "or train in another folder."
        )
    arrays, drawn = _read_arrays(path / ARRAYS), _read_arrays(path / RANDOM.format(ranks.rank))
    nlp.from_disk(path / PIPELINE)
    load_optimizer_state_dict(nlp, optimizer, arrays, state.updates)
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
    epochs.go_on(state.epoch, state.taken, arrays[ORDER], begun, lambda: set_rng_states(drawn))
    return TrainingState(state.step, state.epoch, list(state.results), dict(state.losses), state.words, state.seconds)


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
        state = parse_checksummed(State, (path / STATE).read_bytes())
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
