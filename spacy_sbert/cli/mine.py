"""`python -m spacy sbert mine` and `cluster`: similar pairs, groups and clusters of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from spacy.language import Language
from typer import Argument, Option
from wasabi import msg

from ..files.tables import distinct
from ..progress import ticking
from ._corpus import check_corpus_paths, encoder_for, read_with_vectors, write_rows
from ._util import command, exit_on_error, fail, named_output
from .options import (
    ColumnOptions,
    CorpusPath,
    LoadingOnGpu,
    Overwrite,
    Pipeline,
    SeedOption,
    Vectors,
    without_none,
)

if TYPE_CHECKING:
    from ..search.texts import Corpus as Texts

_Table = Annotated[Path, Argument(help="The .tsv or .jsonl file to write.", parser=named_output)]
# How many pairs are written by default
_N_PAIRS = 100
_METHODS = "The method: communities, hierarchical or kmeans."
_THRESHOLD = (
    "The least cosine in communities, by default 0.75; or the largest 1 - cosine in hierarchical "
    "clusters."
)
# The cluster, the row and the text
_Clustered = tuple[int, int, str]


@command("mine")
def _mine_cli(
    pipeline: Pipeline,
    corpus: CorpusPath,
    output: _Table,
    loading: LoadingOnGpu,
    columns: ColumnOptions,
    k: Annotated[
        int | None,
        Option("--k", "-k", help="The pairs to write, 0 for all; by default 100.", min=0),
    ] = None,
    min_score: Annotated[
        float | None, Option(help="The least cosine of a pair.", show_default=False)
    ] = None,
    groups: Annotated[
        bool, Option("--groups", help="Write groups, as of duplicates, that pairs connect.")
    ] = False,
    vectors: Vectors = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the most similar pairs of texts.

    They are paraphrases and duplicates, the best first. -k 0 --min-score 0.8 writes all from a
    score on, and --groups --min-score 0.9 one row for each text that has a duplicate, with the
    number of its group.
    """
    check_corpus_paths(corpus, columns, output, vectors, overwrite=overwrite)
    if groups and (min_score is None or k is not None):
        fail("--groups needs --min-score, from which two texts are in one group, and takes no -k.")

    from ..search.corpus_search import group_texts, mine_texts

    texts, stored = read_with_vectors(corpus, columns, vectors, shown=loading.shown)
    given: dict[str, Any] = {"read": texts, "vectors": stored, "progress": loading.shown}
    given |= without_none(min_score=min_score)
    nlp = loading.load(pipeline)
    if groups:
        with encoder_for(corpus, nlp, loading.pipe) as encoder:
            members = group_texts(encoder, corpus, **given)
        _write_groups(output, members, texts)
        return
    if k is None:
        k = _N_PAIRS
    with encoder_for(corpus, nlp, loading.pipe) as encoder:
        pairs = mine_texts(encoder, corpus, k=k or None, **given)
    _write_pairs(output, pairs, texts)
    if len(pairs) == k:
        msg.info(f"There may be more pairs: these are the {k} best, as many as -k allows")


def _ids_by_row(texts: "Texts") -> dict[int, str | int]:
    """Return the id of each text by its row; none if they were not read."""
    if texts.ids is None:
        return {}
    return dict(zip(texts.rows, texts.ids, strict=True))


def _write_groups(output: Path, members: Sequence[_Clustered], texts: "Texts") -> None:
    """Write a record for each text that is in a group, and print how many there are."""
    ids = _ids_by_row(texts)
    if ids:
        rows = [(group, row, ids[row], text) for group, row, text in members]
        write_rows(output, ("group", "row", "id", "text"), rows)
    else:
        write_rows(output, ("group", "row", "text"), members)
    n_groups = len({group for group, *_ in members})
    n_alone = len(texts.texts) - len(members)
    msg.info(f"{n_groups} groups of {len(members)} texts; {n_alone} are in none")


def _write_pairs(
    output: Path, pairs: Sequence[tuple[float, int, int, str, str]], texts: "Texts"
) -> None:
    """Write a record for each pair."""
    ids = _ids_by_row(texts)
    if not ids:
        write_rows(output, ("score", "first_row", "second_row", "first", "second"), pairs)
        return
    header = ("score", "first_row", "second_row", "first_id", "second_id", "first", "second")
    rows = [(score, i, j, ids[i], ids[j], first, second) for score, i, j, first, second in pairs]
    write_rows(output, header, rows)


@dataclass
class _Clustering:
    """The options of the methods."""

    threshold: Annotated[float | None, Option("--threshold", "-t", help=_THRESHOLD)] = None
    min_size: Annotated[
        int | None, Option(help="The least number of texts in communities, by default 10.")
    ] = None
    n_clusters: Annotated[
        int | None, Option("--n-clusters", "-n", help="For hierarchical and kmeans.")
    ] = None
    linkage: Annotated[
        str | None, Option(help="The linkage of hierarchical: average, complete or single.")
    ] = None
    seed: SeedOption = None
    n_init: Annotated[
        int | None, Option(help="The tries of kmeans, of which the best counts; by default 10.")
    ] = None


@command("cluster")
def _cluster_cli(
    pipeline: Pipeline,
    corpus: CorpusPath,
    output: _Table,
    loading: LoadingOnGpu,
    columns: ColumnOptions,
    clustering: _Clustering,
    method: Annotated[str, Option("--method", "-m", help=_METHODS)] = "communities",
    vectors: Vectors = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the cluster of each text.

    It is a number from 0, or -1 for texts in none, and has a name, the words that tell its texts
    from others. The other columns of a table are kept.
    """
    check_corpus_paths(corpus, columns, output, vectors, overwrite=overwrite)

    from ..search.corpus_search import check_method, cluster_texts

    options = without_none(**vars(clustering))
    with exit_on_error(f"Cannot work on {corpus}"):
        check_method(method, options)
    texts, stored = read_with_vectors(corpus, columns, vectors, shown=loading.shown, others=True)
    nlp = loading.load(pipeline)
    with encoder_for(corpus, nlp, loading.pipe) as encoder:
        rows = cluster_texts(
            encoder,
            corpus,
            method=cast(Any, method),
            read=texts,
            vectors=stored,
            progress=loading.shown,
            **options,
        )
    with ticking("Naming", shown=loading.shown):
        names = _cluster_names(nlp, rows)
    _write_clusters(output, rows, names, texts)
    _report_clusters(rows, n_blank=texts.n_blank)


def _cluster_names(nlp: Language, rows: Sequence[_Clustered]) -> dict[int, str]:
    """Return the name of each cluster: the terms that a map shows.

    An empty one for texts in no cluster.
    """
    from ..search.corpus_search import NO_CLUSTER
    from ..visual.scatter import class_terms, words_of

    clusters = sorted({cluster for cluster, *_ in rows})
    places = {cluster: place for place, cluster in enumerate(clusters)}
    words = (words_of(nlp.make_doc(text)) for *_, text in rows)
    terms = class_terms(words, [places[cluster] for cluster, *_ in rows], len(clusters))
    names = {cluster: ", ".join(own) for cluster, own in zip(clusters, terms, strict=True)}
    if NO_CLUSTER in names:
        names[NO_CLUSTER] = ""
    return names


def _write_clusters(
    output: Path, rows: Sequence[_Clustered], names: dict[int, str], texts: "Texts"
) -> None:
    """Write clusters, with the ids and the other columns of the texts.

    Columns get another name if it is taken.
    """
    columns: dict[str, Sequence[object]] = {
        "cluster": [cluster for cluster, _, _ in rows],
        "name": [names[cluster] for cluster, _, _ in rows],
        "row": [row for _, row, _ in rows],
    }
    if texts.ids is not None:
        columns["id"] = texts.ids
    columns["text"] = [text for _, _, text in rows]
    if texts.others is not None:
        keys = list(dict.fromkeys(chain.from_iterable(texts.others)))
        for key, name in zip(keys, distinct(keys, tuple(columns)), strict=True):
            columns[name] = [record.get(key) for record in texts.others]
    write_rows(output, list(columns), list(zip(*columns.values(), strict=True)))


def _report_clusters(rows: Sequence[_Clustered], *, n_blank: int) -> None:
    """Print how many clusters there are, and how many texts are in none.

    n_blank: how many rows of the file have no text.
    """
    from ..search.corpus_search import NO_CLUSTER

    clusters = [cluster for cluster, *_ in rows]
    n_alone = clusters.count(NO_CLUSTER)
    n_clusters = len(set(clusters) - {NO_CLUSTER})
    msg.info(f"{n_clusters} clusters of {len(rows) - n_alone} texts; {n_alone} are in none")
    if n_blank:
        msg.warn(
            f"Rows without text, which are left out: {n_blank}",
            'The column "row" has the numbers of the others.',
        )
    if 2 * n_alone > len(rows):
        msg.warn(
            "Most texts are in no cluster",
            "A lower --threshold, or a smaller --min-size, takes in more.",
        )
