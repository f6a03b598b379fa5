"""`python -m spacy sbert mine`: the most similar pairs in a file of texts, or groups of such, as of duplicates."""

from functools import partial
from typing import Annotated

from typer import Option
from wasabi import msg

from ._util import app, check_columns, fail
from .corpus_options import Corpus, Table, check_table, run, with_ids, write
from .options import Code, Column, Gpu, Header, IdColumn, Overwrite, Pipe, Pipeline, Quiet, Vectors


@app.command("mine")
def _mine_cli(
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
    pipe: Pipe = None,
    code: Code = None,
    quiet: Quiet = False,
    gpu_id: Gpu = -1,
    column: Column = None,
    id_column: IdColumn = None,
    header: Header = True,
    overwrite: Overwrite = False,
) -> None:
    """Write the most similar pairs of texts.

    They are paraphrases and duplicates, the best first. -k 0 --min-score 0.8 writes all from a score on, and --groups
    --min-score 0.9 one row for each text that has a duplicate, with the number of its group.
    """
    check_table(output, overwrite=overwrite)
    check_columns(corpus, column, header=header)
    if groups and (min_score is None or k is not None):
        fail("--groups needs --min-score, from which two texts are in one group, and takes no -k.")

    from ..search.corpus_search import group_texts, mine_texts

    least = -1.0 if min_score is None else min_score
    k = 100 if k is None else k
    work = partial(group_texts, min_score=least) if groups else partial(mine_texts, k=k or None, min_score=least)
    rows, _, read = run(
        work,
        pipeline,
        corpus,
        pipe=pipe,
        code=code,
        quiet=quiet,
        gpu_id=gpu_id,
        column=column,
        id_column=id_column,
        header=header,
        vectors=vectors,
    )
    ids: tuple[str, ...] = () if id_column is None else ("id",) if groups else ("first_id", "second_id")
    if groups:
        write(output, ("group", "row", *ids, "text"), with_ids(rows, read, 1))
        alone = len(read.texts) - len(rows)
        msg.info(f"{len({row[0] for row in rows})} groups of {len(rows)} texts; {alone} are in none")
        return
    write(output, ("score", "first_row", "second_row", *ids, "first", "second"), with_ids(rows, read, 1, 2))
    if len(rows) == k:
        msg.info(f"There may be more pairs: these are the {k} best, as many as -k allows")
