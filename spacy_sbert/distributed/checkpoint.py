"""Checkpoints: weights, optimizer state, random states."""

import json
import random
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

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

from ..files.atomic import atomic_folder
from ..files.serialization import checksummed_json, digest_of_parts, file_digest, parse_checksummed
from .torch_distributed import TorchDistributed, grad_scaler, torch_model
from .training_state import ResumableBatches, TrainingState

_MOMENTS = ("mom1", "mom2", "averages")  # of an optimizer: dicts by parameter
Arrays = dict[str, numpy.ndarray]


def _optimizer_state_dict(nlp: Language, optimizer: Optimizer) -> tuple[Arrays, dict[str, int]]:
    """Return the moments and moving averages of all parameters, and how often each was updated.

    RETURNS (dict, dict): arrays by names like "mom1/sbert/2/W", and numbers by "sbert/2/W": the component, the number
        of the layer in it, the parameter.
    RAISES (ValueError): if a parameter is in no component.
    """
    names = {key: name for name, key in _keys(nlp).items()}

    def name_of(key: KeyT) -> str:
        if key not in names:
            raise ValueError(
                f"The optimizer has moments of a parameter that is in no component of the pipeline ('{key[1]}' of the "
                f"layer number {key[0]}), which a checkpoint cannot restore. Train without --checkpoint-every."
            )
        return names[key]

    arrays = {}
    for kind in _MOMENTS:
        for key, values in (getattr(optimizer, kind) or {}).items():
            arrays[f"{kind}/{name_of(key)}"] = numpy.ascontiguousarray(to_numpy(values))
    return arrays, {name_of(key): count for key, count in optimizer.nr_update.items()}


def _load_optimizer_state_dict(
    nlp: Language, optimizer: Optimizer, arrays: Mapping[str, numpy.ndarray], updates: Mapping[str, int]
) -> None:
    """Restore the state of an optimizer; other arrays are ignored."""
    keys, ops = _keys(nlp), get_current_ops()
    for name, values in arrays.items():
        kind, _, rest = name.partition("/")
        if kind in _MOMENTS:
            moment = cast(Floats1d, values.copy())  # it is changed in place
            getattr(optimizer, kind)[keys[rest]] = ops.asarray(moment)
    optimizer.nr_update.update({keys[name]: count for name, count in updates.items()})


def _grad_scalers(nlp: Language) -> dict[str, PyTorchGradScaler]:
    """Return the gradient scalers of PyTorch models in float16, by the same names."""
    found = {name: grad_scaler(shim) for name, shim in _shims(nlp)}
    return {name: scaler for name, scaler in found.items() if scaler._enabled}  # noqa: SLF001 (Thinc has no public name)


def _keys(nlp: Language) -> dict[str, KeyT]:
    """Return the optimizer's keys of parameters by name; keys have ids of layers, which differ between processes."""
    found = {
        f"{name}/{parameter}": (node.id, parameter) for name, node in _nodes(nlp) for parameter in node.param_names
    }
    for name, shim in _shims(nlp):
        module = torch_model(shim)
        for parameter, _ in [] if module is None else module.named_parameters():
            found[f"{name}/{parameter}"] = (shim.id, parameter)
    return found


def _nodes(nlp: Language) -> Iterator[tuple[str, Model]]:
    """Yield all layers of components with a model by name, in an order that is the same in every process."""
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        for number, node in enumerate(model.walk() if isinstance(model, Model) else ()):
            yield f"{name}/{number}", node


def _shims(nlp: Language) -> Iterator[tuple[str, PyTorchShim]]:
    for name, node in _nodes(nlp):
        for number, shim in enumerate(node.shims):
            if isinstance(shim, PyTorchShim):
                yield f"{name}.{number}", shim


_PYTHON, _NUMPY, _TORCH, _CUDA = "python", "numpy", "torch", "cuda"


def _rng_states() -> Arrays:
    """Return the states of the generators of Python, NumPy and PyTorch, and of PyTorch on a GPU.

    CuPy's, which Thinc's dropout layers use there, cannot be read.
    """
    _, words, place, has_gauss, gauss = numpy.random.get_state(legacy=True)
    found: Arrays = {
        _NUMPY: numpy.asarray(words),
        f"{_NUMPY}.place": numpy.array([place, has_gauss, gauss], dtype="float64"),
    }
    found |= {_TORCH: torch.get_rng_state().numpy(), **_python_arrays(_PYTHON, random.getstate())}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found[_CUDA] = torch.cuda.get_rng_state().numpy()
    return found


def _set_rng_states(states: Mapping[str, numpy.ndarray]) -> None:
    """Restore the states that _rng_states returned."""
    place, has_gauss, gauss = states[f"{_NUMPY}.place"].tolist()
    numpy.random.set_state(("MT19937", states[_NUMPY], int(place), int(has_gauss), gauss))
    torch.set_rng_state(torch.from_numpy(states[_TORCH].copy()))
    if _CUDA in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(torch.from_numpy(states[_CUDA].copy()))
    random.setstate(_python_state(_PYTHON, states))


def _python_arrays(name: str, state: tuple) -> Arrays:
    """Return a state of Python's random as arrays under a name."""
    _, words, gauss = state
    return {name: numpy.array(words, dtype="uint32"), f"{name}.gauss": numpy.array([gauss], dtype="float64")}


def _python_state(name: str, arrays: Mapping[str, numpy.ndarray]) -> tuple:
    """Return the state that _python_arrays was called with."""
    gauss = float(arrays[f"{name}.gauss"][0])
    return 3, tuple(arrays[name].tolist()), None if numpy.isnan(gauss) else gauss


_STEP = re.compile(r"step-(\d+)")
_UNFINISHED = re.compile(r"\.step-\d+-\w+(-former)?")  # left by a process that was killed while it saved
_STATE, _PIPELINE, _ARRAYS, _RANDOM = "state.json", "pipeline", "optimizer.safetensors", "random-{}.safetensors"
_ORDER, _BEGUN = "order", "begun"  # see ResumableBatches
_SECTIONS = ("nlp", "components", "corpora", "training")  # of a config, which determine the steps


class _State(BaseModel):
    """Contents of state.json.

    step, results, losses, words, seconds: see TrainingState. epoch, taken, content: see ResumableBatches.
    updates: how often each parameter was updated. scalers: of float16, the scale and the steps without overflow.
    settings: the SHA-256 of sections of the config. ranks: their number. files: the SHA-256 of each other file.
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
    """Return the checkpoint of the last step in a folder; None if there is none."""
    found = {int(name[1]): path for path in folder.glob("step-*") if (name := _STEP.fullmatch(path.name))}
    return found[max(found)] if found else None


def save_checkpoint(
    folder: Path,
    nlp: Language,
    optimizer: Optimizer,
    progress: TrainingState,
    epochs: ResumableBatches,
    ranks: TorchDistributed,
) -> None:
    """Save the state of a training after a step. All ranks call it, and rank 0 writes.

    The old checkpoint is removed only when the new one is complete.

    folder (Path): gets a folder for the step.
    RAISES (OSError): if it cannot be written. (ValueError): if the optimizer has moments of what is in no component.
    """
    drawn = ranks.bytes_of_all(save_arrays(_rng_states()))
    if not ranks.is_first:
        return
    old = _checkpoints(folder)
    with atomic_folder(folder / f"step-{progress.step}", replace=True) as made:
        nlp.to_disk(made / _PIPELINE)
        arrays, updates = _optimizer_state_dict(nlp, optimizer)
        arrays |= {_ORDER: epochs.order, **_python_arrays(_BEGUN, epochs.begun)}
        (made / _ARRAYS).write_bytes(save_arrays(arrays))
        for rank, data in enumerate(drawn):
            (made / _RANDOM.format(rank)).write_bytes(data)
        state = _State(
            step=progress.step,
            results=progress.results,
            losses={name: float(loss) for name, loss in progress.losses.items()},
            words=progress.words,
            seconds=progress.seconds,
            epoch=epochs.epoch,
            taken=epochs.taken,
            content=epochs.content,
            updates=updates,
            scalers={name: _scale_of(scaler) for name, scaler in _grad_scalers(nlp).items()},
            settings=_settings(nlp),
            ranks=ranks.size,
            files=_digests(made),
        )
        (made / _STATE).write_text(json.dumps(checksummed_json(state.model_dump(exclude={"sha256"}))), encoding="utf8")
    for path in old:
        if path.name != f"step-{progress.step}":
            shutil.rmtree(path)


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints in a folder, and the folder if it holds nothing else."""
    checkpoints = _checkpoints(folder)
    for path in checkpoints:
        shutil.rmtree(path)
    if checkpoints and not any(folder.iterdir()):
        folder.rmdir()


def _checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, complete or not."""
    inside = folder.iterdir() if folder.is_dir() else ()
    return [
        path for path in inside if path.is_dir() and (_STEP.fullmatch(path.name) or _UNFINISHED.fullmatch(path.name))
    ]


def load_checkpoint(
    path: Path, nlp: Language, optimizer: Optimizer, epochs: ResumableBatches, ranks: TorchDistributed
) -> TrainingState:
    """Restore the state of a pipeline, its optimizer and its batches.

    path (Path): see latest. nlp (Language): initialized from the same config. optimizer (Optimizer): a new one.
    epochs (ResumableBatches): new ones.
    RETURNS (TrainingState): the progress.
    RAISES (ValueError): if a file is damaged, or config or ranks differ.
    """
    state = _read_state(path)
    settings = _settings(nlp)
    if changed := [name for name in _SECTIONS if state.settings.get(name) != settings[name]]:
        raise ValueError(
            f"{path} was made with other settings in {', '.join(changed)}: expected the same config and "
            "options, but for training.logger. Give those that it was made with, or train in another folder."
        )
    if state.ranks != ranks.size:
        raise ValueError(
            f"{path} was made by {state.ranks} processes, and there are {ranks.size}: start as many as before, "
            "or train in another folder."
        )
    arrays, drawn = _read_arrays(path / _ARRAYS), _read_arrays(path / _RANDOM.format(ranks.rank))
    nlp.from_disk(path / _PIPELINE)
    _load_optimizer_state_dict(nlp, optimizer, arrays, state.updates)
    for name, scaler in _grad_scalers(nlp).items():
        if name not in state.scalers:  # the checkpoint was made without float16
            continue
        scale, tracker = state.scalers[name]
        scaler._scale.fill_(scale)  # noqa: SLF001 (Thinc has no public name)
        scaler._growth_tracker.fill_(tracker)  # noqa: SLF001 (Thinc has no public name)
    for _ in range(state.step):
        optimizer.step_schedules()
    epochs.content = state.content
    begun = _python_state(_BEGUN, arrays)
    epochs.resume(state.epoch, state.taken, arrays[_ORDER], begun, lambda: _set_rng_states(drawn))
    return TrainingState(state.step, state.epoch, list(state.results), dict(state.losses), state.words, state.seconds)


def _scale_of(scaler: PyTorchGradScaler) -> tuple[float, int]:
    return float(scaler._scale), int(scaler._growth_tracker)  # noqa: SLF001 (Thinc has no public name)


def _damaged(path: Path, reason: object) -> str:
    return (
        f"{path} cannot be resumed: {reason}. Remove the folder; training then resumes from an older one beside it, or "
        "starts from the beginning."
    )


def _settings(nlp: Language) -> dict[str, str]:
    config: dict[str, Any] = json.loads(json.dumps(nlp.config.interpolate(), default=str))
    config["training"].pop("logger", None)
    return {name: digest_of_parts(config.get(name)) for name in _SECTIONS}


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in files}


def _read_state(path: Path) -> _State:
    """Return the contents of state.json, and check the other files against it."""
    try:
        state = parse_checksummed(_State, (path / _STATE).read_bytes())
        found = _digests(path)
    except (OSError, ValueError) as error:
        raise ValueError(_damaged(path, error)) from error
    found.pop(_STATE, None)
    if unlike := sorted(name for name, _ in state.files.items() ^ found.items()):
        reason = f"{unlike[0]} is missing, or not as it was"
        raise ValueError(_damaged(path, reason))
    return state


def _read_arrays(path: Path) -> Mapping[str, numpy.ndarray]:
    try:
        return load_arrays(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise ValueError(_damaged(path.parent, error)) from error
