"""Collections that queries are compared with: texts of a file, saved indexes, stored vectors."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

import numpy

from ..bulk import PartVectors
from ..bulk.dataset_encoding import JOB
from ..files.tables import NamedRecord, distinct
from ..pipeline.components import pipeline_of
from ..pipeline.sbert import SentenceBert
from ..progress import progress_bar, ticking
from ..validation import Positive, check
from .bm25 import BM25, saved_bm25
from .exact import Best, nearest, nearest_stored, slices
from .faiss_index import BuiltKind, import_faiss
from .fusion import reciprocal_rank_fusion
from .identity import EncoderIdentity, check_same_encoder
from .index import VectorIndex
from .index_folder import MANIFEST
from .index_rows import IndexRow, RowId
from .texts import Corpus, GivenVectors, encode_queries, text_vectors

# Texts whose vectors are in memory beside an index that is built
_WINDOW = 2**12
SearchMethod = Literal["vectors", "bm25", "hybrid"]
# How many texts of each search are joined, if not more are wanted
_JOINED = 100
# In the folder of an index
_BM25_FILE = "bm25.npz"


class FoundText(NamedTuple):
    """Text that is similar to a query.

    score (float): their cosine similarity; that of BM25, or of reciprocal_rank_fusion, if they were
        searched by words.
    row (int): that of the text in the corpus, from 0; blank ones count.
    text (str), id (str or int): None if not stored.
    file (str): the file of a stored vector, None for others.
    columns (dict): the other columns of its table, None if not stored.
    """

    score: float
    row: int
    text: str | None
    id: str | int | None = None
    file: str | None = None
    columns: NamedRecord | None = None


class Searchable(ABC):
    """Collection that queries are compared with. It is opened before the pipeline is loaded.

    rows (Sequence[IndexRow]): the texts with what came with them; none if they are not known.
    columns (list): the fields of FoundText that it fills. others (tuple): the names of the other
        columns that its texts came with. index_folder (Path): the folder of the index of texts that
        is searched; None if there is none.

    Example:
        collection = SearchableTexts(path, read_corpus(path))
        for hit in collection.search(pipe, ["A man eats."], k=3)[0]:
            print(hit.score, hit.text)

    """

    index_folder: Path | None = None

    def __init__(self, rows: Sequence[IndexRow] = ()):
        self.rows = rows
        self.columns = ["score", "row", "text"]
        if any(row.id is not None for row in rows):
            self.columns.insert(2, "id")
        names = chain.from_iterable(row.columns or () for row in rows)
        self.others = tuple(dict.fromkeys(names))

    def header(self) -> list[str]:
        """Return the names of the values of `record`. Other columns get new ones if taken."""
        return [*self.columns, *distinct(self.others, ("query", *self.columns))]

    def record(self, hit: FoundText) -> list[object]:
        """Return what was found as a record of a table."""
        own = hit.columns or {}
        fields = [getattr(hit, name) for name in self.columns]
        return [*fields, *(own.get(name) for name in self.others)]

    @staticmethod
    def open(folder: Path | str, *, vectors: str | None = None) -> "Searchable":
        """Open a folder: a saved index of texts, stored vectors, or an index of such.

        vectors (str): the folder of the vectors of an index, if they were moved.
        """
        folder = Path(folder)
        if (folder / JOB).is_file():
            return SearchableVectors(vectors or str(folder))
        index = VectorIndex.load(folder)
        if index.vectors is None:
            return SearchableIndex(folder, index)
        return SearchableVectors(vectors or str(index.folder), index)

    def search(
        self,
        pipe: SentenceBert,
        queries: Sequence[str],
        *,
        k: int,
        method: SearchMethod = "vectors",
        query_prompt: str | None = None,
        progress: bool = False,
    ) -> list[list[FoundText]]:
        """Find what is most similar to each query, the best first; see search_texts."""
        check("k", k, Positive)
        check("method", method, SearchMethod)
        self.check_encoder(pipe)
        wanted = k
        if method == "hybrid":
            wanted = max(k, _JOINED)
        results: list[Best] = []
        if method != "vectors":
            bm25 = self.bm25(pipe, progress)
            results.append(bm25.search(queries, k=min(wanted, len(bm25))))
        if method != "bm25":
            vectors = encode_queries(pipe, queries, query_prompt, progress=progress)
            results.append(self.nearest(pipe, vectors, wanted, progress))
        scores, rows = results[0]
        if method == "hybrid":
            scores, rows = reciprocal_rank_fusion(results, k=min(k, rows.shape[1]))
        found = [
            self.describe(own_scores.tolist(), own_rows)
            for own_scores, own_rows in zip(scores, rows, strict=True)
        ]
        if method == "bm25":
            # Texts without a word of the query
            found = [[hit for hit in hits if hit.score] for hits in found]
        return found

    def bm25(self, pipe: SentenceBert, progress: bool) -> BM25:
        """Return the BM25 of the texts, by the words of the pipeline that the pipe is in.

        It is saved in the folder of the index, if there is one, until its texts change.

        RAISES (ValueError): if the texts are not known.
        """
        if not self.rows:
            raise ValueError(
                "Stored vectors cannot be searched by words. Use the method 'vectors', or search "
                "a file or an index of texts."
            )
        nlp = pipeline_of(pipe)
        texts = [row.text or "" for row in self.rows]
        folder = self.index_folder
        with ticking("Reading words", shown=progress):
            if folder is None or not (folder / MANIFEST).exists():
                return BM25.build(texts, nlp=nlp)
            return saved_bm25(folder / _BM25_FILE, texts, nlp)

    def check_encoder(self, pipe: SentenceBert) -> None:
        """Raise ValueError if another encoder made stored vectors. By default none are stored."""
        return

    @abstractmethod
    def nearest(self, pipe: SentenceBert, queries: numpy.ndarray, k: int, progress: bool) -> Best:
        """Return the scores and rows of the k most similar; of all if there are fewer."""

    def describe(self, scores: list[float], rows: numpy.ndarray) -> list[FoundText]:
        """Return what was found for one query."""
        pairs = zip(scores, rows.tolist(), strict=True)
        return [FoundText(score, **self.rows[row]._asdict()) for score, row in pairs]


class SearchableTexts(Searchable):
    """Texts of a file, compared exactly or through an index of them.

    path (Path): the file. corpus (Corpus): its texts. For the other arguments see search_texts.
    """

    def __init__(
        self,
        path: Path,
        corpus: Corpus,
        *,
        index: Path | str | None = None,
        kind: BuiltKind | None = None,
        vectors: GivenVectors = None,
    ):
        super().__init__(_rows_of(corpus))
        self.path = path
        self.corpus = corpus
        if index is not None:
            import_faiss()
            self.index_folder = Path(index)
        self._kind = kind
        self._vectors = vectors

    def nearest(self, pipe: SentenceBert, queries: numpy.ndarray, k: int, progress: bool) -> Best:
        k = min(k, len(self.corpus.texts))
        if self.index_folder is None:
            vectors = text_vectors(pipe, self.corpus.texts, self._vectors, progress)
            with ticking("Searching", shown=progress):
                return nearest(queries, vectors, k=k)
        index = self._open_index(pipe, self.index_folder, progress)
        with ticking("Searching", shown=progress):
            return index.search(queries, k=k)

    def _open_index(self, pipe: SentenceBert, folder: Path, progress: bool) -> VectorIndex:
        """Return the index of the texts in the folder, or build one and save it there."""
        if not (folder / MANIFEST).exists():
            index = build_text_index(pipe, self.corpus, self._kind, self._vectors, progress)
            with ticking("Saving", shown=progress):
                index.save(folder)
            return index
        index = load_index(folder, pipe, self._kind)
        saved = _saved_rows(index, folder)
        if len(saved) != len(self.rows) or any(map(_differ, saved, self.rows)):
            raise ValueError(
                f"The index in {folder} was built of other texts than those of {self.path}. Search "
                "that folder itself, or name a new one."
            )
        return index


class SearchableIndex(Searchable):
    """Texts that are saved in an index."""

    def __init__(self, folder: Path, index: VectorIndex):
        super().__init__(_saved_rows(index, folder))
        self.index_folder: Path = folder
        self._index = index

    def check_encoder(self, pipe: SentenceBert) -> None:
        check_same_encoder(self._index.encoder, pipe, self.index_folder)

    def nearest(self, pipe: SentenceBert, queries: numpy.ndarray, k: int, progress: bool) -> Best:
        with ticking("Searching", shown=progress):
            return self._index.search(queries, k=min(k, len(self._index)))


class SearchableVectors(Searchable):
    """Vectors that encode_dataset wrote, all compared, or through an index of them in a folder."""

    def __init__(self, vectors: str, index: VectorIndex | None = None):
        super().__init__()
        self.columns = ["score", "file", "row", "id", "text"]
        self._vectors = PartVectors(vectors)
        self._index = index

    def check_encoder(self, pipe: SentenceBert) -> None:
        # An index is of these vectors, or refuses them
        check_same_encoder(EncoderIdentity.of(self._vectors), pipe, self._vectors.name)

    def nearest(self, pipe: SentenceBert, queries: numpy.ndarray, k: int, progress: bool) -> Best:
        k = min(k, len(self._vectors))
        if self._index is None:
            return nearest_stored(queries, self._vectors, k=k, progress=progress)
        with ticking("Searching", shown=progress):
            return self._index.search(queries, k=k, vectors=self._vectors)

    def describe(self, scores: list[float], rows: numpy.ndarray) -> list[FoundText]:
        stored = self._vectors.where(rows)
        return [
            FoundText(score, row, text, row_id, file)
            for score, (file, row, row_id, text) in zip(scores, stored, strict=True)
        ]


def text_blocks(
    pipe: SentenceBert,
    texts: Sequence[str],
    vectors: GivenVectors,
    progress: bool,
) -> Iterator[numpy.ndarray]:
    """Yield the vectors of texts, given or new ones; see text_vectors."""
    n = len(texts)
    if vectors is not None:
        given = text_vectors(pipe, texts, vectors, progress)
    # The bar is full when the last block is in the index, too
    with progress_bar(n, shown=progress, unit="texts") as bar:
        for block in slices(n, _WINDOW):
            if vectors is None:
                yield pipe.encode(texts[block])
            else:
                yield given[block]
            bar.update(block.stop - block.start)


def build_text_index(
    pipe: SentenceBert,
    corpus: Corpus,
    kind: BuiltKind | None,
    vectors: GivenVectors,
    progress: bool,
) -> VectorIndex:
    """Build an index of texts, by default of the kind "hnsw"."""
    blocks = text_blocks(pipe, corpus.texts, vectors, progress)
    index = VectorIndex.build(blocks, kind=kind or "hnsw", encoder=pipe)
    index.rows = _rows_of(corpus)
    return index


def load_index(folder: Path, pipe: SentenceBert, kind: BuiltKind | None) -> VectorIndex:
    """Load an index.

    RAISES (ValueError): if it is of another encoder, or of another kind, unless that is None.
    """
    index = VectorIndex.load(folder, encoder=pipe)
    if kind is not None and index.kind != kind:
        raise ValueError(
            f"The index in {folder} is of the kind {index.kind}, not {kind}. Delete it, or omit "
            "--kind."
        )
    return index


def _rows_of(corpus: Corpus) -> list[IndexRow]:
    """Return the rows of an index of texts."""
    n = len(corpus.texts)
    ids: Sequence[RowId | None] = corpus.ids or [None] * n
    others: Sequence[NamedRecord | None] = corpus.others or [None] * n
    return list(map(IndexRow, corpus.texts, ids, corpus.rows, others))


def _saved_rows(index: VectorIndex, folder: Path) -> list[IndexRow]:
    """Return the rows of an index. Those of no file have their place in the index as the row."""
    rows: list[IndexRow] = []
    for place, row in enumerate(index.rows or [IndexRow(None, None)]):
        if row.text is None:
            raise ValueError(
                f"The index in {folder} was saved without texts. Give the corpus that it was built "
                "of."
            )
        if row.row is None:
            rows.append(row._replace(row=place))
        else:
            rows.append(row)
    return rows


def _differ(row: IndexRow, other: IndexRow) -> bool:
    """Return whether two rows have other texts, or other ids if both have one."""
    has_other_id = None not in (row.id, other.id) and row.id != other.id
    return row.text != other.text or has_other_id
