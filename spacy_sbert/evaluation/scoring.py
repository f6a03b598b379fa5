"""Evaluate a pipeline on labelled examples."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.training import Example

from ..errors import Warnings
from ..progress import progress_of
from ..readers import MEASURES, GoldFacts, PairCorpus, listed_labels
from ..readers.examples import Row
from ..similarity import cosine, euclidean, manhattan, pearson, spearman
from .bootstrap import interval, resample, spearman_of
from .results import Measured, Predictions, Scores
from .task import DataFile, Run, check_count, filled, indices_by_name, score_variants
from .vector_transforms import Transform

OTHER_LABELS = "the labels of the pairs are {given}, and the pipeline has none of them: {known}"
MODEL_REASONS = {
    "sts_spearman": "all similarities are alike",
    "sts_pearson": "all similarities are alike",
    "nli_acc": "the pipeline has no head for labels, such as training with spacy-sbert.SoftmaxLoss.v1 gives it",
    "knn_acc": "no pipe gives vectors to single texts",
}


@runtime_checkable
class AnswersForDocs(Protocol):
    """A pipe that may answer `doc.vector`, such as `sbert`; the members of pairs stand under its spans_key."""

    set_hooks: bool
    spans_key: str


def evaluate(nlp: Language, path: str | Path, *, progress: bool = False, **reader: Any) -> dict[str, Any]:
    """Score a pipeline with an `sbert` pipe on graded pairs, labelled pairs, triplets or labelled texts.

    spaCy's own `evaluate` makes the Docs anew and drops their members; this one keeps them.

    nlp (Language): the pipeline.
    path (str or Path): the examples, see PairCorpus. progress (bool): whether to show progress bars.
    reader: settings of PairCorpus, such as format.
    RETURNS (dict): pairs, the number of examples, and what the pipeline's scorers report of them: sts_spearman and
        sts_pearson, from -1 to 1, pair_ap, nli_acc, triplet_acc and knn_acc, from 0 to 1; None where not defined. Of a
        scorer of the user's own, also the numbers that it gives.
    RAISES (ValueError): if the file is not what PairCorpus reads, or no pipe scores pairs.
    """
    return evaluate_with_reasons(nlp, path, progress=progress, **reader)[0]


def evaluate_with_reasons(
    nlp: Language, path: str | Path, *, progress: bool = False, **reader: Any
) -> tuple[dict[str, Any], list[str]]:
    """Score a pipeline, see evaluate, and find out why scores are not defined.

    RETURNS (dict, list[str]): what evaluate returns; the reasons, of gold that the file has, or of the whole file if it
        has none.
    """
    for _, pipe in nlp.pipeline:
        if isinstance(pipe, AnswersForDocs) and pipe.set_hooks:
            reader["spans_key"] = pipe.spans_key
    corpus = PairCorpus(path, **reader)
    examples = list(progress_of(corpus(nlp), desc="Reading", unit="examples", shown=progress))
    # As nlp.evaluate does, which cannot tell how far it is.
    docs = nlp.pipe(example.predicted for example in examples)
    shown = progress_of(docs, total=len(examples), desc="Encoding", unit="examples", shown=progress)
    for example, doc in zip(examples, shown, strict=True):
        example.predicted = doc
    scores = Scorer(nlp=nlp).score(examples)
    own = {} if "sts_spearman" in scores else _own_scores(nlp, examples)
    if "sts_spearman" not in scores and not own:
        raise ValueError(
            f"The pipeline has no 'sbert' pipe that scores pairs; its pipes are {nlp.pipe_names}. Add one: "
            'nlp.add_pipe("sbert").'
        )
    found = {key: None if (score := scores.get(key)) is None else float(score) for key in MEASURES} | own
    gold = GoldFacts()
    for example in examples:
        gold.add(example.reference, corpus.spans_key)
    undefined = {**MODEL_REASONS, **gold.undefined()}
    if found["nli_acc"] is not None and (reason := _other_labels(nlp, path, gold)):
        found["nli_acc"], undefined["nli_acc"] = None, reason
    reasons = gold.relevant({key: undefined[key] for key, score in found.items() if score is None and key in undefined})
    if not reasons and not any(score is not None for score in found.values()):
        reasons = ["its examples have no gold: no scores, no labels, no triplets"]
    return {"pairs": len(examples), **found}, reasons


def _own_scores(nlp: Language, examples: list[Example]) -> dict[str, float | None]:
    """Return the numbers that a scorer of the user's own gives, in place of that of this package."""
    pipes: list[Any] = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, AnswersForDocs)]
    scores = {key: score for pipe in pipes for key, score in pipe.score(examples).items()}
    return {key: score for key, score in scores.items() if score is None or isinstance(score, int | float)}


def _other_labels(nlp: Language, path: str | Path, gold: GoldFacts) -> str | None:
    """The reason if the pipeline knows none of the labels of pairs; a warning if it knows some of them."""
    known = {label for _, pipe in nlp.pipeline if hasattr(pipe, "spans_key") for label in getattr(pipe, "labels", ())}
    unknown = [label for label in gold.pair_labels if label not in known]
    given = {"given": listed_labels(unknown), "known": listed_labels(sorted(known))}
    if not known or not unknown:
        return None
    if len(unknown) == len(gold.pair_labels):
        return OTHER_LABELS.format(**given)
    count = sum(gold.pair_labels[label] for label in unknown)
    warnings.warn(Warnings.UNKNOWN_EVALUATE_LABELS.format(path=path, count=count, **given), stacklevel=3)
    return None


# The nearer, the higher: distances are negated.
SIMILARITIES: dict[str, Callable[[numpy.ndarray, numpy.ndarray], numpy.ndarray]] = {
    "cosine": cosine,
    "manhattan": lambda u, v: -manhattan(u, v),
    "euclidean": lambda u, v: -euclidean(u, v),
    "dot": lambda u, v: (u * v).sum(axis=1),
}
CORRELATIONS = {"spearman": spearman, "pearson": pearson}
DEPENDS_ON = ("normalizations", "sizes", "seeds", "bootstrap", "trained_on", "any_count")
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
        """The indices of the pairs of each sub-set, in the order of the data."""
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
        """The pairs of a split, and what there is to note of their number."""
        path = self.places[split].find(run.root)
        rows = filled(self.read(path), path)
        notes = check_count(len(rows), self.counts[split], path, run.settings.any_count)
        return graded_pairs(rows, self.low, self.high), [*notes, *self.notes]


@dataclass(frozen=True)
class GradedTask:
    """Correlation with the gold scores of one split. otherwise: a note unless the encoder is known to have seen it."""

    name: str
    suite: str
    data: GradedSet
    split: str
    otherwise: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = DEPENDS_ON

    def find(self, root: Path) -> list[Path]:
        return [self.data.places[self.split].find(root)]

    def run(self, run: Run) -> Measured:
        pairs, notes = self.pairs(run)
        return score_graded(pairs, run, notes)

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        """The pairs, and notes on them."""
        pairs, notes = self.data.pairs(self.split, run)
        touched = run.settings.touched(TRAINED, *self.data.trained)
        return pairs, [*notes, *(touched or self.otherwise)]


def graded_pairs(rows: Sequence[Row], low: float, high: float) -> GradedPairs:
    """Pairs as a reader gives them.

    rows (n Rows, one or more): two members and a score from 0 to 1 each; the topic, if they have one, is the sub-set.
    low, high (float): the scores of the data set that 0 and 1 stand for.
    """
    first, second = zip(*(row.members for row in rows), strict=True)
    gold = numpy.array([low + (high - low) * (row.score or 0.0) for row in rows])
    return GradedPairs(first, second, gold, tuple(getattr(row, "topic", "all") for row in rows))


def score_graded(pairs: GradedPairs, run: Run, notes: Sequence[str] = ()) -> Measured:
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
        "counts": {**{name: len(places) for name, places in pairs.places.items()}, "all": n},
        "primary": "cosine.spearman.pooled",
        "variants": variants,
        "intervals": intervals(predicted, pairs, settings.bootstrap, settings.seeds[0]),
        "predictions": predictions_of(predicted, pairs),
        "notes": [*unfit, *notes],
    }


def predictions_of(predicted: numpy.ndarray, pairs: GradedPairs) -> Predictions:
    """What was predicted of each pair, for results."""
    return {"predicted": predicted.tolist(), "gold": pairs.gold.tolist(), "subset": list(pairs.subset)}


def correlated(predicted: numpy.ndarray, gold: numpy.ndarray) -> dict[str, float | None]:
    """Both correlations with gold scores."""
    return {name: correlate(predicted, gold) for name, correlate in CORRELATIONS.items()}


def aggregations(predicted: numpy.ndarray, pairs: GradedPairs) -> Scores:
    """Both correlations with gold scores, of all pairs and of sub-sets, see score_graded."""
    return {name: _aggregated(predicted, pairs, correlate) for name, correlate in CORRELATIONS.items()}


def _aggregated(predicted: numpy.ndarray, pairs: GradedPairs, correlation: Callable[..., float | None]) -> Scores:
    places = pairs.places
    found: Scores = {"pooled": correlation(predicted, pairs.gold)}
    if len(places) > 1:
        found["subsets"] = {name: correlation(predicted[at], pairs.gold[at]) for name, at in places.items()}
        values = list(found["subsets"].values())
        found["mean"] = weighted_mean(values, [1] * len(values))
        found["weighted_mean"] = weighted_mean(values, list(map(len, places.values())))
    return found


def weighted_mean(values: Sequence[float | None], weights: Sequence[int]) -> float | None:
    """sum_i w_i x_i / sum_i w_i, and None where one of the values is not defined."""
    defined = [value for value in values if value is not None]
    return float(numpy.average(defined, weights=weights)) if len(defined) == len(values) else None


def intervals(
    predicted: numpy.ndarray, pairs: GradedPairs, resamples: int, seed: int, similarity: str = "cosine"
) -> dict[str, list[float] | None]:
    """95 % intervals of a similarity's Spearman correlations; sub-sets are resampled each by itself, also for their
    means."""
    if not resamples:
        return {}
    places = pairs.places
    drawn = {"pooled": resample(spearman_of(predicted, pairs.gold), len(predicted), resamples, seed)}
    if len(places) > 1:
        each = [
            resample(spearman_of(predicted[at], pairs.gold[at]), len(at), resamples, (seed, place))
            for place, at in enumerate(places.values())  # a seed of its own, also where sizes are equal
        ]
        drawn.update((f"subsets.{name}", one) for name, one in zip(places, each, strict=True))
        drawn["mean"] = numpy.mean(each, axis=0)
        drawn["weighted_mean"] = numpy.average(each, axis=0, weights=list(map(len, places.values())))
    return {f"{similarity}.spearman.{path}": interval(values) for path, values in drawn.items()}
