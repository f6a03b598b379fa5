"""Classification by logistic regression and by the MLP of SentEval, for every variant of the
vectors.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy

from spacy_sbert.evaluation.encoders import sklearn_module
from spacy_sbert.evaluation.protocols.classification import (
    DEV,
    Examples,
    Fold,
    classification_scores,
    example_vectors,
    features_of,
    make_folds,
    predict_lr,
    protocol_of,
    trained_on,
)
from spacy_sbert.evaluation.protocols.senteval import TASKS as TRANSFER
from spacy_sbert.evaluation.protocols.senteval import TransferTask
from spacy_sbert.evaluation.results import Json, mean_of
from spacy_sbert.evaluation.task import Run, Settings

from .mlp import HELD, HIDDEN, predict_mlp
from .variants import OWN, Variant, VariedTask, over_seeds, seeds_of, that_fit, variants_of

_LR = "lr"
_MLP = "mlp"
# Under which key results have what was chosen for each classifier
_CHOSEN = {_LR: "c", _MLP: "networks"}
# Of the settings' seeds: more cost minutes and move a mean little
_MLP_SEEDS = 3
# With more to train on, in all folds together, one seed: each takes minutes
_MLP_ROWS = 120_000


class _Trained(NamedTuple):
    """A classifier that was trained in a fold.

    seed (int): of the classifier, or of the vectors. fold (int): its number. labels (str (tests,)):
        those that it predicts. accuracy (float), chosen (object): what tuning led to.
    """

    variant: Variant
    classifier: str
    seed: int
    fold: int
    labels: numpy.ndarray
    accuracy: float
    chosen: object


def evaluate_classifier(examples: Examples, run: Run, task: str, notes: Sequence[str] = ()) -> Json:
    """Train classifiers on vectors and count what they get right.

    The features of a sentence are its vector u, those of a pair |u - v| and u * v. Moments and
    components of a variant are taken of the vectors of each fold's training examples.
    RETURNS (dict): see Task.run. Scores by classifier: accuracy, over all examples tested, and f1
        if a label is the positive one; of the MLP means over the first 3 seeds, or only the first
        with more than 120,000 training examples. Beside them c and networks, what was chosen in
        each fold; protocol, how it was done; tuned, with several normalizations, the one that is
        best for each classifier in its tuning in each fold, and its scores.
    RAISES (ValueError): if there are too few examples or classes. (ImportError): if scikit-learn is
        not installed.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3; Eger et al. 2019, sections 3.2 and 3.3
        (both classifiers, normalization).
    """
    sklearn_module("sklearn", task)
    folds = make_folds(examples.places, examples.labels, task)
    settings, said = _fitting(examples, folds, run)
    mlp_seeds = settings.seeds[:_MLP_SEEDS]
    if sum(len(fold.train) for fold in folds) > _MLP_ROWS:
        mlp_seeds = settings.seeds[:1]
    if _MLP in settings.classifiers and len(mlp_seeds) < len(settings.seeds):
        said.append(
            f"The MLP was trained with {len(mlp_seeds)} of the {len(settings.seeds)} seeds, to "
            "save time."
        )
    said += trained_on(task, settings)
    trained = _train(examples, folds, replace(run, settings=settings), mlp_seeds, task)
    by_variant: dict[Variant, list[_Trained]] = {}
    for one in trained:
        by_variant.setdefault(one.variant, []).append(one)
    right = _right(examples, folds, next(iter(by_variant.values())))
    accuracies = {
        f"{name}.accuracy": mean_of(values.mean(axis=0)) for name, values in right.items()
    }
    primary = _LR if _LR in settings.classifiers else _MLP
    first_right = right[primary][0].astype(int)
    n = len(first_right)
    result = {
        "counts": examples.counts,
        "primary": f"{primary}.accuracy",
        "variants": [
            _entry(examples, folds, variant, own, settings.seeds[0])
            for variant, own in by_variant.items()
        ],
        "intervals": settings.intervals(accuracies, n),
        "predictions": {"right": "".join(map(str, first_right))},
        "protocol": _protocol(examples.places, settings.classifiers, mlp_seeds),
        "notes": [*notes, *said],
    }
    if len(settings.normalizations) > 1:
        same_size = variants_of(settings)[: len(settings.normalizations)]
        compared = [one for one in trained if one.variant in same_size]
        result["tuned"] = _tuned(examples, folds, compared, primary)
    return result


def _fitting(examples: Examples, folds: Sequence[Fold], run: Run) -> tuple[Settings, list[str]]:
    """Return the settings without the sizes that the smallest fold cannot have; see that_fit."""
    smallest = min(folds, key=lambda fold: len(fold.train))
    # Any width has the size OWN
    width = 1
    if run.settings.sizes != (OWN,):
        width = example_vectors(examples, smallest, run).shape[2]
    members = len(examples.texts[0])
    return that_fit(run.settings, members * len(smallest.train), width)


def _entry(
    examples: Examples,
    folds: Sequence[Fold],
    variant: Variant,
    trained: Sequence[_Trained],
    seed: int,
) -> Json:
    """Return the entry of a variant in results, with what was chosen in each fold with a seed."""
    entry = {
        "normalization": variant.normalization,
        "size": variant.size,
        **_summary(examples, folds, trained),
    }
    for name, key in _CHOSEN.items():
        with_seed = [one for one in trained if one.classifier == name and one.seed == seed]
        if with_seed:
            entry[key] = [one.chosen for one in with_seed]
    return entry


def _train(
    examples: Examples, folds: Sequence[Fold], run: Run, mlp_seeds: Sequence[int], task: str
) -> list[_Trained]:
    """Train all classifiers in each fold and variant."""
    settings = run.settings
    is_tuned = len(settings.normalizations) > 1
    if _MLP not in settings.classifiers:
        mlp_seeds = ()
    trained: list[_Trained] = []
    for number, fold in enumerate(run.progress(folds, task)):
        vectors = example_vectors(examples, fold, run)
        seen = vectors[:, fold.train].reshape(-1, vectors.shape[2])
        for variant in variants_of(settings):
            for seed in seeds_of(settings, variant):
                transform = variant.fit(seen, seed)
                rows = features_of([transform(member) for member in vectors])
                if _LR in settings.classifiers:
                    found = predict_lr(rows, examples.labels, fold, compare=is_tuned)
                    trained.append(_Trained(variant, _LR, seed, number, *found))
                # A random variant and its MLP have the same seed
                own_seeds = [each for each in mlp_seeds if each == seed]
                for each in own_seeds if variant.is_random else mlp_seeds:
                    found = predict_mlp(rows, examples.labels, fold, each)
                    trained.append(_Trained(variant, _MLP, each, number, *found))
    return trained


def _predicted(
    examples: Examples, folds: Sequence[Fold], trained: Iterable[_Trained]
) -> tuple[dict[str, list[numpy.ndarray]], numpy.ndarray]:
    """Return the labels that each classifier predicts with each seed of what is tested, and the
    gold ones.
    """
    labels: dict[str, dict[int, numpy.ndarray]] = {}
    for one in trained:
        by_seed = labels.setdefault(one.classifier, {})
        of_all = by_seed.setdefault(one.seed, numpy.empty_like(examples.labels))
        of_all[folds[one.fold].test] = one.labels
    tested = numpy.sort(numpy.concatenate([fold.test for fold in folds]))
    found: dict[str, list[numpy.ndarray]] = {}
    for name, by_seed in labels.items():
        found[name] = [of_all[tested] for of_all in by_seed.values()]
    return found, examples.labels[tested]


def _right(
    examples: Examples, folds: Sequence[Fold], trained: Iterable[_Trained]
) -> dict[str, numpy.ndarray]:
    """Return by classifier which examples it gets right with each seed, bool (seeds, tests)."""
    predicted, gold = _predicted(examples, folds, trained)
    right: dict[str, numpy.ndarray] = {}
    for name, each in predicted.items():
        right[name] = numpy.stack([labels == gold for labels in each])
    return right


def _summary(examples: Examples, folds: Sequence[Fold], trained: Iterable[_Trained]) -> Json:
    """Return scores by classifier, means over seeds, with their deviation if seeds are several."""
    predicted, gold = _predicted(examples, folds, trained)
    entry: Json = {"scores": {}, "deviation": {}}
    for name, each in predicted.items():
        scores = [classification_scores(labels, gold, examples.positive) for labels in each]
        entry["scores"][name], entry["deviation"][name] = over_seeds(scores)
    if all(len(each) == 1 for each in predicted.values()):
        del entry["deviation"]
    return entry


def _tuned(
    examples: Examples, folds: Sequence[Fold], trained: Sequence[_Trained], primary: str
) -> Json:
    """Return the normalization with which each classifier is best in the tuning of each fold, and
    its scores.
    """
    by_fold: dict[tuple[str, int], dict[Variant, list[_Trained]]] = {}
    for one in trained:
        by_fold.setdefault((one.classifier, one.fold), {}).setdefault(one.variant, []).append(one)
    chosen: dict[str, list[str]] = {}
    best: list[_Trained] = []
    for (classifier, _), by_variant in by_fold.items():
        accuracies: dict[Variant, float] = {}
        for variant, own in by_variant.items():
            accuracies[variant] = float(numpy.mean([one.accuracy for one in own]))
        variant = max(accuracies, key=accuracies.__getitem__)
        chosen.setdefault(classifier, []).append(variant.normalization)
        best += by_variant[variant]
    return {
        "normalization": chosen[primary],
        "by_classifier": chosen,
        **_summary(examples, folds, best),
    }


def _protocol(
    splits: Collection[str], classifiers: Collection[str], mlp_seeds: Sequence[int]
) -> dict[str, str]:
    """Describe in words how classifiers are trained, tuned and tested, for results."""
    held = "on dev"
    if DEV not in splits:
        held = f"on 1/{HELD} of the training data, drawn by the seed"
    words = protocol_of(splits)
    words[_MLP] = (
        f"{HIDDEN} rectified linear units; l2, dropout and the end of training chosen by the "
        f"cross-entropy {held}; mean over the seeds {', '.join(map(str, mlp_seeds))}"
    )
    for name in {_LR, _MLP} - set(classifiers):
        del words[name]
    return words


@dataclass(frozen=True)
class VariedTransferTask(VariedTask, TransferTask):
    """Accuracy of both classifiers, see evaluate_classifier."""

    def run(self, run: Run) -> Json:
        examples, notes = self.examples(run)
        return evaluate_classifier(examples, run, self.name, notes)


TASKS = tuple(VariedTransferTask(**vars(task)) for task in TRANSFER)
