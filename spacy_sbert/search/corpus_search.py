"""Search, mine and cluster files of texts: the functions behind the commands."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy
from numpy.typing import ArrayLike

from ..bulk import PartVectors
from ..bulk.dataset_encoding import JOB
from ..pipeline.sbert import SentenceBert
from ..progress import progress_bar, ticking
from ..validation import Cosine, Positive, check, validated
from .clustering import hierarchical_clusters, import_kmeans, kmeans_clusters
from .exact import (
    Best,
    communities,
    least,
    most_similar_pairs,
    nearest,
    nearest_stored,
    pairs_above,
    similar_groups,
    slices,
)
from .faiss_index import BuiltKind, import_faiss
from .identity import EncoderIdentity, check_same_encoder, identify
from .index import VectorIndex
from .index_folder import MANIFEST, IndexRow
from .texts import TEXT_COLUMN, Corpus, TextVectors, encode_queries, read_corpus, text_vectors

NO_CLUSTER = -1
# Texts whose vectors are in memory beside an index that is built
_WINDOW = 2**12
# Texts, whose distances take 3.6 GB, and SciPy's copy as much
_MAX_HIERARCHICAL = 30_000


class FoundText(NamedTuple):
    """Text that is similar to a query.

    score (float): their cosine similarity. row (int): of the text in the corpus, from 0; blank ones
        count.
    text (str), id (str or int): None if not stored. file (str): the file of a stored vector, else
        None.
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
    def open(folder: Path, *, vectors: str | None = None) -> "Searchable":
        """Open a folder: a saved index of texts, stored vectors, or an index of such.

        vectors (str): the folder of the vectors of an index, if they were moved.
        """
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
            self.describe(of_query.tolist(), found)
            for of_query, found in zip(scores, rows, strict=True)
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
        has_other_ids = bool(theirs.ids) and bool(ours.ids) and theirs.ids != ours.ids
        if theirs.texts != ours.texts or has_other_ids:
            raise ValueError(
                f"The index in {folder} was built of other texts than those of {self.path}. Delete "
                "it first."
            )
        return index

    def _build_index(self, pipe: SentenceBert, folder: Path, progress: bool) -> VectorIndex:
        texts = self.corpus.texts
        given = None
        if self._vectors is not None:
            given = text_vectors(pipe, texts, self._vectors, progress)

        def blocks() -> Iterator[numpy.ndarray]:
            # The bar is full when the last block is in the index, too
            with progress_bar(len(texts), shown=progress, unit="texts") as bar:
                for part in slices(len(texts), _WINDOW):
                    yield pipe.encode(texts[part]) if given is None else given[part]
                    bar.update(part.stop - part.start)

        index = VectorIndex.build(blocks(), kind=self._kind or "hnsw", encoder=identify(pipe))
        ids: Iterable[str | int | None] = self.corpus.ids or repeat(None)
        index.rows = [IndexRow(*row) for row in zip(texts, ids, self.corpus.rows, strict=False)]
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
    return [
        FoundText(
            score, corpus.rows[i], corpus.texts[i], None if corpus.ids is None else corpus.ids[i]
        )
        for score, i in zip(scores, rows.tolist(), strict=True)
    ]


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


@validated
def search_texts(
    pipe: SentenceBert,
    corpus: Path | str,
    queries: Sequence[str],
    *,
    k: Positive = 10,
    index: Path | str | None = None,
    kind: BuiltKind | None = None,
    column: str = TEXT_COLUMN,
    header: bool = True,
    query_prompt: str | None = None,
    read: Corpus | None = None,
    vectors: ArrayLike | TextVectors | None = None,
    progress: bool = False,
) -> list[list[FoundText]]:
    """Find the texts that are most similar to each query.

    pipe (SentenceBert): the encoder. queries (Sequence[str]): what to search for.
    corpus (Path or str): a file of texts, see read_corpus, or the folder of a saved index with
        texts.
    k (int): how many texts for each query; all if there are fewer.
    index (Path or str): the folder of an index of the file, built and saved there if there is none.
        None to search exactly, without one. kind (str): of the index, see VectorIndex.build; None
        for "hnsw", or that of the index.
    column (str), header (bool): of a table, see read_corpus.
    read (Corpus): the texts of the file, such as read_corpus reads with ids; by default they are
        read.
    query_prompt (str): the name of the encoder's prompt for the queries; texts have the default
        one.
    vectors (float array of shape (n, width)): of the texts, by this encoder, in their order, which
        is checked with eight of the texts; TextVectors if that is known; None to encode them.
    progress (bool): whether to show a progress bar.
    RETURNS (list of lists of FoundText): the best first.
    RAISES (ValueError): if a file cannot be read or holds nothing, a query has no text, or the
        index does not fit; (ImportError): if FAISS is needed and not installed.

    Example:
        for hit in search_texts(find_sbert(nlp), "corpus.txt", ["A man eats."], k=3)[0]:
            print(hit.score, hit.text)

    """
    corpus = Path(corpus)
    collection: Searchable
    if corpus.is_dir():
        collection = SearchableIndex(corpus, VectorIndex.load(corpus))
    else:
        texts = read or read_corpus(corpus, column, header=header, progress=progress)
        folder = None if index is None else Path(index)
        collection = SearchableTexts(corpus, texts, index=folder, kind=kind, vectors=vectors)
    return collection.search(pipe, queries, k=k, query_prompt=query_prompt, progress=progress)


def search_folder(
    pipe: SentenceBert,
    folder: Path | str,
    queries: Sequence[str],
    *,
    k: Positive = 10,
    vectors: str | None = None,
    query_prompt: str | None = None,
    progress: bool = False,
) -> list[list[FoundText]]:
    """Find the stored vectors that are most similar to each query.

    folder (Path or str): vectors that encode_dataset wrote, all of which are read; or an index of
        such, whose best candidates are scored by their vectors.
    vectors (str): the folder of the vectors of an index, if they were moved.
    For the other arguments see search_texts.
    RETURNS (list of lists of FoundText): the best first.
    RAISES (ValueError): if a query has no text, or vectors are of another encoder or index.
    """
    collection = Searchable.open(Path(folder), vectors=vectors)
    return collection.search(pipe, queries, k=k, query_prompt=query_prompt, progress=progress)


@validated
def mine_texts(
    pipe: SentenceBert,
    corpus: Path | str,
    *,
    k: Positive | None = 100,
    min_score: Cosine = -1.0,
    column: str = TEXT_COLUMN,
    header: bool = True,
    read: Corpus | None = None,
    vectors: ArrayLike | TextVectors | None = None,
    progress: bool = False,
) -> list[tuple[float, int, int, str, str]]:
    """Find the most similar pairs of the texts of a file: paraphrases and duplicates.

    k (int): how many pairs; all if there are fewer; None for all, up to MAX_PAIRS.
    min_score (float): the least cosine similarity. For the other arguments see search_texts.
    RETURNS (list of (score, row, row, text, text)): the best first.
    RAISES (ValueError): if the file cannot be read, or holds fewer than two texts, or all pairs are
        too many.
    """
    read = read or read_corpus(corpus, column, header=header, progress=progress)
    n = len(read.texts)
    if n < 2:
        raise ValueError(f"{corpus} holds one text: expected two or more, to compare them.")
    rows = text_vectors(pipe, read.texts, vectors, progress)
    if k is None:
        scores, pairs = pairs_above(rows, min_score, progress=progress)
    else:
        k = min(k, n * (n - 1) // 2)
        scores, pairs = most_similar_pairs(rows, k=k, progress=progress)
    return [
        (score, read.rows[i], read.rows[j], read.texts[i], read.texts[j])
        for score, (i, j) in zip(scores.tolist(), pairs.tolist(), strict=True)
        if score >= least(min_score)
    ]


@validated
def group_texts(
    pipe: SentenceBert,
    corpus: Path | str,
    *,
    min_score: Cosine,
    column: str = TEXT_COLUMN,
    header: bool = True,
    read: Corpus | None = None,
    vectors: ArrayLike | TextVectors | None = None,
    progress: bool = False,
) -> list[tuple[int, int, str]]:
    """Find groups of similar texts of a file, such as duplicates.

    min_score (float): the least cosine similarity of two texts of one group, see similar_groups.
    For the other arguments see search_texts.
    RETURNS (list of (group, row, text)): groups from 0, the largest first; texts without a similar
        one are left out.
    RAISES (ValueError): if the file cannot be read, or holds no text.
    """
    read = read or read_corpus(corpus, column, header=header, progress=progress)
    rows = text_vectors(pipe, read.texts, vectors, progress)
    groups = similar_groups(rows, min_score, progress=progress)
    return [
        (number, read.rows[i], read.texts[i])
        for number, group in enumerate(groups)
        for i in group.tolist()
    ]


@validated
def cluster_texts(
    pipe: SentenceBert,
    corpus: Path | str,
    *,
    method: Literal["communities", "hierarchical", "kmeans"] = "communities",
    column: str = TEXT_COLUMN,
    header: bool = True,
    read: Corpus | None = None,
    vectors: ArrayLike | TextVectors | None = None,
    progress: bool = False,
    **options: int | float | str,
) -> list[tuple[int, int, str]]:
    """Find the cluster of each text of a file.

    method (str): "communities" (options threshold, min_size), "hierarchical" (n_clusters or
        threshold, linkage) or "kmeans" (n_clusters, seed, n_init): see communities,
        hierarchical_clusters and kmeans_clusters.
    For the other arguments see search_texts.
    RETURNS (list of (cluster, row, text)): clusters from 0, of communities the largest; -1 for
        texts in none.
    RAISES (ValueError): if the file cannot be read, or options are wrong. (ImportError): if
        scikit-learn is needed.
    """
    check_method(method, options)
    read = read or read_corpus(corpus, column, header=header, progress=progress)
    n = len(read.texts)
    if method == "hierarchical" and n > _MAX_HIERARCHICAL:
        raise ValueError(
            f"Cannot cluster {n} texts hierarchically: their distances are in memory, so at most "
            f'{_MAX_HIERARCHICAL} are expected. Use the method "communities" or "kmeans".'
        )
    rows = text_vectors(pipe, read.texts, vectors, progress)
    with ticking("Clustering", shown=progress):
        labels = _METHODS[method].label(rows, **options)
    return list(zip(labels.tolist(), read.rows, read.texts, strict=True))


def check_method(method: str, options: Collection[str]) -> None:
    """Check a method of clustering and its options.

    RAISES (ImportError, ValueError): see cluster_texts.
    """
    check("method", method, Literal["communities", "hierarchical", "kmeans"])
    known = _METHODS[method].options
    if unknown := ", ".join(sorted(set(options) - set(known))):
        raise ValueError(
            f"The method '{method}' takes no {unknown}: expected some of {', '.join(known)}."
        )
    if method == "kmeans":
        import_kmeans()
        if "n_clusters" not in options:
            raise ValueError(
                "k-means needs to know how many clusters to find: give n_clusters (--n-clusters)."
            )


def _label_communities(vectors: numpy.ndarray, **options: Any) -> numpy.ndarray:
    """Return the community of each vector, int64 (n,)."""
    labels = numpy.full(len(vectors), NO_CLUSTER)
    for number, group in enumerate(communities(vectors, **options)):
        labels[group] = number
    return labels


class _Method(NamedTuple):
    """Method of clustering: returns the cluster of each vector, and takes these options."""

    label: Callable[..., numpy.ndarray]
    options: tuple[str, ...]


_METHODS = {
    "communities": _Method(_label_communities, ("threshold", "min_size")),
    "hierarchical": _Method(hierarchical_clusters, ("n_clusters", "threshold", "linkage")),
    "kmeans": _Method(kmeans_clusters, ("n_clusters", "seed", "n_init")),
}
