"""Checkpoints: weights, optimizer, random states and the position in the batches."""

import hashlib
import io
import json
import random
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import torch
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.training import Example
from thinc.api import Model, Optimizer, PyTorchGradScaler, PyTorchShim, get_current_ops, to_numpy
from thinc.optimizers import KeyT

from ..files.atomic import atomic_folder
from ..files.serialization import add_checksum, naming, verify_checksum
from ..training.batchers import AnyBatcher
from .torch_distributed import TorchDistributed, grad_scaler, torch_model

_MOMENTS = ("mom1", "mom2", "averages")  # of an optimizer: dicts by parameter
_STEP = re.compile(r"step-(\d+)")
_UNFINISHED = re.compile(r"\.step-\d+-\w+(-former)?")  # left by a process that was killed while it saved
_STATE, _PIPELINE = "state.pt", "pipeline"
_SECTIONS = ("nlp", "components", "corpora", "training")  # of a config, which determine the steps


@dataclass
class TrainingState:
    """Progress of a training.

    step (int): steps taken. epoch (int): of the last of them. results: the score and the step of each evaluation.
    losses: since the last one. words (int): seen so far. seconds (float): before it was resumed.
    taken (int): batches of the epoch so far. order (list[int]): of the examples in this epoch, by their places in a
    corpus in memory. content (str): a digest of that. begun (tuple): Python's random state at the start of the epoch.
    """

    step: int = 0
    epoch: int = 0
    results: list[tuple[float, int]] = field(default_factory=list)
    losses: dict[str, float] = field(default_factory=dict)
    words: int = 0
    seconds: float = 0.0
    taken: int = 0
    order: list[int] = field(default_factory=list)
    content: str = ""
    begun: tuple = ()

    def is_over(self, patience: int, max_steps: int, eval_frequency: int) -> bool:
        """Return whether training ends with the last step: by max_steps, or by patience after the best score."""
        is_last = bool(max_steps and self.step > max_steps)
        return bool(self.step) and (is_last or self.is_patience_over(patience, eval_frequency))

    def is_patience_over(self, patience: int, eval_frequency: int) -> bool:
        """Return whether there were `patience` steps after the best score, 0 for any number.

        eval_frequency (int): as in [training]. The score of a last step that it does not divide is
            ignored: it comes after the decision.
        """
        results = [(score, -step) for score, step in self.results if not step % eval_frequency]
        return bool(patience and results) and self.step - 1 + max(results)[1] >= patience


def resumable_batches(
    nlp: Language,
    corpus: Callable[[Language], Iterable[Example]],
    batcher: AnyBatcher,
    max_epochs: int,
    state: TrainingState,
    restore: Callable[[], None] | None,
) -> Iterator[list[Example]]:
    """Yield batches as spaCy does: each epoch shuffles a corpus in memory, or reads a stream again.

    nlp (Language), corpus, batcher, max_epochs: of spaCy's create_train_batches.
    state (TrainingState): where to continue, which is updated.
    restore (Callable): called when the batches of a checkpoint are skipped; None to begin.
    RAISES (ValueError): if a corpus in memory has no examples, or others than before.
    SOURCE: spacy.training.loop.create_train_batches.
    """
    held = list(corpus(nlp)) if max_epochs >= 0 else None
    if held is not None:
        content = _digest_of(held)
        if restore is None:
            state.order, state.content = list(range(len(held))), content
        elif state.content != content:
            raise ValueError(
                f"Cannot resume: the training corpus has {len(held)} examples, expected the {len(state.order)} of the "
                "checkpoint, in their order and with their texts. Give the same files, or train in another folder."
            )
    while max_epochs < 1 or state.epoch < max_epochs:
        skipped = state.taken if restore else 0
        if restore is None:
            random.shuffle(state.order)
            state.begun = random.getstate()
        elif held is None:
            for _ in range(state.epoch):  # readers that shuffle count how often they were read
                deque(corpus(nlp), maxlen=0)
        random.setstate(state.begun)
        state.taken = 0
        for batch in batcher(corpus(nlp) if held is None else [held[place] for place in state.order]):
            state.taken += 1
            if state.taken > skipped:
                yield batch
            elif state.taken == skipped and restore:
                restore()
        if state.taken < skipped:
            raise ValueError(
                f"Cannot resume: the training corpus makes {state.taken} batches, expected at least the {skipped} of "
                "the checkpoint. Give the same files, or train in another folder."
            )
        restore = None
        state.epoch += 1


def _digest_of(examples: list[Example]) -> str:
    """Return the SHA-256 of texts, scores and labels."""
    if not examples:
        raise ValueError(SpacyErrors.E986)
    content = hashlib.sha256()
    for example in examples:
        doc = example.reference
        gold = [doc.cats, *(group.attrs for group in doc.spans.values())]
        content.update(f"{doc.text}\0{gold}\0".encode("utf8", "surrogatepass"))
    return content.hexdigest()


def latest(folder: Path) -> Path | None:
    """Return the checkpoint of the last step in a folder; None if there is none."""
    steps = {int(name[1]): path for path in folder.glob("step-*") if (name := _STEP.fullmatch(path.name))}
    return steps[max(steps)] if steps else None


def _checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, complete or not."""
    inside = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    return [path for path in inside if _STEP.fullmatch(path.name) or _UNFINISHED.fullmatch(path.name)]


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints in a folder, and the folder if it holds nothing else."""
    checkpoints = _checkpoints(folder)
    for path in checkpoints:
        shutil.rmtree(path)
    if checkpoints and not any(folder.iterdir()):
        folder.rmdir()


def save_checkpoint(
    folder: Path, nlp: Language, optimizer: Optimizer, state: TrainingState, ranks: TorchDistributed
) -> None:
    """Save the state of a training after a step. All ranks call it, and rank 0 writes.

    The old checkpoint is removed only when the new one is complete.

    folder (Path): gets a folder for the step.
    RAISES (OSError): if it cannot be written. (ValueError): if the optimizer has moments of what is in no component.
    """
    drawn = ranks.gather_objects(_random_states())
    if not ranks.is_first:
        return
    old = _checkpoints(folder)
    with atomic_folder(folder / f"step-{state.step}", replace=True) as made:
        nlp.to_disk(made / _PIPELINE)
        content = {
            "state": vars(state) | {"losses": {name: float(loss) for name, loss in state.losses.items()}},
            "optimizer": _optimizer_state(nlp, optimizer),
            "scalers": {name: _scale_of(scaler) for name, scaler in _grad_scalers(nlp).items()},
            "settings": _settings(nlp),
            "random": drawn,
        }
        data = io.BytesIO()
        torch.save(content, data)
        (made / _STATE).write_bytes(add_checksum(data.getvalue()))
    for path in old:
        if path.name != f"step-{state.step}":
            shutil.rmtree(path)


def load_checkpoint(
    path: Path, nlp: Language, optimizer: Optimizer, ranks: TorchDistributed
) -> tuple[TrainingState, Callable[[], None]]:
    """Restore the state of a pipeline and its optimizer.

    path (Path): see latest. nlp (Language): initialized from the same config. optimizer (Optimizer): a new one.
    RETURNS (TrainingState, Callable): the progress, and what restores the random states.
    RAISES (ValueError): if a file is damaged, or config or ranks differ.
    """
    with _resuming(path), naming(path / _STATE):
        content = torch.load(io.BytesIO(verify_checksum((path / _STATE).read_bytes())), weights_only=True)
    settings = _settings(nlp)
    if changed := [name for name in _SECTIONS if content["settings"][name] != settings[name]]:
        raise ValueError(
            f"{path} was made with other settings in {', '.join(changed)}: expected the same config and options, but "
            "for training.logger. Give those that it was made with, or train in another folder."
        )
    if len(content["random"]) != ranks.size:
        raise ValueError(
            f"{path} was made by {len(content['random'])} processes, and there are {ranks.size}: start as many as "
            "before, or train in another folder."
        )
    with _resuming(path):
        nlp.from_disk(path / _PIPELINE)
    _load_optimizer_state(nlp, optimizer, content["optimizer"])
    for name, scaler in _grad_scalers(nlp).items():
        if name in content["scalers"]:  # else the checkpoint was made without float16
            scale, tracker = content["scalers"][name]
            scaler._scale.fill_(scale)  # noqa: SLF001 (Thinc has no public name)
            scaler._growth_tracker.fill_(tracker)  # noqa: SLF001 (Thinc has no public name)
    state = TrainingState(**content["state"])
    for _ in range(state.step):
        optimizer.step_schedules()
    return state, lambda: _set_random_states(content["random"][ranks.rank])


@contextmanager
def _resuming(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be resumed: remove it to start from the beginning. {error}") from error


def _settings(nlp: Language) -> dict[str, str]:
    config: dict[str, Any] = nlp.config.interpolate()
    config["training"] = {key: value for key, value in config["training"].items() if key != "logger"}
    return {name: json.dumps(config.get(name), default=str, sort_keys=True) for name in _SECTIONS}


def _optimizer_state(nlp: Language, optimizer: Optimizer) -> dict[str, Any]:
    """Return the moments and averages of all parameters, and how often each was updated, by the names of _keys."""
    names = {key: name for name, key in _keys(nlp).items()}
    if foreign := [key for key in optimizer.nr_update if key not in names]:
        raise ValueError(
            f"The optimizer has moments of a parameter that is in no component of the pipeline ('{foreign[0][1]}' of "
            f"the layer number {foreign[0][0]}), which a checkpoint cannot restore. Train without --checkpoint-every."
        )
    moments = {
        kind: {
            names[key]: torch.from_numpy(numpy.ascontiguousarray(to_numpy(values)))
            for key, values in (getattr(optimizer, kind) or {}).items()
        }
        for kind in _MOMENTS
    }
    return moments | {"nr_update": {names[key]: count for key, count in optimizer.nr_update.items()}}


def _load_optimizer_state(nlp: Language, optimizer: Optimizer, state: dict[str, Any]) -> None:
    keys, ops = _keys(nlp), get_current_ops()
    for kind in _MOMENTS:
        for name, values in state[kind].items():
            getattr(optimizer, kind)[keys[name]] = ops.asarray(values.numpy())
    optimizer.nr_update.update({keys[name]: count for name, count in state["nr_update"].items()})


def _layers(nlp: Language) -> Iterator[tuple[str, Model | PyTorchShim]]:
    """Yield all layers and PyTorch shims of components by name, in an order that is the same in every process."""
    for component, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        for number, node in enumerate(model.walk() if isinstance(model, Model) else ()):
            name = f"{component}/{number}"
            yield name, node
            yield from ((f"{name}.{i}", shim) for i, shim in enumerate(node.shims) if isinstance(shim, PyTorchShim))


def _keys(nlp: Language) -> dict[str, KeyT]:
    """Return the optimizer's keys of parameters by names like "sbert/2/W": component, number of the layer, parameter.

    The keys have ids of layers, which differ between processes.
    """
    keys: dict[str, KeyT] = {}
    for name, layer in _layers(nlp):
        if isinstance(layer, Model):
            parameters = list(layer.param_names)
        else:
            module = torch_model(layer)  # None if it is not loaded
            parameters = [] if module is None else [parameter for parameter, _ in module.named_parameters()]
        keys |= {f"{name}/{parameter}": (layer.id, parameter) for parameter in parameters}
    return keys


def _grad_scalers(nlp: Language) -> dict[str, PyTorchGradScaler]:
    """Return the gradient scalers of PyTorch models in float16, by the same names."""
    scalers = {name: grad_scaler(layer) for name, layer in _layers(nlp) if isinstance(layer, PyTorchShim)}
    return {name: scaler for name, scaler in scalers.items() if scaler._enabled}  # noqa: SLF001 (Thinc has no public name)


def _scale_of(scaler: PyTorchGradScaler) -> tuple[float, int]:
    return float(scaler._scale), int(scaler._growth_tracker)  # noqa: SLF001 (Thinc has no public name)


def _random_states() -> dict[str, Any]:
    """Return the states of the generators of Python, NumPy and PyTorch, and of PyTorch on a GPU.

    CuPy's, which Thinc's dropout layers use there, cannot be read.
    """
    name, words, *rest = numpy.random.get_state(legacy=True)
    states = {
        "python": random.getstate(),
        "numpy": (name, torch.from_numpy(numpy.asarray(words).astype("int64")), *rest),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def _set_random_states(states: dict[str, Any]) -> None:
    name, words, *rest = states["numpy"]
    random.setstate(states["python"])
    numpy.random.set_state((name, words.numpy().astype("uint32"), *rest))
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])
