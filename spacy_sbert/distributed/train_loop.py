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
from ..models.spans import members
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
from .torch_distributed import TorchDistributed

_NOT_FINITE = "{what} not finite. Lower the learning rate."


class TrainingEnd(NamedTuple):
    """How a training ended: a sentence, and whether model-best is the encoder as it was before."""

    message: str
    is_untrained: bool


_Batches = Iterator[tuple[int, list[Example]]]


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
    # Which checks by itself
    if config["training"]["logger"].get("@loggers") != "spacy-sbert.ProgressLogger.v1":
        check_dev_corpus(nlp)
    train_corpus, dev_corpus = resolve_dot_names(
        config, [training["train_corpus"], training["dev_corpus"]]
    )
    optimizer, frozen, weights = (
        training["optimizer"],
        training["frozen_components"],
        training["score_weights"],
    )
    held = _in_memory(nlp, train_corpus) if training["max_epochs"] >= 0 else None
    state = TrainingState()
    corpora: dict[str, str] = {}
    if checkpoint_every or checkpoint is not None:
        corpora = _corpora_digests(nlp, held, dev_corpus)
    if checkpoint is not None:
        state, restore = load_checkpoint(checkpoint, nlp, optimizer, ranks, corpora)
    elif ranks.is_first and held is not None:
        _warn_of_odd_rows(train_corpus, dev_corpus)
    begun = state.step
    written = output if ranks.is_first else None
    batches = _batches(nlp, train_corpus, training["batcher"], training["max_epochs"], held)
    with closing(_JointTraining(nlp, ranks)) as joint:
        score = loop.create_evaluation_callback(nlp, dev_corpus, weights)

        def evaluate() -> tuple[float, dict[str, Any]]:
            _check_finite(nlp)
            return joint.evaluate(score)

        with nlp.select_pipes(disable=frozen):
            log, finish = lambda info: None, lambda: None
            if ranks.is_first:
                log, finish = training["logger"](nlp, sys.stdout, sys.stderr)
        if checkpoint is None:
            loop.clean_output_dir(written)
        # False once training has diverged
        is_usable = True
        try:
            if checkpoint is not None:
                _skip(batches, state)
                restore()
            for info, is_best in _steps(nlp, training, batches, state, joint.update, evaluate):
                if is_best is not None:
                    check_scored(weights, info["other_scores"])
                    with nlp.select_pipes(disable=frozen):
                        loop.update_meta(training, nlp, info)
                    if written is not None:
                        _save(nlp, written, training, is_best=is_best)
                        info["output_path"] = str(written / loop.DIR_MODEL_LAST)
                log(info if is_best is not None else None)
                if output is not None and checkpoint_every and not state.step % checkpoint_every:
                    _check_finite(nlp)
                    save_checkpoint(output, nlp, optimizer, state, ranks, corpora)
        except DivergedError as error:
            is_usable = False
            message = f"Training diverged at step {state.step}. {error}"
            if written is not None and (written / loop.DIR_MODEL_LAST).exists():
                message += f" {written / loop.DIR_MODEL_LAST} has the weights before."
            raise DivergedError(message) from error
        finally:
            finish()
            # Else model-last may be newer
            is_newer = checkpoint is None or state.step > begun
            if written is not None and is_newer and is_usable and _not_finite(nlp) is None:
                _save(nlp, written, training, is_best=False)
    if written is not None:
        # The training is over
        remove_checkpoints(written)
    return _end_of(state, training)


def _warn_of_odd_rows(train_corpus: Reader, dev_corpus: Reader) -> None:
    """Warn of rows of the corpora that contradict or repeat others, if they are more than a few."""
    for finding in odd_corpora(train_corpus, dev_corpus):
        if not finding.is_rare:
            warn(finding.message)


def _end_of(state: TrainingState, training: dict[str, Any]) -> TrainingEnd:
    why = (
        f", as no score was better for {training['patience']}"
        if _is_patience_over(state, training)
        else ""
    )
    score, minus_step = max((score, -step) for score, step in state.results)
    best = f"The best score, {100 * score:.2f}, is that of step {-minus_step}."
    return TrainingEnd(
        f"Training ended after step {state.step - 1}{why}. {best}", is_untrained(state.results)
    )


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


def _in_memory(nlp: Language, corpus: Reader) -> list[Example]:
    examples = list(corpus(nlp))
    if not examples:
        raise ValueError(
            "The training corpus has no examples. Check [paths] and training.train_corpus."
        )
    return examples


def _corpora_digests(
    nlp: Language, held: Sequence[Example] | None, dev_corpus: Reader
) -> dict[str, str]:
    """Return digests of the corpora by their names in messages. held: the training corpus.

    None for a stream.
    """
    # A reader that shuffles must not change the order of the training
    state = random.getstate()
    digests = {"the dev corpus": digest_of_examples(dev_corpus(nlp))}
    random.setstate(state)
    if held is not None:
        digests["the training corpus"] = digest_of_examples(held)
    return digests


def _batches(
    nlp: Language, corpus: Reader, batcher: AnyBatcher, max_epochs: int, held: list[Example] | None
) -> _Batches:
    """Yield the number of the epoch, and a batch, as spacy.training.loop.create_train_batches does.

    The order of a corpus in memory only depends on the seed, so that the batches before a
    checkpoint can be skipped.

    held: the corpus in memory, which is shuffled; None for a stream.
    """
    order, epoch = random.Random(), 0
    order.setstate(random.getstate())
    while max_epochs < 1 or epoch < max_epochs:
        if held is not None:
            order.shuffle(held)
        for batch in batcher(corpus(nlp) if held is None else held):
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
            "checkpoint. Give the "
            "same files, or train in another folder."
        )


def _steps(
    nlp: Language,
    training: dict[str, Any],
    batches: _Batches,
    state: TrainingState,
    update: Callable[..., dict[str, float]],
    evaluate: Callable[[], tuple[float, dict[str, Any]]],
) -> Iterator[tuple[dict[str, Any], bool | None]]:
    """Take steps until the scores stop improving, beginning at a state, which is updated.

    YIELDS (dict, bool): the logger's info; whether the step's score is the best one, None if it was
        not scored. The last step is yielded once more, with its score, if eval_frequency does not
        divide its number.
    SOURCE: spacy.training.loop.train_while_improving, which always begins at step 0, and may not
        score the last step.
    """
    optimizer, frequency, frozen = (
        training["optimizer"],
        training["eval_frequency"],
        training["frozen_components"],
    )
    dropouts: Any = (
        constant(training["dropout"])
        if isinstance(training["dropout"], float)
        else training["dropout"]
    )
    for _ in range(state.step):
        next(dropouts)
    started = perf_counter() - state.seconds

    def result(step: int, *, is_scored: bool) -> tuple[dict[str, Any], bool | None]:
        info: dict[str, Any] = {
            "epoch": state.epoch,
            "step": step,
            "score": None,
            "other_scores": None,
        }
        info |= {
            "losses": state.losses,
            "checkpoints": state.results,
            "words": state.words,
            "is_summarized": True,
        }
        if is_scored:
            with nlp.use_params(optimizer.averages) if optimizer.averages else nullcontext():
                info["score"], info["other_scores"] = evaluate()
            if not math.isfinite(info["score"]):
                raise DivergedError(_NOT_FINITE.format(what="The score is"))
            state.results.append((float(info["score"]), step))
            state.losses = {}
        state.seconds = perf_counter() - started
        is_best = info["score"] == max(state.results)[0] if is_scored else None
        return info | {"seconds": int(state.seconds)}, is_best

    for epoch, batch in batches:
        is_last = bool(training["max_steps"]) and state.step > training["max_steps"]
        if state.step and (is_last or _is_patience_over(state, training)):
            break
        state.epoch, state.content = epoch, crc32(content_of(batch), state.content)
        if training["before_update"]:
            training["before_update"](nlp, {"step": state.step, "epoch": epoch})
        settings = {
            "drop": next(dropouts),
            "exclude": frozen,
            "annotates": training["annotating_components"],
        }
        for part in loop.subdivide_batch(batch, training["accumulate_gradient"]):
            update(part, losses=state.losses, sgd=False, **settings)
        if wrong := [name for name, loss in state.losses.items() if not math.isfinite(loss)]:
            raise DivergedError(_NOT_FINITE.format(what=f"The loss of '{wrong[0]}' is"))
        for name, pipe in nlp.pipeline:
            has_model = getattr(pipe, "model", None) not in (True, False, None)
            if has_model and name not in frozen and getattr(pipe, "is_trainable", False):
                pipe.finish_update(optimizer)  # type: ignore[attr-defined]
        optimizer.step_schedules()
        state.words += sum(len(example) for example in batch)
        info = result(state.step, is_scored=not state.step % frequency)
        state.step += 1
        yield info
    if state.step and state.results[-1][1] != state.step - 1:
        yield result(state.step - 1, is_scored=True)


def _is_patience_over(state: TrainingState, training: dict[str, Any]) -> bool:
    """Return whether there were training.patience steps (0: never) after the best score of every eval_frequency."""
    results = [
        (score, -step) for score, step in state.results if not step % training["eval_frequency"]
    ]
    return (
        bool(training["patience"] and results)
        and state.step - 1 + max(results)[1] >= training["patience"]
    )


class _JointTraining:
    """Updates and evaluates a pipeline on all ranks; with one rank, as the pipeline itself does.

    Each update learns from the rank's part of a batch, and sums the gradients of the encoders.
    Heads have those of the whole batch already, because each rank computes its loss. Rank 0 gives
    all its weights, and evaluates for all.
    """

    def __init__(self, nlp: Language, ranks: TorchDistributed):
        self._nlp, self._ranks, self._step = nlp, ranks, 0
        self.pipes: list[Any] = []
        if ranks.size == 1:
            return
        config = nlp.config["training"]
        self.pipes, upstream = _trained(nlp, config["frozen_components"], ranks.size)
        if config["accumulate_gradient"] != 1:
            raise ValueError(
                f"training.accumulate_gradient is {config['accumulate_gradient']}, but "
                f"{ranks.size} ranks need 1. For "
                "batches larger than memory take spacy-sbert.CachedMultipleNegativesRankingLoss.v1."
            )
        self._encoders = [*upstream, *(pipe.model.get_ref("encoder") for pipe in self.pipes)]
        self._models = [*upstream, *(pipe.model for pipe in self.pipes)]
        ranks.broadcast_parameters(self._models)
        for pipe in self.pipes:
            pipe.peers = ranks

    def close(self) -> None:
        """Let the pipes train alone again."""
        for pipe in self.pipes:
            pipe.peers = None

    def update(self, examples: Sequence[Example], **settings: Any) -> dict[str, float]:
        """Learn from a batch, which must be the same on all ranks.

        Settings are those of Language.update.
        """
        if self._ranks.size == 1:
            return self._nlp.update(examples, **settings)
        batch, size = list(examples), self._ranks.size
        if not self._ranks.agree([content_of(batch)]):
            raise ValueError(
                f"The ranks have different batches in step {self._step}. Set training.seed (it is "
                f"{self._nlp.config['training']['seed']}), give all ranks the same files, and "
                "shuffle with a seed."
            )
        for pipe in self.pipes:
            learning = [bool(members(example.predicted, pipe.spans_key)) for example in batch]
            idle = [rank for rank in range(size) if not any(learning[rank::size])]
            if idle:
                raise ValueError(
                    f"A batch of {len(batch)} examples leaves rank {idle[0]} without one for "
                    f"'{pipe.name}', with "
                    f"members in doc.spans['{pipe.spans_key}']. Set a larger size in "
                    "[training.batcher], or take fewer "
                    f"ranks than {size}."
                )
        part = self._ranks.share(batch)
        losses = self._nlp.update(part, **settings)
        for pipe in self.pipes:
            # Which it has counted itself
            pipe.examples_seen += len(batch) - len(part)
        self._ranks.sum_gradients(self._encoders)
        self._step += 1
        return losses

    def evaluate(self, evaluate: Callable[[], Any]) -> Any:
        """Return the result of a function, which only rank 0 calls, on all ranks."""
        if self._ranks.size == 1:
            return evaluate()
        if not self._ranks.agree_on_weights(self._models):
            raise ValueError(
                f"The ranks have different weights after step {self._step}. Set system.seed and "
                "training.seed, and "
                "give all ranks the same files, versions and kind of machine."
            )
        # A reader that shuffles must not leave the other ranks behind
        state = random.getstate()
        scores = evaluate() if self._ranks.is_first else None
        random.setstate(state)
        return self._ranks.gather_objects(scores)[0]


def _trained(nlp: Language, frozen: Sequence[str], size: int) -> tuple[list[Any], list[Model]]:
    """Return the `sbert` pipes that are trained, and the models of the components that they listen to."""
    trained: dict[str, Any] = {
        name: pipe
        for name, pipe in nlp.pipeline
        if name not in frozen and getattr(pipe, "is_trainable", False)
    }
    pipes = {name: pipe for name, pipe in trained.items() if getattr(pipe, "takes_peers", False)}
    upstream = {}
    for name, pipe in trained.items():
        listeners = [
            other for other in getattr(pipe, "listening_components", ()) if other in trained
        ]
        if listeners and all(other in pipes for other in listeners):
            upstream[name] = pipe.model
    others = trained.keys() - pipes.keys() - upstream.keys()
    if others or not pipes:
        raise ValueError(
            f"{size} ranks cannot train {', '.join(sorted(others)) or 'nothing'} together: "
            "expected `sbert` pipes and "
            "the transformers they listen to, the pipeline has "
            f"{', '.join(nlp.pipe_names) or 'none'}. Name other "
            "trainable components in training.frozen_components, or train them on one rank."
        )
    return [*pipes.values()], [*upstream.values()]


def _save(nlp: Language, output: Path, training: dict[str, Any], *, is_best: bool) -> None:
    """Save model-last, and a copy of it as model-best."""
    before_to_disk = loop.create_before_to_disk_callback(training["before_to_disk"])
    averages = training["optimizer"].averages
    with (
        nlp.use_params(averages),
        atomic_folder(output / loop.DIR_MODEL_LAST, replace=True) as folder,
    ):
        before_to_disk(nlp).to_disk(folder)
    if is_best:
        with atomic_folder(output / loop.DIR_MODEL_BEST, replace=True) as folder:
            shutil.copytree(output / loop.DIR_MODEL_LAST, folder, dirs_exist_ok=True)


def _begin(config: Config, ranks: TorchDistributed) -> dict[str, Any]:
    """Resolve [training], and seed: batches are the same on all ranks, dropout differs."""
    seed, allocator = config["training"]["seed"], config["training"]["gpu_allocator"]
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
