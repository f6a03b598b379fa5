"""`python -m spacy sbert mine`: the most similar pairs in a file of texts, or groups of such, as of duplicates."""

from functools import partial
from typing import Annotated

from typer import Option
from wasabi import msg

from ._util import app, check_columns, fail
from .corpus_options import Corpus, How, Table, check_table, run, with_ids, write
from .options import Pipeline, Vectors, takes_options

PAIRS = 100


@app.command("mine")
@takes_options
def mine_cli(
    pipeline: Pipeline,
    corpus: Corpus,
    output: Table,
    k: Annotated[
        int | None, Option("--k", "-k", help="The number of pairs to write, by default 100, or 0 for all.", min=0)
    ] = None,
    min_score: Annotated[
        float | None, Option("--min-score", help="The least cosine similarity of a pair.", show_default=False)
    ] = None,
    groups: Annotated[
        bool, Option("--groups", help="Write groups of texts that pairs from --min-score on connect, as of duplicates.")
    ] = False,
    vectors: Vectors = None,
    *,
    how: How,
) -> None:
    """Write the most similar pairs of texts.

    They are paraphrases and duplicates, the best first. -k 0 --min-score 0.8 writes all from a score on, and --groups
    --min-score 0.9 one row for each text that has a duplicate, with the number of its group.
    """
    check_table(output, overwrite=how.overwrite)
    check_columns(corpus, how.column, header=how.header)
    if groups and (min_score is None or k is not None):
        fail(
            "--groups needs --min-score, the cosine similarity from which two texts belong together, and takes "
            "no -k. Give such as --groups --min-score 0.9."
        )

    from ..search.corpus_search import group_texts, mine_texts

    least, with_id = -1.0 if min_score is None else min_score, how.id_column is not None
    if groups:
        found = run(partial(group_texts, min_score=least), pipeline, corpus, how, vectors)
        names: tuple[str, ...] = ("group", "row", *(("id",) if with_id else ()), "text")
        write(output, names, with_ids(found.rows, found.read, 1))
        alone = len(found.read.texts) - len(found.rows)
        msg.info(f"{len({row[0] for row in found.rows})} groups of {len(found.rows)} texts; {alone} are in none")
        return
    k = PAIRS if k is None else k
    found = run(partial(mine_texts, k=k or None, min_score=least), pipeline, corpus, how, vectors)
    names = ("score", "first_row", "second_row", *(("first_id", "second_id") if with_id else ()), "first", "second")
    write(output, names, with_ids(found.rows, found.read, 1, 2))
    if len(found.rows) == k:
        msg.info(f"There may be more pairs: these are the {k} best, as many as -k allows")
