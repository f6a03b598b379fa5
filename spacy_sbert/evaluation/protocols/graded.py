"""Pairs with gold scores: correlation of their similarities, pooled and by sub-set."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy

from ...readers.examples import Row
from ...similarity import cosine, euclidean, manhattan, pearson, spearman
from ..bootstrap import interval, resample, spearman_of
from ..results import Measured, Predictions, Scores
from ..task import DataFile, Run, Settings, Task, check_count, filled, indices_by_name, score_variants
from ..vector_transforms import Transform

# The nearer, the higher: distances are negated.
SIMILARITIES: dict[str, Callable[[numpy.ndarray, numpy.ndarray], numpy.ndarray]] = {
    "cosine": cosine,
    "manhattan": lambda u, v: -manhattan(u, v),
    "euclidean": lambda u, v: -euclidean(u, v),
    "dot": lambda u, v: (u * v).sum(axis=1),
}
CORRELATIONS = {"spearman": spearman, "pearson": pearson}
TRAINED = "The encoder was trained on {}, which shares pairs or sources with this set: this score is not zero-shot."


@dataclass(frozen=True)
class GradedPairs:
    """Pairs with gold scores.

    first, second (n strings each), gold (float64 (n,)): the pairs, scores as the data set has them.
    subset (n strings): the sub-set of each.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    gold: numpy.ndarray
    subset: tuple[str, ...]

    @property
    def places(self) -> dict[str, numpy.ndarray]:
        """Return the indices of the pairs of each sub-set, in the order of the data."""
        return indices_by_name(self.subset)


@dataclass(frozen=True)
class GradedSet:
    """A data set of graded pairs, a file for each split.

    places, counts: where each split lies, and how many pairs it officially has.
    read: gives the rows of a file, two members and a score from 0 to 1 each.
    low, high: the scores of the data set that 0 and 1 stand for.
    trained: how the names of training data begin that touch the set. notes: what to say beside its scores.
    """

    places: Mapping[str, DataFile]
    counts: Mapping[str, int]
    read: Callable[[Path], Iterable[Row]]
    low: float
    high: float
    trained: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def pairs(self, split: str, run: Run) -> tuple[GradedPairs, list[str]]:
        """Return the pairs of a split, and what there is to note of their number."""
        path = self.places[split].find(run.root)
        rows = filled(self.read(path), path)
        notes = check_count(len(rows), self.counts[split], path, run.settings.any_count)
        return graded_pairs(rows, self.low, self.high), [*notes, *self.notes]


class PairsTask(Task):
    """Correlation of similarities with the gold scores of pairs."""

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        """Return the pairs, and notes on them."""
        raise NotImplementedError

    def run(self, run: Run) -> Measured:
        pairs, notes = self.pairs(run)
        return _score_graded(pairs, run, notes)


@dataclass(frozen=True)
class GradedTask(PairsTask):
    """One split of a data set of graded pairs. otherwise: a note unless the encoder is known to have seen it."""

    name: str
    suite: str
    data: GradedSet
    split: str
    otherwise: tuple[str, ...] = ()

    def find(self, root: Path) -> list[Path]:
        return [self.data.places[self.split].find(root)]

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        pairs, notes = self.data.pairs(self.split, run)
        touched = run.settings.touched(TRAINED, *self.data.trained)
        return pairs, [*notes, *(touched or self.otherwise)]


def graded_pairs(rows: Sequence[Row], low: float, high: float) -> GradedPairs:
    """Return the pairs of a reader.

    rows (n Rows, one or more): two members and a score from 0 to 1 each; the topic, if they have one, is the sub-set.
    low, high (float): the scores of the data set that 0 and 1 stand for.
    """
    first, second = zip(*(row.members for row in rows), strict=True)
    gold = numpy.array([low + (high - low) * (row.score or 0.0) for row in rows])
    return GradedPairs(first, second, gold, tuple(getattr(row, "topic", "all") for row in rows))


def _score_graded(pairs: GradedPairs, run: Run, notes: Sequence[str] = ()) -> Measured:
    """Correlate similarities with gold scores, for every variant of the vectors.

    notes: what to say beside the scores.
    RETURNS (dict): see Task.run. Scores by similarity and correlation: pooled, of all pairs of the set (as SBERT
        reports it); where there are sub-sets, subsets, of each; mean, of them; weighted_mean, of them by their sizes
        (as SentEval reports it). Moments and components are taken of all 2n rows.
    SOURCE: Reimers and Gurevych 2019, section 4; Conneau and Kiela 2018, SentEval, section 3.
    """
    n = len(pairs.gold)
    rows = run.encode([*pairs.first, *pairs.second])
    settings, unfit = run.settings.that_fit(*rows.shape)
    cosines = []

    def score(transform: Transform) -> Scores:
        both = transform(rows)
        each = {name: similarity(both[:n], both[n:]) for name, similarity in SIMILARITIES.items()}
        cosines.append(each["cosine"])
        return {name: aggregations(values, pairs) for name, values in each.items()}

    variants = score_variants(settings, rows, score)
    predicted = cosines[0]  # of the first variant and seed
    return {
        "counts": counts_of(pairs),
        "primary": "cosine.spearman.pooled",
        "variants": variants,
        "intervals": subset_intervals(predicted, pairs, settings, "cosine"),
        "predictions": predictions_of(predicted, pairs),
        "notes": [*unfit, *notes],
    }


def counts_of(pairs: GradedPairs) -> dict[str, int]:
    """Return the number of pairs of each sub-set, and of all."""
    return {**{name: len(places) for name, places in pairs.places.items()}, "all": len(pairs.gold)}


def predictions_of(predicted: numpy.ndarray, pairs: GradedPairs) -> Predictions:
    """Return what was predicted of each pair, for results."""
    return {"predicted": predicted.tolist(), "gold": pairs.gold.tolist(), "subset": list(pairs.subset)}


def aggregations(predicted: numpy.ndarray, pairs: GradedPairs) -> Scores:
    """Return both correlations with gold scores, of all pairs and of sub-sets, see _score_graded."""
    return {name: _aggregated(predicted, pairs, correlate) for name, correlate in CORRELATIONS.items()}


def _aggregated(predicted: numpy.ndarray, pairs: GradedPairs, correlate: Callable[..., float | None]) -> Scores:
    places = pairs.places
    scores: Scores = {"pooled": correlate(predicted, pairs.gold)}
    if len(places) > 1:
        scores["subsets"] = {name: correlate(predicted[at], pairs.gold[at]) for name, at in places.items()}
        values = list(scores["subsets"].values())
        scores["mean"] = _weighted_mean(values, [1] * len(values))
        scores["weighted_mean"] = _weighted_mean(values, list(map(len, places.values())))
    return scores


def _weighted_mean(values: Sequence[float | None], weights: Sequence[int]) -> float | None:
    """Return sum_i w_i x_i / sum_i w_i, and None where one of the values is not defined."""
    defined = [value for value in values if value is not None]
    return float(numpy.average(defined, weights=weights)) if len(defined) == len(values) else None


def subset_intervals(
    predicted: numpy.ndarray, pairs: GradedPairs, settings: Settings, similarity: str
) -> dict[str, list[float] | None]:
    """Return 95 % intervals of a similarity's Spearman correlations.

    Sub-sets are resampled each by itself, also for their means.
    """
    if not settings.bootstrap:
        return {}
    places, resamples, seed = pairs.places, settings.bootstrap, settings.seeds[0]
    drawn = {"pooled": resample(spearman_of(predicted, pairs.gold), len(predicted), resamples, seed)}
    if len(places) > 1:
        each = [
            resample(spearman_of(predicted[at], pairs.gold[at]), len(at), resamples, (seed, place))
            for place, at in enumerate(places.values())  # a seed of its own, also where sizes are equal
        ]
        drawn.update((f"subsets.{name}", values) for name, values in zip(places, each, strict=True))
        drawn["mean"] = numpy.mean(each, axis=0)
        drawn["weighted_mean"] = numpy.average(each, axis=0, weights=list(map(len, places.values())))
    return {f"{similarity}.spearman.{path}": interval(values) for path, values in drawn.items()}
