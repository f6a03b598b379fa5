"""Training loop with resume and several processes."""

import random
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from time import perf_counter
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
    subdivide_batch,
    update_meta,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import Config, CupyOps, Model, constant, fix_random_seed, get_current_ops, set_gpu_allocator

from ..files.atomic import atomic_folder
from ..models.spans import members
from ..training.gold import check_dev_corpus, check_scored
from .checkpoint import TrainingState, latest, load_checkpoint, remove_checkpoints, resumable_batches, save_checkpoint
from .torch_distributed import TorchDistributed, broadcast_parameters, bytes_of, sum_gradients

DIR_CHECKPOINT = "checkpoint"
_PROGRESS_LOGGER = "spacy-sbert.ProgressLogger.v1"


def train(
    nlp: Language, output: Path | None, ranks: TorchDistributed, *, checkpoint_every: int = 0, resume: bool = False
) -> str:
    """Train a pipeline with the other ranks, as `spacy train` does with one.

    Only rank 0 evaluates, writes and logs. A pipeline replaces the one that was saved before when it is complete.

    nlp (Language): initialized by spacy.training.initialize.init_nlp, from the same config on all ranks.
    output (Path): the folder for model-best, model-last and checkpoints, which are removed at the end.
    ranks (TorchDistributed): see launched.
    checkpoint_every (int): the steps between two checkpoints, 0 for none. resume (bool): see find_checkpoint.
    RETURNS (str): a sentence on how it ended, and with which score.
    RAISES (ValueError): if the ranks cannot train it, see _JointTraining; for a checkpoint that cannot be resumed.
        (RankLost): if one of them has ended.
    """
    checkpoint = find_checkpoint(output, ranks, every=checkpoint_every, resume=resume)
    config = nlp.config.interpolate()
    training = _begin(config, ranks)
    if config["training"]["logger"].get("@loggers") != _PROGRESS_LOGGER:  # which checks by itself
        check_dev_corpus(nlp)
    train_corpus, dev_corpus = resolve_dot_names(config, [training["train_corpus"], training["dev_corpus"]])
    optimizer, frozen = training["optimizer"], training["frozen_components"]
    state = TrainingState()
    restore: Callable[[], None] | None = None
    if checkpoint is not None:
        state, restore = load_checkpoint(checkpoint, nlp, optimizer, ranks)
    begun, written = state.step, output if ranks.is_first else None
    batches = resumable_batches(nlp, train_corpus, training["batcher"], training["max_epochs"], state, restore)
    save = partial(_save, nlp, written, training)
    with _together(nlp, ranks) as joint:
        evaluate = partial(joint.evaluate, create_evaluation_callback(nlp, dev_corpus, training["score_weights"]))
        with nlp.select_pipes(disable=frozen):
            logger = training["logger"] if ranks.is_first else _no_logger
            log, finish = logger(nlp, sys.stdout, sys.stderr)
        if checkpoint is None:
            clean_output_dir(written)
        try:
            for info, is_best in _steps(nlp, training, batches, state, joint.update, evaluate):
                if is_best is not None:
                    check_scored(training["score_weights"], info["other_scores"])
                    with nlp.select_pipes(disable=frozen):
                        update_meta(training, nlp, info)
                    save(is_best)
                    if written is not None:
                        info["output_path"] = str(written / DIR_MODEL_LAST)
                log(info if is_best is not None else None)
                if output is not None and checkpoint_every and not state.step % checkpoint_every:
                    save_checkpoint(output / DIR_CHECKPOINT, nlp, optimizer, state, ranks)
        finally:
            finish()
            if checkpoint is None or state.step > begun:  # else model-last may be newer than the checkpoint
                save(False)
    if written is not None:
        remove_checkpoints(written / DIR_CHECKPOINT)  # the training is over
    patience = training["patience"]
    is_patience_over = state.is_patience_over(patience, training["eval_frequency"])
    why = f", as no score was better for {patience}" if is_patience_over else ""
    score, minus_step = max((score, -step) for score, step in state.results)
    ended = f"Training ended after step {state.step - 1}{why}"
    return f"{ended}. The best score, {100 * score:.2f}, is that of step {-minus_step}."


def _steps(
    nlp: Language,
    training: dict[str, Any],
    batches: Iterable[list[Example]],
    state: TrainingState,
    update: Callable[..., dict[str, float]],
    evaluate: Callable[[], tuple[float, dict[str, Any]]],
) -> Iterator[tuple[dict[str, Any], bool | None]]:
    """Take steps until the scores stop improving, beginning at a state, which is updated.

    training (dict): [training], resolved. batches: the remaining ones. update: as Language.update.
    YIELDS (dict, bool): the logger's info; whether the step's score is the best one, None if it was not scored. The
        last step is yielded once more, with its score, if eval_frequency does not divide its number.
    SOURCE: spacy.training.loop.train_while_improving, which always begins at step 0, and may not score the last step.
    """
    optimizer, frequency = training["optimizer"], training["eval_frequency"]
    dropouts: Any = constant(training["dropout"]) if isinstance(training["dropout"], float) else training["dropout"]
    for _ in range(state.step):
        next(dropouts)
    started = perf_counter() - state.seconds

    def info_of(step: int, *, is_scored: bool) -> tuple[dict[str, Any], bool | None]:
        info: dict[str, Any] = {"epoch": state.epoch, "step": step, "score": None, "other_scores": None}
        info |= {"losses": state.losses, "checkpoints": state.results}
        is_best = None
        if is_scored:
            with nlp.use_params(optimizer.averages) if optimizer.averages else nullcontext():
                info["score"], info["other_scores"] = evaluate()
            state.results.append((float(info["score"]), step))
            state.losses = {}
            is_best = info["score"] == max(state.results)[0]
        state.seconds = perf_counter() - started
        return info | {"seconds": int(state.seconds), "words": state.words}, is_best

    for batch in batches:
        if state.is_over(training["patience"], training["max_steps"], frequency):
            break
        if training["before_update"]:
            training["before_update"](nlp, {"step": state.step, "epoch": state.epoch})
        drop = next(dropouts)
        settings = {"exclude": training["frozen_components"], "annotates": training["annotating_components"]}
        for part in subdivide_batch(batch, training["accumulate_gradient"]):
            update(part, drop=drop, losses=state.losses, sgd=False, **settings)
        for name, pipe in nlp.pipeline:
            is_trained = getattr(pipe, "is_trainable", False) and name not in training["frozen_components"]
            if is_trained and getattr(pipe, "model", None) not in (True, False, None):
                pipe.finish_update(optimizer)  # type: ignore[attr-defined]
        optimizer.step_schedules()
        state.words += sum(len(example) for example in batch)
        info = info_of(state.step, is_scored=not state.step % frequency)
        state.step += 1
        yield info
    if state.step and state.results[-1][1] != state.step - 1:
        yield info_of(state.step - 1, is_scored=True)


class _JointTraining:
    """Updates and evaluates a pipeline on all ranks; with one rank, as the pipeline itself does.

    Each update takes a batch, learns from the rank's part of it, and sums the gradients of the encoders, which are then
    those of the whole batch on all ranks. Heads have them already, because each rank computes the loss of the whole
    batch. Rank 0 evaluates for all.

    nlp (Language): initialized, from the same config, files and seed on all ranks.
    RAISES (ValueError): if it has other components to train than `sbert` pipes and the transformers they listen to,
        or other weights than on another rank.
    """

    def __init__(self, nlp: Language, ranks: TorchDistributed):
        self._nlp, self._ranks = nlp, ranks
        self.pipes: list[Any] = []
        self._step = 0
        if ranks.size == 1:
            return
        config = nlp.config["training"]
        self.pipes, upstream = _trained(nlp, config["frozen_components"], ranks.size)
        if config["accumulate_gradient"] != 1:
            raise ValueError(
                f"training.accumulate_gradient is {config['accumulate_gradient']}, but {ranks.size} ranks need whole "
                "batches: expected 1. For batches larger than memory take "
                "spacy-sbert.CachedMultipleNegativesRankingLoss.v1."
            )
        self._encoders = [*upstream, *(pipe.model.get_ref("encoder") for pipe in self.pipes)]
        self._models = [*upstream, *(pipe.model for pipe in self.pipes)]
        broadcast_parameters(self._models, ranks)
        self._check_weights()

    def update(self, examples: Sequence[Example], **settings: Any) -> dict[str, float]:  # noqa: ANN401 (of spaCy)
        """Learn from a batch, the same on all ranks; settings are those of Language.update.

        RAISES (ValueError): if the batch has no example for some rank, or differs from that of another rank.
        """
        if self._ranks.size == 1:
            return self._nlp.update(examples, **settings)
        batch, size = list(examples), self._ranks.size
        if not self._ranks.agree(f"{eg.reference.text}\0".encode("utf8", "surrogatepass") for eg in batch):
            seed = self._nlp.config["training"]["seed"]
            raise ValueError(
                f"The ranks have different batches in step {self._step}. Check that training.seed is set (it is "
                f"{seed}), that all ranks have the same files, and that a reader of your own shuffles with Python's "
                "random or with a seed."
            )
        for pipe in self.pipes:
            learning = [bool(members(example.predicted, pipe.spans_key)) for example in batch]
            for rank in range(size):
                if not any(learning[rank::size]):
                    raise ValueError(
                        f"A batch of {len(batch)} examples leaves rank {rank} without an example for '{pipe.name}' to "
                        f"learn from: expected one with members in doc.spans['{pipe.spans_key}'] for each of {size} "
                        "ranks. Take larger batches (size in [training.batcher]) or fewer ranks."
                    )
        with self._ranks.sharing(batch) as part:
            losses = self._nlp.update(part, **settings)
        for pipe in self.pipes:
            pipe.examples_seen += len(batch) - len(part)  # which it has counted itself
        sum_gradients(self._encoders, self._ranks)
        self._step += 1
        return losses

    def evaluate(self, evaluate: Callable[[], Any]) -> Any:  # noqa: ANN401 (any object)
        """Return the result of a function, which only rank 0 calls, on all ranks.

        RAISES (ValueError): if the ranks have different weights.
        """
        if self._ranks.size == 1:
            return evaluate()
        self._check_weights()
        if not self._ranks.is_first:
            return self._ranks.broadcast_object(None)
        state = random.getstate()  # a reader that shuffles must not leave the other ranks behind
        scores = evaluate()
        random.setstate(state)
        return self._ranks.broadcast_object(scores)

    def _check_weights(self) -> None:
        if not self._ranks.agree(bytes_of(self._models)):
            raise ValueError(
                f"The ranks have different weights after step {self._step}. Set system.seed and training.seed, and "
                "give all ranks the same files, versions and kind of machine."
            )


@contextmanager
def _together(nlp: Language, ranks: TorchDistributed) -> Iterator[_JointTraining]:
    """Let the `sbert` pipes of a pipeline compute the loss of the batches of all ranks; see _JointTraining."""
    joint = _JointTraining(nlp, ranks)
    for pipe in joint.pipes:
        pipe.peers = ranks
    try:
        yield joint
    finally:
        for pipe in joint.pipes:
            pipe.peers = None


def _trained(nlp: Language, frozen: Sequence[str], size: int) -> tuple[list[Any], list[Model]]:
    """Return the `sbert` pipes that are trained, and the models of the components that they listen to."""
    trained: dict[str, Any] = {
        name: pipe for name, pipe in nlp.pipeline if name not in frozen and getattr(pipe, "is_trainable", False)
    }
    pipes = {name: pipe for name, pipe in trained.items() if getattr(pipe, "takes_peers", False)}
    upstream = {}
    for name, pipe in trained.items():
        listeners = [other for other in getattr(pipe, "listening_components", ()) if other in trained]
        if listeners and all(other in pipes for other in listeners):
            upstream[name] = pipe.model
    others = trained.keys() - pipes.keys() - upstream.keys()
    if others:
        raise ValueError(
            f"{size} ranks cannot train {', '.join(sorted(others))} together: expected no trainable components "
            "but 'sbert' pipes and the transformers they listen to. Name the others in "
            "training.frozen_components, or train them on one rank."
        )
    if not pipes:
        raise ValueError(
            f"{size} ranks have nothing to train: expected an 'sbert' pipe that is not frozen, the pipeline "
            f"has {', '.join(nlp.pipe_names) or 'none'}."
        )
    return [*pipes.values()], [*upstream.values()]


def find_checkpoint(output: Path | None, ranks: TorchDistributed, *, every: int, resume: bool) -> Path | None:
    """Return the checkpoint from which a training resumes; None to begin.

    RAISES (ValueError): if there is one that would be lost, no folder for one, or a different one for another rank.
    """
    if output is None:
        if every or resume:
            raise ValueError("--checkpoint-every and --resume need a folder: give --output.")
        return None
    checkpoint = latest(output / DIR_CHECKPOINT)
    if not ranks.agree([b"" if checkpoint is None else checkpoint.name.encode()]):
        raise ValueError(
            f"The {ranks.size} processes find different checkpoints in {output / DIR_CHECKPOINT}. Give a folder that "
            "all of them share."
        )
    if checkpoint is not None and not resume:
        raise ValueError(
            f"{output / DIR_CHECKPOINT} holds a checkpoint of an interrupted training. Resume it by --resume, or "
            "remove it to start from the beginning."
        )
    return checkpoint


def _save(nlp: Language, output: Path | None, training: dict[str, Any], is_best: bool) -> None:
    """Save model-last, and a copy of it as model-best."""
    if output is None:
        return
    before_to_disk = create_before_to_disk_callback(training["before_to_disk"])
    averages = training["optimizer"].averages
    with nlp.use_params(averages), atomic_folder(output / DIR_MODEL_LAST, replace=True) as folder:
        before_to_disk(nlp).to_disk(folder)
    if is_best:
        with atomic_folder(output / DIR_MODEL_BEST, replace=True) as folder:
            shutil.copytree(output / DIR_MODEL_LAST, folder, dirs_exist_ok=True)


def _begin(config: Config, ranks: TorchDistributed) -> dict[str, Any]:
    """Resolve [training], and seed: batches are the same on all ranks, dropout differs."""
    seed, allocator = config["training"]["seed"], config["training"]["gpu_allocator"]
    if seed is not None:
        fix_random_seed(seed)  # readers and spaCy shuffle by Python's random
        torch.manual_seed(seed + ranks.rank)
        xp: Any = get_current_ops().xp
        for module in {numpy, xp}:
            module.random.seed(seed + ranks.rank)
    if allocator and isinstance(get_current_ops(), CupyOps):
        set_gpu_allocator(allocator)
    return registry.resolve(config["training"], schema=ConfigSchemaTraining)


def _no_logger(nlp: Language, stdout: IO[str], stderr: IO[str]) -> tuple[Callable, Callable]:
    """Log nothing: the logger of ranks other than the first."""
    return lambda info: None, lambda: None
