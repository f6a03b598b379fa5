"""Search, index, mine and cluster files of texts: the functions behind the commands."""

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy

from ..pipeline.sbert import SentenceBert
from ..progress import ticking
from ..validation import Cosine, Positive, check, validated
from .clustering import hierarchical_clusters, import_kmeans, kmeans_clusters
from .duplicates import Duplicate
from .exact import least
from .faiss_index import BuiltKind
from .index import VectorIndex
from .index_folder import MANIFEST
from .index_rows import RowId, check_distinct
from .pairs import communities, most_similar_pairs, pairs_above, similar_groups
from .searchable import (
    FoundText,
    Searchable,
    SearchableTexts,
    SearchMethod,
    build_text_index,
    load_index,
    text_blocks,
)
from .texts import TEXT_COLUMN, Corpus, GivenVectors, read_corpus, text_vectors

NO_CLUSTER = -1
# Texts whose distances take 3.6 GB, and SciPy's copy as much
_MAX_HIERARCHICAL = 30_000


@validated
def search_texts(
    pipe: SentenceBert,
    corpus: Path | str,
    queries: Sequence[str],
    *,
    k: Positive = 10,
    method: SearchMethod = "vectors",
    index: Path | str | None = None,
    kind: BuiltKind | None = None,
    column: str = TEXT_COLUMN,
    header: bool = True,
    query_prompt: str | None = None,
    read: Corpus | None = None,
    vectors: GivenVectors = None,
    progress: bool = False,
) -> list[list[FoundText]]:
    """Find the texts that are most similar to each query.

    pipe (SentenceBert): the encoder. queries (Sequence[str]): what to search for.
    corpus (Path or str): a file of texts, see read_corpus, or a folder, see Searchable.open.
    k (int): how many texts for each query; all if there are fewer.
    method (str): "vectors", by the encoder; "bm25", by words, see BM25; "hybrid", both, see
        reciprocal_rank_fusion. BM25 finds no text without a word of the query.
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
    if corpus.is_dir():
        collection = Searchable.open(corpus)
    else:
        texts = read or read_corpus(corpus, column, header=header, progress=progress)
        collection = SearchableTexts(corpus, texts, index=index, kind=kind, vectors=vectors)
    return collection.search(
        pipe, queries, k=k, method=method, query_prompt=query_prompt, progress=progress
    )


@validated
def add_texts(
    pipe: SentenceBert,
    folder: Path | str,
    corpus: Corpus,
    *,
    replace: bool = False,
    skip_duplicates: Cosine | None = None,
    kind: BuiltKind | None = None,
    vectors: GivenVectors = None,
    progress: bool = False,
) -> tuple[VectorIndex, list[Duplicate]]:
    """Add texts with their ids and other columns to the index in a folder, and save it.

    folder (Path or str): of the index; one is built there if there is none. kind (str): of a new
        one, see VectorIndex.build; None for "hnsw".
    corpus (Corpus): the texts, see read_corpus.
    replace, skip_duplicates: see VectorIndex.add. For the other arguments see search_texts.
    RETURNS (VectorIndex, list[Duplicate]): the index, and the texts that were left out.
    RAISES (ValueError): if the index is of another encoder or kind, there is none to compare
        duplicates with, a row has no text or no id, or texts cannot be added; (RuntimeError): if
        another process has changed it. It stays as it was then.
    """
    folder = Path(folder)
    if corpus.ids is not None:
        _check_filled(corpus.ids, corpus)
    if corpus.others is not None:
        # Dates and the like are strings, as in tables that are written
        others = json.loads(json.dumps(corpus.others, default=str))
        corpus = corpus._replace(others=others)
    duplicates: list[Duplicate] = []
    if (folder / MANIFEST).exists():
        index = load_index(folder, pipe, kind)
        duplicates = index.add(
            text_blocks(pipe, corpus.texts, vectors, progress),
            texts=corpus.texts,
            ids=corpus.ids,
            columns=corpus.others,
            replace=replace,
            skip_duplicates=skip_duplicates,
        )
    elif skip_duplicates is not None:
        raise ValueError(
            f"There is no index in {folder} to compare new texts with. Build it first, without "
            "skip_duplicates (--skip-duplicates)."
        )
    else:
        check_distinct(corpus.ids or (), "given")
        index = build_text_index(pipe, corpus, kind, vectors, progress)
    with ticking("Saving", shown=progress):
        index.save(folder)
    return index, duplicates


def _check_filled(ids: Sequence[RowId], corpus: Corpus) -> None:
    """Raise ValueError if a text or an id is blank, with its row."""
    by_row = dict(zip(corpus.rows, ids, strict=True))
    for row in range(len(ids) + corpus.n_blank):
        if by_row.get(row, "") == "":
            raise ValueError(
                f"Row {row}, counted from 0, has no text or no id. Fill in both, or remove the row."
            )


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
    vectors: GivenVectors = None,
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
    found: list[tuple[float, int, int, str, str]] = []
    for score, (i, j) in zip(scores.tolist(), pairs.tolist(), strict=True):
        if score >= least(min_score):
            found.append((score, read.rows[i], read.rows[j], read.texts[i], read.texts[j]))
    return found


@validated
def group_texts(
    pipe: SentenceBert,
    corpus: Path | str,
    *,
    min_score: Cosine,
    column: str = TEXT_COLUMN,
    header: bool = True,
    read: Corpus | None = None,
    vectors: GivenVectors = None,
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
    found: list[tuple[int, int, str]] = []
    for number, group in enumerate(groups):
        found += [(number, read.rows[i], read.texts[i]) for i in group.tolist()]
    return found


@validated
def cluster_texts(
    pipe: SentenceBert,
    corpus: Path | str,
    *,
    method: Literal["communities", "hierarchical", "kmeans"] = "communities",
    column: str = TEXT_COLUMN,
    header: bool = True,
    read: Corpus | None = None,
    vectors: GivenVectors = None,
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
    label, _ = _METHODS[method]
    with ticking("Clustering", shown=progress):
        labels = label(rows, **options)
    return list(zip(labels.tolist(), read.rows, read.texts, strict=True))


def check_method(method: str, options: Collection[str]) -> None:
    """Check a method of clustering and its options.

    RAISES (ImportError, ValueError): see cluster_texts.
    """
    check("method", method, Literal["communities", "hierarchical", "kmeans"])
    _, known = _METHODS[method]
    unknown = ", ".join(sorted(set(options) - set(known)))
    if unknown:
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


# By method: the function that labels vectors, and its options
_METHODS: dict[str, tuple[Callable[..., numpy.ndarray], tuple[str, ...]]] = {
    "communities": (_label_communities, ("threshold", "min_size")),
    "hierarchical": (hierarchical_clusters, ("n_clusters", "threshold", "linkage")),
    "kmeans": (kmeans_clusters, ("n_clusters", "seed", "n_init")),
}
