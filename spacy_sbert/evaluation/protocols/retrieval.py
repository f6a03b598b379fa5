"""Retrieval: which documents answer a query, by vectors, by words, by both, and reranked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy

from ...arrays import Arrays
from ...files.text_lines import has_text
from ...reranker.component import SentenceReranker
from ...search.bm25 import BM25
from ...search.exact import Best, nearest
from ...search.fusion import reciprocal_rank_fusion
from ...search.index import VectorIndex
from ..ranking_measures import DEPTH, MEASURES, ranking_measures
from ..results import Json, Resampled, mean_of
from ..retrieval_data import Collection, read_beir, read_cranfield
from ..task import DataFile, Run, Task, as_they_are


@dataclass(frozen=True)
class _RetrievalTask(Task):
    """Measures of the rankings of a collection, see ranking_measures, by several searches.

    vectors, exact; hnsw, vectors through an index; bm25, words; hybrid, vectors and words by
    reciprocal ranks; each again as NAME_reranked if there is a reranker, which orders the first
    100. What needs a package that is not installed is left out, and a note says so.

    place (DataFile): the folder of the collection. files: in it, the documents first.
    read (Callable): from the folder to the collection.
    """

    name: str
    place: DataFile
    files: tuple[str, ...]
    read: Callable[[Path], Collection]
    suite: str = "retrieval"

    def find(self, root: Path) -> list[Path]:
        folder = self.place.find(root)
        return [DataFile((name,), self.place.source).find(folder) for name in self.files]

    def run(self, run: Run) -> Json:
        collection = self.read(self.find(run.root)[0].parent)
        found, notes = _found(run, collection)
        ranked = {search: rows for search, (_, rows) in found.items()}
        if run.reranker is not None:
            ranked |= _reranked(run.reranker, collection, ranked)
        scores: Json = {}
        statistics: dict[str, Resampled] = {}
        for search, rows in ranked.items():
            scores[search] = {}
            for name, values in ranking_measures(rows, collection.gains).items():
                scores[search][name] = float(values.mean())
                statistics[f"{search}.{name}"] = mean_of(values)
        n = len(collection.queries)
        return {
            "counts": {"documents": len(collection.documents), "all": n},
            "primary": f"vectors.{MEASURES[0]}",
            "variants": as_they_are(scores),
            "intervals": run.settings.intervals(statistics, n),
            "predictions": {},
            "notes": notes,
        }


def _found(run: Run, collection: Collection) -> tuple[dict[str, Best], list[str]]:
    """Return what each search finds, the first 100 documents of each query, and notes."""
    texts = collection.documents
    documents = run.encode(texts, role="document")
    queries = run.encode(collection.queries, fit_on=texts, role="query")
    k = min(DEPTH, len(texts))
    found = {"vectors": nearest(queries, documents, k=k)}
    notes = []
    n_empty = sum(not has_text(text) for text in texts)
    if n_empty:
        notes.append(f"{n_empty} of {len(texts)} documents are empty.")
    nlp = None if run.source is None else run.source.nlp
    # The packages of the extra `search`
    try:
        found["hnsw"] = VectorIndex.build(documents, kind="hnsw").search(queries, k=k)
        found["bm25"] = BM25.build(texts, nlp=nlp).search(collection.queries, k=k)
        found["hybrid"] = reciprocal_rank_fusion([found["vectors"], found["bm25"]], k=k)
    except ImportError as error:
        notes.append(str(error))
    return found, notes


def _reranked(
    reranker: SentenceReranker, collection: Collection, ranked: Mapping[str, numpy.ndarray]
) -> Arrays:
    """Return rankings in the order of the reranker, which scores each pair once."""
    queries = collection.queries
    documents = collection.documents
    # (searches, queries, k)
    rows = numpy.stack(list(ranked.values()))
    numbers = numpy.arange(len(queries))[:, None] * len(documents) + rows
    distinct, places = numpy.unique(numbers, return_inverse=True)
    pairs = zip(*numpy.divmod(distinct, len(documents)), strict=True)
    scores = reranker.score_pairs([(queries[query], documents[row]) for query, row in pairs])
    order = numpy.argsort(-scores[places].reshape(rows.shape), kind="stable")
    reranked = numpy.take_along_axis(rows, order, axis=-1)
    return {f"{search}_reranked": own for search, own in zip(ranked, reranked, strict=True)}


def beir_tasks(root: Path) -> list[Task]:
    """Return a task for each collection in BEIR's layout, which has the name of its folder.

    RAISES (ValueError): if two folders have one name.
    """
    tasks: dict[str, Task] = {}
    for path in sorted(root.rglob("corpus.jsonl")):
        folder = path.parent
        name = folder.resolve().name
        if name in tasks:
            raise ValueError(f"{folder} is the second collection '{name}'. Rename one folder.")
        tasks[name] = _RetrievalTask(
            name,
            DataFile((str(folder.relative_to(root)),), "https://github.com/beir-cellar/beir"),
            ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"),
            read_beir,
        )
    return list(tasks.values())


TASKS: tuple[Task, ...] = (
    # Cleverdon 1967, The Cranfield tests on index language devices
    _RetrievalTask(
        "Cranfield",
        DataFile(
            ("cranfield", "retrieval/cranfield", "."),
            "http://ir.dcs.gla.ac.uk/resources/test_collections/cran/, or give a folder with the "
            "corpus.jsonl, queries.jsonl and qrels/test.tsv of a collection in BEIR's layout",
        ),
        ("cran.all.1400", "cran.qry", "QRelsCorrectedforTRECeval"),
        read_cranfield,
    ),
)
