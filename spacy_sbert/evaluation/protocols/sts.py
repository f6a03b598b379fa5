"""Similarity without training on it: STS12 to STS16, the STS benchmark, SICK; triplets; labels by a pipeline's head."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from ...files.text_lines import check_text, read_lines
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
from ..results import Json, digits, interval, intervals_of, mean_of, resample, spearman_of
from ..scoring import evaluate
from ..task import (
    DataFile,
    MissingData,
    Run,
    Settings,
    Task,
    Transform,
    check_count,
    filled,
    indices_by_name,
    score_variants,
)

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

    @classmethod
    def from_rows(cls, rows: Sequence[Row], low: float, high: float) -> "GradedPairs":
        """Return the pairs of a reader.

        rows (n Rows, one or more): two members and a score from 0 to 1 each; the topic, if they have one, is the
            sub-set.
        low, high (float): the scores of the data set that 0 and 1 stand for.
        """
        first, second = zip(*(row.members for row in rows), strict=True)
        gold = numpy.array([low + (high - low) * (row.score or 0.0) for row in rows])
        return cls(first, second, gold, tuple(getattr(row, "topic", "all") for row in rows))

    @property
    def places(self) -> dict[str, numpy.ndarray]:
        """Return the indices of the pairs of each sub-set, in the order of the data."""
        return indices_by_name(self.subset)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of pairs of each sub-set, and of all."""
        return {**{name: len(places) for name, places in self.places.items()}, "all": len(self.gold)}

    def with_gold(self, predicted: numpy.ndarray) -> Json:
        """Return what was predicted of each pair, for results."""
        return {"predicted": predicted.tolist(), "gold": self.gold.tolist(), "subset": list(self.subset)}


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
        return GradedPairs.from_rows(rows, self.low, self.high), [*notes, *self.notes]


class PairsTask(Task):
    """Correlation of similarities with the gold scores of pairs, for every variant of the vectors.

    Scores by similarity and correlation, see aggregations. Moments and components are taken of all 2n rows.
    """

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        """Return the pairs, and notes on them."""
        raise NotImplementedError

    def run(self, run: Run) -> Json:
        pairs, notes = self.pairs(run)
        n = len(pairs.gold)
        rows = run.encode([*pairs.first, *pairs.second])
        settings, unfit = run.settings.that_fit(*rows.shape)
        cosines = []

        def score(transform: Transform) -> Json:
            both = transform(rows)
            each = {name: similarity(both[:n], both[n:]) for name, similarity in SIMILARITIES.items()}
            cosines.append(each["cosine"])
            return {name: aggregations(values, pairs) for name, values in each.items()}

        variants = score_variants(settings, rows, score)
        predicted = cosines[0]  # of the first variant and seed
        return {
            "counts": pairs.counts,
            "primary": "cosine.spearman.pooled",
            "variants": variants,
            "intervals": subset_intervals(predicted, pairs, settings, "cosine"),
            "predictions": pairs.with_gold(predicted),
            "notes": [*unfit, *notes],
        }


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


def aggregations(predicted: numpy.ndarray, pairs: GradedPairs) -> Json:
    """Return both correlations with gold scores.

    RETURNS (dict): by correlation: pooled, of all pairs of the set (as SBERT reports it); if there are sub-sets,
        subsets, of each; mean, of them; weighted_mean, of them by their sizes (as SentEval reports it), None if one is
        not defined.
    SOURCE: Reimers and Gurevych 2019, section 4; Conneau and Kiela 2018, SentEval, section 3.
    """
    places = pairs.places
    scores: Json = {}
    for name, correlate in CORRELATIONS.items():
        found: Json = {"pooled": correlate(predicted, pairs.gold)}
        scores[name] = found
        if len(places) > 1:
            each = {subset: correlate(predicted[at], pairs.gold[at]) for subset, at in places.items()}
            values = [value for value in each.values() if value is not None]
            sizes = list(map(len, places.values()))
            found["subsets"] = each
            for key, weights in (("mean", [1] * len(sizes)), ("weighted_mean", sizes)):
                is_defined = len(values) == len(each)
                found[key] = float(numpy.average(values, weights=weights)) if is_defined else None
    return scores


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
            for place, at in enumerate(places.values())  # a seed of its own, also if sizes are equal
        ]
        drawn.update((f"subsets.{name}", values) for name, values in zip(places, each, strict=True))
        drawn["mean"] = numpy.mean(each, axis=0)
        drawn["weighted_mean"] = numpy.average(each, axis=0, weights=list(map(len, places.values())))
    return {f"{similarity}.spearman.{path}": interval(values) for path, values in drawn.items()}


_SOURCE = "http://ixa2.si.ehu.eus/stswiki"
# Pairs with a gold score.
SUBSETS = {
    12: {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    13: {"FNWN": 189, "headlines": 750, "OnWN": 561},
    14: {"OnWN": 750, "deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "tweet-news": 750},
    15: {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    16: {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209},
}
_OPTIONAL = {13: {"SMT": 750}}  # taken if they are there: the LDC licenses the texts
_WITHOUT = "Without the sub-set {name} of {count} pairs, which is not there: its texts are licensed by the LDC."
_WITH = "With the sub-set {name}, which SentEval leaves out: figures without it are of other pairs."
# What the official archives unpack to.
_UNPACKED = {
    12: "test-gold",
    13: "test-gs",
    14: "sts-en-test-gs-2014",
    15: "test_evaluation_task2a",
    16: "sts2016-english-with-gs-v1.0",
}
_COUNTS = {"train": 5749, "dev": 1500, "test": 1379}  # of the STS benchmark, chosen from STS12 to STS17
_TRAINED_ON = ("sts", "glue")
_OVERLAP = (
    "STS benchmark train was drawn from STS12 to STS17: if the encoder was trained on it, this score is not zero-shot."
)


@dataclass(frozen=True)
class _YearTask(PairsTask):
    """The STS task of one year, English, test: each sub-set is in two files."""

    name: str
    year: int
    suite: str = "sts"

    def find(self, root: Path) -> list[Path]:
        place = DataFile((f"STS{self.year}-en-test", _UNPACKED[self.year]), _SOURCE)
        folder = place.find(root)
        files: list[Path] = []
        for subset in self._subsets(folder):
            pair = _files(folder, self.year, subset)
            missing = [file for file in pair if not file.is_file()]
            if len(missing) == len(pair):
                place.refuse(pair[0], root)
            if missing:
                (there,) = {*pair} - {*missing}
                raise ValueError(
                    f"{missing[0]} is missing, while {there} is there: sentences and scores belong together."
                )
            files += pair
        return files

    def _subsets(self, folder: Path) -> dict[str, int]:
        """Return the sub-sets with their numbers of pairs; an optional one counts if one of its files is there."""
        optional = _OPTIONAL.get(self.year, {}).items()
        found = {name: n for name, n in optional if any(file.is_file() for file in _files(folder, self.year, name))}
        return SUBSETS[self.year] | found

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        folder = self.find(run.root)[0].parent
        subsets = self._subsets(folder)
        rows: list[tuple[str, str, float, str]] = []
        notes: list[str] = []
        for name, count in _OPTIONAL.get(self.year, {}).items():
            notes.append((_WITH if name in subsets else _WITHOUT).format(name=name, count=count))
        for name, official in subsets.items():
            sentences, gold = _files(folder, self.year, name)
            scored = filled(_read_subset(sentences, gold), gold)
            notes += check_count(len(scored), official, gold, run.settings.any_count)
            rows += [(*row, name.removeprefix("surprise.")) for row in scored]
        first, second, scores, names = zip(*rows, strict=True)
        pairs = GradedPairs(first, second, numpy.array(scores), names)
        return pairs, [*notes, *(run.settings.touched(TRAINED, *_TRAINED_ON) or [_OVERLAP])]


def _files(folder: Path, year: int, subset: str) -> tuple[Path, Path]:
    """Return the files of sentences and of scores; STS16's own names begin with the year."""
    official = folder / f"STS20{year}.input.{subset}.txt"
    prefix = f"STS20{year}" if official.is_file() else "STS"
    return folder / f"{prefix}.input.{subset}.txt", folder / f"{prefix}.gs.{subset}.txt"


def _read_subset(sentences_file: Path, gold: Path) -> list[tuple[str, str, float]]:
    """Read the pairs of a sub-set that have a gold score: two sentences a line with a tab between, a score a line."""
    sentences, scores = list(read_lines(sentences_file)), list(read_lines(gold))
    if len(sentences) != len(scores):
        shorter = gold if len(scores) < len(sentences) else sentences_file
        raise ValueError(
            f"{shorter}, line {min(len(sentences), len(scores)) + 1}: the file ends before this line. {sentences_file} "
            f"has {len(sentences)} lines, {gold} has {len(scores)}: expected one score, or a blank line, for each pair."
        )
    pairs = []
    for (line, text), (_, score) in zip(sentences, scores, strict=True):
        if score.strip():
            columns = [*text.rstrip("\r\n").split("\t"), ""][:2]
            first, second = check_members(columns, STS_SENTENCES, sentences_file, line)
            value = check_score(score.strip(), 0.0, STS_MAX_SCORE, gold, line, "score")
            pairs.append((first, second, STS_MAX_SCORE * value))
    return pairs


def _benchmark_place(split: str) -> DataFile:
    file = f"sts-{split}.csv"
    return DataFile((f"STSBenchmark/{file}", f"stsbenchmark/{file}", file), f"{_SOURCE}/index.php/STSbenchmark")


def _sick_place(file: str) -> DataFile:
    names = [f"{folder}{name}" for name in (file, file.replace("_annotated", "")) for folder in ("sick/", "SICK/", "")]
    return DataFile(tuple(names), "https://zenodo.org/records/2787612")


BENCHMARK = GradedSet(
    {split: _benchmark_place(split) for split in _COUNTS}, _COUNTS, sts_rows, 0.0, STS_MAX_SCORE, _TRAINED_ON
)
_SICK_FILES = {"train": "SICK_train.txt", "trial": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
SICK = GradedSet(
    {split: _sick_place(file) for split, file in _SICK_FILES.items()},
    {"train": 4500, "trial": 500, "test": 4927},
    sick_rows,
    low=1.0,
    high=5.0,
    trained=("sick",),
)


_TRIPLETS = 222_957  # of the test set of Ein Dor et al. 2018
_DISTANCES = ("euclidean", "cosine", "manhattan")
_EQUAL = "{count} triplets with two equal sentences are left out; the official number of triplets includes them."


class _TripletTask(Task):
    """Accuracy: how often the anchor is nearer to the sentence of its section than to that of another.

    Triplets with two equal sentences are left out: they ask nothing, or what has no answer.
    """

    name = "wikisec"
    suite = "triplets"
    depends_on = ("normalizations", "sizes", "seeds", "bootstrap", "trained_on")
    place = DataFile(
        tuple(f"{folder}/test.csv" for folder in ("wikisec", "wikipedia-sections", "wikipedia-sections-triplets")),
        "https://sbert.net/datasets/wikipedia-sections-triplets.zip",
    )

    def find(self, root: Path) -> list[Path]:
        return [self.place.find(root)]

    def run(self, run: Run) -> Json:
        path = self.place.find(run.root)
        read = [
            [check_text(text, name, path, line) for text, name in zip(texts, WIKISECTION_SENTENCES, strict=True)]
            for line, texts in wikisection_records(path)
        ]
        triplets = filled((texts for texts in read if len(set(texts)) == len(texts)), path)
        n, equal = len(triplets), len(read) - len(triplets)
        rows = run.encode([text for member in zip(*triplets, strict=True) for text in member])
        right: list[numpy.ndarray] = []

        def score(transform: Transform) -> Json:
            anchor, positive, negative = transform(rows).reshape(3, n, -1)
            each = {name: SIMILARITIES[name] for name in _DISTANCES}
            nearer = {name: near(anchor, positive) > near(anchor, negative) for name, near in each.items()}
            right.append(nearer[_DISTANCES[0]])
            return {name: {"accuracy": float(values.mean())} for name, values in nearer.items()}

        settings, notes = run.settings.that_fit(*rows.shape)
        variants = score_variants(settings, rows, score)
        accuracy = {"euclidean.accuracy": mean_of(right[0])}  # of the first variant and seed
        notes += settings.touched("The encoder was trained on {}.", "wiki")
        notes += check_count(len(read), _TRIPLETS, path, any_count=True)  # samples of it are in use
        notes += [_EQUAL.format(count=equal)] if equal else []
        return {
            "counts": {"test": n},
            "primary": "euclidean.accuracy",
            "variants": variants,
            "intervals": intervals_of(accuracy, n, settings.bootstrap, settings.seeds[0]),
            "predictions": {"right": digits(right[0])},
            "notes": notes,
        }


_NO_HEAD = (
    "The pipeline has no trained classification head: to label pairs, train an 'sbert' pipe with "
    "spacy-sbert.SoftmaxLoss.v1 (configs/nli.cfg)."
)


@dataclass(frozen=True)
class _LabelTask(Task):
    """Accuracy of the head of an `sbert` pipe on the labels of pairs; pairs without consensus do not count."""

    name: str
    place: DataFile
    format: str
    official: int
    suite: str = "nli"
    depends_on = ("bootstrap", "seeds", "trained_on", "any_count")

    def find(self, root: Path) -> list[Path]:
        return [self.place.find(root)]

    def run(self, run: Run) -> Json:
        nlp = None if run.source is None else run.source.nlp
        pipes: list[Any] = [] if nlp is None else [pipe for _, pipe in nlp.pipeline]
        if nlp is None or not any(hasattr(pipe, "classify") and getattr(pipe, "labels", ()) for pipe in pipes):
            raise MissingData(_NO_HEAD)
        path, settings = self.place.find(run.root), run.settings
        scores = evaluate(nlp, path, format=self.format)
        n, accuracy = scores["pairs"], scores["nli_acc"]
        notes = check_count(n, self.official, path, settings.any_count)
        if accuracy is None:
            raise MissingData(_NO_HEAD)
        about = self.name.lower().partition("-")[0]
        notes += settings.touched("The head or the encoder was trained on {}.", about, "allnli")
        right = numpy.arange(n) < round(accuracy * n)  # the order of the pairs does not matter
        return {
            "counts": {"all": n},
            "primary": "accuracy",
            "variants": [{"normalization": "none", "size": "own", "scores": {"accuracy": accuracy}}],
            "intervals": intervals_of({"accuracy": mean_of(right)}, n, settings.bootstrap, settings.seeds[0]),
            "predictions": {},
            "notes": [*notes, "By the pipeline's own head, on the vectors as they are."],
        }


def _nli_task(name: str, corpus: str, split: str, official: int) -> _LabelTask:
    source = {"snli": "https://nlp.stanford.edu/projects/snli/", "multinli": "https://cims.nyu.edu/~sbowman/multinli/"}
    file = f"{corpus}_1.0_{split}.jsonl"
    place = DataFile((f"{corpus}_1.0/{file}", file, f"{corpus}_{split}.jsonl"), source[corpus])
    return _LabelTask(name, place, "nli", official)


TASKS: tuple[Task, ...] = (
    *(_YearTask(f"STS{year}", year) for year in SUBSETS),
    *(GradedTask(f"STSb-{split}", "sts", BENCHMARK, split, (_OVERLAP,)) for split in ("dev", "test")),
    *(GradedTask(f"SICK-R-{split}", "sick", SICK, split) for split in ("trial", "test")),
    _TripletTask(),
    _nli_task("SNLI-dev", "snli", "dev", 9842),
    _nli_task("SNLI-test", "snli", "test", 9824),
    _nli_task("MultiNLI-dev-matched", "multinli", "dev_matched", 9815),
    _nli_task("MultiNLI-dev-mismatched", "multinli", "dev_mismatched", 9832),
    _nli_task("MultiNLI-dev", "multinli", "dev", 9815 + 9832),  # both in one file
    *(_LabelTask(f"SICK-E-{split}", SICK.places[split], "sick", SICK.counts[split]) for split in ("trial", "test")),
)
