"""Training loop with resume and several processes."""

import math
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from zlib import crc32

import numpy
import torch
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example, loop
from spacy.util import registry
from thinc.api import (
    Config,
    CupyOps,
    Model,
    constant,
    fix_random_seed,
    get_current_ops,
    set_gpu_allocator,
)

from ..errors import DivergedError
from ..files.atomic import atomic_folder
from ..files.checksum import file_digest
from ..models.finite_weights import weights_not_finite
from ..training.examples import Reader
from ..training.gold import check_scored, untrained_warning
from .checkpoint import (
    CODE,
    TrainingState,
    content_of,
    load_checkpoint,
    remove_checkpoints,
    save_checkpoint,
)
from .corpora import Batches, TrainingCorpora
from .joint_training import JointTraining
from .torch_distributed import TorchDistributed

_Info = dict[str, Any]
_NOT_FINITE = "{what} not finite. Lower the learning rate."


class TrainingEnd(NamedTuple):
    """How a training ended: a sentence, and the warning if no score was better than before."""

    message: str
    warning: str | None


def train(
    nlp: Language,
    output: Path | None,
    ranks: TorchDistributed,
    *,
    checkpoint_every: int = 0,
    checkpoint: Path | None = None,
    code: Path | None = None,
) -> TrainingEnd:
    """Train a pipeline with the other ranks, as `spacy train` does with one.

    Only rank 0 evaluates, writes and logs. A pipeline replaces the one that was saved before when
    it is complete.

    nlp (Language): initialized by spacy.training.initialize.init_nlp, from the same config on all
        ranks.
    output (Path): the folder for model-best, model-last and checkpoints, which are removed at the
        end.
    checkpoint_every (int): the steps between two checkpoints, 0 for none.
    checkpoint (Path): where to resume, see find_checkpoint; None to begin.
    code (Path): the file with functions of the config, if there is one.
    RETURNS (TrainingEnd): how it ended, and with which score.
    RAISES (ValueError): if the ranks cannot train it, the checkpoint cannot be resumed, or training
        diverges. (RankLost): if one of them has ended.
    """
    config = nlp.config.interpolate()
    training = _begin(config, ranks)
    corpora = TrainingCorpora(nlp, config, training)
    folder = _OutputFolder(nlp, training, output, ranks)
    digests: dict[str, str] = {}
    if checkpoint_every or checkpoint is not None:
        digests = {**corpora.digests(), CODE: "" if code is None else file_digest(code)}
    state = TrainingState()
    if checkpoint is not None:
        state, restore_random_states = load_checkpoint(
            checkpoint, nlp, training["optimizer"], ranks, digests
        )
    elif ranks.is_first:
        corpora.warn_of_odd_rows()
    batches = corpora.batches()
    with closing(JointTraining(nlp, ranks)) as joint, _open_log(nlp, training, ranks) as log:
        steps = _Steps(nlp, training, state, joint, corpora.dev)
        if checkpoint is None:
            folder.clean()
        else:
            _skip(batches, state)
            restore_random_states()
        with folder.last_weights(state, is_resumed=checkpoint is not None):
            for info in steps.take(batches):
                if info is not None:
                    folder.add_evaluation(info)
                log(info)
                folder.add_checkpoint(state, digests, every=checkpoint_every)
    folder.remove_checkpoints()
    return _end_of(state, training)


def _begin(config: Config, ranks: TorchDistributed) -> dict[str, Any]:
    """Resolve [training], and seed: batches are the same on all ranks, dropout differs."""
    seed = config["training"]["seed"]
    allocator = config["training"]["gpu_allocator"]
    if seed is not None:
        # Readers and spaCy shuffle by Python's random
        fix_random_seed(seed)
        torch.manual_seed(seed + ranks.rank)
        xp: Any = get_current_ops().xp
        for module in {numpy, xp}:
            module.random.seed(seed + ranks.rank)
    if allocator and isinstance(get_current_ops(), CupyOps):
        set_gpu_allocator(allocator)
    return registry.resolve(config["training"], schema=ConfigSchemaTraining)


@contextmanager
def _open_log(
    nlp: Language, training: dict[str, Any], ranks: TorchDistributed
) -> Iterator[Callable[[_Info | None], None]]:
    """Yield what logs a step, with the info of an evaluation; only the first rank logs."""
    if not ranks.is_first:
        yield lambda info: None
        return
    with nlp.select_pipes(disable=training["frozen_components"]):
        log, close = training["logger"](nlp, sys.stdout, sys.stderr)
    try:
        yield log
    finally:
        close()


def _end_of(state: TrainingState, training: dict[str, Any]) -> TrainingEnd:
    message = f"Training ended after step {state.step - 1}"
    if _is_patience_over(state, training):
        message += f", as no score was better for {training['patience']}"
    score, minus_step = max((score, -step) for score, step in state.results)
    message += f". The best score, {100 * score:.2f}, is that of step {-minus_step}."
    return TrainingEnd(message, untrained_warning(state.results))


def _not_finite(nlp: Language) -> str | None:
    """Return a component with weights that are not finite, and one of them; None if all are."""
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        weight = weights_not_finite(model) if isinstance(model, Model) else None
        if weight:
            return f"{weight} in '{name}'"
    return None


def _check_finite(nlp: Language) -> None:
    weight = _not_finite(nlp)
    if weight is not None:
        raise DivergedError(_NOT_FINITE.format(what=f"The weights {weight} are"))


def _skip(batches: Batches, state: TrainingState) -> None:
    """Skip the batches before a checkpoint.

    Raise ValueError if they are not those that it was made with.
    """
    content = 0
    for _ in range(state.step):
        _, batch = next(batches, (0, []))
        content = crc32(content_of(batch), content)
    if content != state.content:
        raise ValueError(
            f"Cannot resume: the training corpus does not make the {state.step} batches of the "
            "checkpoint. Give the same files, or train in another folder."
        )


class _Steps:
    """Steps of a training, which update its state, from wherever that is.

    SOURCE: spacy.training.loop.train_while_improving, which always begins at step 0, and may not
        score the last step.
    """

    def __init__(
        self,
        nlp: Language,
        training: dict[str, Any],
        state: TrainingState,
        joint: JointTraining,
        dev_corpus: Reader,
    ):
        self._nlp = nlp
        self._training = training
        self._state = state
        self._joint = joint
        self._score = loop.create_evaluation_callback(nlp, dev_corpus, training["score_weights"])
        dropouts: Any = training["dropout"]
        if isinstance(dropouts, float):
            dropouts = constant(dropouts)
        self._dropouts: Iterator[float] = dropouts
        for _ in range(state.step):
            next(self._dropouts)
        self._started = perf_counter() - state.seconds

    def take(self, batches: Batches) -> Iterator[_Info | None]:
        """Take steps until the batches end or the scores stop improving.

        YIELDS (dict): what the logger is told of a step with an evaluation, None of others. The
            last step is yielded once more, with its score, if eval_frequency does not divide its
            number.
        """
        state = self._state
        frequency = self._training["eval_frequency"]
        for epoch, batch in batches:
            if state.step and self._is_over():
                break
            state.epoch = epoch
            state.content = crc32(content_of(batch), state.content)
            self._learn(batch)
            state.words += sum(len(example) for example in batch)
            is_scored = state.step % frequency == 0
            info = self._evaluate(state.step) if is_scored else None
            state.step += 1
            yield info
        if state.step and state.results[-1][1] != state.step - 1:
            yield self._evaluate(state.step - 1)

    def _is_over(self) -> bool:
        max_steps = self._training["max_steps"]
        if max_steps and self._state.step > max_steps:
            return True
        return _is_patience_over(self._state, self._training)

    def _learn(self, batch: list[Example]) -> None:
        training = self._training
        state = self._state
        frozen = training["frozen_components"]
        if training["before_update"]:
            training["before_update"](self._nlp, {"step": state.step, "epoch": state.epoch})
        drop = next(self._dropouts)
        for part in loop.subdivide_batch(batch, training["accumulate_gradient"]):
            self._joint.update(
                part,
                losses=state.losses,
                sgd=False,
                drop=drop,
                exclude=frozen,
                annotates=training["annotating_components"],
            )
        for name, loss in state.losses.items():
            if not math.isfinite(loss):
                raise DivergedError(_NOT_FINITE.format(what=f"The loss of '{name}' is"))
        for name, pipe in self._nlp.pipeline:
            has_model = getattr(pipe, "model", None) not in (True, False, None)
            if has_model and name not in frozen and getattr(pipe, "is_trainable", False):
                pipe.finish_update(training["optimizer"])  # type: ignore[attr-defined]
        training["optimizer"].step_schedules()
        self._measure_time()

    def _measure_time(self) -> None:
        self._state.seconds = perf_counter() - self._started

    def _evaluate(self, step: int) -> _Info:
        """Score the pipeline, and return what the logger is told of a step."""
        state = self._state
        averages = self._training["optimizer"].averages
        with self._nlp.use_params(averages) if averages else nullcontext():
            _check_finite(self._nlp)
            score, others = self._joint.evaluate(self._score)
        if not math.isfinite(score):
            raise DivergedError(_NOT_FINITE.format(what="The score is"))
        state.results.append((float(score), step))
        losses = state.losses
        state.losses = {}
        self._measure_time()
        return {
            "epoch": state.epoch,
            "step": step,
            "score": score,
            "other_scores": others,
            "losses": losses,
            "checkpoints": state.results,
            "seconds": int(state.seconds),
            "words": state.words,
            "is_summarized": True,
        }


def _is_patience_over(state: TrainingState, training: dict[str, Any]) -> bool:
    """Return whether training.patience steps (0: never) were taken after the best score.

    Only scores of every eval_frequency count.
    """
    results = [
        (score, -step) for score, step in state.results if step % training["eval_frequency"] == 0
    ]
    if not training["patience"] or not results:
        return False
    _, minus_step = max(results)
    return state.step - 1 + minus_step >= training["patience"]


class _OutputFolder:
    """Folder with model-last, model-best and checkpoints, which the first rank writes.

    output (Path): where it is; None to write nothing.
    """

    def __init__(
        self,
        nlp: Language,
        training: dict[str, Any],
        output: Path | None,
        ranks: TorchDistributed,
    ):
        self._nlp = nlp
        self._training = training
        self._output = output
        self._ranks = ranks
        # None for a rank that does not write
        self._path: Path | None = None
        if ranks.is_first:
            self._path = output

    def clean(self) -> None:
        """Remove the model-last and model-best of an earlier training."""
        loop.clean_output_dir(self._path)

    def add_evaluation(self, info: _Info) -> None:
        """Note the scores in the meta of the pipeline, and save it."""
        check_scored(self._training["score_weights"], info["other_scores"])
        with self._nlp.select_pipes(disable=self._training["frozen_components"]):
            loop.update_meta(self._training, self._nlp, info)
        best_score, _ = max(info["checkpoints"])
        self._save_pipeline(is_best=info["score"] == best_score)
        if self._path is not None:
            info["output_path"] = str(self._path / loop.DIR_MODEL_LAST)

    def add_checkpoint(self, state: TrainingState, digests: dict[str, str], *, every: int) -> None:
        """Save a checkpoint if it is due: every so many steps, 0 for never."""
        if self._output is None or not every or state.step % every:
            return
        _check_finite(self._nlp)
        optimizer = self._training["optimizer"]
        save_checkpoint(self._output, self._nlp, optimizer, state, self._ranks, digests)

    def remove_checkpoints(self) -> None:
        """Remove all checkpoints, since the training is complete."""
        if self._path is not None:
            remove_checkpoints(self._path)

    @contextmanager
    def last_weights(self, state: TrainingState, *, is_resumed: bool) -> Iterator[None]:
        """Save model-last at the end, also that of an interruption, unless training diverged."""
        first_step = state.step
        has_diverged = False
        try:
            yield
        except DivergedError as error:
            has_diverged = True
            message = f"Training diverged at step {state.step}. {error}"
            if self._path is not None and (self._path / loop.DIR_MODEL_LAST).exists():
                message += f" {self._path / loop.DIR_MODEL_LAST} has the weights before."
            raise DivergedError(message) from error
        finally:
            # A resumed training without a step has nothing newer than model-last
            has_steps = not is_resumed or state.step > first_step
            if has_steps and not has_diverged and _not_finite(self._nlp) is None:
                self._save_pipeline(is_best=False)

    def _save_pipeline(self, *, is_best: bool) -> None:
        """Save model-last, and a copy of it as model-best."""
        if self._path is None:
            return
        model_last = self._path / loop.DIR_MODEL_LAST
        before_to_disk = loop.create_before_to_disk_callback(self._training["before_to_disk"])
        with (
            self._nlp.use_params(self._training["optimizer"].averages),
            atomic_folder(model_last, replace=True) as folder,
        ):
            before_to_disk(self._nlp).to_disk(folder)
        if is_best:
            with atomic_folder(self._path / loop.DIR_MODEL_BEST, replace=True) as folder:
                shutil.copytree(model_last, folder, dirs_exist_ok=True)
