"""Training loop with resume and several processes."""

import random
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy
import torch
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.loop import (
    DIR_MODEL_BEST,
    DIR_MODEL_LAST,
    clean_output_dir,
    create_before_to_disk_callback,
    create_evaluation_callback,
    update_meta,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import Config, CupyOps, Model, Optimizer, fix_random_seed, get_current_ops, set_gpu_allocator

from ..files.atomic import atomic_folder
from ..training.batch_loss import PairPipe
from ..training.examples import SINGLE_PROCESS
from ..training.logger import check_scored, check_weighted_scores
from .checkpoint import latest, load_checkpoint, remove_checkpoints, save_checkpoint
from .torch_distributed import TorchDistributed, broadcast_parameters, bytes_of, sum_gradients
from .training_state import ResumableBatches, TrainingState, train_while_improving


class JointTraining:
    """Updates and evaluations of a pipeline by all ranks; with one rank, those of the pipeline itself.

    Each update takes a batch, learns from the rank's part of it, and sums the gradients of the encoders, which are then
    those of the whole batch on all ranks. Those of heads are so already, as each rank computes the loss of the whole
    batch. Rank 0 evaluates for all.

    nlp (Language): initialised, of the same config, files and seed on all ranks.
    RAISES (ValueError): if it has other components to train than `sbert` pipes and what they listen to, or other
        weights than on another rank.
    """

    def __init__(self, nlp: Language, ranks: TorchDistributed):
        self._nlp, self._ranks = nlp, ranks
        self.pipes: list[PairPipe] = []
        self._done = 0
        if ranks.size == 1:
            return
        config = nlp.config["training"]
        self.pipes, upstream = _trained(nlp, config["frozen_components"], ranks.size)
        if config["accumulate_gradient"] != 1:
            raise ValueError(
                f"training.accumulate_gradient is {config['accumulate_gradient']}, and {ranks.size} ranks "
                "train together, which need whole batches: expected 1. For batches that are larger than memory "
                "take spacy-sbert.CachedMultipleNegativesRankingLoss.v1."
            )
        self._encoders = [*upstream, *(pipe.model.get_ref("encoder") for pipe in self.pipes)]
        self._models = [*upstream, *(pipe.model for pipe in self.pipes)]
        broadcast_parameters(self._models, ranks)
        self._check_weights()

    def update(self, examples: Sequence[Example], **settings: Any) -> dict[str, float]:
        """Learn from a batch, the same on all ranks; settings are those of Language.update.

        RAISES (ValueError): if the batch has no example for some rank, or is another one than on another rank.
        """
        if self._ranks.size == 1:
            return self._nlp.update(examples, **settings)
        batch = list(examples)
        if not self._ranks.agree(_content(batch)):
            seed = self._nlp.config["training"]["seed"]
            raise ValueError(
                f"The ranks read other examples than each other in step {self._done}: every rank must make the "
                f"same batches, of which it trains its part. Check that training.seed is set (it is {seed}), "
                "that all ranks have the same files, and that a reader of your own shuffles with Python's "
                "random or with a seed."
            )
        for pipe in self.pipes:
            _check_parts(batch, pipe, self._ranks.size)
            pipe.examples_seen += len(batch)
        with self._ranks.sharing(batch) as own:
            losses = self._nlp.update(own, **settings)
        for pipe in self.pipes:
            pipe.examples_seen -= len(own)  # which it has counted itself
        sum_gradients(self._encoders, self._ranks)
        self._done += 1
        return losses

    def evaluate(self, evaluate: Callable[[], Any]) -> Any:
        """Return what rank 0 finds by a function, as JSON has it, on all ranks; the others do not call it.

        RAISES (ValueError): if the ranks have other weights by now.
        """
        if self._ranks.size == 1:
            return evaluate()
        self._check_weights()
        if not self._ranks.is_first:
            return self._ranks.said_by_first(None)
        state = random.getstate()  # a reader that shuffles must not leave the other ranks behind
        scores = evaluate()
        random.setstate(state)
        return self._ranks.said_by_first(scores)

    def _check_weights(self) -> None:
        if not self._ranks.agree(bytes_of(self._models)):
            raise ValueError(
                f"The ranks have other weights than each other after step {self._done}: they would train "
                "different models. Set system.seed and training.seed, and give all ranks the same files, "
                "versions and kind of machine."
            )


@contextmanager
def together(nlp: Language, ranks: TorchDistributed) -> Iterator[JointTraining]:
    """Let the `sbert` pipes of a pipeline compute the loss of the batches of all ranks; see JointTraining."""
    joint = JointTraining(nlp, ranks)
    for pipe in joint.pipes:
        pipe.peers = ranks
    try:
        yield joint
    finally:
        for pipe in joint.pipes:
            pipe.peers = SINGLE_PROCESS


def _trained(nlp: Language, frozen: Sequence[str], size: int) -> tuple[list[PairPipe], list[Model]]:
    """Return the `sbert` pipes that learn, and the models of the components that they listen to."""
    learning: dict[str, object] = {
        name: pipe for name, pipe in nlp.pipeline if name not in frozen and getattr(pipe, "is_trainable", False)
    }
    pipes = {name: pipe for name, pipe in learning.items() if getattr(pipe, "takes_peers", False)}
    upstream = {}
    for name, pipe in learning.items():
        heard_by = [other for other in getattr(pipe, "listening_components", ()) if other in learning]
        if heard_by and all(other in pipes for other in heard_by):
            upstream[name] = pipe.model  # type: ignore[attr-defined]
    others = learning.keys() - pipes.keys() - upstream.keys()
    if others:
        raise ValueError(
            f"{size} ranks cannot train {', '.join(sorted(others))} together: expected no trainable components "
            "but 'sbert' pipes and the transformers that they hear. Name the others in "
            "training.frozen_components, or train them on one rank."
        )
    if not pipes:
        raise ValueError(
            f"{size} ranks have nothing to train: expected an 'sbert' pipe that is not frozen, the pipeline "
            f"has {', '.join(nlp.pipe_names) or 'none'}."
        )
    return [*pipes.values()], [*upstream.values()]


def _check_parts(batch: Sequence[Example], pipe: PairPipe, size: int) -> None:
    """All ranks refuse a batch of which one has no part."""
    for rank in range(size):
        if not any(pipe.learns_from(example) for example in batch[rank::size]):
            given = {"name": pipe.name, "key": pipe.spans_key, "given": len(batch)}
            raise ValueError(
                (
                    "A batch of {given} examples, of which every rank gets every {size}th, leaves rank {rank} "
                    "without an example for '{name}' to learn from: expected one or more for each of {size} ranks. "
                    "Take larger batches (size in [training.batcher]) or fewer ranks; only examples with members "
                    "in doc.spans['{key}'] count."
                ).format(size=size, rank=rank, **given)
            )


def _content(batch: Sequence[Example]) -> Iterator[bytes]:
    """What tells a batch from others: its texts."""
    return (f"{example.reference.text}\0".encode("utf8", "surrogatepass") for example in batch)


DIR_CHECKPOINT = "checkpoint"
PROGRESS_LOGGER = "spacy-sbert.ProgressLogger.v1"
SETTINGS = (  # of [training], which spaCy's loop takes as they are
    "dropout",
    "accumulate_gradient",
    "patience",
    "max_steps",
    "eval_frequency",
    "annotating_components",
    "before_update",
)


@dataclass(frozen=True)
class Checkpoints:
    """When checkpoints are saved, and whether training goes on from the last one.

    every (int): the steps between two, 0 for none. resume (bool): where there is none, training begins.
    """

    every: int = 0
    resume: bool = False


def train(nlp: Language, output: Path | None, ranks: TorchDistributed, checkpoints: Checkpoints = Checkpoints()) -> str:
    """Train a pipeline with the other ranks, as `spacy train` does with one.

    Rank 0 alone evaluates, writes and logs. What it saves takes the place of what it saved before when it is whole.

    nlp (Language): initialised by spacy.training.initialize.init_nlp, from the same config on all ranks.
    output (Path): the folder for model-best, model-last and checkpoints, which are removed at the end.
    ranks (Ranks): see launched. checkpoints (Checkpoints): see find_checkpoint.
    RETURNS (str): in words, how it ended, and with which score.
    RAISES (ValueError): if the ranks cannot train it, see together; for a checkpoint that cannot be gone on with.
        (RuntimeError): if one of them is gone.
    """
    found = find_checkpoint(output, checkpoints, ranks)
    config = nlp.config.interpolate()
    training = _begin(config, ranks)
    if config["training"]["logger"].get("@loggers") != PROGRESS_LOGGER:  # which checks by itself
        check_weighted_scores(nlp)
    train_corpus, dev_corpus = resolve_dot_names(config, [training["train_corpus"], training["dev_corpus"]])
    optimizer, frozen = training["optimizer"], training["frozen_components"]
    epochs = ResumableBatches(nlp, train_corpus, training["batcher"], training["max_epochs"])
    progress = TrainingState() if found is None else load_checkpoint(found, nlp, optimizer, epochs, ranks)
    begun, written = progress.step, output if ranks.is_first else None
    save = partial(_save, nlp, written, optimizer, create_before_to_disk_callback(training["before_to_disk"]))
    with together(nlp, ranks) as joint:
        evaluate = partial(joint.evaluate, create_evaluation_callback(nlp, dev_corpus, training["score_weights"]))
        settings = {name: training[name] for name in SETTINGS}
        steps = train_while_improving(
            nlp, optimizer, epochs, evaluate, progress, update=joint.update, exclude=frozen, **settings
        )
        with nlp.select_pipes(disable=frozen):
            logger = training["logger"] if ranks.is_first else _silent
            log, finish = logger(nlp, sys.stdout, sys.stderr)
        if found is None:
            clean_output_dir(written)
        try:
            for info, is_best in steps:
                if is_best is not None:
                    check_scored(training["score_weights"], info["other_scores"])
                    with nlp.select_pipes(disable=frozen):
                        update_meta(training, nlp, info)
                    save(is_best)
                    if written is not None:
                        info["output_path"] = str(written / DIR_MODEL_LAST)
                log(info if is_best is not None else None)
                if output is not None and checkpoints.every and not progress.step % checkpoints.every:
                    save_checkpoint(output / DIR_CHECKPOINT, nlp, optimizer, progress, epochs, ranks)
        finally:
            finish()
            if found is None or progress.step > begun:  # else what is there may be newer than the checkpoint
                save(False)
    if written is not None:
        remove_checkpoints(written / DIR_CHECKPOINT)  # the training is over
    why = (
        f", as no score was better for {training['patience']}"
        if progress.is_patience_over(training["patience"], training["eval_frequency"])
        else ""
    )
    score, step = progress.best
    ended = f"Training ended after step {progress.step - 1}{why}"
    return f"{ended}. The best score, {100 * score:.2f}, is that of step {step}."


def find_checkpoint(output: Path | None, checkpoints: Checkpoints, ranks: TorchDistributed) -> Path | None:
    """The checkpoint that a training is to go on from; None to begin.

    RAISES (ValueError): if there is one that would be lost, no folder for one, or another one for another rank.
    """
    if output is None:
        if checkpoints.every or checkpoints.resume:
            raise ValueError("--checkpoint-every and --resume need a folder: give --output.")
        return None
    found = latest(output / DIR_CHECKPOINT)
    if not ranks.agree([b"" if found is None else found.name.encode()]):
        raise ValueError(
            f"The {ranks.size} processes find other checkpoints in {output / DIR_CHECKPOINT} than each other: "
            "give a folder that all of them see."
        )
    if found is not None and not checkpoints.resume:
        raise ValueError(
            f"{output / DIR_CHECKPOINT} holds a checkpoint of an interrupted training. Go on with it by "
            "--resume, or remove it to begin anew."
        )
    return found


def _save(
    nlp: Language,
    output: Path | None,
    optimizer: Optimizer,
    before_to_disk: Callable[[Language], Language],
    is_best: bool,
) -> None:
    """Save model-last, and a copy of it as model-best."""
    if output is None:
        return
    with nlp.use_params(optimizer.averages), atomic_folder(output / DIR_MODEL_LAST, replace=True) as folder:
        before_to_disk(nlp).to_disk(folder)
    if is_best:
        with atomic_folder(output / DIR_MODEL_BEST, replace=True) as folder:
            shutil.copytree(output / DIR_MODEL_LAST, folder, dirs_exist_ok=True)


def _begin(config: Config, ranks: TorchDistributed) -> dict[str, Any]:
    """Resolve [training], and have each rank drop out other numbers, where batches stay those of the seed."""
    seed, allocator = config["training"]["seed"], config["training"]["gpu_allocator"]
    if seed is not None:
        fix_random_seed(seed)
        fix_dropout(seed + ranks.rank)
    if allocator and isinstance(get_current_ops(), CupyOps):
        set_gpu_allocator(allocator)
    return registry.resolve(config["training"], schema=ConfigSchemaTraining)


def fix_dropout(seed: int) -> None:
    """Seed what layers draw from, PyTorch's and Thinc's; readers and spaCy shuffle by Python's random."""
    torch.manual_seed(seed)
    xp: Any = get_current_ops().xp
    for module in {numpy, xp}:
        module.random.seed(seed)


def _silent(nlp: Language, stdout: IO[str], stderr: IO[str]) -> tuple[Callable, Callable]:
    """The logger of a rank that does not speak."""
    return lambda info: None, lambda: None
