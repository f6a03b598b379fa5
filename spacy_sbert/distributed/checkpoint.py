"""Checkpoints: weights, optimizer, random states and the position in the batches."""

import io
import json
import random
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import torch
from spacy.language import Language
from spacy.training import Example
from thinc.api import Model, Optimizer, get_current_ops, to_numpy

from ..files.atomic import atomic_folder, rewrite_os_errors
from ..files.checksum import add_checksum, digest_of_stream, verify_checksum
from ..files.serialization import naming
from .torch_distributed import TorchDistributed, nodes, torch_shims

DIR_CHECKPOINT = "checkpoint"
# Attributes of an optimizer that are dicts by parameter
_MOMENTS = ("mom1", "mom2", "averages")
# A name with a dot is what a killed process left
_NAME = re.compile(r"\.?step-(\d+)(-\w+)*")
_STATE = "state.pt"
# Among the digests of what a training is made of: the file of --code, "" without one
CODE = "--code"
_PIPELINE = "pipeline"
# Sections of a config on which the steps depend
_SECTIONS = ("nlp", "components", "corpora", "training", "initialize")
# How many settings a message names
_SHOWN = 3


@dataclass
class TrainingState:
    """Progress of a training.

    step (int): how many batches were learned. epoch (int): that of the last of them.
    results (list): the score and the step of each evaluation.
    losses (dict): their sums since the last evaluation, by component.
    words (int): how many were seen. seconds (float): how long it took.
    content (int): a checksum of the batches.
    """

    step: int = 0
    epoch: int = 0
    results: list[tuple[float, int]] = field(default_factory=list)
    losses: dict[str, float] = field(default_factory=dict)
    words: int = 0
    seconds: float = 0.0
    content: int = 0


def latest(output: Path | None) -> Path | None:
    """Return the checkpoint of the last step in an output folder; None if there is none."""
    if output is None:
        return None
    paths = {}
    for path in (output / DIR_CHECKPOINT).glob("step-*"):
        name = _NAME.fullmatch(path.name)
        if name:
            paths[int(name[1])] = path
    if not paths:
        return None
    return paths[max(paths)]


def find_checkpoint(
    output: Path | None, ranks: TorchDistributed, *, every: int, resume: bool
) -> Path | None:
    """Make the output folder, and return the checkpoint from which a training resumes.

    None to begin.
    """
    if output is None and (every or resume):
        raise ValueError("--checkpoint-every and --resume need a folder: give --output.")
    if output is not None:
        with rewrite_os_errors(output):
            output.mkdir(parents=True, exist_ok=True)
    checkpoint = latest(output)
    name = "" if checkpoint is None else checkpoint.name
    if not ranks.agree([name.encode()]):
        raise ValueError(
            f"The {ranks.size} processes find different checkpoints in {output}. Give a folder "
            "that all of them share."
        )
    if checkpoint is not None and not resume:
        raise ValueError(
            f"{checkpoint.parent} holds a checkpoint of an interrupted training. Resume it by "
            "--resume, or remove it to start from the beginning."
        )
    return checkpoint


def remove_checkpoints(output: Path, *, kept: str = "") -> None:
    """Remove the checkpoints in an output folder, complete or not, but for the one that is kept."""
    folder = output / DIR_CHECKPOINT
    for path in folder.glob("*step-*"):
        if _NAME.fullmatch(path.name) and path.name != kept:
            shutil.rmtree(path)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def digest_of_examples(examples: Iterable[Example]) -> str:
    """Return the SHA-256 of the texts and the gold of examples, in their order."""

    def parts() -> Iterator[bytes]:
        for example in examples:
            yield content_of([example])
            for group in example.reference.spans.values():
                # The vector of a teacher, if there is one
                yield numpy.asarray(group.attrs.get("vector", ()), dtype="float32").tobytes()

    return digest_of_stream(parts())


def content_of(batch: Sequence[Example]) -> bytes:
    """Return the texts, scores and labels of a batch."""
    texts: list[Any] = []
    gold: list[Any] = []
    for doc in (example.reference for example in batch):
        groups = [group.attrs for group in doc.spans.values()]
        texts.append([doc.text, doc.cats])
        gold.append([(attrs.get("score"), attrs.get("label")) for attrs in groups])
    return repr(texts + gold).encode("utf8", "surrogatepass")


def save_checkpoint(
    output: Path,
    nlp: Language,
    optimizer: Optimizer,
    state: TrainingState,
    ranks: TorchDistributed,
    digests: Mapping[str, str],
) -> None:
    """Save the state of a training after a step, and then remove the old one.

    All ranks call it, and rank 0 writes.

    digests (dict): of what the training is made of: the corpora and CODE, by names for messages.
    """
    random_states = ranks.gather_objects(_random_states())
    if not ranks.is_first:
        return
    losses = {component: float(loss) for component, loss in state.losses.items()}
    content = {
        "state": vars(state) | {"losses": losses},
        "optimizer": _optimizer_state(nlp, optimizer),
        "scalers": [(float(scale), int(tracker)) for scale, tracker in _gradient_scales(nlp)],
        "settings": _settings(nlp),
        "corpora": dict(digests),
        "random": random_states,
    }
    name = f"step-{state.step}"
    with atomic_folder(output / DIR_CHECKPOINT / name, replace=True) as made:
        nlp.to_disk(made / _PIPELINE)
        data = io.BytesIO()
        torch.save(content, data)
        (made / _STATE).write_bytes(add_checksum(data.getvalue()))
    remove_checkpoints(output, kept=name)


def load_checkpoint(
    path: Path,
    nlp: Language,
    optimizer: Optimizer,
    ranks: TorchDistributed,
    digests: Mapping[str, str],
) -> tuple[TrainingState, Callable[[], None]]:
    """Restore the state of a pipeline and its optimizer.

    nlp (Language): initialized from the same config. optimizer (Optimizer): a new one. digests
        (dict): see save_checkpoint.
    RETURNS (TrainingState, Callable): the progress, and what restores the random states.
    RAISES (ValueError): if a file is damaged, or config, corpora or ranks differ.
    """
    try:
        with naming(path / _STATE):
            data = verify_checksum((path / _STATE).read_bytes())
            content = torch.load(io.BytesIO(data), weights_only=True)
        _check_settings(content["settings"], _settings(nlp))
        # Earlier versions did not save them
        _check_digests(content.get("corpora", {}), digests)
        if len(content["random"]) != ranks.size:
            raise ValueError(
                f"It was made by {len(content['random'])} processes, and there are {ranks.size}."
            )
        nlp.from_disk(path / _PIPELINE)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be resumed: remove it to start from the beginning. {error}"
        ) from error
    _load_optimizer_state(nlp, optimizer, content["optimizer"])
    for tensors, values in zip(_gradient_scales(nlp), content["scalers"], strict=True):
        for tensor, value in zip(tensors, values, strict=True):
            tensor.fill_(value)
    state = TrainingState(**content["state"])
    for _ in range(state.step):
        optimizer.step_schedules()
    return state, lambda: _set_random_states(content["random"][ranks.rank])


def _check_digests(saved: Mapping[str, str], current: Mapping[str, str]) -> None:
    """Raise ValueError if a corpus or code differs from that of a checkpoint."""
    changed = [name for name, digest in saved.items() if current.get(name) != digest]
    if CODE in changed:
        raise ValueError(
            "The file of --code has changed since it was made, or was not given, so it may compute "
            "something else. Give the same file."
        )
    if changed:
        raise ValueError(
            f"The texts or the gold of {' and '.join(changed)} have changed since it was made, "
            "so scores before and after cannot be compared. Give the same files."
        )


def _check_settings(saved: Mapping[str, str], current: Mapping[str, str]) -> None:
    """Raise ValueError if settings of a config differ from those of a checkpoint."""
    changed = [name for name in current if name in saved and saved[name] != current[name]]
    if not changed:
        return
    names: list[str] = []
    for section in changed:
        names += _changed(json.loads(saved[section]), json.loads(current[section]))
    listed = ", ".join(names[:_SHOWN])
    if len(names) > _SHOWN:
        listed += " and others"
    raise ValueError(
        f"It was made with other settings in {', '.join(changed)} ({listed}; the logger may "
        "differ)."
    )


def _changed(saved: Any, current: Any, path: str = "") -> list[str]:
    """Return the names of the settings that differ in two blocks of a config."""
    if saved == current:
        return []
    if not (isinstance(saved, dict) and isinstance(current, dict)):
        return [path]
    names: list[str] = []
    for key in dict.fromkeys((*saved, *current)):
        name = f"{path}.{key}".lstrip(".")
        names += _changed(saved.get(key), current.get(key), name)
    return names


def _settings(nlp: Language) -> dict[str, str]:
    config: dict[str, Any] = nlp.config.interpolate()
    config["training"] = {
        key: value for key, value in config["training"].items() if key != "logger"
    }
    return {name: json.dumps(config.get(name), default=str, sort_keys=True) for name in _SECTIONS}


def _optimizer_state(nlp: Language, optimizer: Optimizer) -> dict[str, Any]:
    """Return moments, averages and counts of updates by the numbers of parameters in _keys."""
    numbers = {key: number for number, key in enumerate(_keys(nlp))}
    updates = {numbers[key]: count for key, count in optimizer.nr_update.items()}
    state: dict[str, Any] = {"nr_update": updates}
    for kind in _MOMENTS:
        state[kind] = {}
        moments = getattr(optimizer, kind) or {}
        for key, values in moments.items():
            array = numpy.ascontiguousarray(to_numpy(values))
            state[kind][numbers[key]] = torch.from_numpy(array)
    return state


def _load_optimizer_state(nlp: Language, optimizer: Optimizer, state: dict[str, Any]) -> None:
    keys = _keys(nlp)
    ops = get_current_ops()
    for kind in _MOMENTS:
        moments = getattr(optimizer, kind)
        for number, values in state[kind].items():
            moments[keys[number]] = ops.asarray(values.numpy())
    for number, count in state["nr_update"].items():
        optimizer.nr_update[keys[number]] = count


def _models(nlp: Language) -> list[Model]:
    models = [getattr(pipe, "model", None) for _, pipe in nlp.components]
    return [model for model in models if isinstance(model, Model)]


def _keys(nlp: Language) -> list[tuple[int, str]]:
    """Return the optimizer's keys of all parameters, in the same order in every process.

    The ids in them differ.
    """
    models = _models(nlp)
    keys: list[tuple[int, str]] = []
    for shim, module, _ in torch_shims(models):
        keys += [(shim.id, name) for name, _ in module.named_parameters()]
    for node in nodes(models):
        keys += [(node.id, name) for name in node.param_names]
    return keys


def _gradient_scales(nlp: Language) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the scale of the gradients of each float16 model, and the steps since it grew."""
    scalers = [scaler for _, _, scaler in torch_shims(_models(nlp))]
    return [(one._scale, one._growth_tracker) for one in scalers if one._enabled]  # noqa: SLF001 (no public names)


def _random_states() -> dict[str, Any]:
    """Return the states of the generators of Python, NumPy and PyTorch; CuPy's cannot be read."""
    name, words, *rest = numpy.random.get_state(legacy=True)
    states: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    states["numpy"] = (name, numpy.asarray(words).tolist(), *rest)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def _set_random_states(states: dict[str, Any]) -> None:
    name, words, *rest = states["numpy"]
    random.setstate(states["python"])
    numpy.random.set_state((name, numpy.array(words, dtype="uint32"), *rest))
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])
