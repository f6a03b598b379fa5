"""Retrieval: which documents answer a query, by vectors, by words, by both, and reranked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy

from ...files.text_lines import has_text
from ...reranker.component import SentenceReranker
from ...search.bm25 import BM25
from ...search.exact import nearest
from ...search.fusion import reciprocal_rank_fusion
from ...search.index import VectorIndex
from ..ranking_measures import DEPTH, MEASURES, ranking_measures
from ..results import Json, Resampled, intervals_of, mean_of
from ..retrieval_data import Collection, read_beir, read_cranfield
from ..task import DataFile, Run, Task, as_they_are


@dataclass(frozen=True)
class _RetrievalTask(Task):
    """Measures of the rankings of a collection, see ranking_measures, by several searches.

    vectors, exact; hnsw, vectors through an index; bm25, words; hybrid, vectors and words by
    reciprocal ranks; each again as NAME_reranked if there is a reranker, which orders the first
    100. What needs a package that is not installed is left out, and a note says so.

    files: of the collection, below its folder. folder (Path): where they are, None for that of
        place.
    read (Callable): from the folder to the collection.
    """

    name: str
    place: DataFile
    files: tuple[str, ...]
    read: Callable[[Path], Collection]
    folder: Path | None = None
    suite: str = "retrieval"

    def find(self, root: Path) -> list[Path]:
        folder = self.folder or self.place.find(root).parent
        return [DataFile((name,), self.place.source).find(folder) for name in self.files]

    def run(self, run: Run) -> Json:
        collection = self.read(self.find(run.root)[0].parent)
        found, notes = _found(run, collection)
        if run.reranker is not None:
            found |= _reranked(run.reranker, collection, found)
        scores: Json = {}
        statistics: dict[str, Resampled] = {}
        for search, rows in found.items():
            measures = ranking_measures(rows, collection.gains)
            scores[search] = {name: float(values.mean()) for name, values in measures.items()}
            statistics |= {f"{search}.{name}": mean_of(each) for name, each in measures.items()}
        n = len(collection.queries)
        settings = run.settings
        return {
            "counts": {"documents": len(collection.documents), "all": n},
            "primary": f"vectors.{MEASURES[0]}",
            "variants": as_they_are(scores),
            "intervals": intervals_of(statistics, n, settings.bootstrap, settings.seeds[0]),
            "predictions": {},
            "notes": notes,
        }


def _found(run: Run, collection: Collection) -> tuple[dict[str, numpy.ndarray], list[str]]:
    """Return the rows that each search finds, int64 (queries, k), and notes."""
    texts = collection.documents
    documents = run.encode(texts, role="document")
    queries = run.encode(collection.queries, fit_on=texts, role="query")
    k = min(DEPTH, len(texts))
    vectors = nearest(queries, documents, k=k)
    found = {"vectors": vectors[1]}
    notes = []
    n_empty = sum(not has_text(text) for text in texts)
    if n_empty:
        notes.append(f"{n_empty} of {len(texts)} documents are empty.")
    try:
        found["hnsw"] = VectorIndex.build(documents, kind="hnsw").search(queries, k=k)[1]
    except ImportError as error:
        notes.append(str(error))
    try:
        nlp = None if run.source is None else run.source.nlp
        words = BM25.build(texts, nlp=nlp).search(collection.queries, k=k)
        found["bm25"] = words[1]
        found["hybrid"] = reciprocal_rank_fusion([vectors, words], k=k)[1]
    except ImportError as error:
        notes.append(str(error))
    return found, notes


def _reranked(
    reranker: SentenceReranker, collection: Collection, found: Mapping[str, numpy.ndarray]
) -> dict[str, numpy.ndarray]:
    """Return what was found in the order of the reranker, which scores each pair once."""
    scores = numpy.zeros((len(collection.queries), len(collection.documents)), dtype="float32")
    is_found = scores.astype(bool)
    for rows in found.values():
        numpy.put_along_axis(is_found, rows, values=True, axis=1)
    pairs = numpy.argwhere(is_found).tolist()
    texts = [(collection.queries[query], collection.documents[row]) for query, row in pairs]
    scores[is_found] = reranker.score_pairs(texts)
    reranked = {}
    for search, rows in found.items():
        order = numpy.argsort(-numpy.take_along_axis(scores, rows, axis=1), kind="stable")
        reranked[f"{search}_reranked"] = numpy.take_along_axis(rows, order, axis=1)
    return reranked


class _BeirTasks(_RetrievalTask):
    """The collections in BEIR's layout, each a task that has the name of its folder."""

    def below(self, root: Path) -> Sequence[Task]:
        tasks: dict[str, Task] = {}
        for path in sorted(root.rglob("corpus.jsonl")):
            folder = path.parent
            name = folder.resolve().name
            if name in tasks:
                raise ValueError(f"{folder} is the second collection '{name}'. Rename one folder.")
            tasks[name] = _RetrievalTask(name, self.place, self.files, self.read, folder)
        return list(tasks.values()) or [self]


# Cleverdon 1967, The Cranfield tests on index language devices
_CRANFIELD = DataFile(
    tuple(f"{folder}cran.all.1400" for folder in ("cranfield/", "retrieval/cranfield/", "")),
    "http://ir.dcs.gla.ac.uk/resources/test_collections/cran/",
)
_CRANFIELD_FILES = ("cran.all.1400", "cran.qry", "QRelsCorrectedforTRECeval")
_BEIR = DataFile(("NAME/corpus.jsonl",), "https://github.com/beir-cellar/beir")
_BEIR_FILES = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
TASKS: tuple[Task, ...] = (
    _RetrievalTask("Cranfield", _CRANFIELD, _CRANFIELD_FILES, read_cranfield),
    _BeirTasks("BEIR", _BEIR, _BEIR_FILES, read_beir),
)
