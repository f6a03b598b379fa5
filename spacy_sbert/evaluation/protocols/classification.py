"""Classification on top of sentence embeddings as SentEval does it: training, tuning, folds."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ...losses.softmax import SYMMETRIC, concatenated
from ...readers.examples import Row
from ..encoders import sklearn_module
from ..results import Json, mean_of
from ..task import Run, Settings, as_they_are, indices_by_name

ALL = "all"
TRAIN = "train"
DEV = "dev"
TEST = "test"
# Folds of a task without a test split, each of which is tested once
_OUTER_FOLDS = 10
# Folds of training data without a dev split, which choose C
_INNER_FOLDS = 5
# SentEval's seed
_FOLD_SEED = 1111
# SentEval's values of C
_C_GRID = tuple(2.0**power for power in range(-2, 4))
# The only C if there are more than so many classes
_MANY = 100
_C_MANY = 8.0
# The largest gradient of a weight at which logistic regression stops: scikit-learn's
_TOLERANCE = 1e-4
# The part of the first gradient to which it must fall; see _tolerance
_FALLEN = 0.01
# Indices of examples to fit to, and to score, for each fold
Halves = tuple[tuple[numpy.ndarray, numpy.ndarray], ...]


@dataclass(frozen=True)
class Examples:
    """Labelled sentences or pairs.

    texts (n tuples of one or two strings), labels (str (n,)): the examples.
    places (dict): the indices of each split: "all", or "train", "test" and maybe "dev".
    positive (str): the label whose F1 is reported, if any.
    """

    texts: tuple[tuple[str, ...], ...]
    labels: numpy.ndarray
    places: Mapping[str, numpy.ndarray]
    positive: str | None = None

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, Row]], positive: str | None = None) -> "Examples":
        """Return rows with the split of each as examples."""
        splits, each = zip(*rows, strict=True)
        labels = numpy.array([row.label for row in each])
        return cls(tuple(row.members for row in each), labels, indices_by_name(splits), positive)

    @property
    def counts(self) -> dict[str, int]:
        """The number of examples of each split, and of all."""
        counts = {name: len(at) for name, at in self.places.items()}
        return {**counts, ALL: len(self.labels)}


@dataclass(frozen=True)
class Fold:
    """Indices of examples, int (n,) each.

    tuning: what to fit and what to score within train, to choose settings.
    """

    train: numpy.ndarray
    test: numpy.ndarray
    tuning: Halves


def evaluate_classifier(examples: Examples, run: Run, task: str, notes: Sequence[str] = ()) -> Json:
    """Train logistic regression on vectors and count what it gets right.

    The features of a sentence are its vector u, those of a pair |u - v| and u * v.
    RETURNS (dict): see Task.run. Scores of "lr": accuracy, over all examples tested, and f1 if a
        label is the positive one. Beside them c, what was chosen in each fold; protocol, how it was
        done.
    RAISES (ValueError): if there are too few examples or classes. (ImportError): if scikit-learn is
        not installed.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3.
    """
    sklearn_module("sklearn", task)
    folds = make_folds(examples.places, examples.labels, task)
    labels = numpy.empty_like(examples.labels)
    chosen = []
    for fold in run.progress(folds, task):
        rows = features_of(list(example_vectors(examples, fold, run)))
        labels[fold.test], _, c = predict_lr(rows, examples.labels, fold)
        chosen.append(c)
    tested = numpy.sort(numpy.concatenate([fold.test for fold in folds]))
    labels = labels[tested]
    gold = examples.labels[tested]
    right = labels == gold
    scores = {"lr": classification_scores(labels, gold, examples.positive)}
    accuracy = {"lr.accuracy": mean_of(right)}
    settings = run.settings
    return {
        "counts": examples.counts,
        "primary": "lr.accuracy",
        "variants": as_they_are(scores, c=chosen),
        "intervals": settings.intervals(accuracy, len(gold)),
        "predictions": {"right": "".join(map(str, right.astype(int)))},
        "protocol": protocol_of(examples.places),
        "notes": [*notes, *trained_on(task, settings)],
    }


def trained_on(task: str, settings: Settings) -> list[str]:
    """Return a note if the encoder was trained on the data set."""

    def kind(name: str) -> str:
        return name.lower().partition("-")[0]

    names = ", ".join(name for name in settings.trained_on if kind(name) == kind(task))
    if not names:
        return []
    return [f"The encoder was trained on {names}, which holds sentences of this set."]


def example_vectors(examples: Examples, fold: Fold, run: Run) -> numpy.ndarray:
    """Return the vectors of all examples, float32 (members, n, width)."""
    members = list(zip(*examples.texts, strict=True))
    seen = [text for i in fold.train for text in examples.texts[i]]
    rows = run.encode([text for member in members for text in member], fit_on=seen)
    return rows.reshape(len(members), len(examples.texts), -1)


def features_of(members: Sequence[numpy.ndarray]) -> numpy.ndarray:
    """Return the features of one member or two, each float (n, width), as float32 (n, features).

    They take half the memory and time of float64.
    """
    features = members[0]
    if len(members) == 2:
        features = concatenated(*members, parts=SYMMETRIC)
    return features.astype("float32")


def classification_scores(
    predicted: numpy.ndarray, gold: numpy.ndarray, positive: str | None
) -> Json:
    """Return accuracy = right / n, and F1 = 2 tp / (2 tp + fp + fn).

    F1 is None if nothing has or gets the label.
    """
    scores: Json = {"accuracy": float((predicted == gold).mean())}
    if positive is not None:
        is_gold = gold == positive
        is_predicted = predicted == positive
        n_right = int((is_gold & is_predicted).sum())
        n_both = int(is_gold.sum() + is_predicted.sum())
        scores["f1"] = None
        if n_both:
            scores["f1"] = 2 * n_right / n_both
    return scores


def make_folds(places: Mapping[str, numpy.ndarray], labels: numpy.ndarray, task: str) -> list[Fold]:
    """Decide how to train, to tune and to test, by the splits that there are.

    "all": ten stratified folds are each tested once; "train" and "test": tuned by five stratified
    folds of train; "train", "dev" and "test": tuned on dev.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3.1. Its code has as many inner folds as outer
        ones, C from 2^-1 to 2^5 where there is a test split but no dev split, and reports the mean
        of the folds.
    """

    def split(at: numpy.ndarray, folds: int) -> Halves:
        _check_classes(labels[at], folds, task)
        return stratified(at, labels, folds, _FOLD_SEED)

    if ALL in places:
        return [
            Fold(train, test, split(train, _INNER_FOLDS))
            for train, test in split(places[ALL], _OUTER_FOLDS)
        ]
    train = places[TRAIN]
    _check_classes(labels[train], 1, task)
    if DEV in places:
        return [Fold(train, places[TEST], ((train, places[DEV]),))]
    return [Fold(train, places[TEST], split(train, _INNER_FOLDS))]


def stratified(at: numpy.ndarray, labels: numpy.ndarray, folds: int, seed: int) -> Halves:
    """Return what to train on and to test in each fold, the labels spread evenly.

    These are indices among `at`.
    """
    selection = sklearn_module("sklearn.model_selection", "A classifier")
    splitter = selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    return tuple((at[train], at[test]) for train, test in splitter.split(at, labels[at]))


def _check_classes(labels: numpy.ndarray, folds: int, task: str) -> None:
    names, counts = numpy.unique(labels, return_counts=True)
    needed = max(folds, 2)
    fewest, rarest = min(zip(counts, names, strict=True))
    if len(names) < 2 or fewest < needed:
        raise ValueError(
            f"{task}: the training examples have {len(names)} labels, the rarest, '{rarest}', "
            f"{fewest} times. Expected two labels or more, each at least {needed} times: once for "
            "each fold."
        )


def protocol_of(splits: Collection[str]) -> dict[str, str]:
    """Describe in words how logistic regression is trained, tuned and tested, for results."""
    test = "trained on train, tested on test"
    if ALL in splits:
        test = (
            f"{_OUTER_FOLDS} stratified folds, shuffled with seed {_FOLD_SEED}; accuracy over all "
            "examples"
        )
    tuned = "on dev"
    if DEV not in splits:
        tuned = f"by {_INNER_FOLDS} stratified folds of the training data, seed {_FOLD_SEED}"
    grid = ", ".join(f"{c:g}" for c in _C_GRID)
    return {
        "test": test,
        "moments": "of the training examples",
        "lr": f"logistic regression, C of {grid} chosen {tuned}",
    }


def predict_lr(
    rows: numpy.ndarray, labels: numpy.ndarray, fold: Fold, *, compare: bool = False
) -> tuple[numpy.ndarray, float, Any]:
    """Fit logistic regression, with a C that is chosen in tuning.

    C is from 2^-2 to 2^3, the smallest of those with the highest accuracy; 8 with more than 100
    classes, where each fit takes minutes.

    compare (bool): whether the accuracy is needed even if there is no C to choose.
    RETURNS (str (tests,), float, float): the labels predicted, the mean accuracy in tuning, and C.
    """
    linear_model = sklearn_module("sklearn.linear_model", "Logistic regression")
    grid = _C_GRID
    if len(set(labels[fold.train])) > _MANY:
        grid = (_C_MANY,)

    def fit(c: float, at: numpy.ndarray) -> Any:
        tolerance = _tolerance(rows[at], labels[at])
        model = linear_model.LogisticRegression(max_iter=1000, C=c, tol=tolerance)
        # It warns of too few steps, whose number is part of the protocol
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
            return model.fit(rows[at], labels[at])

    accuracies = numpy.zeros(len(grid))
    if len(grid) > 1 or compare:
        # Never from the solution of another C: the solver would stop near it, and prefer another C
        # than scikit-learn
        for number, c in enumerate(grid):
            each = [fit(c, train).score(rows[dev], labels[dev]) for train, dev in fold.tuning]
            accuracies[number] = numpy.mean(each)
    best = int(accuracies.argmax())
    predicted = fit(grid[best], fold.train).predict(rows[fold.test])
    return predicted, float(accuracies[best]), grid[best]


def _tolerance(rows: numpy.ndarray, labels: numpy.ndarray) -> float:
    """Return the largest gradient of a weight at which logistic regression may stop.

    scikit-learn's 1e-4 is of the mean loss, whose gradient is below it from the start if classes
    are many or numbers small: it would stop before its first step, and predict one class for all.
    So, with K labels,

    min(1e-4, 0.01 max_kj |1/n sum_i (1/K - [y_i = k]) x_ij|)
    """
    names, classes = numpy.unique(labels, return_inverse=True)
    sums = numpy.zeros((len(names), rows.shape[1]))
    numpy.add.at(sums, classes, rows)
    # The gradient at weights of zero
    first = numpy.abs(sums.sum(axis=0) / len(names) - sums).max() / len(rows)
    return float(min(_TOLERANCE, _FALLEN * first))
