"""Collections that queries are compared with: texts of a file, saved indexes, stored vectors."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy
from numpy.typing import ArrayLike

from ..bulk import PartVectors
from ..bulk.dataset_encoding import JOB
from ..pipeline.sbert import SentenceBert
from ..progress import progress_bar, ticking
from ..validation import Positive, check
from .exact import Best, nearest, nearest_stored, slices
from .faiss_index import BuiltKind, import_faiss
from .identity import EncoderIdentity, check_same_encoder, identify
from .index import VectorIndex
from .index_folder import MANIFEST, IndexRow
from .texts import Corpus, TextVectors, encode_queries, text_vectors

# Texts whose vectors are in memory beside an index that is built
_WINDOW = 2**12


class FoundText(NamedTuple):
    """Text that is similar to a query.

    score (float): their cosine similarity. row (int): that of the text in the corpus, from 0; blank
        ones count.
    text (str), id (str or int): None if not stored.
    file (str): the file of a stored vector, None for others.
    """

    score: float
    row: int
    text: str | None
    id: str | int | None = None
    file: str | None = None


class Searchable(ABC):
    """Collection that queries are compared with. It is opened before the pipeline is loaded.

    columns (tuple): the fields of FoundText that it fills. index_folder (Path): the folder of the
        index of texts that is searched; None if there is none.

    Example:
        collection = SearchableTexts(path, read_corpus(path))
        for hit in collection.search(pipe, ["A man eats."], k=3)[0]:
            print(hit.score, hit.text)

    """

    columns: tuple[str, ...]
    index_folder: Path | None = None

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
        return SearchableVectors(vectors or index.folder or str(folder), index, folder)

    def search(
        self,
        pipe: SentenceBert,
        queries: Sequence[str],
        *,
        k: int,
        query_prompt: str | None = None,
        progress: bool = False,
    ) -> list[list[FoundText]]:
        """Find what is most similar to each query, the best first; see search_texts."""
        check("k", k, Positive)
        self.check_encoder(pipe)
        vectors = encode_queries(pipe, queries, query_prompt, progress=progress)
        scores, rows = self.nearest(pipe, vectors, k, progress)
        return [
            self.describe(own_scores.tolist(), own_rows)
            for own_scores, own_rows in zip(scores, rows, strict=True)
        ]

    def check_encoder(self, pipe: SentenceBert) -> None:
        """Raise ValueError if another encoder made stored vectors. By default none are stored."""
        return

    @abstractmethod
    def nearest(self, pipe: SentenceBert, queries: numpy.ndarray, k: int, progress: bool) -> Best:
        """Return the scores and rows of the k most similar; of all if there are fewer."""

    @abstractmethod
    def describe(self, scores: list[float], rows: numpy.ndarray) -> list[FoundText]:
        """Return what was found for one query."""


class SearchableTexts(Searchable):
    """Texts of a file, compared exactly or through an index of them.

    path (Path): the file. corpus (Corpus): its texts. For the other arguments see search_texts.
    """

    def __init__(
        self,
        path: Path,
        corpus: Corpus,
        *,
        index: Path | None = None,
        kind: BuiltKind | None = None,
        vectors: ArrayLike | TextVectors | None = None,
    ):
        if index is not None:
            import_faiss()
        self.path = path
        self.corpus = corpus
        self.index_folder = index
        self.columns = _columns_of(corpus)
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

    def describe(self, scores: list[float], rows: numpy.ndarray) -> list[FoundText]:
        return _found_texts(self.corpus, scores, rows)

    def _open_index(self, pipe: SentenceBert, folder: Path, progress: bool) -> VectorIndex:
        """Return the index of the texts in the folder, or build one and save it there."""
        if not (folder / MANIFEST).exists():
            return self._build_index(pipe, folder, progress)
        index = VectorIndex.load(folder, encoder=identify(pipe))
        if self._kind is not None and index.kind != self._kind:
            raise ValueError(
                f"The index in {folder} is of the kind {index.kind}, not {self._kind}. Delete it, "
                "or omit --kind."
            )
        ours = self.corpus
        theirs = _corpus_of(index, folder)
        # Either may have no ids
        has_other_ids = bool(theirs.ids and ours.ids) and theirs.ids != ours.ids
        if theirs.texts != ours.texts or has_other_ids:
            raise ValueError(
                f"The index in {folder} was built of other texts than those of {self.path}. Delete "
                "it first."
            )
        return index

    def _build_index(self, pipe: SentenceBert, folder: Path, progress: bool) -> VectorIndex:
        corpus = self.corpus
        n = len(corpus.texts)
        given = None
        if self._vectors is not None:
            given = text_vectors(pipe, corpus.texts, self._vectors, progress)

        def blocks() -> Iterator[numpy.ndarray]:
            # The bar is full when the last block is in the index, too
            with progress_bar(n, shown=progress, unit="texts") as bar:
                for block in slices(n, _WINDOW):
                    if given is None:
                        yield pipe.encode(corpus.texts[block])
                    else:
                        yield given[block]
                    bar.update(block.stop - block.start)

        index = VectorIndex.build(blocks(), kind=self._kind or "hnsw", encoder=identify(pipe))
        ids: Sequence[str | int | None] = corpus.ids or [None] * n
        index.rows = list(map(IndexRow, corpus.texts, ids, corpus.rows))
        with ticking("Saving", shown=progress):
            index.save(folder)
        return index


class SearchableIndex(Searchable):
    """Texts that are saved in an index."""

    def __init__(self, folder: Path, index: VectorIndex):
        self.index_folder: Path = folder
        self.corpus = _corpus_of(index, folder)
        self.columns = _columns_of(self.corpus)
        self._index = index

    def check_encoder(self, pipe: SentenceBert) -> None:
        check_same_encoder(self._index.encoder, identify(pipe), self.index_folder)

    def nearest(self, pipe: SentenceBert, queries: numpy.ndarray, k: int, progress: bool) -> Best:
        with ticking("Searching", shown=progress):
            return self._index.search(queries, k=min(k, len(self._index)))

    def describe(self, scores: list[float], rows: numpy.ndarray) -> list[FoundText]:
        return _found_texts(self.corpus, scores, rows)


class SearchableVectors(Searchable):
    """Vectors that encode_dataset wrote, all compared, or through an index of them in a folder."""

    columns = ("score", "file", "row", "id", "text")

    def __init__(
        self, vectors: str, index: VectorIndex | None = None, index_folder: Path | None = None
    ):
        self._vectors = PartVectors(vectors)
        self._index = index
        self._place = index_folder

    def check_encoder(self, pipe: SentenceBert) -> None:
        encoder = identify(pipe)
        if self._index is not None and self._place is not None:
            check_same_encoder(self._index.encoder, encoder, self._place)
        check_same_encoder(EncoderIdentity.of(self._vectors), encoder, self._vectors.name)

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


def _columns_of(corpus: Corpus) -> tuple[str, ...]:
    if corpus.ids is None:
        return ("score", "row", "text")
    return ("score", "row", "id", "text")


def _found_texts(corpus: Corpus, scores: list[float], rows: numpy.ndarray) -> list[FoundText]:
    found: list[FoundText] = []
    for score, i in zip(scores, rows.tolist(), strict=True):
        text_id = None if corpus.ids is None else corpus.ids[i]
        found.append(FoundText(score, corpus.rows[i], corpus.texts[i], text_id))
    return found


def _corpus_of(index: VectorIndex, folder: Path) -> Corpus:
    """Return the texts beside an index."""
    rows = index.rows or []
    texts = [row.text for row in rows if row.text is not None]
    if len(texts) < len(index):
        raise ValueError(
            f"The index in {folder} was saved without texts. Give the corpus that it was built of."
        )
    numbers = [place if row.row is None else row.row for place, row in enumerate(rows)]
    ids = None
    if any(row.id is not None for row in rows):
        ids = ["" if row.id is None else row.id for row in rows]
    return Corpus(texts, numbers, ids)
