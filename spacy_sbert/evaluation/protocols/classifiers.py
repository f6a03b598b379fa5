"""The classifiers of transfer and probing tasks, and the folds that they are trained and tested on."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ..task import sklearn_module
from .mlp import BATCH, GRID, HIDDEN, MAX_PASSES, PASSES, PATIENCE, Best, best_perceptron

_OUTER_FOLDS = 10  # of tasks without a test split
_INNER_FOLDS = 5  # of training data without a dev split, to choose C
_FOLD_SEED = 1111  # SentEval's
_C_GRID = tuple(2.0**power for power in range(-2, 4))  # SentEval's for logistic regression
_C_MANY = 8.0
_MANY = 100  # classes
_MAX_ITERATIONS = 1000
_TOLERANCE = 1e-4  # the largest gradient of a weight at which logistic regression stops: scikit-learn's
_FALLEN = 0.01  # and to which part of the first one it has to fall; see _tolerance
_HELD = 20  # folds of training data without a dev split, of which the first stops the MLP: SentEval's 5 %
_Halves = tuple[tuple[numpy.ndarray, numpy.ndarray], ...]  # what to fit and what to score, each time
ALL, TRAIN, DEV, TEST = "all", "train", "dev", "test"


@dataclass(frozen=True)
class Fold:
    """Indices of the examples that are trained on and tested.

    train, test (int (n,)): examples.
    tuning: pairs of such arrays, to fit and to score, within what may be seen: C is chosen by the mean accuracy.
    """

    train: numpy.ndarray
    test: numpy.ndarray
    tuning: _Halves


def make_folds(places: Mapping[str, numpy.ndarray], labels: numpy.ndarray, task: str) -> list[Fold]:
    """Decide after SentEval how to train, to tune and to test, by the splits that there are.

    places (dict): indices by split: "all", ten stratified folds are each tested once; "train" and "test", tuned by
        five stratified folds of train; "train", "dev" and "test", tuned on dev.
    labels (str (n,)), task (str): of all examples; the name, for errors.
    RETURNS (list of Fold): of one or of ten.
    RAISES (ValueError): if all of the training examples have one label, or a class has fewer examples than folds.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3.1. Its code has as many inner folds as outer ones, C from 2^-1
        to 2^5 where there is a test split but no dev split, and reports the mean of the folds.
    """
    if ALL in places:
        return [
            Fold(train, test, _split(train, labels, _INNER_FOLDS, task))
            for train, test in _split(places[ALL], labels, _OUTER_FOLDS, task)
        ]
    train = places[TRAIN]
    _check_classes(labels[train], 1, task)
    tuning = ((train, places[DEV]),) if DEV in places else _split(train, labels, _INNER_FOLDS, task)
    return [Fold(train, places[TEST], tuning)]


def predict_lr(
    rows: numpy.ndarray, labels: numpy.ndarray, fold: Fold, *, compare: bool
) -> tuple[numpy.ndarray, float, float]:
    """Fit logistic regression, C from 2^-2 to 2^3, the smallest of those with the highest mean accuracy in tuning.

    rows (float32 (n, features)), labels (str (n,)): all examples. With more than 100 classes C is 8: each fit takes
        minutes.
    compare (bool): whether the accuracy in tuning is needed even if there is no C to choose.
    RETURNS (str (tests,), float, float): the labels predicted, C, and the mean accuracy in tuning.
    """
    linear_model = sklearn_module("sklearn.linear_model", "Logistic regression")
    grid = _C_GRID if len(set(labels[fold.train])) <= _MANY else (_C_MANY,)

    def fit(c: float, at: numpy.ndarray) -> Any:  # noqa: ANN401 (LogisticRegression, which is not imported here)
        tolerance = _tolerance(rows[at], labels[at])
        with warnings.catch_warnings():
            # the number of steps is part of the protocol, whether they were enough or not
            warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
            model = linear_model.LogisticRegression(max_iter=_MAX_ITERATIONS, C=c, tol=tolerance)
            return model.fit(rows[at], labels[at])

    accuracies = numpy.zeros(len(grid))
    if len(grid) > 1 or compare:
        # never from the solution of another C: the solver would stop near it, and prefer another C than scikit-learn
        each = [[fit(c, train).score(rows[dev], labels[dev]) for train, dev in fold.tuning] for c in grid]
        accuracies = numpy.mean(each, axis=1)
    best = int(accuracies.argmax())
    return fit(grid[best], fold.train).predict(rows[fold.test]), grid[best], float(accuracies[best])


def _tolerance(rows: numpy.ndarray, labels: numpy.ndarray) -> float:
    """Return the largest gradient of a weight at which logistic regression may stop.

    scikit-learn's 1e-4 is of the mean loss, whose gradient is below it from the start where classes are many or numbers
    small: it would stop before its first step, and predict one class for all. So

    min(1e-4, 0.01 max_kj |1/n sum_i (1/K - [y_i = k]) x_ij|)

    rows (float32 (n, features)), labels (str (n,)): what is fitted, K labels. RETURNS (float): at least 0.
    """
    names, classes = numpy.unique(labels, return_inverse=True)
    sums = numpy.zeros((len(names), rows.shape[1]))
    numpy.add.at(sums, classes, rows)
    first = numpy.abs(sums.sum(axis=0) / len(names) - sums).max() / len(rows)  # at weights of zero
    return float(min(_TOLERANCE, _FALLEN * first))


def predict_mlp(rows: numpy.ndarray, labels: numpy.ndarray, fold: Fold, seed: int) -> tuple[numpy.ndarray, Best]:
    """Train a hidden layer of 50 units, stopped early, with the settings that suit it best; see best_perceptron.

    It is stopped and chosen on dev where there is one, else on a stratified 5 % of the training data, or more where 5 %
    would not hold an example of each class.

    rows (float32 (n, features)), labels (str (n,)): all examples. seed (int): of weights, batches and these 5 %.
    RETURNS (str (tests,), Best): the labels predicted, and what predicts them.
    """
    names = numpy.unique(labels[fold.train])
    classes = numpy.where(numpy.isin(labels, names), numpy.searchsorted(names, labels), -1)  # -1 is never right
    if len(fold.tuning) == 1:
        fit, held = fold.tuning[0]
    else:
        folds = min(_HELD, *numpy.unique(labels[fold.train], return_counts=True)[1].tolist())
        fit, held = _stratified(fold.train, labels, folds, seed)[0]
    best = best_perceptron((rows[fit], classes[fit]), (rows[held], classes[held]), len(names), seed)
    return names[best.predict(rows[fold.test])], best


def protocol(splits: Collection[str], classifiers: Collection[str], mlp_seeds: Sequence[int]) -> dict[str, object]:
    """Describe in words how classifiers are trained, tuned and tested, for results."""
    if ALL in splits:
        tested = f"{_OUTER_FOLDS} stratified folds, shuffled with seed {_FOLD_SEED}; accuracy over all examples"
    else:
        tested = "trained on train, tested on test"
    tuned = "on dev" if DEV in splits else f"by {_INNER_FOLDS} stratified folds of the training data, seed {_FOLD_SEED}"
    held = "on dev" if DEV in splits else f"on 1/{_HELD} of the training data, drawn by the seed"
    words = {
        "lr": f"scikit-learn's LogisticRegression, C of {_values(_C_GRID)} chosen {tuned} (with "
        f"more than {_MANY} classes {_C_MANY:g}), at most {_MAX_ITERATIONS} iterations, until no gradient is above "
        f"{_TOLERANCE:g} or {_FALLEN:g} of the largest at first",
        "mlp": f"one hidden layer of {HIDDEN} rectified linear units, Adam, batches of {BATCH}; l2 "
        f"{_values(setting.l2 for setting in GRID)} and dropout {_values(setting.dropout for setting in GRID)} chosen, "
        f"and training stopped, by the cross-entropy {held}, looked at every {PASSES} passes until {PATIENCE + 1} "
        f"looks show no lower one, {MAX_PASSES} passes at most; mean over the seeds {_values(mlp_seeds)}",
    }
    return {"test": tested, "moments": "of the training examples", **{name: words[name] for name in classifiers}}


def _values(numbers: Iterable[float]) -> str:
    return ", ".join(f"{number:g}" for number in dict.fromkeys(numbers))


def _split(at: numpy.ndarray, labels: numpy.ndarray, folds: int, task: str) -> _Halves:
    _check_classes(labels[at], folds, task)
    return _stratified(at, labels, folds, _FOLD_SEED)


def _stratified(at: numpy.ndarray, labels: numpy.ndarray, folds: int, seed: int) -> _Halves:
    selection = sklearn_module("sklearn.model_selection", "A classifier")
    splitter = selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    return tuple((at[train], at[test]) for train, test in splitter.split(at, labels[at]))


def _check_classes(labels: Sequence[str] | numpy.ndarray, folds: int, task: str) -> None:
    names, counts = numpy.unique(labels, return_counts=True)
    if len(names) < 2:
        raise ValueError(
            f"{task}: all training examples have the label '{', '.join(names)}', but a classifier needs at "
            "least two. Check the files, or get them again."
        )
    needed, (fewest, rarest) = max(folds, 2), min(zip(counts, names, strict=True))
    if fewest < needed:
        raise ValueError(
            f"{task}: {fewest} training examples have the label '{rarest}', expected at least {needed}: one "
            "for each fold. Check the files, or get them again."
        )
