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
from spacy_sbert.evaluation.results import Json, intervals_of, mean_of
from spacy_sbert.evaluation.task import Run

from .mlp import HELD, HIDDEN, predict_mlp
from .variants import OWN, Variant, VariedTask, over_seeds, seeds_of, that_fit, variants_of

_LR, _MLP = "lr", "mlp"
# Of the settings' seeds: more cost minutes and move a mean little
_MLP_SEEDS = 3
# With more to train on, in all folds together, one seed: each takes minutes
_MLP_ROWS = 120_000


class _Trained(NamedTuple):
    """A classifier trained in a fold, the labels it predicts of what is tested, and what was chosen
    in tuning.
    """

    variant: Variant
    classifier: str
    # Of the classifier, or of the vectors
    seed: int
    # Its number
    fold: int
    labels: numpy.ndarray
    # In tuning
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
    smallest = min(folds, key=lambda fold: len(fold.train))
    # Of OWN any will do
    width = 1 if run.settings.sizes == (OWN,) else example_vectors(examples, smallest, run).shape[2]
    settings, unfit = that_fit(run.settings, len(examples.texts[0]) * len(smallest.train), width)
    is_small = sum(len(fold.train) for fold in folds) <= _MLP_ROWS
    mlp_seeds = settings.seeds[: _MLP_SEEDS if is_small else 1]
    said = [*notes, *unfit]
    if _MLP in settings.classifiers and len(mlp_seeds) < len(settings.seeds):
        said.append(
            f"The MLP was trained with {len(mlp_seeds)} of the {len(settings.seeds)} seeds, to "
            "save time."
        )
    said += trained_on(task, settings)
    trained = _train(examples, folds, replace(run, settings=settings), mlp_seeds, task)
    first, gold = _predicted(
        examples, folds, [one for one in trained if one.variant == variants_of(settings)[0]]
    )
    # (seeds, tests)
    right = {name: numpy.stack([labels == gold for labels in each]) for name, each in first.items()}
    accuracies = {
        f"{name}.accuracy": mean_of(values.mean(axis=0)) for name, values in right.items()
    }
    primary = _LR if _LR in settings.classifiers else _MLP
    variants: list[Json] = []
    for variant in variants_of(settings):
        own = [one for one in trained if one.variant == variant]
        entry = {
            "normalization": variant.normalization,
            "size": variant.size,
            **_summary(examples, folds, own),
        }
        for name, key in ((_LR, "c"), (_MLP, "networks")):
            if chosen := [
                one.chosen
                for one in own
                if one.classifier == name and one.seed == settings.seeds[0]
            ]:
                entry[key] = chosen
        variants.append(entry)
    result = {
        "counts": examples.counts,
        "primary": f"{primary}.accuracy",
        "variants": variants,
        "intervals": intervals_of(accuracies, len(gold), settings.bootstrap, settings.seeds[0]),
        "predictions": {"right": "".join(map(str, right[primary][0].astype(int)))},
        "protocol": _protocol(examples.places, settings.classifiers, mlp_seeds),
        "notes": said,
    }
    if len(settings.normalizations) > 1:
        same_size = variants_of(settings)[: len(settings.normalizations)]
        result["tuned"] = _tuned(
            examples, folds, [one for one in trained if one.variant in same_size], primary
        )
    return result


def _train(
    examples: Examples, folds: Sequence[Fold], run: Run, mlp_seeds: Sequence[int], task: str
) -> list[_Trained]:
    """Train all classifiers in each fold and variant."""
    settings = run.settings
    trained: list[_Trained] = []
    for number, fold in enumerate(run.progress(folds, task)):
        vectors = example_vectors(examples, fold, run)
        seen = vectors[:, fold.train].reshape(-1, vectors.shape[2])
        for variant in variants_of(settings):
            for seed in seeds_of(settings, variant):
                transform = variant.fit(seen, seed)
                rows = features_of([transform(member) for member in vectors])
                if _LR in settings.classifiers:
                    found = predict_lr(
                        rows, examples.labels, fold, compare=len(settings.normalizations) > 1
                    )
                    trained.append(_Trained(variant, _LR, seed, number, *found))
                for each in mlp_seeds if _MLP in settings.classifiers else ():
                    if each == seed or not variant.is_random:
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
        of_all = labels.setdefault(one.classifier, {}).setdefault(
            one.seed, numpy.empty_like(examples.labels)
        )
        of_all[folds[one.fold].test] = one.labels
    tested = numpy.sort(numpy.concatenate([fold.test for fold in folds]))
    found = {
        name: [of_all[tested] for of_all in by_seed.values()] for name, by_seed in labels.items()
    }
    return found, examples.labels[tested]


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
        accuracies = {
            variant: numpy.mean([one.accuracy for one in own])
            for variant, own in by_variant.items()
        }
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
    held = "on dev" if DEV in splits else f"on 1/{HELD} of the training data, drawn by the seed"
    words = protocol_of(splits)
    words[_MLP] = (
        f"{HIDDEN} rectified linear units; l2, dropout and the end of training chosen by the "
        f"cross-entropy {held}; mean over the seeds {', '.join(map(str, mlp_seeds))}"
    )
    return {
        key: text for key, text in words.items() if key not in (_LR, _MLP) or key in classifiers
    }


@dataclass(frozen=True)
class VariedTransferTask(VariedTask, TransferTask):
    """Accuracy of both classifiers, see evaluate_classifier."""

    def run(self, run: Run) -> Json:
        examples, notes = self.examples(run)
        return evaluate_classifier(examples, run, self.name, notes)


TASKS = tuple(VariedTransferTask(**vars(task)) for task in TRANSFER)
