"""`python -m spacy sbert mine`: the most similar pairs in a file of texts."""

from functools import partial
from typing import Annotated

from typer import Option
from wasabi import msg

from .group import app
from .on_texts import Corpus, How, Table, check_table, run, write
from .options import PipelineOrEncoder, Vectors, takes_options


@app.command("mine")
@takes_options
def mine_cli(
    pipeline: PipelineOrEncoder,
    corpus: Corpus,
    output: Table,
    k: Annotated[int, Option("--k", "-k", help="The number of pairs to write, or 0 for all.", min=0)] = 100,
    min_score: Annotated[float, Option("--min-score", help="The least cosine similarity of a pair.")] = -1.0,
    vectors: Vectors = None,
    *,
    how: How,
) -> None:
    """Write the most similar pairs of texts.

    They are paraphrases and duplicates, the best first. -k 0 --min-score 0.8 writes all from a score on.
    """
    check_table(output, overwrite=how.overwrite)

    from ..search.texts import mine_texts

    rows = run(partial(mine_texts, k=k or None, min_score=min_score), pipeline, corpus, how, vectors)
    write(output, ("score", "first_row", "second_row", "first", "second"), rows)
    if len(rows) == k:
        msg.info(f"There may be more pairs: these are the {k} best, as many as -k allows")
