"""Search, mine and cluster files of texts: the functions behind the commands."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy
from numpy.typing import ArrayLike

from ..bulk import PartVectors
from ..bulk.dataset_encoding import JOB
from ..errors import Errors
from ..files.tables import TABLES, NamedRecord, TextColumns, read_columns, read_text_rows
from ..files.text_lines import format_suffix
from ..pipeline.sbert import SentenceBert
from ..progress import progress_bar, progress_of, ticking
from ..similarity import checked, cosine
from ..validation import Cosine, Positive, check, short_repr, validated
from .clustering import hierarchical_clusters, import_kmeans, kmeans_clusters
from .exact import (
    communities,
    least,
    most_similar_pairs,
    nearest,
    nearest_stored,
    pairs_above,
    similar_groups,
    slices,
)
from .index import (
    MANIFEST,
    BuiltKind,
    EncoderIdentity,
    IndexRow,
    VectorIndex,
    check_encoder,
    identify,
    import_faiss,
)

# The default column
TEXT = "text"
NO_CLUSTER = -1
# Texts whose vectors are in memory beside an index that is built
_WINDOW = 2**12
# Texts that are encoded, to find out whether given vectors are theirs
_COMPARED = 8
# By which a text's own vector may be less similar to a new one than another
_LESS_SIMILAR = 0.02
# texts, whose distances take 3.6 GB, and SciPy's copy as much
_MAX_HIERARCHICAL = 30_000


class Corpus(NamedTuple):
    """The texts of a file that are not blank.

    texts: the texts. rows: the row of each in the file, from 0; blank rows count, as in the vectors
        of `encode`.
    ids: the id of each, None if no column was named for them. others: the other columns of each,
        None if not read.
    """

    texts: list[str]
    rows: list[int]
    ids: list[str | int] | None = None
    others: list[NamedRecord] | None = None


class TextVectors(NamedTuple):
    """Vectors, float (n, width), that are known to be of the texts they are given with, in their order."""

    rows: numpy.ndarray


def read_corpus(
    path: Path | str,
    column: str = TEXT,
    *,
    id_column: str | None = None,
    header: bool = True,
    others: bool = False,
    progress: bool = False,
) -> Corpus:
    """Read the texts of a file, without blank ones.

    path (Path or str): .txt with a text a line, .jsonl, .csv, .tsv (each .gz or not) or .parquet.
    column (str): the column or field of the texts. id_column (str): that of the ids, strings or
        whole numbers.
    header (bool): whether .csv and .tsv have one; if not, columns are named "0", "1", ...
    others (bool): whether to read the other columns of a table, too. progress (bool): whether to
        show a progress bar.
    RAISES (ValueError): if it holds none, or has a bad row, with its line.
    """
    path = Path(path)
    texts, numbers, ids, kept = list[str](), list[int](), list[Any](), list[NamedRecord]()
    has_others = others and format_suffix(path) in TABLES
    columns: Iterable[NamedRecord] = read_columns(path, header=header) if has_others else repeat({})
    read = read_text_rows(path, TextColumns(column, id_column, header))
    rows = progress_of(read, desc="Reading", unit="rows", shown=progress)
    for number, (row, own) in enumerate(zip(rows, columns, strict=has_others)):
        if row.text.strip():
            texts.append(row.text)
            numbers.append(number)
            ids.append(row.id)
            kept.append(
                {name: value for name, value in own.items() if name not in (column, id_column)}
            )
    if not texts:
        raise ValueError(f"{path} holds no text: expected one a line, or .jsonl with text.")
    return Corpus(
        texts, numbers, ids if id_column is not None else None, kept if has_others else None
    )


def _corpus_of(index: VectorIndex, folder: Path) -> Corpus:
    """Return the texts beside an index."""
    rows = index.rows or []
    texts = [row.text for row in rows if row.text is not None]
    if len(texts) < len(index):
        raise ValueError(
            f"The index in {folder} was saved without texts. Give the corpus that it was built of."
        )
    numbers = [place if row.row is None else row.row for place, row in enumerate(rows)]
    ids = ["" if row.id is None else row.id for row in rows]
    return Corpus(texts, numbers, ids if any(row.id is not None for row in rows) else None)


class _FoundText(NamedTuple):
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


def _encode_texts(
    pipe: SentenceBert,
    texts: Sequence[str],
    vectors: ArrayLike | TextVectors | None,
    progress: bool,
) -> numpy.ndarray:
    """Return the given vectors of texts, or new ones, float32 (n, width).

    RAISES (ValueError): see _check_order.
    """
    if vectors is None:
        return pipe.encode(texts, progress=progress)
    rows = checked(vectors.rows if isinstance(vectors, TextVectors) else vectors, "vectors")
    if len(rows) != len(texts):
        raise ValueError(
            f"Given {len(texts)} texts for {len(rows)} vectors: expected one for each."
        )
    if not isinstance(vectors, TextVectors):
        _check_order(pipe, texts, rows)
    return rows


def _check_order(pipe: SentenceBert, texts: Sequence[str], vectors: numpy.ndarray) -> None:
    """Encode a few of the texts, and raise ValueError if the given vectors seem to be of others.

    Of all given vectors its own must be the most similar to the new vector of a text, but for
    rounding and a prompt.
    """
    places = numpy.unique(numpy.linspace(0, len(texts) - 1, _COMPARED).round().astype("int64"))
    new = pipe.encode([texts[place] for place in places])
    if new.shape[1] > vectors.shape[1]:
        # They are truncated
        new = new[:, : vectors.shape[1]]
    scores, best = nearest(new, vectors, k=1)
    own = cosine(new, vectors[places])
    is_other = own < scores[:, 0] - _LESS_SIMILAR
    if is_other.any():
        first = int(is_other.argmax())
        place = int(places[first])
        raise ValueError(
            f"Vector {place} is not of the text {short_repr(texts[place])}: its cosine to a new "
            "one is "
            f"{own[first]:.2f}, and that of vector {best[first, 0]} is {scores[first, 0]:.2f}. "
            "Give vectors by this "
            "encoder, in the order of the texts."
        )


def _encode_queries(
    pipe: SentenceBert, queries: Sequence[str], prompt: str | None, *, progress: bool
) -> numpy.ndarray:
    """Return the vectors of queries, float32 (n, width).

    RAISES (ValueError): if one has no text.
    """
    vectors = pipe.encode(queries, prompt_name=prompt, progress=progress)
    empty = numpy.flatnonzero(~vectors.any(axis=1))
    if len(empty):
        first = int(empty[0])
        raise ValueError(
            Errors.SEARCH_EMPTY_QUERY.format(
                query=f"query number {first + 1}, {queries[first][:50]!r}"
            )
        )
    return vectors


def _open_index(
    pipe: SentenceBert,
    corpus: Path,
    folder: Path,
    read: Corpus,
    *,
    kind: BuiltKind | None = None,
    vectors: ArrayLike | TextVectors | None = None,
    progress: bool = False,
) -> VectorIndex:
    """Return the index of a file of texts: the one in the folder, or a new one that is saved there."""
    if not (folder / MANIFEST).exists():
        rows = None if vectors is None else _encode_texts(pipe, read.texts, vectors, progress)

        def blocks() -> Iterator[numpy.ndarray]:
            # Until they are in the index, too
            with progress_bar(
                len(read.texts),
                shown=progress,
                unit="texts",
            ) as bar:
                for part in slices(len(read.texts), _WINDOW):
                    yield pipe.encode(read.texts[part]) if rows is None else rows[part]
                    bar.update(part.stop - part.start)

        index = VectorIndex.build(blocks(), kind=kind or "hnsw", encoder=identify(pipe))
        ids: Iterable[str | int | None] = read.ids or repeat(None)
        index.rows = [IndexRow(*row) for row in zip(read.texts, ids, read.rows, strict=False)]
        with ticking("Saving", shown=progress):
            index.save(folder)
        return index
    index = VectorIndex.load(folder, encoder=identify(pipe))
    if kind is not None and index.kind != kind:
        raise ValueError(
            f"The index in {folder} is of the kind {index.kind}, not {kind}. Delete it, or omit "
            "--kind."
        )
    theirs = _corpus_of(index, folder)
    if theirs.texts != read.texts or (theirs.ids and read.ids and theirs.ids != read.ids):
        raise ValueError(
            f"The index in {folder} was built of other texts than those of {corpus}. Delete it "
            "first."
        )
    return index


@validated
def search_texts(
    pipe: SentenceBert,
    corpus: Path | str,
    queries: Sequence[str],
    *,
    k: Positive = 10,
    index: Path | str | None = None,
    kind: BuiltKind | None = None,
    column: str = TEXT,
    header: bool = True,
    query_prompt: str | None = None,
    read: Corpus | None = None,
    vectors: ArrayLike | TextVectors | None = None,
    progress: bool = False,
) -> list[list[_FoundText]]:
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
    RETURNS (list of lists of _FoundText): the best first.
    RAISES (ValueError): if a file cannot be read or holds nothing, a query has no text, or the
        index does not fit; (ImportError): if FAISS is needed and not installed.
    """
    corpus = Path(corpus)
    if corpus.is_dir() or index is not None:
        import_faiss()
    encoded, opened = _encode_queries(pipe, queries, query_prompt, progress=progress), None
    if corpus.is_dir():
        opened = VectorIndex.load(corpus, encoder=identify(pipe))
        texts = _corpus_of(opened, corpus)
    else:
        texts = read or read_corpus(corpus, column, header=header, progress=progress)
        if index is not None:
            opened = _open_index(
                pipe, corpus, Path(index), texts, kind=kind, vectors=vectors, progress=progress
            )
    rows = _encode_texts(pipe, texts.texts, vectors, progress) if opened is None else None
    with ticking("Searching", shown=progress):
        k = min(k, len(texts.texts))
        found = (
            nearest(encoded, cast(numpy.ndarray, rows), k=k)
            if opened is None
            else opened.search(encoded, k=k)
        )
    ids: Sequence[str | int | None] = texts.ids or [None] * len(texts.texts)
    return [
        [
            _FoundText(score, texts.rows[i], texts.texts[i], ids[i])
            for score, i in zip(*best, strict=True)
        ]
        for best in zip(*(part.tolist() for part in found), strict=True)
    ]


@validated
def mine_texts(
    pipe: SentenceBert,
    corpus: Path | str,
    *,
    k: Positive | None = 100,
    min_score: Cosine = -1.0,
    column: str = TEXT,
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
    texts, numbers = read[:2]
    if len(texts) < 2:
        raise ValueError(f"{corpus} holds one text: expected two or more, to compare them.")
    rows = _encode_texts(pipe, texts, vectors, progress)
    if k is None:
        scores, pairs = pairs_above(rows, min_score, progress=progress)
    else:
        n_pairs = len(texts) * (len(texts) - 1) // 2
        scores, pairs = most_similar_pairs(rows, k=min(k, n_pairs), progress=progress)
    found = zip(scores.tolist(), pairs.tolist(), strict=True)
    return [
        (score, numbers[i], numbers[j], texts[i], texts[j])
        for score, (i, j) in found
        if score >= least(min_score)
    ]


@validated
def group_texts(
    pipe: SentenceBert,
    corpus: Path | str,
    *,
    min_score: Cosine,
    column: str = TEXT,
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
    rows = _encode_texts(pipe, read.texts, vectors, progress)
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
    column: str = TEXT,
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
    texts, numbers = (read or read_corpus(corpus, column, header=header, progress=progress))[:2]
    if method == "hierarchical" and len(texts) > _MAX_HIERARCHICAL:
        raise ValueError(
            f"Cannot cluster {len(texts)} texts hierarchically: their distances are in memory, so "
            "at most "
            f'{_MAX_HIERARCHICAL} are expected. Use the method "communities" or "kmeans".'
        )
    rows = _encode_texts(pipe, texts, vectors, progress)
    with ticking("Clustering", shown=progress):
        labels = _METHODS[method][0](rows, **options)
    return list(zip(labels.tolist(), numbers, texts, strict=True))


def check_method(method: str, options: Collection[str]) -> None:
    """Check a method of clustering and its options.

    RAISES (ImportError, ValueError): see cluster_texts.
    """
    check("method", method, Literal["communities", "hierarchical", "kmeans"])
    known = _METHODS[method][1]
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


_METHODS: dict[str, tuple[Callable[..., numpy.ndarray], tuple[str, ...]]] = {
    "communities": (_label_communities, ("threshold", "min_size")),
    "hierarchical": (hierarchical_clusters, ("n_clusters", "threshold", "linkage")),
    "kmeans": (kmeans_clusters, ("n_clusters", "seed", "n_init")),
}


def search_folder(
    pipe: SentenceBert,
    folder: Path | str,
    queries: Sequence[str],
    *,
    k: Positive = 10,
    vectors: str | None = None,
    query_prompt: str | None = None,
    progress: bool = False,
) -> list[list[_FoundText]]:
    """Find the stored vectors that are most similar to each query.

    folder (Path or str): vectors that encode_dataset wrote, all of which are read; or an index of
        such, whose best candidates are scored by their vectors.
    vectors (str): the folder of the vectors of an index, if they were moved.
    For the other arguments see search_texts.
    RETURNS (list of lists of _FoundText): the best first.
    RAISES (ValueError): if a query has no text, or vectors are of another encoder or index.
    """
    encoder, folder = identify(pipe), Path(folder)
    index = None if (folder / JOB).is_file() else VectorIndex.load(folder, encoder=encoder)
    stored = PartVectors(vectors or (index and index.folder) or str(folder))
    check_encoder(EncoderIdentity.of(stored), encoder, stored.name)
    encoded, k = (
        _encode_queries(pipe, queries, query_prompt, progress=progress),
        min(k, len(stored)),
    )
    if index is None:
        scores, rows = nearest_stored(encoded, stored, k=k, progress=progress)
    else:
        with ticking("Searching", shown=progress):
            scores, rows = index.search(encoded, k=k, vectors=stored)
    hits = (
        zip(own.tolist(), stored.where(found), strict=True)
        for own, found in zip(scores, rows, strict=True)
    )
    return [
        [_FoundText(score, row, text, row_id, file) for score, (file, row, row_id, text) in own]
        for own in hits
    ]
