"""Training loop with resume and several processes."""

import math
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from zlib import crc32

import numpy
import torch
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example, loop
from spacy.util import registry, resolve_dot_names
from thinc.api import (
    Config,
    CupyOps,
    Model,
    constant,
    fix_random_seed,
    get_current_ops,
    set_gpu_allocator,
)

from ..errors import DivergedError, warn
from ..files.atomic import atomic_folder
from ..models.finite_weights import weights_not_finite
from ..readers.table_checks import odd_corpora
from ..training.batchers import AnyBatcher
from ..training.examples import Reader
from ..training.gold import check_dev_corpus, check_scored, is_untrained
from .checkpoint import (
    TrainingState,
    content_of,
    digest_of_examples,
    load_checkpoint,
    remove_checkpoints,
    save_checkpoint,
)
from .joint_training import JointTraining
from .torch_distributed import TorchDistributed

# The number of the epoch, and a batch
_Batches = Iterator[tuple[int, list[Example]]]
_Info = dict[str, Any]
_NOT_FINITE = "{what} not finite. Lower the learning rate."


class TrainingEnd(NamedTuple):
    """How a training ended: a sentence, and whether model-best is the encoder as it was before."""

    message: str
    is_untrained: bool


def train(
    nlp: Language,
    output: Path | None,
    ranks: TorchDistributed,
    *,
    checkpoint_every: int = 0,
    checkpoint: Path | None = None,
) -> TrainingEnd:
    """Train a pipeline with the other ranks, as `spacy train` does with one.

    Only rank 0 evaluates, writes and logs. A pipeline replaces the one that was saved before when
    it is complete.

    nlp (Language): initialized by spacy.training.initialize.init_nlp, from the same config on all
        ranks.
    output (Path): the folder for model-best, model-last and checkpoints, which are removed at the
        end.
    checkpoint_every (int): the steps between two checkpoints, 0 for none. checkpoint (Path): where
        to resume, see find_checkpoint; None to begin.
    RETURNS (TrainingEnd): how it ended, and with which score.
    RAISES (ValueError): if the ranks cannot train it, the checkpoint cannot be resumed, or training
        diverges. (RankLost): if one of them has ended.
    """
    config = nlp.config.interpolate()
    training = _begin(config, ranks)
    # The logger of this package checks by itself
    if config["training"]["logger"].get("@loggers") != "spacy-sbert.ProgressLogger.v1":
        check_dev_corpus(nlp)
    train_corpus, dev_corpus = resolve_dot_names(
        config, [training["train_corpus"], training["dev_corpus"]]
    )
    in_memory = _read(nlp, train_corpus) if training["max_epochs"] >= 0 else None
    state = TrainingState()
    corpora: dict[str, str] = {}
    if checkpoint_every or checkpoint is not None:
        corpora = _corpora_digests(nlp, in_memory, dev_corpus)
    if checkpoint is not None:
        state, restore = load_checkpoint(checkpoint, nlp, training["optimizer"], ranks, corpora)
    elif ranks.is_first and in_memory is not None:
        _warn_of_odd_rows(train_corpus, dev_corpus)
    first_step = state.step
    batches = _batches(nlp, train_corpus, training, in_memory)
    saved = _SavedPipelines(nlp, training, output if ranks.is_first else None)
    with closing(JointTraining(nlp, ranks)) as joint:
        steps = _Steps(nlp, training, state, joint, dev_corpus)
        log, close_log = _open_log(nlp, training, ranks)
        if checkpoint is None:
            loop.clean_output_dir(saved.output)
        has_diverged = False
        try:
            if checkpoint is not None:
                _skip(batches, state)
                restore()
            for info, is_best in steps.take(batches):
                if is_best is None:
                    log(None)
                else:
                    saved.add_evaluation(info, is_best=is_best)
                    log(info)
                if output is not None and checkpoint_every and state.step % checkpoint_every == 0:
                    _check_finite(nlp)
                    save_checkpoint(output, nlp, training["optimizer"], state, ranks, corpora)
        except DivergedError as error:
            has_diverged = True
            message = f"Training diverged at step {state.step}. {error}"
            raise DivergedError(f"{message}{saved.hint()}") from error
        finally:
            close_log()
            # A resumed training without a step has saved nothing newer than model-last
            has_steps = checkpoint is None or state.step > first_step
            if has_steps and not has_diverged and _not_finite(nlp) is None:
                saved.save(is_best=False)
    if saved.output is not None:
        remove_checkpoints(saved.output)
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


def _open_log(
    nlp: Language, training: dict[str, Any], ranks: TorchDistributed
) -> tuple[Callable[[_Info | None], None], Callable[[], None]]:
    """Return what logs a step, and what closes the log; only the first rank has one."""
    if not ranks.is_first:
        return lambda info: None, lambda: None
    with nlp.select_pipes(disable=training["frozen_components"]):
        return training["logger"](nlp, sys.stdout, sys.stderr)


def _warn_of_odd_rows(train_corpus: Reader, dev_corpus: Reader) -> None:
    """Warn of rows of the corpora that contradict or repeat others, if they are more than a few."""
    for finding in odd_corpora(train_corpus, dev_corpus):
        if not finding.is_rare:
            warn(finding.message)


def _end_of(state: TrainingState, training: dict[str, Any]) -> TrainingEnd:
    message = f"Training ended after step {state.step - 1}"
    if _is_patience_over(state, training):
        message += f", as no score was better for {training['patience']}"
    score, minus_step = max((score, -step) for score, step in state.results)
    message += f". The best score, {100 * score:.2f}, is that of step {-minus_step}."
    return TrainingEnd(message, is_untrained(state.results))


def _not_finite(nlp: Language) -> str | None:
    """Return a component with weights that are not finite, and one of them.

    None if there is none.
    """
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        if isinstance(model, Model) and (weight := weights_not_finite(model)):
            return f"{weight} in '{name}'"
    return None


def _check_finite(nlp: Language) -> None:
    if weight := _not_finite(nlp):
        raise DivergedError(_NOT_FINITE.format(what=f"The weights {weight} are"))


def _read(nlp: Language, corpus: Reader) -> list[Example]:
    examples = list(corpus(nlp))
    if not examples:
        raise ValueError(
            "The training corpus has no examples. Check [paths] and training.train_corpus."
        )
    return examples


def _corpora_digests(
    nlp: Language, in_memory: Sequence[Example] | None, dev_corpus: Reader
) -> dict[str, str]:
    """Return digests of the corpora by their names in messages.

    in_memory: the training corpus; None for a stream.
    """
    # A reader that shuffles must not change the order of the training
    state = random.getstate()
    digests = {"the dev corpus": digest_of_examples(dev_corpus(nlp))}
    random.setstate(state)
    if in_memory is not None:
        digests["the training corpus"] = digest_of_examples(in_memory)
    return digests


def _batches(
    nlp: Language, corpus: Reader, training: dict[str, Any], in_memory: list[Example] | None
) -> _Batches:
    """Yield the number of the epoch, and a batch, as spaCy's create_train_batches does.

    The order of a corpus in memory only depends on the seed, so that the batches before a
    checkpoint can be skipped.

    in_memory: the corpus, which is shuffled; None for a stream.
    """
    batcher: AnyBatcher = training["batcher"]
    max_epochs = training["max_epochs"]
    order = random.Random()
    order.setstate(random.getstate())
    epoch = 0
    while max_epochs < 1 or epoch < max_epochs:
        if in_memory is not None:
            order.shuffle(in_memory)
        for batch in batcher(corpus(nlp) if in_memory is None else in_memory):
            yield epoch, batch
        epoch += 1


def _skip(batches: _Batches, state: TrainingState) -> None:
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

    def take(self, batches: _Batches) -> Iterator[tuple[_Info, bool | None]]:
        """Take steps until the batches end or the scores stop improving.

        YIELDS (dict, bool): the logger's info; whether the step's score is the best one, None if it
            was not scored. The last step is yielded once more, with its score, if eval_frequency
            does not divide its number.
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
            step = self._info(state.step, is_scored=state.step % frequency == 0)
            state.step += 1
            yield step
        if state.step and state.results[-1][1] != state.step - 1:
            yield self._info(state.step - 1, is_scored=True)

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

    def _info(self, step: int, *, is_scored: bool) -> tuple[_Info, bool | None]:
        """Return what the logger is told of a step, and whether its score is the best one."""
        state = self._state
        info: _Info = {
            "epoch": state.epoch,
            "step": step,
            "score": None,
            "other_scores": None,
            "losses": state.losses,
            "checkpoints": state.results,
            "words": state.words,
            "is_summarized": True,
        }
        is_best = None
        if is_scored:
            score, info["other_scores"] = self._evaluate()
            info["score"] = score
            state.results.append((float(score), step))
            state.losses = {}
            is_best = score == max(state.results)[0]
        state.seconds = perf_counter() - self._started
        info["seconds"] = int(state.seconds)
        return info, is_best

    def _evaluate(self) -> tuple[float, dict[str, Any]]:
        averages = self._training["optimizer"].averages
        with self._nlp.use_params(averages) if averages else nullcontext():
            _check_finite(self._nlp)
            score, others = self._joint.evaluate(self._score)
        if not math.isfinite(score):
            raise DivergedError(_NOT_FINITE.format(what="The score is"))
        return score, others


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


class _SavedPipelines:
    """model-last and model-best in the output folder; None for a rank that does not write."""

    def __init__(self, nlp: Language, training: dict[str, Any], output: Path | None):
        self._nlp = nlp
        self._training = training
        self.output = output

    def add_evaluation(self, info: _Info, *, is_best: bool) -> None:
        """Note the scores in the meta of the pipeline, and save it."""
        check_scored(self._training["score_weights"], info["other_scores"])
        with self._nlp.select_pipes(disable=self._training["frozen_components"]):
            loop.update_meta(self._training, self._nlp, info)
        self.save(is_best=is_best)
        if self.output is not None:
            info["output_path"] = str(self.output / loop.DIR_MODEL_LAST)

    def save(self, *, is_best: bool) -> None:
        """Save model-last, and a copy of it as model-best."""
        if self.output is None:
            return
        model_last = self.output / loop.DIR_MODEL_LAST
        before_to_disk = loop.create_before_to_disk_callback(self._training["before_to_disk"])
        with (
            self._nlp.use_params(self._training["optimizer"].averages),
            atomic_folder(model_last, replace=True) as folder,
        ):
            before_to_disk(self._nlp).to_disk(folder)
        if is_best:
            with atomic_folder(self.output / loop.DIR_MODEL_BEST, replace=True) as folder:
                shutil.copytree(model_last, folder, dirs_exist_ok=True)

    def hint(self) -> str:
        """Return where weights from before a divergence are; nothing if there are none."""
        if self.output is None or not (self.output / loop.DIR_MODEL_LAST).exists():
            return ""
        return f" {self.output / loop.DIR_MODEL_LAST} has the weights before."
