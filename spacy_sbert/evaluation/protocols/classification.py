"""Classification on top of sentence embeddings, as SentEval does it: training, tuning, scores over folds and seeds."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy

from ...losses.softmax import SYMMETRIC, concatenated
from ...readers.examples import Row
from ..encoders import sklearn_module
from ..results import Json, digits, intervals_of, mean_of
from ..task import OWN, Run, Task, Transform, Variant, deviation, indices_by_name, mean, over_seeds
from .mlp import BATCH, GRID, HIDDEN, MAX_PASSES, PASSES, PATIENCE, fit_mlp

ALL, TRAIN, DEV, TEST = "all", "train", "dev", "test"
_LR, _MLP = "lr", "mlp"
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
_MLP_SEEDS = 3  # of the settings' seeds: more cost minutes and move a mean little
_MLP_ROWS = 120_000  # with more to train on, in all folds together, one seed: each takes minutes
_TRAINED = "The encoder was trained on {names}, which holds sentences of this set."
_Halves = tuple[tuple[numpy.ndarray, numpy.ndarray], ...]  # what to fit and what to score, each time


class ClassifierTask(Task):
    """A task whose scores are those of classifiers, see classify."""

    depends_on = ("normalizations", "sizes", "seeds", "bootstrap", "classifiers", "trained_on", "any_count")


@dataclass(frozen=True)
class Examples:
    """Labelled sentences or pairs.

    texts (n tuples of one or two strings), labels (str (n,)), places: the indices of each split, "all", or "train",
    "dev" and "test". positive (str): the label whose F1 is reported, if any.
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


@dataclass(frozen=True)
class _Fold:
    """Indices of the examples that are trained on and tested.

    train, test (int (n,)): examples.
    tuning: pairs of such arrays, to fit and to score, within what may be seen: C is chosen by the mean accuracy.
    """

    train: numpy.ndarray
    test: numpy.ndarray
    tuning: _Halves


@dataclass(eq=False)  # found again by identity
class _Outcome:
    """Predictions in one variant, by classifier.

    predicted: labels of all examples, by seed. tuning: the accuracies in tuning, of each fold those of the seeds.
    chosen: the settings that were chosen in each fold, with the first seed.
    """

    predicted: dict[str, dict[int, numpy.ndarray]] = field(default_factory=dict)
    tuning: dict[str, list[list[float]]] = field(default_factory=dict)
    chosen: dict[str, list[Any]] = field(default_factory=dict)


def classify(examples: Examples, run: Run, task: str, notes: Sequence[str] = ()) -> Json:
    """Train classifiers on vectors and count what they get right.

    The features of a sentence are its vector u, those of a pair |u - v| and u * v. Moments and components of a variant
    are taken of the vectors of each fold's training examples.
    RETURNS (dict): see Task.run. Scores by classifier: accuracy, over all examples tested, and f1 if a label is the
        positive one. Those of the MLP are means over the first 3 seeds, with their deviation, or of only the first if
        more than 120,000 examples are trained on. Beside them: c and networks, what was chosen in each fold, with the
        first seed; protocol, how it was done; tuned, if more than one normalization is given, the one with which each
        classifier is best in its tuning in each fold, and its scores with them.
    RAISES (ValueError): if there are too few examples or classes.
    RAISES (ImportError): if scikit-learn is not installed.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3; Eger et al. 2019, sections 3.2 and 3.3 (both classifiers,
        normalization).
    """
    sklearn_module("sklearn", task)
    folds = _make_folds(examples.places, examples.labels, task)
    smallest = min(folds, key=lambda fold: len(fold.train))
    width = 1 if run.settings.sizes == (OWN,) else _vectors(examples, smallest, run).shape[2]  # of OWN any will do
    settings, unfit = run.settings.that_fit(len(examples.texts[0]) * len(smallest.train), width)
    trial = _Trial(examples, folds, replace(run, settings=settings), task)
    outcomes = trial.outcomes()
    gold = examples.labels[trial.tested]
    right = {name: labels == gold for name, labels in trial.tests(outcomes[0]).items()}  # bool (seeds, tests)
    accuracies = {f"{name}.accuracy": mean_of(values.mean(axis=0)) for name, values in right.items()}
    result = {
        "counts": {**{name: len(at) for name, at in examples.places.items()}, ALL: len(examples.labels)},
        "primary": f"{trial.primary}.accuracy",
        "variants": [
            {"normalization": variant.normalization, "size": variant.size, **trial.summary(outcome)}
            for variant, outcome in zip(settings.variants, outcomes, strict=True)
        ],
        "intervals": intervals_of(accuracies, len(trial.tested), settings.bootstrap, settings.seeds[0]),
        "predictions": {"right": digits(right[trial.primary][0])},
        "protocol": _protocol(examples.places, settings.classifiers, trial.mlp_seeds),
        "notes": [*notes, *unfit, *trial.notes()],
    }
    if trial.compares:
        result["tuned"] = trial.tuned(outcomes[: len(settings.normalizations)])
    return result


class _Trial:
    """Examples, the folds they are trained and tested in, how, and the name of the task."""

    def __init__(self, examples: Examples, folds: list[_Fold], run: Run, task: str):
        self.examples, self.folds, self.run, self.task = examples, folds, run, task
        settings = self.settings = run.settings
        self.compares = len(settings.normalizations) > 1  # whether there is a normalization to choose
        self.primary = _LR if _LR in settings.classifiers else _MLP
        self.tested = numpy.sort(numpy.concatenate([fold.test for fold in folds]))  # indices of examples
        is_small = sum(len(fold.train) for fold in folds) <= _MLP_ROWS
        self.mlp_seeds = settings.seeds[: _MLP_SEEDS if is_small else 1]

    def notes(self) -> list[str]:
        """Return notes on fewer seeds, and on data sets that the encoder was trained on."""
        settings, n, kind = self.settings, len(self.mlp_seeds), self.task.lower().partition("-")[0]
        notes = []
        if _MLP in settings.classifiers and n < len(settings.seeds):
            notes.append(f"The MLP was trained with {n} of the {len(settings.seeds)} seeds, to save time.")
        names = [name for name in settings.trained_on if name.lower().partition("-")[0] == kind]
        return [*notes, _TRAINED.format(names=", ".join(names))] if names else notes

    def outcomes(self) -> list[_Outcome]:
        """Return what is predicted in each variant."""
        variants = self.settings.variants
        outcomes = [_Outcome() for _ in variants]
        for number, fold in enumerate(self.run.progress(self.folds, self.task)):
            vectors = _vectors(self.examples, fold, self.run)
            seen = vectors[:, fold.train].reshape(-1, vectors.shape[2])
            for variant, outcome in zip(variants, outcomes, strict=True):
                for seed in self.settings.seeds_of(variant):
                    rows = _features(vectors, variant.fit(seen, seed))
                    for classifier in (_LR, _MLP):
                        self._predict(outcome, classifier, number, rows, self._seeds(classifier, variant, seed))
        return outcomes

    def _seeds(self, classifier: str, variant: Variant, seed: int) -> Sequence[int]:
        """Return the seeds with which a classifier is trained on vectors that a variant gave with a seed."""
        if classifier not in self.settings.classifiers:
            return ()
        if classifier == _MLP and not variant.is_random:
            return self.mlp_seeds
        return (seed,) if classifier == _LR or seed in self.mlp_seeds else ()

    def _predict(
        self, outcome: _Outcome, classifier: str, number: int, rows: numpy.ndarray, seeds: Sequence[int]
    ) -> None:
        labels, fold = self.examples.labels, self.folds[number]
        chosen: float | dict[str, float]
        for seed in seeds:
            if classifier == _LR:
                predicted, accuracy, chosen = _predict_lr(rows, labels, fold, compare=self.compares)
            else:
                predicted, accuracy, chosen = _predict_mlp(rows, labels, fold, seed)
            _keep(outcome, classifier, seed, predicted, fold, labels)
            accuracies = outcome.tuning.setdefault(classifier, [[] for _ in self.folds])
            accuracies[number].append(accuracy)
            if seed == self.settings.seeds[0]:
                outcome.chosen.setdefault(classifier, []).append(chosen)

    def summary(self, outcome: _Outcome) -> Json:
        """Return scores by classifier, means over seeds, with their deviation if seeds are several."""
        gold, positive = self.examples.labels[self.tested], self.examples.positive
        each = {
            name: [_scores(labels, gold, positive) for labels in seeds] for name, seeds in self.tests(outcome).items()
        }
        entry: Json = {"scores": {name: over_seeds(scores, mean) for name, scores in each.items()}}
        if any(len(scores) > 1 for scores in each.values()):
            entry["deviation"] = {name: over_seeds(scores, deviation) for name, scores in each.items()}
        names = {_LR: "c", _MLP: "networks"}
        return entry | {names[classifier]: chosen for classifier, chosen in outcome.chosen.items()}

    def tests(self, outcome: _Outcome) -> dict[str, numpy.ndarray]:
        """Return what each classifier predicted, with each seed, of what was tested: labels (seeds, tests)."""
        return {
            classifier: numpy.stack([labels[self.tested] for labels in by_seed.values()])
            for classifier, by_seed in outcome.predicted.items()
        }

    def tuned(self, outcomes: list[_Outcome]) -> Json:
        """Return the normalization with which each classifier is best in the tuning of each fold, and its scores."""
        merged = _Outcome()
        chosen: dict[str, list[str]] = {classifier: [] for classifier in self.settings.classifiers}
        for number, fold in enumerate(self.folds):
            for classifier, names in chosen.items():
                best = max(outcomes, key=lambda outcome: mean(outcome.tuning[classifier][number]))
                names.append(self.settings.normalizations[outcomes.index(best)])
                for seed, predicted in best.predicted[classifier].items():
                    _keep(merged, classifier, seed, predicted[fold.test], fold, self.examples.labels)
        return {"normalization": chosen[self.primary], "by_classifier": chosen, **self.summary(merged)}


def _keep(
    outcome: _Outcome, classifier: str, seed: int, predicted: numpy.ndarray, fold: _Fold, labels: numpy.ndarray
) -> None:
    """Keep what was predicted of the examples that a fold tests; labels: of all examples."""
    by_seed = outcome.predicted.setdefault(classifier, {})
    by_seed.setdefault(seed, numpy.empty_like(labels))[fold.test] = predicted


def _vectors(examples: Examples, fold: _Fold, run: Run) -> numpy.ndarray:
    """Return the vectors of all examples, float32 (members, n, width)."""
    members = list(zip(*examples.texts, strict=True))
    seen = [text for i in fold.train for text in examples.texts[i]]
    rows = run.encode([text for member in members for text in member], fit_on=seen)
    return rows.reshape(len(members), len(examples.texts), -1)


def _features(vectors: numpy.ndarray, transform: Transform) -> numpy.ndarray:
    """Compute float (members, n, width) -> float32 (n, features): half the memory and time of float64."""
    members = [transform(rows) for rows in vectors]
    return (members[0] if len(members) == 1 else concatenated(*members, parts=SYMMETRIC)).astype("float32")


def _scores(predicted: numpy.ndarray, gold: numpy.ndarray, positive: str | None) -> Json:
    """Return accuracy = right / n, and F1 = 2 tp / (2 tp + fp + fn): None if nothing has or gets the label."""
    scores: Json = {"accuracy": float((predicted == gold).mean())}
    if positive is not None:
        is_gold, is_predicted = gold == positive, predicted == positive
        both = int(is_gold.sum() + is_predicted.sum())
        scores["f1"] = 2 * int((is_gold & is_predicted).sum()) / both if both else None
    return scores


def _make_folds(places: Mapping[str, numpy.ndarray], labels: numpy.ndarray, task: str) -> list[_Fold]:
    """Decide after SentEval how to train, to tune and to test, by the splits that there are.

    "all": ten stratified folds are each tested once; "train" and "test": tuned by five stratified folds of train;
    "train", "dev" and "test": tuned on dev.

    SOURCE: Conneau and Kiela 2018, SentEval, section 3.1. Its code has as many inner folds as outer ones, C from 2^-1
        to 2^5 where there is a test split but no dev split, and reports the mean of the folds.
    """

    def split(at: numpy.ndarray, folds: int) -> _Halves:
        _check_classes(labels[at], folds, task)
        return _stratified(at, labels, folds, _FOLD_SEED)

    if ALL in places:
        return [_Fold(train, test, split(train, _INNER_FOLDS)) for train, test in split(places[ALL], _OUTER_FOLDS)]
    train = places[TRAIN]
    _check_classes(labels[train], 1, task)
    return [_Fold(train, places[TEST], ((train, places[DEV]),) if DEV in places else split(train, _INNER_FOLDS))]


def _stratified(at: numpy.ndarray, labels: numpy.ndarray, folds: int, seed: int) -> _Halves:
    selection = sklearn_module("sklearn.model_selection", "A classifier")
    splitter = selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    return tuple((at[train], at[test]) for train, test in splitter.split(at, labels[at]))


def _check_classes(labels: numpy.ndarray, folds: int, task: str) -> None:
    names, counts = numpy.unique(labels, return_counts=True)
    if len(names) < 2:
        raise ValueError(
            f"{task}: all training examples have the label '{', '.join(names)}', but a classifier needs at least two. "
            "Check the files, or get them again."
        )
    needed, (fewest, rarest) = max(folds, 2), min(zip(counts, names, strict=True))
    if fewest < needed:
        raise ValueError(
            f"{task}: {fewest} training examples have the label '{rarest}', expected at least {needed}: one for each "
            "fold. Check the files, or get them again."
        )


def _protocol(splits: Collection[str], classifiers: Collection[str], mlp_seeds: Sequence[int]) -> dict[str, object]:
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
        f"{_values(setting.l2 for setting in GRID)} and dropout {_values(setting.dropout for setting in GRID)} "
        f"chosen, and training stopped, by the cross-entropy {held}, looked at every {PASSES} passes until "
        f"{PATIENCE + 1} looks show no lower one, {MAX_PASSES} passes at most; mean over the seeds "
        f"{_values(mlp_seeds)}",
    }
    return {"test": tested, "moments": "of the training examples", **{name: words[name] for name in classifiers}}


def _values(numbers: Iterable[float]) -> str:
    return ", ".join(f"{number:g}" for number in dict.fromkeys(numbers))


def _predict_lr(
    rows: numpy.ndarray, labels: numpy.ndarray, fold: _Fold, *, compare: bool
) -> tuple[numpy.ndarray, float, float]:
    """Fit logistic regression; return the labels predicted, str (tests,), the mean accuracy in tuning, and C.

    C is from 2^-2 to 2^3, the smallest of those with the highest accuracy. With more than 100 classes it is 8: each fit
    takes minutes. compare: whether the accuracy is needed even if there is no C to choose.
    """
    linear_model = sklearn_module("sklearn.linear_model", "Logistic regression")
    grid = _C_GRID if len(set(labels[fold.train])) <= _MANY else (_C_MANY,)

    def fit(c: float, at: numpy.ndarray) -> Any:  # noqa: ANN401 (LogisticRegression, which is not imported here)
        model = linear_model.LogisticRegression(max_iter=_MAX_ITERATIONS, C=c, tol=_tolerance(rows[at], labels[at]))
        with warnings.catch_warnings():
            # the number of steps is part of the protocol, whether they were enough or not
            warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
            return model.fit(rows[at], labels[at])

    accuracies = numpy.zeros(len(grid))
    if len(grid) > 1 or compare:
        # never from the solution of another C: the solver would stop near it, and prefer another C than scikit-learn
        each = [[fit(c, train).score(rows[dev], labels[dev]) for train, dev in fold.tuning] for c in grid]
        accuracies = numpy.mean(each, axis=1)
    best = int(accuracies.argmax())
    return fit(grid[best], fold.train).predict(rows[fold.test]), float(accuracies[best]), grid[best]


def _tolerance(rows: numpy.ndarray, labels: numpy.ndarray) -> float:
    """Return the largest gradient of a weight at which logistic regression may stop.

    scikit-learn's 1e-4 is of the mean loss, whose gradient is below it from the start if classes are many or numbers
    small: it would stop before its first step, and predict one class for all. So, with K labels,

    min(1e-4, 0.01 max_kj |1/n sum_i (1/K - [y_i = k]) x_ij|)
    """
    names, classes = numpy.unique(labels, return_inverse=True)
    sums = numpy.zeros((len(names), rows.shape[1]))
    numpy.add.at(sums, classes, rows)
    first = numpy.abs(sums.sum(axis=0) / len(names) - sums).max() / len(rows)  # at weights of zero
    return float(min(_TOLERANCE, _FALLEN * first))


def _predict_mlp(
    rows: numpy.ndarray, labels: numpy.ndarray, fold: _Fold, seed: int
) -> tuple[numpy.ndarray, float, dict[str, float]]:
    """Fit an MLP; return the labels predicted, str (tests,), the accuracy in tuning, and the settings that were chosen.

    It is stopped and chosen on dev if there is one, else on a stratified 5 % of the training data, drawn with the seed,
    or more if 5 % would not hold an example of each class.
    """
    names, counts = numpy.unique(labels[fold.train], return_counts=True)
    classes = numpy.where(numpy.isin(labels, names), numpy.searchsorted(names, labels), -1)  # -1 is never right
    if len(fold.tuning) == 1:
        fit, held = fold.tuning[0]
    else:
        fit, held = _stratified(fold.train, labels, min(_HELD, *counts.tolist()), seed)[0]
    best = fit_mlp((rows[fit], classes[fit]), (rows[held], classes[held]), len(names), seed)
    return names[best.predict(rows[fold.test])], best.accuracy, {**best.setting._asdict(), "passes": best.passes}
