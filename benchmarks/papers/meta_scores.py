"""What the tables of meta-embeddings score: members and methods on the STS tasks, and how sure a
difference is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import paper_tasks  # noqa: F401  it registers them
from spacy.language import Language

from spacy_sbert.evaluation import Settings, evaluate_suites
from spacy_sbert.evaluation.encoders import VectorSource
from spacy_sbert.evaluation.results import interval, mean, resample, spearman_of
from spacy_sbert.evaluation.suite import tasks_of
from spacy_sbert.evaluation.task import MissingData, indices_by_name
from spacy_sbert.files.checksum import file_digest
from spacy_sbert.meta import MetaEmbedding
from spacy_sbert.meta.component import SentenceMeta
from spacy_sbert.meta.fit import corpus_vectors
from spacy_sbert.readers.datasets import read_sts
from spacy_sbert.similarity import cosine, pearson, spearman

RESAMPLES = 1000
# Of the resamples
SEED = 1
CORRELATIONS = {"pearson": pearson, "spearman": spearman}
Scores = dict[str, Any]


class Members:
    """The members' vectors of texts, each text encoded once, and kept in a folder.

    nlp (Language), pipe (SentenceMeta): whose members. folder (Path): see corpus_vectors.
    """

    def __init__(self, nlp: Language, pipe: SentenceMeta, folder: Path):
        self.nlp = nlp
        self.pipe = pipe
        self.folder = folder
        self.names = [member.name for member in pipe.members]
        self.place: dict[str, int] = {}
        # Of each member, (texts so far, d_j)
        self.rows: list[numpy.ndarray] = []

    def __call__(self, texts: Sequence[str], chosen: Sequence[int]) -> list[numpy.ndarray]:
        """The vectors of some members, float32 (n, d_j) each."""
        unknown = {text for text in texts if text not in self.place}
        new = sorted(unknown, key=lambda text: (len(text), text))
        if new:
            members = self.pipe.members
            views = corpus_vectors(self.nlp, self.pipe.name, members, lambda: new, self.folder)
            before = self.rows or [view[:0] for view in views]
            self.rows = [numpy.vstack(pair) for pair in zip(before, views, strict=True)]
            start = len(self.place)
            self.place.update((text, start + i) for i, text in enumerate(new))
        places = [self.place[text] for text in texts]
        return [self.rows[i][places] for i in chosen]


class Combined(VectorSource):
    """A source of vectors for evaluation: one member, or several of them combined."""

    digest = ""

    def __init__(
        self, members: Members, chosen: Sequence[int], estimator: MetaEmbedding | None = None
    ):
        self.members = members
        self.chosen = list(chosen)
        self.estimator = estimator
        self.name = "+".join(members.names[i] for i in chosen)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        views = self.members(texts, self.chosen)
        if self.estimator is None:
            return views[0].astype("float32")
        return self.estimator.transform(views).astype("float32")


@dataclass(frozen=True)
class Data:
    """The STS tasks of a folder, and the file that hyper-parameters are chosen on.

    root (Path): the folder. dev (Path): pairs in the layout of the STS benchmark.
    any_count (bool): whether data sets may have another number of pairs than the official ones.
    """

    root: Path
    dev: Path
    any_count: bool = False

    def files(self) -> dict[str, dict[str, str]]:
        """The digests of the files of each task that is there."""
        return {task: found for task, found in self._files() if found}

    def _files(self) -> Iterator[tuple[str, dict[str, str]]]:
        for task in tasks_of("sts"):
            try:
                yield task.name, task.digests(self.root)
            except MissingData:
                continue

    def tuned_on(self) -> list[str]:
        """The tasks that are the file that hyper-parameters are chosen on."""
        dev = file_digest(self.dev)
        return [task for task, found in self.files().items() if dev in found.values()]

    def facts(self) -> Scores:
        """What scores depend on."""
        return {"files": self.files(), "dev": file_digest(self.dev), "any_count": self.any_count}

    def score(self, source: Combined) -> Scores:
        """Correlations x 100: dev, and by task of the vectors as they are; and what was predicted
        in these.
        """
        tasks, predictions = self._tasks(source, "own")
        return {"dev": self._on_dev(source), "tasks": tasks, "predictions": predictions}

    def score_projected(self, source: Combined, width: int) -> Scores:
        """The same of vectors projected up to a width, the mean of ten seeds, without what was
        predicted.
        """
        tasks, _ = self._tasks(source, f"up-{width}")
        return {"tasks": tasks}

    def _on_dev(self, source: Combined) -> dict[str, float | None]:
        first, second, gold = zip(*read_sts(self.dev), strict=True)
        cosines = cosine(source.encode(first), source.encode(second))
        return {
            name: _percent(correlate(cosines, gold)) for name, correlate in CORRELATIONS.items()
        }

    def _tasks(self, source: Combined, size: str) -> tuple[Scores, Scores]:
        settings = Settings(bootstrap=0, sizes=(size,), any_count=self.any_count)
        found = evaluate_suites(source, self.root, ["sts"], settings=settings, progress_bar=False)
        if found["failed"] or not found["tasks"]:
            raise SystemExit(f"Not scored: {found['failed'] or 'no STS data set in the folder'}")
        tasks = {
            task: _of_task(result["variants"][0]["scores"]["cosine"])
            for task, result in found["tasks"].items()
        }
        return tasks, {task: result["predictions"] for task, result in found["tasks"].items()}


def _percent(value: float | None) -> float | None:
    if value is None:
        return None
    return 100 * value


def _of_task(scores: Mapping[str, Scores]) -> Scores:
    """All of a task, a year's mean over sub-sets, and each sub-set."""
    found: Scores = {"subsets": {}}
    for name in CORRELATIONS:
        found[name] = _percent(scores[name].get("mean", scores[name]["pooled"]))
        for subset, value in scores[name].get("subsets", {}).items():
            found["subsets"].setdefault(subset, {})[name] = _percent(value)
    return found


def average(tasks: Mapping[str, Scores], left_out: Sequence[str]) -> Scores:
    """The unweighted mean over tasks, but for some; no number where one is not defined, or there is
    no task.
    """
    kept = [scores for task, scores in tasks.items() if task not in left_out]
    found = {name: mean(scores[name] for scores in kept) for name in CORRELATIONS}
    return {name: None if value == "-" else value for name, value in found.items()}


def resampled(predictions: Mapping[str, Scores], left_out: Sequence[str]) -> numpy.ndarray:
    """Spearman x 100 of resamples of the pairs within each sub-set, averaged as `average` does it.

    predictions: of each task, its predicted, gold and subset, n each. left_out: tasks.
    RETURNS (float64 (1 + RESAMPLES,)): first of the pairs as they are. The same resamples, whatever
        was predicted.
    """
    tasks = []
    for number, (task, found) in enumerate(predictions.items()):
        if task in left_out:
            continue
        predicted = numpy.array(found["predicted"])
        gold = numpy.array(found["gold"])
        subsets = []
        for place, at in enumerate(indices_by_name(found["subset"]).values()):
            statistic = spearman_of(predicted[at], gold[at])
            drawn = resample(statistic, len(at), RESAMPLES, (SEED, number, place))
            subsets.append(numpy.concatenate([statistic(numpy.arange(len(at))[None]), drawn]))
        tasks.append(numpy.mean(subsets, axis=0))
    if not tasks:
        return numpy.full(1 + RESAMPLES, numpy.nan)
    return 100 * numpy.mean(tasks, axis=0)


def difference(ours: numpy.ndarray, theirs: numpy.ndarray) -> Scores | None:
    """How much better ours are, in Spearman x 100, and the ends of its 95 % interval; see
    resampled.

    RETURNS (dict): difference, low and high; None where most resamples are not defined.
    SOURCE: Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13: the percentile
        interval.
    """
    ends = interval((ours - theirs)[1:])
    if ends is None:
        return None
    return {"difference": float(ours[0] - theirs[0]), "low": ends[0], "high": ends[1]}
