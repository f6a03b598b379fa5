"""Similarity without training on it: STS12 to STS16, the STS benchmark, SICK."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy

from ...arrays import Arrays
from ...files.text_lines import read_lines
from ...readers.datasets import STS_MAX_SCORE, STS_SENTENCES, sick_rows, sts_rows
from ...readers.examples import Row, check_members, check_score
from ...similarity import cosine, euclidean, manhattan, pearson, spearman
from ..results import Json, interval, resample, spearman_of
from ..task import (
    DataFile,
    Run,
    Settings,
    Task,
    as_they_are,
    check_official_count,
    indices_by_name,
)

# The nearer, the higher: distances are negated.
SIMILARITIES: dict[str, Callable[[numpy.ndarray, numpy.ndarray], numpy.ndarray]] = {
    "cosine": cosine,
    "manhattan": lambda u, v: -manhattan(u, v),
    "euclidean": lambda u, v: -euclidean(u, v),
    "dot": lambda u, v: (u * v).sum(axis=1),
}
CORRELATIONS = {"spearman": spearman, "pearson": pearson}
TRAINED = (
    "The encoder was trained on {}, which shares pairs or sources with this set: this score is not "
    "zero-shot."
)


@dataclass(frozen=True)
class GradedPairs:
    """Pairs with gold scores.

    first, second (n strings each), gold (float64 (n,)): the pairs, scores as the data set has them.
    subset (n strings): the sub-set of each.
    """

    first: Sequence[str]
    second: Sequence[str]
    gold: numpy.ndarray
    subset: Sequence[str]

    @classmethod
    def from_rows(cls, rows: Sequence[Row], low: float, high: float) -> "GradedPairs":
        """Return the pairs of a reader, whose scores are from 0 to 1.

        The topic, if they have one, is the sub-set.

        low, high (float): the scores of the data set that 0 and 1 stand for.
        """
        first, second = zip(*(row.members for row in rows), strict=True)
        gold = numpy.array([low + (high - low) * (row.score or 0.0) for row in rows])
        return cls(first, second, gold, [getattr(row, "topic", "all") for row in rows])

    @cached_property
    def places(self) -> Arrays:
        """The indices of the pairs of each sub-set, in the order of the data."""
        return indices_by_name(self.subset)

    @property
    def counts(self) -> dict[str, int]:
        """The number of pairs of each sub-set, and of all."""
        counts = {name: len(places) for name, places in self.places.items()}
        return {**counts, "all": len(self.gold)}

    def with_gold(self, predicted: numpy.ndarray) -> Json:
        """Return what was predicted of each pair, for results."""
        return {
            "predicted": predicted.tolist(),
            "gold": self.gold.tolist(),
            "subset": list(self.subset),
        }

    def correlations(self, predicted: numpy.ndarray) -> Json:
        """Return both correlations of what was predicted with the gold scores.

        RETURNS (dict): by correlation: pooled, of all pairs of the set (as SBERT reports it); if
            there are sub-sets, subsets, of each; mean, of them; weighted_mean, of them by their
            sizes (as SentEval reports it), None if one is not defined.
        SOURCE: Reimers and Gurevych 2019, section 4; Conneau and Kiela 2018, SentEval, section 3.
        """
        sizes = list(map(len, self.places.values()))
        scores: Json = {}
        for name, correlate in CORRELATIONS.items():
            scores[name] = {"pooled": correlate(predicted, self.gold)}
            if len(self.places) > 1:
                each: Json = {}
                for subset, at in self.places.items():
                    each[subset] = correlate(predicted[at], self.gold[at])
                scores[name]["subsets"] = each
                scores[name]["mean"] = _average(each.values())
                scores[name]["weighted_mean"] = _average(each.values(), sizes)
        return scores

    def intervals(
        self, predicted: numpy.ndarray, settings: Settings, similarity: str
    ) -> dict[str, list[float] | None]:
        """Return 95 % intervals of Spearman correlations of a similarity, by their paths in scores.

        Sub-sets are resampled each by itself, also for their means.
        """
        if not settings.bootstrap:
            return {}
        n = settings.bootstrap
        seed = settings.seeds[0]
        drawn = {
            "pooled": resample(spearman_of(predicted, self.gold), len(predicted), n, seed),
        }
        if len(self.places) > 1:
            each = []
            # A seed of its own, also if sizes are equal
            for number, (subset, at) in enumerate(self.places.items()):
                statistic = spearman_of(predicted[at], self.gold[at])
                values = resample(statistic, len(at), n, (seed, number))
                drawn[f"subsets.{subset}"] = values
                each.append(values)
            sizes = list(map(len, self.places.values()))
            drawn["mean"] = numpy.mean(each, axis=0)
            drawn["weighted_mean"] = numpy.average(each, axis=0, weights=sizes)
        return {f"{similarity}.spearman.{path}": interval(values) for path, values in drawn.items()}


def _average(
    values: Collection[float | None], weights: Sequence[int] | None = None
) -> float | None:
    """Return the average, weighed if there are weights; None if one value is."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    return float(numpy.average(numbers, weights=weights))


class PairsTask(Task):
    """Correlation of similarities with the gold scores of pairs, see GradedPairs."""

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        """Return the pairs, and notes on them."""
        raise NotImplementedError

    def run(self, run: Run) -> Json:
        pairs, notes = self.pairs(run)
        u, v = numpy.split(run.encode([*pairs.first, *pairs.second]), 2)
        predicted = {name: similarity(u, v) for name, similarity in SIMILARITIES.items()}
        return {
            "counts": pairs.counts,
            "primary": "cosine.spearman.pooled",
            "variants": as_they_are(
                {name: pairs.correlations(values) for name, values in predicted.items()}
            ),
            "intervals": pairs.intervals(predicted["cosine"], run.settings, "cosine"),
            "predictions": pairs.with_gold(predicted["cosine"]),
            "notes": notes,
        }


@dataclass(frozen=True)
class GradedTask(PairsTask):
    """One split of a data set of graded pairs.

    place (DataFile): where it is. official (int): how many pairs it officially has.
    read (Callable): from its path to rows, with scores from 0 to 1.
    low, high (float): the scores of the data set that 0 and 1 stand for.
    trained (tuple): how the names of training data begin that touch the set.
    notes (tuple): of its scores. otherwise (tuple): further ones, unless the encoder is known to
        have seen it.
    """

    name: str
    suite: str
    place: DataFile
    official: int
    read: Callable[[Path], Iterable[Row]]
    low: float
    high: float
    trained: tuple[str, ...]
    notes: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()

    def graded(self, run: Run) -> tuple[GradedPairs, list[str]]:
        """Return the pairs, and notes on the data, but none on training."""
        path = self.place.find(run.root)
        rows = list(self.read(path))
        notes = check_official_count(
            len(rows), path, self.official, any_count=run.settings.any_count
        )
        return GradedPairs.from_rows(rows, self.low, self.high), [*notes, *self.notes]

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        pairs, notes = self.graded(run)
        notes += run.settings.touched(TRAINED, *self.trained) or self.otherwise
        return pairs, notes


_SOURCE = "http://ixa2.si.ehu.eus/stswiki"
# How many pairs with a gold score each sub-set has, by year
SUBSETS = {
    12: {
        "MSRpar": 750,
        "MSRvid": 750,
        "SMTeuroparl": 459,
        "surprise.OnWN": 750,
        "surprise.SMTnews": 399,
    },
    13: {"FNWN": 189, "headlines": 750, "OnWN": 561},
    14: {
        "OnWN": 750,
        "deft-forum": 450,
        "deft-news": 300,
        "headlines": 750,
        "images": 750,
        "tweet-news": 750,
    },
    15: {
        "answers-forums": 375,
        "answers-students": 750,
        "belief": 375,
        "headlines": 750,
        "images": 750,
    },
    16: {
        "answer-answer": 254,
        "headlines": 249,
        "plagiarism": 230,
        "postediting": 244,
        "question-question": 209,
    },
}
# A sub-set of STS13 that is taken if it is there: the LDC licenses its texts
_SMT = "SMT"
_SMT_PAIRS = 750
# The folders to which the official archives unpack
_UNPACKED = {
    12: "test-gold",
    13: "test-gs",
    14: "sts-en-test-gs-2014",
    15: "test_evaluation_task2a",
    16: "sts2016-english-with-gs-v1.0",
}
_TRAINED_ON = ("sts", "glue")
_OVERLAP = (
    "STS benchmark train was drawn from STS12 to STS17: if the encoder was trained on it, this "
    "score is not zero-shot."
)


_WITH_SMT = (
    "With the sub-set SMT, which SentEval leaves out: figures without it are of other pairs."
)
_WITHOUT_SMT = (
    "Without the sub-set SMT of 750 pairs, which is not there: its texts are licensed by the LDC."
)


@dataclass(frozen=True)
class _YearTask(PairsTask):
    """The STS task of one year, English, test: each sub-set is in two files."""

    name: str
    year: int
    suite: str = "sts"

    def find(self, root: Path) -> list[Path]:
        return [file for subset in self._subsets(root) for file in subset[2:]]

    def _subsets(self, root: Path) -> list[tuple[str, int, Path, Path]]:
        """Return name, official number of pairs, and both files of each sub-set."""
        place = DataFile((f"STS{self.year}-en-test", _UNPACKED[self.year]), _SOURCE)
        folder = place.find(root)
        counts = dict(SUBSETS[self.year])
        if self.year == 13:
            counts[_SMT] = _SMT_PAIRS
        subsets = []
        for name, count in counts.items():
            prefix = "STS"
            # STS16's own names begin with the year
            if (folder / f"STS20{self.year}.input.{name}.txt").is_file():
                prefix = f"STS20{self.year}"
            sentences = folder / f"{prefix}.input.{name}.txt"
            gold = folder / f"{prefix}.gs.{name}.txt"
            missing = [file for file in (sentences, gold) if not file.is_file()]
            if not missing:
                subsets.append((name, count, sentences, gold))
            elif name != _SMT:
                place.refuse(missing[0], root)
        return subsets

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        subsets = self._subsets(run.root)
        notes: list[str] = []
        if self.year == 13:
            has_smt = any(name == _SMT for name, *_ in subsets)
            notes.append(_WITH_SMT if has_smt else _WITHOUT_SMT)
        rows: list[tuple[str, str, float, str]] = []
        for name, official, sentences, gold in subsets:
            scored = _read_subset(sentences, gold)
            notes += check_official_count(
                len(scored), gold, official, any_count=run.settings.any_count
            )
            rows += [(*row, name.removeprefix("surprise.")) for row in scored]
        first, second, scores, names = zip(*rows, strict=True)
        notes += run.settings.touched(TRAINED, *_TRAINED_ON) or [_OVERLAP]
        return GradedPairs(first, second, numpy.array(scores), names), notes


def _read_subset(sentences_file: Path, gold: Path) -> list[tuple[str, str, float]]:
    """Read the pairs of a sub-set that have a gold score.

    The files have two sentences a line with a tab between, and a score a line.
    """
    sentences = list(read_lines(sentences_file))
    scores = list(read_lines(gold))
    if len(sentences) != len(scores):
        raise ValueError(
            f"{sentences_file} has {len(sentences)} lines, {gold} has {len(scores)}: expected one "
            "score, or a blank line, for each pair."
        )
    pairs = []
    for (line, text), (_, score) in zip(sentences, scores, strict=True):
        if score.strip():
            columns = [*text.rstrip("\r\n").split("\t"), ""][:2]
            first, second = check_members(columns, STS_SENTENCES, sentences_file, line)
            value = check_score(score.strip(), 0.0, STS_MAX_SCORE, gold, line, "score")
            pairs.append((first, second, STS_MAX_SCORE * value))
    return pairs


def _benchmark(split: str, official: int) -> GradedTask:
    names = tuple(f"{folder}sts-{split}.csv" for folder in ("STSBenchmark/", "stsbenchmark/", ""))
    place = DataFile(names, f"{_SOURCE}/index.php/STSbenchmark")
    facts = (place, official, sts_rows, 0.0, STS_MAX_SCORE, _TRAINED_ON)
    return GradedTask(f"STSb-{split}", "sts", *facts, otherwise=(_OVERLAP,))


def _sick(split: str, file: str, official: int) -> GradedTask:
    files = (file, file.replace("_annotated", ""))
    names = tuple(f"{folder}{name}" for name in files for folder in ("sick/", "SICK/", ""))
    place = DataFile(names, "https://zenodo.org/records/2787612")
    return GradedTask(f"SICK-R-{split}", "sick", place, official, sick_rows, 1.0, 5.0, ("sick",))


BENCHMARK = {
    "train": _benchmark("train", 5749),
    "dev": _benchmark("dev", 1500),
    "test": _benchmark("test", 1379),
}
SICK = {
    "train": _sick("train", "SICK_train.txt", 4500),
    "trial": _sick("trial", "SICK_trial.txt", 500),
    "test": _sick("test", "SICK_test_annotated.txt", 4927),
}


TASKS: tuple[Task, ...] = (
    *(_YearTask(f"STS{year}", year) for year in SUBSETS),
    *(BENCHMARK[split] for split in ("dev", "test")),
    *(SICK[split] for split in ("trial", "test")),
)
