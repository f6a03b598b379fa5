"""Classification on top of sentence embeddings, as SentEval does it: training, tuning, scores over folds and seeds."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy

from ...losses.softmax import SYMMETRIC, concatenated
from ...readers.examples import Row
from ..bootstrap import intervals_of, mean_of
from ..results import Measured, Network, Scores, Summary, Tuned, digits
from ..task import Run, Task, deviation, indices_by_name, mean, over_seeds, sklearn_module
from ..vector_transforms import OWN, Transform, Variant
from .classifiers import ALL, Fold, make_folds, predict_lr, predict_mlp, protocol

_LR, _MLP = "lr", "mlp"
_MLP_SEEDS = 3  # of the settings' seeds: more cost minutes and move a mean little
_MLP_ROWS = 120_000  # with more to train on, in all folds together, one seed: each takes minutes
_TRAINED = "The encoder was trained on {names}, which holds sentences of this set."


class ClassifierTask(Task):
    """A task whose scores are those of classifiers, see classify."""

    depends_on = ("normalizations", "sizes", "seeds", "bootstrap", "classifiers", "trained_on", "any_count")


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
        """Return the indices of the examples of each split."""
        return indices_by_name(self.splits)


def as_examples(rows: Iterable[tuple[str, Row]], positive: str | None = None) -> Examples:
    """Return rows with the split of each as examples."""
    splits, each = zip(*rows, strict=True)
    labels = numpy.array([row.label for row in each])
    return Examples(tuple(row.members for row in each), labels, splits, positive)


@dataclass(eq=False)  # found again by identity
class _Outcome:
    """Predictions in one variant, by classifier and seed.

    predicted: labels of all examples. tuning: the accuracy in tuning of each fold.
    c, networks: of each fold, with the first seed, C and what was chosen for the MLP.
    """

    predicted: dict[tuple[str, int], numpy.ndarray] = field(default_factory=dict)
    tuning: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    c: list[float] = field(default_factory=list)
    networks: list[Network] = field(default_factory=list)

    def accuracy(self, classifier: str, fold: int) -> float:
        """Return the mean accuracy of a classifier in the tuning of a fold, over the seeds."""
        return mean([each[fold] for (name, _), each in self.tuning.items() if name == classifier])


def classify(examples: Examples, run: Run, task: str, notes: Sequence[str] = ()) -> Measured:
    """Train classifiers on vectors and count what they get right.

    The features of a sentence are its vector u, those of a pair |u - v| and u * v. Moments and components of a variant
    are taken of the vectors of each fold's training examples.
    RETURNS (dict): see Task.run. Scores by classifier: accuracy, over all examples tested, and f1 where a label is
        the positive one. Those of the MLP are means over the first 3 seeds, with their deviation, or of the first
        alone where more than 120,000 examples are trained on. Beside them: c and networks, what was chosen in each
        fold, with the first seed; protocol, how it was done; tuned, where more than one normalisation is given, the one
        with which each classifier is best in its tuning in each fold, and its scores with them.
    RAISES (ValueError): if there are too few examples or classes.
    RAISES (ImportError): if scikit-learn is not installed.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3; Eger et al. 2019, sections 3.2 and 3.3 (both classifiers,
        normalisation).
    """
    sklearn_module("sklearn", task)
    folds = make_folds(examples.places, examples.labels, task)
    settings, unfit = run.settings.that_fit(*_smallest(examples, folds, run))
    trial = _Trial(examples, folds, replace(run, settings=settings), task)
    outcomes = trial.outcomes()
    gold = examples.labels[trial.tested]
    right = {name: labels == gold for name, labels in trial.tests(outcomes[0]).items()}  # bool (seeds, tests)
    accuracies = {f"{name}.accuracy": mean_of(values.mean(axis=0)) for name, values in right.items()}
    result: Measured = {
        "counts": {**{name: len(at) for name, at in examples.places.items()}, ALL: len(examples.labels)},
        "primary": f"{trial.primary}.accuracy",
        "variants": [
            {"normalization": variant.normalization, "size": variant.size, **trial.summary(outcome)}
            for variant, outcome in zip(settings.variants, outcomes, strict=True)
        ],
        "intervals": intervals_of(accuracies, len(trial.tested), settings.bootstrap, settings.seeds[0]),
        "predictions": {"right": digits(right[trial.primary][0])},
        "protocol": protocol(examples.places, settings.classifiers, trial.mlp_seeds),
        "notes": [*notes, *unfit, *trial.notes()],
    }
    if trial.compares:
        result["tuned"] = trial.tuned(outcomes[: len(settings.normalizations)])
    return result


class _Trial:
    """Examples, the folds they are trained and tested in, how, and the name of the task."""

    def __init__(self, examples: Examples, folds: list[Fold], run: Run, task: str):
        self.examples, self.folds, self.run, self.task = examples, folds, run, task
        settings = self.settings = run.settings
        self.compares = len(settings.normalizations) > 1  # whether there is a normalisation to choose
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
        for fold in self.run.progress(self.folds, self.task):
            vectors = _vectors(self.examples, fold, self.run)
            seen = vectors[:, fold.train].reshape(-1, vectors.shape[2])
            for variant, outcome in zip(variants, outcomes, strict=True):
                for seed, networks in self._seeds(variant):
                    self._predict(outcome, fold, _features(vectors, variant.fit(seen, seed)), seed, networks)
        return outcomes

    def _seeds(self, variant: Variant) -> list[tuple[int, tuple[int, ...]]]:
        """Return the seeds of a variant, each with those of the MLPs trained on it."""
        networks = self.mlp_seeds if _MLP in self.settings.classifiers else ()
        if not variant.is_random:
            return [(self.settings.seeds[0], networks)]
        return [(seed, (seed,) if seed in networks else ()) for seed in self.settings.seeds]

    def _predict(
        self, outcome: _Outcome, fold: Fold, rows: numpy.ndarray, seed: int, networks: tuple[int, ...]
    ) -> None:
        first, labels = self.settings.seeds[0], self.examples.labels
        if _LR in self.settings.classifiers:
            predicted, c, accuracy = predict_lr(rows, labels, fold, compare=self.compares)
            self._keep(outcome, _LR, seed, predicted, fold)
            outcome.tuning[_LR, seed].append(accuracy)
            if seed == first:
                outcome.c.append(c)
        for mlp_seed in networks:
            predicted, best = predict_mlp(rows, labels, fold, mlp_seed)
            self._keep(outcome, _MLP, mlp_seed, predicted, fold)
            outcome.tuning[_MLP, mlp_seed].append(best.accuracy)
            if mlp_seed == first:
                l2, dropout = best.setting
                outcome.networks.append({"l2": l2, "dropout": dropout, "passes": best.passes})

    def _keep(self, outcome: _Outcome, classifier: str, seed: int, predicted: numpy.ndarray, fold: Fold) -> None:
        labels = outcome.predicted.setdefault((classifier, seed), numpy.empty_like(self.examples.labels))
        labels[fold.test] = predicted

    def summary(self, outcome: _Outcome) -> Summary:
        """Return scores by classifier, means over seeds, with their deviation where seeds are several."""
        gold, positive = self.examples.labels[self.tested], self.examples.positive
        each = {
            name: [_scores(labels, gold, positive) for labels in seeds] for name, seeds in self.tests(outcome).items()
        }
        entry: Summary = {"scores": {name: over_seeds(scores, mean) for name, scores in each.items()}}
        if any(len(scores) > 1 for scores in each.values()):
            entry["deviation"] = {name: over_seeds(scores, deviation) for name, scores in each.items()}
        if outcome.c:
            entry["c"] = outcome.c
        if outcome.networks:
            entry["networks"] = outcome.networks
        return entry

    def tests(self, outcome: _Outcome) -> dict[str, numpy.ndarray]:
        """Return what each classifier predicted, with each seed, of what was tested: labels (seeds, tests)."""
        each = defaultdict(list)
        for (classifier, _), labels in outcome.predicted.items():
            each[classifier].append(labels[self.tested])
        return {classifier: numpy.stack(labels) for classifier, labels in each.items()}

    def tuned(self, outcomes: list[_Outcome]) -> Tuned:
        """Return the normalisation with which each classifier is best in the tuning of each fold, and its scores."""
        merged = _Outcome()
        chosen: dict[str, list[str]] = {classifier: [] for classifier in self.settings.classifiers}
        for number, fold in enumerate(self.folds):
            for classifier, names in chosen.items():
                best = max(outcomes, key=lambda outcome: outcome.accuracy(classifier, number))
                names.append(self.settings.normalizations[outcomes.index(best)])
                for (name, seed), predicted in best.predicted.items():
                    if name == classifier:
                        self._keep(merged, name, seed, predicted[fold.test], fold)
        return {"normalization": chosen[self.primary], "by_classifier": chosen, **self.summary(merged)}


def _smallest(examples: Examples, folds: list[Fold], run: Run) -> tuple[int, int]:
    """Return how many vectors a variant is fitted to, at least, and their width."""
    fold = min(folds, key=lambda fold: len(fold.train))
    if run.settings.sizes == (OWN,):
        return len(fold.train), 1  # any will do
    members, _, width = _vectors(examples, fold, run).shape
    return members * len(fold.train), width


def _vectors(examples: Examples, fold: Fold, run: Run) -> numpy.ndarray:
    """Return the vectors of all examples, float32 (members, n, width)."""
    members = list(zip(*examples.texts, strict=True))
    seen = [text for i in fold.train for text in examples.texts[i]]
    rows = run.encode([text for member in members for text in member], fit_on=seen)
    return rows.reshape(len(members), len(examples.texts), -1)


def _features(vectors: numpy.ndarray, transform: Transform) -> numpy.ndarray:
    """Compute float (members, n, width) -> float32 (n, features): half the memory and time of float64."""
    members = [transform(rows) for rows in vectors]
    return (members[0] if len(members) == 1 else concatenated(*members, parts=SYMMETRIC)).astype("float32")


def _scores(predicted: numpy.ndarray, gold: numpy.ndarray, positive: str | None) -> Scores:
    """Return accuracy = right / n, and F1 = 2 tp / (2 tp + fp + fn).

    F1 is None where the label is neither gold nor predicted.
    """
    scores: Scores = {"accuracy": float((predicted == gold).mean())}
    if positive is not None:
        is_gold, is_predicted = gold == positive, predicted == positive
        both = int(is_gold.sum() + is_predicted.sum())
        scores["f1"] = 2 * int((is_gold & is_predicted).sum()) / both if both else None
    return scores
