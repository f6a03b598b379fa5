"""The steps of a training, as spaCy takes them, which can be gone on with at any of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from spacy.language import Language
from spacy.training import Example
from spacy.training.loop import subdivide_batch
from thinc.api import Optimizer, constant

Scores = tuple[float, dict[str, Any]]


@dataclass
class Progress:
    """How far a training has come.

    step (int): steps that were taken. epoch (int): of the last of them. results: the score of each evaluation and its
    step. losses: since the last one. words (int): that were seen. seconds (float): before it was gone on with.
    """

    step: int = 0
    epoch: int = 0
    results: list[tuple[float, int]] = field(default_factory=list)
    losses: dict[str, float] = field(default_factory=dict)
    words: int = 0
    seconds: float = 0.0

    @property
    def best(self) -> tuple[float, int]:
        """The best score and its step, of equal scores the first."""
        score, minus_step = max((score, -step) for score, step in self.results)
        return score, -minus_step

    def is_over(self, patience: int, max_steps: int, eval_frequency: int = 1) -> bool:
        """Whether the last step is to be the last one: of max_steps, or so many after the best score."""
        if not self.step:
            return False
        return self.is_patience_over(patience, eval_frequency) or bool(max_steps and self.step > max_steps)

    def is_patience_over(self, patience: int, eval_frequency: int = 1) -> bool:
        """Return whether there were `patience` steps after the best score, 0 for any number.

        eval_frequency (int): as in [training]. The score of a last step that it does not divide does not count: it
            comes after the decision.
        """
        results = [(score, -step) for score, step in self.results if not step % eval_frequency]
        return bool(patience and results) and self.step - 1 + max(results)[1] >= patience


def train_while_improving(
    nlp: Language,
    optimizer: Optimizer,
    batches: Iterable[tuple[int, list[Example]]],
    evaluate: Callable[[], Scores],
    progress: Progress,
    *,
    update: Callable[..., dict[str, float]],
    dropout: Any,
    eval_frequency: int,
    accumulate_gradient: int,
    patience: int,
    max_steps: int,
    exclude: Sequence[str],
    annotating_components: Sequence[str],
    before_update: Callable[[Language, dict[str, Any]], None] | None,
) -> Iterator[tuple[dict[str, Any], bool | None]]:
    """Take steps until the scores do not get better, from where progress stands, which is kept.

    Arguments are those of spaCy's function of the same name; batches are the ones that are left, and update is what
    Language.update does, also together with other ranks.

    YIELDS (dict, bool): what a logger is told; whether the step's score is the best one, None where it was not scored.
        The last step is yielded once more, with its score, where eval_frequency does not divide its number.
    SOURCE: spacy.training.loop.train_while_improving, which begins at step 0 alone, and may not score the last step.
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
        found = info_of(step, is_scored=not step % eval_frequency)
        progress.step += 1
        yield found
    if progress.step and progress.results[-1][1] != progress.step - 1:
        yield info_of(progress.step - 1, is_scored=True)


def _score(
    nlp: Language,
    optimizer: Optimizer,
    evaluate: Callable[[], Scores],
    progress: Progress,
    info: dict[str, Any],
) -> bool:
    """Note the scores of a step; return whether they are the best ones."""
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
