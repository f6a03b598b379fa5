"""Search, mine and cluster files of texts."""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy
from numpy.typing import ArrayLike

from ..errors import Errors
from ..files.tables import write_table  # noqa: F401  as the other functions behind the commands
from ..pipeline.sbert import SentenceBert
from ..progress import progress_bar, ticking
from ..similarity import checked
from ..validation import Cosine, Positive, check, validated
from .clustering import communities, hierarchical_clusters, import_kmeans, kmeans_clusters, similar_groups
from .corpus import TEXT, Corpus, corpus_of, read_corpus
from .exact import nearest, slices
from .index import VectorIndex
from .index_folder import MANIFEST, BuiltKind, IndexRow, import_faiss, read_manifest, read_rows, rows_digest
from .memory_mapped import StoredVectors, check_encoder, identify, identity_of, nearest_stored
from .paraphrase_mining import check_kept, most_similar_pairs, pairs_above

Method = Literal["communities", "hierarchical", "kmeans"]
KIND: BuiltKind = "hnsw"  # of an index, if nobody asks for another
WINDOW = 2**12  # as many as `encode` takes together: texts whose vectors are in memory beside an index that is built
MAX_HIERARCHICAL = 30_000  # texts, whose distances take 3.6 GB, and SciPy's copy of them as much
NO_CLUSTER = -1


class _FoundText(NamedTuple):
    """Text that is similar to a query.

    score (float): their cosine similarity. row (int): of the text in the corpus, from 0; blank ones count. text (str).
    id (str or int): of the text, if there is one.
    """

    score: float
    row: int
    text: str
    id: str | int | None = None


def _encode_texts(
    pipe: SentenceBert, texts: Sequence[str], vectors: ArrayLike | None, *, progress: bool
) -> numpy.ndarray:
    """Return the vectors of texts, float32 (n, width): those given, or new ones.

    RAISES (ValueError): if as many are not given, or their width is another.
    """
    if vectors is None:
        return pipe.encode(texts, progress=progress)
    given = checked(vectors, "vectors")
    if len(given) != len(texts):
        raise ValueError(Errors.SEARCH_ROW_COUNT.format(given=len(texts), expected=len(given)))
    return given


def _encode_blocks(
    pipe: SentenceBert, texts: Sequence[str], vectors: ArrayLike | None = None, *, progress: bool = False
) -> Iterator[numpy.ndarray]:
    """Yield the vectors of texts in blocks. progress (bool): whether to show a progress bar."""
    if vectors is not None:
        given = _encode_texts(pipe, texts, vectors, progress=progress)
    with progress_bar(len(texts), shown=progress, unit="texts") as bar:  # until they are in the index, too
        for part in slices(len(texts), WINDOW):
            yield pipe.encode(texts[part]) if vectors is None else given[part]
            bar.update(part.stop - part.start)


def _open_index(
    pipe: SentenceBert,
    corpus: Path,
    folder: Path,
    *,
    kind: BuiltKind | None,
    column: str = TEXT,
    header: bool = True,
    read: Corpus | None = None,
    vectors: ArrayLike | None = None,
    progress: bool = False,
) -> tuple[VectorIndex, Corpus]:
    """Open the index of a file of texts: the one in the folder, or a new one that is saved there.

    For arguments see search_texts. RETURNS (VectorIndex, Corpus): the index, and the texts.
    RAISES (ValueError): if the index there is damaged, or of another encoder or other texts; (ImportError): if FAISS is
        not installed.
    """
    import_faiss()
    read = read or read_corpus(corpus, column, header=header, progress=progress)
    encoder, rows = identify(pipe), read.index_rows()
    if not (folder / MANIFEST).exists():
        blocks = _encode_blocks(pipe, read.texts, vectors, progress=progress)
        index = VectorIndex.build(blocks, kind=kind or KIND, encoder=encoder)
        index.rows = rows
        with ticking("Saving", shown=progress):
            index.save(folder)
        return index, read
    saved = read_manifest(folder)
    saved.check_encoder(encoder, folder)
    if kind is not None and saved.kind != kind:
        raise ValueError(
            f"The index in {folder} is of the kind {saved.kind}, not {kind}. Delete it to build another, or "
            "leave --kind out."
        )
    unnumbered = [IndexRow(text, None) for text in read.texts]  # as VectorIndex.build(vectors, texts=texts) has them
    if not any(saved.rows_sha256 == rows_digest(each) for each in (rows, unnumbered)):
        theirs = corpus_of(read_rows(folder, saved), folder)
        if theirs[:2] != read[:2] or (theirs.ids is not None and read.ids is not None and theirs.ids != read.ids):
            raise ValueError(
                f"The index in {folder} was built of other texts than those of {corpus}. Delete it to build it "
                "again, or give another folder."
            )
    return VectorIndex.load(folder, encoder=encoder), read


def _encode_queries(
    pipe: SentenceBert, queries: Sequence[str], prompt: str | None, *, progress: bool = False
) -> numpy.ndarray:
    """Return the vectors of queries, float32 (n, width). RAISES (ValueError): if one has no text."""
    wanted = pipe.encode(queries, prompt_name=prompt, progress=progress)
    empty = numpy.flatnonzero(~wanted.any(axis=1))
    if len(empty):
        first = int(empty[0])
        raise ValueError(Errors.SEARCH_EMPTY_QUERY.format(query=f"query number {first + 1}, {queries[first][:50]!r}"))
    return wanted


@validated
def search_texts(
    pipe: SentenceBert,
    corpus: Path,
    queries: Sequence[str],
    *,
    k: Positive = 10,
    index: Path | None = None,
    kind: BuiltKind | None = None,
    column: str = TEXT,
    header: bool = True,
    query_prompt: str | None = None,
    read: Corpus | None = None,
    vectors: ArrayLike | None = None,
    progress: bool = False,
) -> list[list[_FoundText]]:
    """Find the texts that are most similar to each query.

    pipe (SentenceBert): what encodes. queries (Sequence[str]): what to search for.
    corpus (Path): a file of texts, see read_corpus, or the folder of a saved index with texts.
    k (int): how many texts for each query; all if there are fewer.
    index (Path): the folder of an index of the file; it is built and saved there if there is none. None to search
        exactly, without one. kind (str): of the index, see VectorIndex.build; None for "hnsw", or that of the index.
    column (str), header (bool): of a table, see read_corpus.
    read (Corpus): the texts of the file, such as read_corpus reads with ids; by default they are read.
    query_prompt (str): the encoder's prompt for the queries, by its name; texts have the default one.
    vectors (float array of shape (n, width)): of the texts, by this encoder, where they are there already.
    progress (bool): whether to show a progress bar.
    RETURNS (list of lists of _FoundText): the best first.
    RAISES (ValueError): if a file cannot be read or holds nothing, a query has no text, or the index does not fit;
        (ImportError): if there is an index and FAISS is not installed.
    """
    check_kind(kind)
    if index is not None or corpus.is_dir():
        import_faiss()
    elif read is None:
        read = read_corpus(corpus, column, header=header, progress=progress)
    wanted = _encode_queries(pipe, queries, query_prompt, progress=progress)
    if index is None and read is not None:
        rows = _encode_texts(pipe, read.texts, vectors, progress=progress)
        with ticking("Searching", shown=progress):
            found = nearest(wanted, rows, k=min(k, len(rows)))
    else:
        if index is None or corpus.is_dir():
            opened = VectorIndex.load(corpus, encoder=identify(pipe))
            read = corpus_of(opened.rows, corpus)
        else:
            opened, read = _open_index(
                pipe,
                corpus,
                index,
                kind=kind,
                column=column,
                header=header,
                read=read,
                vectors=vectors,
                progress=progress,
            )
        with ticking("Searching", shown=progress):
            found = opened.search(wanted, k=min(k, len(opened)))
    of_queries = zip(*(part.tolist() for part in found), strict=True)
    ids: Sequence[str | int | None] = read.ids or [None] * len(read.texts)
    return [
        [_FoundText(score, read.rows[i], read.texts[i], ids[i]) for score, i in zip(*best, strict=True)]
        for best in of_queries
    ]


@validated
def mine_texts(
    pipe: SentenceBert,
    corpus: Path,
    *,
    k: Positive | None = 100,
    min_score: Cosine = -1.0,
    column: str = TEXT,
    header: bool = True,
    read: Corpus | None = None,
    vectors: ArrayLike | None = None,
    progress: bool = False,
) -> list[tuple[float, int, int, str, str]]:
    """Find the most similar pairs of the texts of a file: paraphrases and duplicates.

    k (int): how many pairs; all if there are fewer; None for all, up to MOST_PAIRS.
    min_score (float): the least cosine similarity.
    For the other arguments see search_texts.
    RETURNS (list of (score, row, row, text, text)): the best first.
    RAISES (ValueError): if the file cannot be read, or holds fewer than two texts, or all pairs are too many.
    """
    read = read or read_corpus(corpus, column, header=header, progress=progress)
    texts, numbers = read[:2]
    if len(texts) < 2:
        raise ValueError(f"{corpus} holds one text: expected two or more, to compare them.")
    n_pairs = len(texts) * (len(texts) - 1) // 2
    if k is None and min_score <= -1.0:
        check_kept(n_pairs, min_score)
    rows = _encode_texts(pipe, texts, vectors, progress=progress)
    if k is None:
        scores, pairs = pairs_above(rows, min_score, progress=progress)
    else:
        scores, pairs = most_similar_pairs(rows, k=min(k, n_pairs), progress=progress)
    found = zip(scores.tolist(), pairs.tolist(), strict=True)
    return [(score, numbers[i], numbers[j], texts[i], texts[j]) for score, (i, j) in found if score >= min_score]


@validated
def group_texts(
    pipe: SentenceBert,
    corpus: Path,
    *,
    min_score: Cosine,
    column: str = TEXT,
    header: bool = True,
    read: Corpus | None = None,
    vectors: ArrayLike | None = None,
    progress: bool = False,
) -> list[tuple[int, int, str]]:
    """Find groups of similar texts of a file, such as duplicates.

    min_score (float): the least cosine similarity of two texts of one group, see similar_groups.
    For the other arguments see search_texts.
    RETURNS (list of (group, row, text)): groups from 0, the largest first; texts without a similar one are left out.
    RAISES (ValueError): if the file cannot be read, or holds no text.
    """
    read = read or read_corpus(corpus, column, header=header, progress=progress)
    rows = _encode_texts(pipe, read.texts, vectors, progress=progress)
    groups = similar_groups(rows, min_score, progress=progress)
    return [(number, read.rows[i], read.texts[i]) for number, group in enumerate(groups) for i in group.tolist()]


@validated
def cluster_texts(
    pipe: SentenceBert,
    corpus: Path,
    *,
    method: Method = "communities",
    column: str = TEXT,
    header: bool = True,
    read: Corpus | None = None,
    vectors: ArrayLike | None = None,
    progress: bool = False,
    **options: int | float | str,
) -> list[tuple[int, int, str]]:
    """Find the cluster of each text of a file.

    method (str): "communities" (options threshold, min_size), "hierarchical" (n_clusters or threshold, linkage) or
        "kmeans" (n_clusters, seed, n_init): see communities, hierarchical_clusters and kmeans_clusters.
    For the other arguments see search_texts.
    RETURNS (list of (cluster, row, text)): clusters from 0, of communities the largest; -1 for texts in none.
    RAISES (ValueError): if the file cannot be read, holds no text, or options are not those of the method;
        (ImportError): if a package is not installed.
    """
    check_method(method, options)
    work, _ = _METHODS[method]
    texts, numbers = (read or read_corpus(corpus, column, header=header, progress=progress))[:2]
    if method == "hierarchical" and len(texts) > MAX_HIERARCHICAL:
        raise ValueError(
            f"Cannot cluster {len(texts)} texts hierarchically: all their distances are kept, so at most "
            f'{MAX_HIERARCHICAL} are expected. Use the method "communities" or "kmeans", or take a part of '
            "the texts."
        )
    rows = _encode_texts(pipe, texts, vectors, progress=progress)
    with ticking("Clustering", shown=progress):
        labels = work(rows, **options)
    return list(zip(labels.tolist(), numbers, texts, strict=True))


def check_kind(kind: str | None) -> None:
    """Check the kind of an index; None is any. RAISES (ValueError): if there is no such kind."""
    check("kind", kind, BuiltKind | None)


def check_method(method: str, options: Collection[str]) -> None:
    """Check a method of clustering and its options.

    RAISES (ValueError): if there is no such method, or it has no such options, or lacks one; (ImportError): if a
        package that it needs is not installed.
    """
    check("method", method, Method)
    _, known = _METHODS[method]
    if unknown := ", ".join(sorted(set(options) - set(known))):
        raise ValueError(f"The method '{method}' takes no {unknown}: expected some of {', '.join(known)}.")
    if method == "kmeans" and "n_clusters" not in options:
        raise ValueError("k-means needs to know how many clusters to find: give n_clusters (--n-clusters).")
    if method == "kmeans":
        import_kmeans()


def _communities(vectors: numpy.ndarray, **options: Any) -> numpy.ndarray:  # noqa: ANN401 (of different types)
    """Return the community of each vector, int64 (n,)."""
    labels = numpy.full(len(vectors), NO_CLUSTER)
    for number, group in enumerate(communities(vectors, **options)):
        labels[group] = number
    return labels


_METHODS: dict[str, tuple[Callable[..., numpy.ndarray], tuple[str, ...]]] = {
    "communities": (_communities, ("threshold", "min_size")),
    "hierarchical": (hierarchical_clusters, ("n_clusters", "threshold", "linkage")),
    "kmeans": (kmeans_clusters, ("n_clusters", "seed", "n_init")),
}


class _FoundVector(NamedTuple):
    """Stored vector that is similar to a query.

    score (float): their cosine similarity. part (str), row (int): the file of the vector, and the row in it, from 0.
    id (str or int), text (str): where they were written.
    """

    score: float
    part: str
    row: int
    id: str | int | None
    text: str | None


def is_of_stored(folder: Path) -> bool:
    """Whether an index is of stored vectors. RAISES (OSError, ValueError): if there is no index that can be read."""
    return read_manifest(folder).vectors is not None


def search_folder(
    pipe: SentenceBert,
    folder: Path,
    queries: Sequence[str],
    *,
    is_index: bool,
    open_vectors: Callable[[str], StoredVectors],
    k: Positive = 10,
    vectors: str | None = None,
    query_prompt: str | None = None,
    progress: bool = False,
) -> list[list[_FoundVector]]:
    """Find the vectors of a folder that are most similar to each query.

    pipe (SentenceBert): what made them. queries (Sequence[str]): what to search for.
    folder (Path): stored vectors, all of which are read, or an index of such, of whose candidates the best are found.
    is_index (bool): which of them it is.
    open_vectors (Callable): opens a folder of stored vectors, as bulk.PartVectors.
    k (int): how many for each query; all if there are fewer.
    vectors (str): the folder of the vectors of an index, if they stand elsewhere than when it was built.
    query_prompt (str): the encoder's prompt for the queries, by its name. progress (bool): whether to show bars.
    RETURNS (list of lists of _FoundVector): the best first.
    RAISES (ValueError): if a query has no text; if vectors are of another encoder, or not those of the index.
    """
    encoder = identify(pipe)
    index = VectorIndex.load(folder, encoder=encoder) if is_index else None
    stored = open_vectors(vectors or (index and index.folder) or str(folder))
    check_encoder(identity_of(stored), encoder, stored.name)
    wanted, k = _encode_queries(pipe, queries, query_prompt, progress=progress), min(k, stored.shape[0])
    if index is None:
        scores, rows = nearest_stored(wanted, stored, k=k, progress=progress)
    else:
        with ticking("Searching", shown=progress):
            scores, rows = index.search(wanted, k=k, vectors=stored)
    return [
        [_FoundVector(score, *where) for score, where in zip(own.tolist(), stored.where(found), strict=True)]
        for own, found in zip(scores, rows, strict=True)
    ]
