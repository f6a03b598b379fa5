"""State of a training run: scores, patience, epochs and batches."""

import hashlib
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.training import Example
from spacy.training.loop import subdivide_batch
from thinc.api import Optimizer, constant

from ..training.batchers import AnyBatcher

_Scores = tuple[float, dict[str, Any]]


@dataclass
class TrainingState:
    """Progress of a training.

    step (int): steps taken. epoch (int): of the last of them. results: the score and the step of each evaluation.
    losses: since the last one. words (int): seen so far. seconds (float): before it was resumed.
    """

    step: int = 0
    epoch: int = 0
    results: list[tuple[float, int]] = field(default_factory=list)
    losses: dict[str, float] = field(default_factory=dict)
    words: int = 0
    seconds: float = 0.0

    @property
    def best(self) -> tuple[float, int]:
        """Return the best score and its step, of equal scores the first."""
        score, minus_step = max((score, -step) for score, step in self.results)
        return score, -minus_step

    def is_over(self, patience: int, max_steps: int, eval_frequency: int = 1) -> bool:
        """Return whether training ends with the last step: by max_steps, or by patience after the best score."""
        if not self.step:
            return False
        return self.is_patience_over(patience, eval_frequency) or bool(max_steps and self.step > max_steps)

    def is_patience_over(self, patience: int, eval_frequency: int = 1) -> bool:
        """Return whether there were `patience` steps after the best score, 0 for any number.

        eval_frequency (int): as in [training]. The score of a last step that it does not divide is
            ignored: it comes after the decision.
        """
        results = [(score, -step) for score, step in self.results if not step % eval_frequency]
        return bool(patience and results) and self.step - 1 + max(results)[1] >= patience


def train_while_improving(
    nlp: Language,
    optimizer: Optimizer,
    batches: Iterable[tuple[int, list[Example]]],
    evaluate: Callable[[], _Scores],
    progress: TrainingState,
    *,
    update: Callable[..., dict[str, float]],
    dropout: Any,  # noqa: ANN401 (a float or a schedule, as in spaCy)
    eval_frequency: int,
    accumulate_gradient: int,
    patience: int,
    max_steps: int,
    exclude: Sequence[str],
    annotating_components: Sequence[str],
    before_update: Callable[[Language, dict[str, Any]], None] | None,
) -> Iterator[tuple[dict[str, Any], bool | None]]:
    """Take steps until the scores stop improving, beginning at progress, which is updated.

    Arguments are those of spaCy's function of the same name; batches are the remaining ones, and update is
    Language.update or JointTraining.update.

    YIELDS (dict, bool): the logger's info; whether the step's score is the best one, None if it was not scored. The
        last step is yielded once more, with its score, if eval_frequency does not divide its number.
    SOURCE: spacy.training.loop.train_while_improving, which always begins at step 0, and may not score the last step.
    """
    dropouts: Any = constant(dropout) if isinstance(dropout, float) else dropout
    for _ in range(progress.step):
        next(dropouts)
    started = perf_counter() - progress.seconds

    def info_of(step: int, *, is_scored: bool) -> tuple[dict[str, Any], bool | None]:
        info: dict[str, Any] = {"epoch": progress.epoch, "step": step, "score": None, "other_scores": None}
        info |= {"losses": progress.losses, "checkpoints": progress.results}
        is_best = _score(nlp, optimizer, evaluate, progress, info) if is_scored else None
        progress.seconds = perf_counter() - started
        return info | {"seconds": int(progress.seconds), "words": progress.words}, is_best

    for epoch, batch in batches:
        if progress.is_over(patience, max_steps, eval_frequency):
            break
        step, progress.epoch = progress.step, epoch
        if before_update:
            before_update(nlp, {"step": step, "epoch": epoch})
        drop = next(dropouts)
        for part in subdivide_batch(batch, accumulate_gradient):
            update(
                part,
                drop=drop,
                losses=progress.losses,
                sgd=False,
                exclude=exclude,
                annotates=annotating_components,
            )
        _finish_update(nlp, optimizer, exclude)
        progress.words += sum(len(example) for example in batch)
        info = info_of(step, is_scored=not step % eval_frequency)
        progress.step += 1
        yield info
    if progress.step and progress.results[-1][1] != progress.step - 1:
        yield info_of(progress.step - 1, is_scored=True)


def _score(
    nlp: Language,
    optimizer: Optimizer,
    evaluate: Callable[[], _Scores],
    progress: TrainingState,
    info: dict[str, Any],
) -> bool:
    """Add the scores of a step; return whether they are the best."""
    with nlp.use_params(optimizer.averages) if optimizer.averages else nullcontext():
        info["score"], info["other_scores"] = evaluate()
    progress.results.append((info["score"], info["step"]))
    progress.losses = {}
    return info["score"] == max(progress.results)[0]


def _finish_update(nlp: Language, optimizer: Optimizer, exclude: Sequence[str]) -> None:
    for name, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        if name not in exclude and getattr(pipe, "is_trainable", False) and model not in (True, False, None):
            pipe.finish_update(optimizer)  # type: ignore[attr-defined]
    optimizer.step_schedules()


_Corpus = Callable[[Language], Iterable[Example]]


class ResumableBatches:
    """Makes batches as spaCy does: each epoch shuffles a corpus in memory, or reads a stream again.

    nlp (Language), corpus, batcher, max_epochs: of spaCy's create_train_batches.
    epoch, taken (int): the number of the epoch, and of its batches so far.
    order (int64 (examples,)): of the examples in this epoch, by their places in the corpus; empty for a stream.
    begun (tuple): Python's random state at the start of this epoch's batches.
    content (str): the SHA-256 of texts, scores and labels of a corpus in memory, after it was read; "" for a stream.
    SOURCE: spacy.training.loop.create_train_batches, whose batches these are.
    """

    def __init__(self, nlp: Language, corpus: _Corpus, batcher: AnyBatcher, max_epochs: int):
        self._nlp, self._corpus, self._batcher, self._max_epochs = nlp, corpus, batcher, max_epochs
        self.epoch = self.taken = 0
        self.order = numpy.zeros(0, dtype="int64")
        self.begun = random.getstate()
        self.content = ""
        self._skipped: Callable[[], None] | None = None

    def resume(self, epoch: int, taken: int, order: numpy.ndarray, begun: tuple, skipped: Callable[[], None]) -> None:
        """Continue after the batches that another process made.

        skipped (Callable): called when these batches were skipped, to restore the random states.
        """
        self.epoch, self.taken, self.order, self.begun = epoch, taken, order, begun
        self._skipped = skipped

    def __iter__(self) -> Iterator[tuple[int, list[Example]]]:
        """Yield the number of the epoch, and a batch.

        RAISES (ValueError): if a corpus in memory has no examples, or others than before.
        """
        held = self._held() if self._max_epochs >= 0 else None
        while self._max_epochs < 1 or self.epoch < self._max_epochs:
            yield from ((self.epoch, batch) for batch in self._batches(held))
            self.epoch += 1

    def _held(self) -> list[Example]:
        held = list(self._corpus(self._nlp))
        if not held:
            raise ValueError(SpacyErrors.E986)
        content = hashlib.sha256()
        for example in held:
            doc = example.reference
            gold = [doc.cats, *(group.attrs for group in doc.spans.values())]
            content.update(f"{doc.text}\0{gold}\0".encode("utf8", "surrogatepass"))
        if self._skipped is not None and (self.content, len(self.order)) != (content.hexdigest(), len(held)):
            raise ValueError(
                f"Cannot resume: the training corpus has {len(held)} examples, expected the {len(self.order)} of the "
                "checkpoint, in their order and with their texts. Give the same files, or train in another folder."
            )
        self.content = content.hexdigest()
        if self._skipped is None:
            self.order = numpy.arange(len(held))
        return held

    def _batches(self, held: list[Example] | None) -> Iterator[list[Example]]:
        passed, skipped, self._skipped = self.taken, self._skipped, None
        if skipped is None:
            passed = 0
            if held is not None:
                self.order = _shuffled(self.order)
            self.begun = random.getstate()
        elif held is None:
            for _ in range(self.epoch):  # readers that shuffle count how often they were read
                deque(self._corpus(self._nlp), maxlen=0)
        random.setstate(self.begun)
        examples = self._corpus(self._nlp) if held is None else [held[place] for place in self.order]
        self.taken = 0
        for batch in self._batcher(examples):
            self.taken += 1
            if self.taken > passed:
                yield batch
            elif self.taken == passed and skipped is not None:
                skipped()
        if self.taken < passed:
            raise ValueError(
                f"Cannot resume: the training corpus makes {self.taken} batches, expected at least the {passed} of the "
                "checkpoint. Give the same files, or train in another folder."
            )


def _shuffled(order: numpy.ndarray) -> numpy.ndarray:
    """Return the order after random.shuffle."""
    places = order.tolist()
    random.shuffle(places)
    return numpy.array(places, dtype="int64")
