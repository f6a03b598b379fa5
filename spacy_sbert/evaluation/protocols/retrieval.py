"""Retrieval: which documents answer a query, by vectors, by words, by both, and reranked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy

from ...reranker.component import SentenceReranker
from ...search.bm25 import BM25
from ...search.exact import Best, nearest, recall
from ...search.fusion import reciprocal_rank_fusion
from ...search.index import VectorIndex
from ..ranking_measures import DEPTH, MEASURES, ranking_measures
from ..results import Json, intervals_of, mean_of, paired_difference
from ..retrieval_data import Collection, beir_files, read_beir, read_cranfield
from ..task import DataFile, MissingData, Run, Task, as_they_are, check_official_count

# What the others are compared with
_VECTORS = "vectors"


class _RetrievalTask(Task):
    """Measures of the rankings of a collection, see ranking_measures, by several searches.

    vectors, exact; hnsw, vectors through an index; bm25, words; both, vectors and words by
    reciprocal ranks; each again as NAME_reranked if there is a reranker, which orders the first
    100. What needs a package that is not installed is left out, and a note says so.
    """

    suite = "retrieval"

    def collection(self, run: Run) -> tuple[Collection, list[str]]:
        """Return the collection, and notes on it."""
        raise NotImplementedError

    def run(self, run: Run) -> Json:
        collection, notes = self.collection(run)
        searches, left_out = _searches(run, collection)
        found = {name: rows for name, (_, rows) in searches.items()}
        if run.reranker is not None:
            found |= _reranked(run.reranker, collection, found)
        measured = {name: ranking_measures(rows, collection.gains) for name, rows in found.items()}
        scores: Json = {}
        statistics = {}
        for name, measures in measured.items():
            scores[name] = {measure: float(each.mean()) for measure, each in measures.items()}
            for measure, each in measures.items():
                statistics[f"{name}.{measure}"] = mean_of(each)
        n = len(collection.queries)
        settings = run.settings
        primary = MEASURES[0]
        return {
            "counts": {"documents": len(collection.documents), "all": n},
            "primary": f"{_VECTORS}.{primary}",
            "variants": as_they_are(scores),
            "intervals": intervals_of(statistics, n, settings.bootstrap, settings.seeds[0]),
            "differences": _differences(measured, settings.bootstrap, settings.seeds[0]),
            "predictions": {
                "queries": list(collection.query_ids),
                "values": measured[_VECTORS][primary].tolist(),
            },
            "notes": [*notes, *collection.notes, *left_out],
        }


def _searches(run: Run, collection: Collection) -> tuple[dict[str, Best], list[str]]:
    """Return what each search finds, and notes on those that are left out."""
    documents = run.encode(collection.documents, role="document")
    queries = run.encode(collection.queries, fit_on=collection.documents, role="query")
    k = min(DEPTH, len(documents))
    found = {_VECTORS: nearest(queries, documents, k=k)}
    nlp = None if run.source is None else run.source.nlp

    def by_index() -> Best:
        return VectorIndex.build(documents, kind="hnsw").search(queries, k=k)

    def by_words() -> Best:
        return BM25.build(collection.documents, nlp=nlp).search(collection.queries, k=k)

    others: dict[str, Callable[[], Best]] = {"hnsw": by_index, "bm25": by_words}
    notes = []
    for name, search in others.items():
        try:
            found[name] = search()
        except ImportError as error:
            notes.append(f"{name} is left out. {error}")
    if "hnsw" in found:
        # Relevant documents do not show it: those near rank 100 come in place of those missed
        share = recall(found["hnsw"][1], found[_VECTORS][1])
        notes.append(f"hnsw finds {100 * share:.2f} % of the {k} nearest vectors of each query.")
    if "bm25" in found:
        found["both"] = reciprocal_rank_fusion([found[_VECTORS], found["bm25"]], k=k)
    return found, notes


def _reranked(
    reranker: SentenceReranker, collection: Collection, found: Mapping[str, numpy.ndarray]
) -> dict[str, numpy.ndarray]:
    """Return the rows that were found in the order of the reranker; it scores each pair once."""
    pairs = {
        (query, row): None
        for rows in found.values()
        for query, own in enumerate(rows.tolist())
        for row in own
    }
    texts = [(collection.queries[query], collection.documents[row]) for query, row in pairs]
    score_of = dict(zip(pairs, reranker.score_pairs(texts).tolist(), strict=True))
    reranked = {}
    for name, rows in found.items():
        scores = [[score_of[query, row] for row in own] for query, own in enumerate(rows.tolist())]
        order = numpy.argsort(-numpy.array(scores), axis=1, kind="stable")
        reranked[f"{name}_reranked"] = numpy.take_along_axis(rows, order, axis=1)
    return reranked


def _differences(
    measured: Mapping[str, Mapping[str, numpy.ndarray]], resamples: int, seed: int
) -> Json:
    """Return paired_difference of each search and measure from vectors alone."""
    if not resamples:
        return {}
    tests: Json = {}
    for name, measures in measured.items():
        if name == _VECTORS:
            continue
        tests[name] = {}
        for measure, ours in measures.items():
            theirs = measured[_VECTORS][measure]
            tests[name][measure] = paired_difference(
                mean_of(ours), mean_of(theirs), len(ours), resamples, seed
            )
    return tests


@dataclass(frozen=True)
class _BeirTask(_RetrievalTask):
    """The test split of a collection in BEIR's layout."""

    name: str
    folder: Path

    def find(self, root: Path) -> list[Path]:
        paths = beir_files(self.folder, "test")
        for path in paths:
            if not path.is_file():
                raise MissingData(f"{path} not found: expected a collection in BEIR's layout.")
        return paths

    def collection(self, run: Run) -> tuple[Collection, list[str]]:
        return read_beir(self.folder), []


class _BeirTasks(_RetrievalTask):
    """The collections in BEIR's layout, each a task that has the name of its folder."""

    name = "BEIR"
    place = DataFile(("NAME/corpus.jsonl",), "https://github.com/beir-cellar/beir")

    def below(self, root: Path) -> Sequence[Task]:
        tasks: dict[str, Task] = {}
        for depth in ("", "*/", "*/*/", "*/*/*/"):
            for path in sorted(root.glob(f"{depth}corpus.jsonl")):
                name = path.parent.resolve().name
                if name in tasks:
                    raise ValueError(
                        f"{path.parent} is the second collection named '{name}' below {root}. "
                        "Rename one of the folders."
                    )
                tasks[name] = _BeirTask(name, path.parent)
        return list(tasks.values()) or [self]


class _Cranfield(_RetrievalTask):
    """The Cranfield collection: abstracts on aeronautics, and what their authors asked.

    SOURCE: Cleverdon 1967, The Cranfield tests on index language devices.
    """

    name = "Cranfield"
    place = DataFile(
        tuple(f"{folder}cran.all.1400" for folder in ("cranfield/", "retrieval/cranfield/", "")),
        "http://ir.dcs.gla.ac.uk/resources/test_collections/cran/",
    )

    def find(self, root: Path) -> list[Path]:
        corpus = self.place.find(root)
        paths = [corpus]
        for name in ("cran.qry", "QRelsCorrectedforTRECeval"):
            path = corpus.with_name(name)
            if not path.is_file():
                self.place.refuse(path, root)
            paths.append(path)
        return paths

    def collection(self, run: Run) -> tuple[Collection, list[str]]:
        corpus, queries, _ = self.find(run.root)
        found = read_cranfield(corpus.parent)
        check = partial(check_official_count, any_count=run.settings.any_count)
        notes = check(len(found.documents), corpus, 1400)
        return found, [*notes, *check(len(found.queries), queries, 225)]


TASKS: tuple[Task, ...] = (_Cranfield(), _BeirTasks())
