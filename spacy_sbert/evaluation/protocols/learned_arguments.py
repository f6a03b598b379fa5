"""Similarity of arguments learned from others: support vector regression on held-out folds and on held-out topics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Protocol

import numpy

from ...losses.pair_features import SYMMETRIC, concatenated
from ...similarity import cosine
from ..results import MSE, Entry, Measured, Scores
from ..scoring import DEPENDS_ON, GradedPairs, aggregations, intervals, predictions_of
from ..task import Run, Task, deviation, mean, over_seeds
from ..vector_transforms import Variant
from .arguments import AFS, N_FOLDS, UKP, Split, split_folds, split_topics
from .classifiers import sklearn_module
from .learned_similarity import fit_similarity

FOLDS = 3  # of the training data, to choose the settings
PENALTIES = (0.1, 1.0, 10.0)  # C
WIDTHS = (0.3, 1.0)  # gamma times the number of features
Part = tuple[numpy.ndarray, numpy.ndarray]  # features (n, 2 width) and gold scores (n,)
Predict = Callable[[numpy.ndarray], numpy.ndarray]


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
    selection = sklearn_module("sklearn.model_selection", "A learned similarity")
    from sklearn.metrics.pairwise import euclidean_distances
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    features, gold = train
    scaler = StandardScaler().fit(features)
    x, middle, spread = scaler.transform(features), gold.mean(), gold.std() or 1.0
    y = (gold - middle) / spread
    distances = euclidean_distances(x, squared=True) / x.shape[1]  # once for all settings and folds

    def fit(setting: tuple[float, float], at: numpy.ndarray) -> SVR:
        c, width = setting
        return SVR(kernel="precomputed", C=c).fit(numpy.exp(-width * distances[numpy.ix_(at, at)]), y[at])

    def error(setting: tuple[float, float], at: numpy.ndarray, held: numpy.ndarray) -> float:
        kernel = numpy.exp(-setting[1] * distances[numpy.ix_(held, at)])
        return float(((fit(setting, at).predict(kernel) - y[held]) ** 2).mean())

    folds = list(selection.KFold(FOLDS, shuffle=True, random_state=seed).split(x))
    grid = list(product(PENALTIES, WIDTHS))
    best = min(grid, key=lambda setting: sum(error(setting, *fold) for fold in folds))
    model = fit(best, numpy.arange(len(x)))

    def predict(given: numpy.ndarray) -> numpy.ndarray:
        between = euclidean_distances(scaler.transform(given), x, squared=True) / x.shape[1]
        return middle + spread * model.predict(numpy.exp(-best[1] * between))

    return predict


SVR, RIDGE, COSINE = "svr", "learned", "cosine"
TESTED = {N_FOLDS: f"{N_FOLDS} folds of the pairs, one left out at a time", None: "one topic left out at a time"}
KEPT_OUT = {
    N_FOLDS: "A pair that is scored is not trained on; a single sentence may be.",
    None: "A sentence that is scored is not trained on.",
}


class Corpus(Protocol):
    """A task on pairs of arguments, without training on them."""

    @property
    def name(self) -> str: ...

    def find(self, root: Path) -> list[Path]: ...

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        """The pairs, their topics as sub-sets, and notes."""


@dataclass(frozen=True)
class HeldOutArguments:
    """Pairs of arguments, each scored by what is learned from the pairs of other folds, or of other topics.

    corpus: what the pairs are of. folds: how many, None for topics.
    SOURCE: Misra et al. 2016, section 4 (support vector regression); Reimers and Gurevych 2019, section 4.3 (both ways
        to hold out).
    """

    corpus: Corpus
    folds: int | None = None
    suite: str = "learned"
    depends_on: tuple[str, ...] = DEPENDS_ON

    @property
    def name(self) -> str:
        return f"{self.corpus.name}-{'topics' if self.folds is None else 'folds'}"

    def find(self, root: Path) -> list[Path]:
        return self.corpus.find(root)

    def run(self, run: Run) -> Measured:
        pairs, notes = self.corpus.pairs(run)
        result = score_held_out(pairs, self._splits(pairs), run)
        tested = TESTED[self.folds]
        note = f"Learned from pairs of arguments, {tested}: not zero-shot. {KEPT_OUT[self.folds]}"
        return {**result, "splits": {"test": tested}, "notes": [*result["notes"], *notes, note]}

    def _splits(self, pairs: GradedPairs) -> list[Split]:
        members = list(zip(pairs.first, pairs.second, strict=True))
        return split_topics(members, pairs.subset) if self.folds is None else split_folds(members, self.folds)


TASKS: tuple[Task, ...] = tuple(HeldOutArguments(corpus, folds) for corpus in (AFS, UKP) for folds in TESTED)


def score_held_out(pairs: GradedPairs, splits: Sequence[Split], run: Run) -> Measured:
    """Correlate learned similarities and the cosine with the gold scores of pairs that are held out in turn.

    pairs (GradedPairs): all of them. splits: each pair is tested in one.
    RETURNS (dict): see Task.run. Scores: both correlations of "svr", support vector regression, "learned", ridge
        regression, and "cosine": of each split, their mean, and of all pairs pooled; of the learned ones also the mean
        squared error. Moments and components are taken of the training pairs of each split, for the cosine too.
    """
    names = {i: split.name for split in splits for i in split.test}
    held = replace(pairs, subset=tuple(names[i] for i in range(len(pairs.gold))))
    settings, notes = run.settings.that_fit(*_smallest(pairs, splits, run))
    predicted = [
        [_predicted(variant, seed, pairs, splits, run) for seed in settings.seeds[: None if variant.is_random else 1]]
        for variant in settings.variants
    ]
    entries = []
    for variant, each in zip(settings.variants, predicted, strict=True):
        scores = [_scores(found, held) for found in each]
        of = {"normalization": variant.normalization, "size": variant.size}
        entry: Entry = {**of, "scores": over_seeds(scores, mean)}  # type: ignore[typeddict-item]
        if variant.is_random:
            entry["deviation"] = over_seeds(scores, deviation)
        entries.append(entry)
    first = predicted[0][0][SVR]  # of the first variant and seed
    return {
        "counts": {**{name: len(at) for name, at in held.places.items()}, "all": len(held.gold)},
        "primary": f"{SVR}.spearman.mean",
        "variants": entries,
        "intervals": intervals(first, held, settings.bootstrap, settings.seeds[0], SVR),
        "predictions": predictions_of(first, held),
        "notes": notes,
    }


def _predicted(
    variant: Variant, seed: int, pairs: GradedPairs, splits: Sequence[Split], run: Run
) -> dict[str, numpy.ndarray]:
    """What each kind of similarity says of all pairs, learned from the others of each split."""
    found = {kind: numpy.zeros(len(pairs.gold)) for kind in (SVR, RIDGE, COSINE)}
    for split in run.progress(splits, "held out"):
        train, test = list(split.train), list(split.test)
        rows = _vectors(pairs, split, run)
        transform = variant.fit(rows[:, train].reshape(-1, rows.shape[2]), seed)
        first, second = (transform(side) for side in rows)
        features = concatenated(first, second, parts=SYMMETRIC)
        learned_from = features[train], pairs.gold[train]
        found[SVR][test] = fit_support_vectors(learned_from, seed)(features[test])
        found[RIDGE][test] = fit_similarity(learned_from, None, seed)[0](features[test])
        found[COSINE][test] = cosine(first[test], second[test])
    return found


def _vectors(pairs: GradedPairs, split: Split, run: Run) -> numpy.ndarray:
    """Both sides of all pairs, float (2, n, width), by a source that may learn from the training pairs."""
    seen = [side[i] for side in (pairs.first, pairs.second) for i in split.train]
    rows = run.encode([*pairs.first, *pairs.second], fit_on=seen)
    return rows.reshape(2, len(pairs.gold), -1)


def _smallest(pairs: GradedPairs, splits: Sequence[Split], run: Run) -> tuple[int, int]:
    """How many vectors a variant is fitted to, at least, and their width."""
    split = min(splits, key=lambda split: len(split.train))
    return 2 * len(split.train), _vectors(pairs, split, run).shape[2]


def _scores(predicted: dict[str, numpy.ndarray], held: GradedPairs) -> Scores:
    scores: Scores = {kind: aggregations(values, held) for kind, values in predicted.items()}
    for kind in (SVR, RIDGE):
        scores[kind][MSE] = float(((predicted[kind] - held.gold) ** 2).mean())
    return scores
