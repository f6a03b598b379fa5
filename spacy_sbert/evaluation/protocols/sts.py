"""Similarity without training on it: STS12 to STS16, the STS benchmark, SICK.

Triplets; labels by a pipeline's head.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy

from ...files.text_lines import check_cell, read_lines
from ...readers.datasets import (
    STS_MAX_SCORE,
    STS_SENTENCES,
    WIKISECTION_SENTENCES,
    sick_rows,
    sts_rows,
    wikisection_records,
)
from ...readers.examples import Row, check_members, check_score
from ...similarity import cosine, euclidean, manhattan, pearson, spearman
from ..results import Json, interval, intervals_of, mean_of, resample, spearman_of
from ..scoring import evaluate
from ..task import (
    DataFile,
    MissingData,
    Run,
    Settings,
    Task,
    as_they_are,
    check_official_count,
    indices_by_name,
)

# The nearer, the higher: distances are negated.
_SIMILARITIES: dict[str, Callable[[numpy.ndarray, numpy.ndarray], numpy.ndarray]] = {
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
    def places(self) -> dict[str, numpy.ndarray]:
        """The indices of the pairs of each sub-set, in the order of the data."""
        return indices_by_name(self.subset)

    @property
    def counts(self) -> dict[str, int]:
        """The number of pairs of each sub-set, and of all."""
        return {
            **{name: len(places) for name, places in self.places.items()},
            "all": len(self.gold),
        }

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
        scores: Json = {}
        for name, correlate in CORRELATIONS.items():
            found: Json = {"pooled": correlate(predicted, self.gold)}
            scores[name] = found
            if len(self.places) > 1:
                each = {
                    subset: correlate(predicted[at], self.gold[at])
                    for subset, at in self.places.items()
                }
                values: list[Any] = list(each.values())
                sizes = list(map(len, self.places.values()))
                found["subsets"] = each
                for key, weights in (("mean", None), ("weighted_mean", sizes)):
                    found[key] = (
                        None if None in values else float(numpy.average(values, weights=weights))
                    )
        return scores

    def intervals(
        self, predicted: numpy.ndarray, settings: Settings, similarity: str
    ) -> dict[str, list[float] | None]:
        """Return 95 % intervals of Spearman correlations of a similarity, by their paths in scores.

        Sub-sets are resampled each by itself, also for their means.
        """
        if not settings.bootstrap:
            return {}
        resamples = settings.bootstrap
        seed = settings.seeds[0]
        drawn = {
            "pooled": resample(spearman_of(predicted, self.gold), len(predicted), resamples, seed)
        }
        if len(self.places) > 1:
            # A seed of its own, also if sizes are equal
            each = [
                resample(
                    spearman_of(predicted[at], self.gold[at]), len(at), resamples, (seed, place)
                )
                for place, at in enumerate(self.places.values())
            ]
            drawn.update(
                (f"subsets.{name}", values) for name, values in zip(self.places, each, strict=True)
            )
            drawn["mean"] = numpy.mean(each, axis=0)
            drawn["weighted_mean"] = numpy.average(
                each, axis=0, weights=list(map(len, self.places.values()))
            )
        return {f"{similarity}.spearman.{path}": interval(values) for path, values in drawn.items()}


class PairsTask(Task):
    """Correlation of similarities with the gold scores of pairs, see GradedPairs."""

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        """Return the pairs, and notes on them."""
        raise NotImplementedError

    def run(self, run: Run) -> Json:
        pairs, notes = self.pairs(run)
        u, v = numpy.split(run.encode([*pairs.first, *pairs.second]), 2)
        predicted = {name: similarity(u, v) for name, similarity in _SIMILARITIES.items()}
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

    place, official: where it lies, and how many pairs it officially has. read, low, high: gives the
        rows of a file, and the scores that 0 and 1 stand for. trained: how the names of training
        data begin that touch the set.
    notes: what to say beside its scores. otherwise: notes unless the encoder is known to have seen
        it.
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
        """Return the pairs, and notes on the data alone."""
        path = self.place.find(run.root)
        rows = list(self.read(path))
        notes = check_official_count(
            len(rows), path, self.official, any_count=run.settings.any_count
        )
        return GradedPairs.from_rows(rows, self.low, self.high), [*notes, *self.notes]

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        pairs, notes = self.graded(run)
        return pairs, [*notes, *(run.settings.touched(TRAINED, *self.trained) or self.otherwise)]


_SOURCE = "http://ixa2.si.ehu.eus/stswiki"
# Pairs with a gold score.
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
_SMT = "SMT", 750
# What the official archives unpack to, from 2012 on.
_UNPACKED = (
    "test-gold",
    "test-gs",
    "sts-en-test-gs-2014",
    "test_evaluation_task2a",
    "sts2016-english-with-gs-v1.0",
)
_TRAINED_ON = ("sts", "glue")
_OVERLAP = (
    "STS benchmark train was drawn from STS12 to STS17: if the encoder was trained on it, this "
    "score is not zero-shot."
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
        place = DataFile((f"STS{self.year}-en-test", _UNPACKED[self.year - 12]), _SOURCE)
        folder = place.find(root)
        found = []
        for name, count in (*SUBSETS[self.year].items(), *([_SMT] if self.year == 13 else [])):
            official = folder / f"STS20{self.year}.input.{name}.txt"
            # STS16's own names begin with the year
            prefix = f"STS20{self.year}" if official.is_file() else "STS"
            sentences, gold = (folder / f"{prefix}.{kind}.{name}.txt" for kind in ("input", "gs"))
            missing = [file for file in (sentences, gold) if not file.is_file()]
            if not missing:
                found.append((name, count, sentences, gold))
            elif (name, count) != _SMT:
                place.refuse(missing[0], root)
        return found

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        subsets = self._subsets(run.root)
        notes = []
        if self.year == 13:
            with_smt = (
                "With the sub-set SMT, which SentEval leaves out: figures without it are of other "
                "pairs."
            )
            without = (
                "Without the sub-set SMT of 750 pairs, which is not there: its texts are licensed "
                "by the LDC."
            )
            notes.append(with_smt if _SMT[0] in {name for name, *_ in subsets} else without)
        rows: list[tuple[str, str, float, str]] = []
        for name, official, sentences, gold in subsets:
            scored = _read_subset(sentences, gold)
            notes += check_official_count(
                len(scored), gold, official, any_count=run.settings.any_count
            )
            rows += [(*row, name.removeprefix("surprise.")) for row in scored]
        first, second, scores, names = zip(*rows, strict=True)
        pairs = GradedPairs(first, second, numpy.array(scores), names)
        return pairs, [*notes, *(run.settings.touched(TRAINED, *_TRAINED_ON) or [_OVERLAP])]


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


# Chosen from STS12 to STS17.
BENCHMARK = {
    split: _benchmark(split, official)
    for split, official in (("train", 5749), ("dev", 1500), ("test", 1379))
}
SICK = {
    "train": _sick("train", "SICK_train.txt", 4500),
    "trial": _sick("trial", "SICK_trial.txt", 500),
    "test": _sick("test", "SICK_test_annotated.txt", 4927),
}


class _TripletTask(Task):
    """Accuracy: how often the anchor is nearer to the sentence of its own section.

    Triplets with two equal sentences are left out: they ask nothing, or what has no answer.
    """

    name = "wikisec"
    suite = "triplets"
    # Of the test set of Ein Dor et al. 2018
    official = 222_957
    place = DataFile(
        tuple(
            f"{folder}/test.csv"
            for folder in ("wikisec", "wikipedia-sections", "wikipedia-sections-triplets")
        ),
        "https://sbert.net/datasets/wikipedia-sections-triplets.zip",
    )

    def run(self, run: Run) -> Json:
        path = self.place.find(run.root)
        read = [
            [
                check_cell(text, name, path, line)
                for text, name in zip(texts, WIKISECTION_SENTENCES, strict=True)
            ]
            for line, texts in wikisection_records(path)
        ]
        triplets = [texts for texts in read if len(set(texts)) == len(texts)]
        n = len(triplets)
        equal = len(read) - len(triplets)
        check_official_count(n, path)
        rows = run.encode([text for member in zip(*triplets, strict=True) for text in member])
        anchor, positive, negative = rows.reshape(3, n, -1)
        each = {name: _SIMILARITIES[name] for name in ("euclidean", "cosine", "manhattan")}
        right = {
            name: near(anchor, positive) > near(anchor, negative) for name, near in each.items()
        }
        accuracy = {"euclidean.accuracy": mean_of(right["euclidean"])}
        settings = run.settings
        notes = settings.touched("The encoder was trained on {}.", "wiki")
        # Samples of it are in use
        notes += check_official_count(len(read), path, self.official)
        if equal:
            notes.append(
                f"{equal} triplets with two equal sentences are left out; the official number "
                "includes them."
            )
        return {
            "counts": {"test": n},
            "primary": "euclidean.accuracy",
            "variants": as_they_are(
                {name: {"accuracy": float(values.mean())} for name, values in right.items()}
            ),
            "intervals": intervals_of(accuracy, n, settings.bootstrap, settings.seeds[0]),
            "predictions": {"right": "".join(map(str, right["euclidean"].astype(int)))},
            "notes": notes,
        }


@dataclass(frozen=True)
class _LabelTask(Task):
    """Accuracy of the head of an `sbert` pipe on the labels of pairs.

    Pairs without consensus do not count.
    """

    name: str
    place: DataFile
    format: str
    official: int
    suite: str = "nli"

    def check(self, settings: Settings) -> None:
        """Follow any settings: the head has the vectors that it was trained on."""

    def run(self, run: Run) -> Json:
        nlp = None if run.source is None else run.source.nlp
        pipes: list[Any] = [] if nlp is None else [pipe for _, pipe in nlp.pipeline]
        if nlp is None or not any(
            hasattr(pipe, "classify") and getattr(pipe, "labels", ()) for pipe in pipes
        ):
            raise MissingData(
                "The pipeline has no trained classification head: to label pairs, train an 'sbert' "
                "pipe with spacy-sbert.SoftmaxLoss.v1 (configs/nli.cfg)."
            )
        path = self.place.find(run.root)
        settings = run.settings
        scores = evaluate(nlp, path, format=self.format)
        n = scores["pairs"]
        accuracy = scores["nli_acc"]
        notes = check_official_count(n, path, self.official, any_count=settings.any_count)
        if accuracy is None:
            raise MissingData(f"The pipeline's head knows none of the labels of {path.name}.")
        about = self.name.lower().partition("-")[0]
        notes += settings.touched("The head or the encoder was trained on {}.", about, "allnli")
        # The order of the pairs does not matter
        right = numpy.arange(n) < round(accuracy * n)
        return {
            "counts": {"all": n},
            "primary": "accuracy",
            "variants": as_they_are({"accuracy": accuracy}),
            "intervals": intervals_of(
                {"accuracy": mean_of(right)}, n, settings.bootstrap, settings.seeds[0]
            ),
            "predictions": {},
            "notes": [*notes, "By the pipeline's own head, on the vectors as they are."],
        }


def _nli_task(name: str, corpus: str, split: str, official: int) -> _LabelTask:
    source = {
        "snli": "https://nlp.stanford.edu/projects/snli/",
        "multinli": "https://cims.nyu.edu/~sbowman/multinli/",
    }
    names = (
        f"{corpus}_1.0/{corpus}_1.0_{split}.jsonl",
        f"{corpus}_1.0_{split}.jsonl",
        f"{corpus}_{split}.jsonl",
    )
    return _LabelTask(name, DataFile(names, source[corpus]), "nli", official)


TASKS: tuple[Task, ...] = (
    *(_YearTask(f"STS{year}", year) for year in SUBSETS),
    *(BENCHMARK[split] for split in ("dev", "test")),
    *(SICK[split] for split in ("trial", "test")),
    _TripletTask(),
    _nli_task("SNLI-dev", "snli", "dev", 9842),
    _nli_task("SNLI-test", "snli", "test", 9824),
    _nli_task("MultiNLI-dev-matched", "multinli", "dev_matched", 9815),
    _nli_task("MultiNLI-dev-mismatched", "multinli", "dev_mismatched", 9832),
    # Both in one file
    _nli_task("MultiNLI-dev", "multinli", "dev", 9815 + 9832),
    *(
        _LabelTask(f"SICK-E-{split}", SICK[split].place, "sick", SICK[split].official)
        for split in ("trial", "test")
    ),
)
