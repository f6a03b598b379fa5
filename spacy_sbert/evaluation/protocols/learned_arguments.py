"""Similarity of arguments learned from others: support vector regression on held-out folds and on held-out topics."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy

from ...losses.softmax import SYMMETRIC, concatenated
from ...similarity import cosine
from ..results import MSE, Measured, Scores
from ..task import Run, Task, entry_of, sklearn_module
from ..vector_transforms import Variant
from .arguments import AFS, N_FOLDS, UKP, Split, split_folds, split_topics
from .graded import GradedPairs, PairsTask, aggregations, counts_of, predictions_of, subset_intervals
from .learned_similarity import Part, Predict, fit_ridge

_FOLDS = 3  # of the training data, to choose the settings
_PENALTIES = (0.1, 1.0, 10.0)  # C
_WIDTHS = (0.3, 1.0)  # gamma times the number of features


def fit_support_vectors(train: Part, seed: int) -> Predict:
    """Fit a support vector regressor with the radial kernel exp(-gamma |x - y|^2) to graded pairs.

    Features and gold scores are brought to mean 0 and deviation 1 by those of train. C is one of 0.1, 1 and 10, and
    gamma 0.3 or 1 over the number of features, by the least mean squared error in three folds of train; epsilon is 0.1.

    train (Part): what it is fitted to. seed (int): of the folds.
    RETURNS (Callable): features, float (m, 2 width), to similarities on the scale of the gold scores, float (m,).
    RAISES (ImportError): without scikit-learn.
    SOURCE: Misra et al. 2016, Measuring the Similarity of Sentential Arguments in Dialogue, section 4, with features of
        its own of the pairs.
    """
    selection, pairwise, preprocessing, svm = (
        sklearn_module(f"sklearn.{name}", "A learned similarity")
        for name in ("model_selection", "metrics.pairwise", "preprocessing", "svm")
    )
    features, gold = train
    scaler = preprocessing.StandardScaler().fit(features)
    x, middle, spread = scaler.transform(features), gold.mean(), gold.std() or 1.0
    y = (gold - middle) / spread
    distances = pairwise.euclidean_distances(x, squared=True) / x.shape[1]  # once for all settings and folds

    def fit(setting: tuple[float, float], at: numpy.ndarray) -> Predict:
        """Return the prediction from the kernel of other examples with those at `at`."""
        c, width = setting
        return svm.SVR(kernel="precomputed", C=c).fit(numpy.exp(-width * distances[numpy.ix_(at, at)]), y[at]).predict

    def error(setting: tuple[float, float], at: numpy.ndarray, held: numpy.ndarray) -> float:
        kernel = numpy.exp(-setting[1] * distances[numpy.ix_(held, at)])
        return float(((fit(setting, at)(kernel) - y[held]) ** 2).mean())

    folds = list(selection.KFold(_FOLDS, shuffle=True, random_state=seed).split(x))
    grid = list(product(_PENALTIES, _WIDTHS))
    best = min(grid, key=lambda setting: sum(error(setting, *fold) for fold in folds))
    from_kernel = fit(best, numpy.arange(len(x)))

    def predict(rows: numpy.ndarray) -> numpy.ndarray:
        between = pairwise.euclidean_distances(scaler.transform(rows), x, squared=True) / x.shape[1]
        return middle + spread * from_kernel(numpy.exp(-best[1] * between))

    return predict


_SVR, _RIDGE, _COSINE = "svr", "learned", "cosine"
_TESTED = {"folds": f"{N_FOLDS} folds of the pairs, one left out at a time", "topics": "one topic left out at a time"}
_KEPT_OUT = {
    "folds": "A pair that is scored is not trained on; a single sentence may be.",
    "topics": "A sentence that is scored is not trained on.",
}


@dataclass(frozen=True)
class _HeldOutArguments(Task):
    """Pairs of arguments, each scored by what is learned from the pairs of other folds, or of other topics.

    corpus: what the pairs are of. held: "folds" or "topics".
    SOURCE: Misra et al. 2016, section 4 (support vector regression); Reimers and Gurevych 2019, section 4.3 (both ways
        to hold out).
    """

    name: str
    corpus: PairsTask
    held: str
    suite: str = "learned"

    def find(self, root: Path) -> list[Path]:
        return self.corpus.find(root)

    def run(self, run: Run) -> Measured:
        pairs, notes = self.corpus.pairs(run)
        members = list(zip(pairs.first, pairs.second, strict=True))
        splits = split_folds(members) if self.held == "folds" else split_topics(members, pairs.subset)
        result = _score_held_out(pairs, splits, run)
        tested = _TESTED[self.held]
        note = f"Learned from pairs of arguments, {tested}: not zero-shot. {_KEPT_OUT[self.held]}"
        return {**result, "splits": {"test": tested}, "notes": [*result["notes"], *notes, note]}


TASKS: tuple[Task, ...] = tuple(
    _HeldOutArguments(f"{corpus.name}-{held}", corpus, held) for corpus in (AFS, UKP) for held in _TESTED
)


def _score_held_out(pairs: GradedPairs, splits: Sequence[Split], run: Run) -> Measured:
    """Correlate learned similarities and the cosine with the gold scores of pairs that are held out in turn.

    pairs (GradedPairs): all of them. splits: each pair is tested in one.
    RETURNS (dict): see Task.run. Scores: both correlations of "svr", support vector regression, "learned", ridge
        regression, and "cosine": of each split, their mean, and of all pairs pooled; of the learned ones also the mean
        squared error. Moments and components are taken of the training pairs of each split, for the cosine too.
    """
    names = {i: split.name for split in splits for i in split.test}
    held = replace(pairs, subset=tuple(names[i] for i in range(len(pairs.gold))))
    smallest = min(splits, key=lambda split: len(split.train))
    settings, notes = run.settings.that_fit(2 * len(smallest.train), _vectors(pairs, smallest, run).shape[2])
    predicted = [
        [_predicted(variant, seed, pairs, splits, run) for seed in settings.seeds_of(variant)]
        for variant in settings.variants
    ]
    first = predicted[0][0][_SVR]  # of the first variant and seed
    return {
        "counts": counts_of(held),
        "primary": f"{_SVR}.spearman.mean",
        "variants": [
            entry_of(variant, [_scores(one, held) for one in each])
            for variant, each in zip(settings.variants, predicted, strict=True)
        ],
        "intervals": subset_intervals(first, held, settings, _SVR),
        "predictions": predictions_of(first, held),
        "notes": notes,
    }


def _predicted(
    variant: Variant, seed: int, pairs: GradedPairs, splits: Sequence[Split], run: Run
) -> dict[str, numpy.ndarray]:
    """Return the similarities of all pairs by each kind, learned from the others of each split."""
    predicted = {kind: numpy.zeros(len(pairs.gold)) for kind in (_SVR, _RIDGE, _COSINE)}
    for split in run.progress(splits, "held out"):
        train, test = list(split.train), list(split.test)
        rows = _vectors(pairs, split, run)
        transform = variant.fit(rows[:, train].reshape(-1, rows.shape[2]), seed)
        first, second = (transform(side) for side in rows)
        features = concatenated(first, second, parts=SYMMETRIC)
        learned_from = features[train], pairs.gold[train]
        predicted[_SVR][test] = fit_support_vectors(learned_from, seed)(features[test])
        predicted[_RIDGE][test] = fit_ridge(learned_from, None, seed)[0](features[test])
        predicted[_COSINE][test] = cosine(first[test], second[test])
    return predicted


def _vectors(pairs: GradedPairs, split: Split, run: Run) -> numpy.ndarray:
    """Return both sides of all pairs, float (2, n, width), by a source that may learn from the training pairs."""
    seen = [side[i] for side in (pairs.first, pairs.second) for i in split.train]
    rows = run.encode([*pairs.first, *pairs.second], fit_on=seen)
    return rows.reshape(2, len(pairs.gold), -1)


def _scores(predicted: dict[str, numpy.ndarray], held: GradedPairs) -> Scores:
    scores: Scores = {kind: aggregations(values, held) for kind, values in predicted.items()}
    for kind in (_SVR, _RIDGE):
        scores[kind][MSE] = float(((predicted[kind] - held.gold) ** 2).mean())
    return scores
