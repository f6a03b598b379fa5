"""Classification of sentences, or of pairs, by what a classifier learns from their vectors."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy

from ..similarity.concatenation import SYMMETRIC, concatenated
from .classifiers import ALL, Fold, check_sklearn, make_folds, predict_lr, predict_mlp, protocol
from .intervals import interval, mean_of, resample
from .settings import Settings
from .task import Encode, Run, Scores, deviation, mean, over_seeds
from .variants import OWN, Transform, Variant

LR, MLP = "lr", "mlp"
MLP_SEEDS = 3  # of the settings' seeds: more cost minutes and move a mean little
MLP_ROWS = 70_000  # with more to train on, in all folds together, one seed: there are ten networks, or minutes for each
DEPENDS_ON = ("normalizations", "sizes", "seeds", "bootstrap", "classifiers", "trained_on", "any_count")
TRAINED = "The encoder was trained on {names}, which holds sentences of this set."
Trained = tuple[str, int]  # a classifier and its seed


@dataclass(frozen=True)
class Examples:
    """Labelled sentences or pairs.

    texts (n tuples of one or two strings), labels (str (n,)), splits (n strings): "all", or "train", "dev" and "test".
    positive (str): the label whose F1 is reported, if any.
    """

    texts: tuple[tuple[str, ...], ...]
    labels: numpy.ndarray
    splits: tuple[str, ...]
    positive: str | None = None

    @property
    def places(self) -> dict[str, numpy.ndarray]:
        """The indices of the examples of each split."""
        names = numpy.array(self.splits)
        return {name: numpy.flatnonzero(names == name) for name in dict.fromkeys(self.splits)}


@dataclass(eq=False)  # found again by identity
class Outcome:
    """What was predicted in one variant: labels of all examples by classifier and seed; of each fold, C and the mean
    accuracy in tuning."""

    predicted: dict[Trained, numpy.ndarray] = field(default_factory=dict)
    c: list[float] = field(default_factory=list)
    tuning: list[float] = field(default_factory=list)


def classify(examples: Examples, run: Run, task: str, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Train classifiers on vectors and count what they get right.

    The features of a sentence are its vector u, those of a pair |u - v| and u * v. Moments and components of a variant
    are taken of the vectors of each fold's training examples.
    RETURNS (dict): see Task.run. Scores by classifier: accuracy, over all examples tested, and f1 where a label is
        the positive one. Those of the MLP are means over the first 3 seeds, with their deviation, or of the first
        alone where more than 70,000 examples are trained on. Beside them: c, that was chosen in each fold; protocol,
        how it was done; tuned, where more than one normalisation is given, the one with which logistic regression is
        best in the tuning of each fold, and the scores with it.
    RAISES (ValueError): if there are too few examples or classes.
    RAISES (ImportError): if scikit-learn is not installed.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3; Eger et al. 2019, sections 3.2 and 3.3 (both classifiers,
        normalisation).
    """
    check_sklearn(task)
    places = examples.places
    folds = make_folds(places, examples.labels, task)
    settings, unfit = run.settings.that_fit(*_smallest(examples, folds, run))
    run = replace(run, settings=settings)
    mlp_seeds = settings.seeds[: MLP_SEEDS if sum(len(fold.train) for fold in folds) <= MLP_ROWS else 1]
    outcomes = _outcomes(examples, folds, run, task, mlp_seeds if MLP in settings.classifiers else ())
    tested = numpy.sort(numpy.concatenate([fold.test for fold in folds]))
    primary = LR if LR in settings.classifiers else MLP
    right = _right(outcomes[0], examples, tested)
    result = {
        "counts": {**{name: len(at) for name, at in places.items()}, ALL: len(examples.labels)},
        "primary": f"{primary}.accuracy",
        "variants": [
            {"normalization": variant.normalization, "size": variant.size, **_summary(outcome, examples, tested)}
            for variant, outcome in zip(settings.variants, outcomes, strict=True)
        ],
        "intervals": _intervals(right, settings),
        "predictions": {"right": "".join("01"[int(value == 1)] for value in right[primary][0])},
        "protocol": protocol(places, settings.classifiers, mlp_seeds),
        "notes": [*notes, *unfit, *_fewer(mlp_seeds, settings), *_touched(task, settings.trained_on)],
    }
    normalizations = settings.normalizations
    if len(normalizations) > 1 and LR in settings.classifiers:
        result["tuned"] = _tuned(outcomes[: len(normalizations)], folds, examples, tested, normalizations)
    return result


def _smallest(examples: Examples, folds: list[Fold], run: Run) -> tuple[int, int]:
    """How many vectors a variant is fitted to, at least, and their width."""
    fold = min(folds, key=lambda fold: len(fold.train))
    if run.settings.sizes == (OWN,):
        return len(fold.train), 1  # any will do
    members, _, width = _vectors(examples, fold, run.encode).shape
    return members * len(fold.train), width


def _fewer(mlp_seeds: tuple[int, ...], settings: Settings) -> list[str]:
    if MLP not in settings.classifiers or len(mlp_seeds) == len(settings.seeds):
        return []
    return [f"The MLP was trained with {len(mlp_seeds)} of the {len(settings.seeds)} seeds, to save time."]


def _outcomes(examples: Examples, folds: list[Fold], run: Run, task: str, mlp_seeds: tuple[int, ...]) -> list[Outcome]:
    settings, variants = run.settings, run.settings.variants
    compare = len(settings.normalizations) > 1
    outcomes = [Outcome() for _ in variants]
    for fold in run.progress(folds, task):
        vectors = _vectors(examples, fold, run.encode)
        seen = vectors[:, fold.train].reshape(-1, vectors.shape[2])
        for variant, outcome in zip(variants, outcomes, strict=True):
            for seed, networks in _seeds(variant, settings.seeds, mlp_seeds):
                rows = _features(vectors, variant.fit(seen, seed))
                if LR in settings.classifiers:
                    predicted, c, accuracy = predict_lr(rows, examples.labels, fold, compare=compare)
                    _keep(outcome, (LR, seed), predicted, fold, examples)
                    if seed == settings.seeds[0]:
                        outcome.c.append(c)
                        outcome.tuning.append(accuracy)
                for mlp_seed in networks:
                    predicted = predict_mlp(rows, examples.labels, fold, mlp_seed)
                    _keep(outcome, (MLP, mlp_seed), predicted, fold, examples)
    return outcomes


def _seeds(variant: Variant, seeds: tuple[int, ...], mlp_seeds: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
    """The seeds of a variant, each with those of the MLPs trained on it."""
    if not variant.is_random:
        return [(seeds[0], mlp_seeds)]
    return [(seed, (seed,) if seed in mlp_seeds else ()) for seed in seeds]


def _vectors(examples: Examples, fold: Fold, encode: Encode) -> numpy.ndarray:
    members = list(zip(*examples.texts, strict=True))
    seen = [text for i in fold.train for text in examples.texts[i]]
    rows = encode([text for member in members for text in member], fit_on=seen)
    return rows.reshape(len(members), len(examples.texts), -1)


def _features(vectors: numpy.ndarray, transform: Transform) -> numpy.ndarray:
    """float (members, n, width) -> float32 (n, features): half the memory and time, and as encoders give them."""
    members = [transform(rows) for rows in vectors]
    if len(members) == 1:
        return members[0].astype("float32")
    return concatenated(*members, parts=SYMMETRIC).astype("float32")


def _keep(outcome: Outcome, trained: Trained, predicted: numpy.ndarray, fold: Fold, examples: Examples) -> None:
    outcome.predicted.setdefault(trained, numpy.empty_like(examples.labels))[fold.test] = predicted


def _by_classifier(outcome: Outcome) -> dict[str, list[numpy.ndarray]]:
    found: dict[str, list[numpy.ndarray]] = {}
    for (classifier, _), predicted in outcome.predicted.items():
        found.setdefault(classifier, []).append(predicted)
    return found


def _summary(outcome: Outcome, examples: Examples, tested: numpy.ndarray) -> dict[str, Any]:
    each = {
        classifier: [_scores(predicted[tested], examples.labels[tested], examples.positive) for predicted in found]
        for classifier, found in _by_classifier(outcome).items()
    }
    entry: dict[str, Any] = {"scores": {name: over_seeds(scores, mean) for name, scores in each.items()}}
    if any(len(scores) > 1 for scores in each.values()):
        entry["deviation"] = {name: over_seeds(scores, deviation) for name, scores in each.items()}
    return {**entry, "c": outcome.c} if outcome.c else entry


def _scores(predicted: numpy.ndarray, gold: numpy.ndarray, positive: str | None) -> Scores:
    """accuracy = right / n; F1 = 2 tp / (2 tp + fp + fn), not defined where the label is neither gold nor predicted."""
    found: Scores = {"accuracy": float((predicted == gold).mean())}
    if positive is not None:
        is_gold, is_predicted = gold == positive, predicted == positive
        both = int(is_gold.sum() + is_predicted.sum())
        found["f1"] = 2 * int((is_gold & is_predicted).sum()) / both if both else None
    return found


def _right(outcome: Outcome, examples: Examples, tested: numpy.ndarray) -> dict[str, numpy.ndarray]:
    """By classifier, bool (seeds, tests)."""
    gold = examples.labels[tested]
    return {name: numpy.stack(found)[:, tested] == gold for name, found in _by_classifier(outcome).items()}


def _intervals(right: dict[str, numpy.ndarray], settings: Settings) -> dict[str, Any]:
    resamples, seed = settings.bootstrap, settings.seeds[0]
    if not resamples:
        return {}
    means = {name: values.mean(axis=0) for name, values in right.items()}
    return {
        f"{name}.accuracy": interval(resample(mean_of(values), len(values), resamples, seed))
        for name, values in means.items()
    }


def _tuned(
    outcomes: list[Outcome], folds: list[Fold], examples: Examples, tested: numpy.ndarray, names: tuple[str, ...]
) -> dict[str, Any]:
    best = [max(outcomes, key=lambda outcome: outcome.tuning[i]) for i in range(len(folds))]
    merged = Outcome()
    for fold, outcome in zip(folds, best, strict=True):
        for trained, predicted in outcome.predicted.items():
            _keep(merged, trained, predicted[fold.test], fold, examples)
    chosen = [names[outcomes.index(outcome)] for outcome in best]
    return {"normalization": chosen, **_summary(merged, examples, tested)}


def _touched(task: str, trained_on: tuple[str, ...]) -> list[str]:
    names = [name for name in trained_on if name.lower().partition("-")[0] == task.lower().partition("-")[0]]
    return [TRAINED.format(names=", ".join(names))] if names else []
