"""`python -m spacy sbert mine-negatives`: hard negatives for pairs of texts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from ..files.tables import check_table_name
from ._corpus import encoder_for, read_with_vectors, write_rows
from ._util import check_new, command, exit_on_error, named_output
from .examples import reading_of
from .options import (
    TEXTS,
    ColumnOptions,
    LoadingOnGpu,
    Overwrite,
    Pipeline,
    TableLayout,
    TextColumn,
    not_empty,
    without_none,
)


@dataclass
class _Mining:
    """The options of mine_hard_negatives that have its names."""

    num_negatives: Annotated[int, Option(help="How many for each pair.", min=1)] = 3
    range_min: Annotated[int, Option(help="How many of the nearest texts to skip.", min=0)] = 0
    range_max: Annotated[
        int | None, Option(help="The last rank of the nearest texts that counts.", min=1)
    ] = None
    max_score: Annotated[float | None, Option(help="The highest score of a negative.")] = None
    min_score: Annotated[float | None, Option(help="The lowest score of a negative.")] = None
    absolute_margin: Annotated[
        float | None, Option(help="How far it must be below the positive's.", min=0)
    ] = None
    relative_margin: Annotated[
        float | None, Option(help="The same, as a fraction of the positive's.", min=0, max=1)
    ] = None


@command("mine-negatives")
def _mine_negatives_cli(
    pipeline: Pipeline,
    pairs_path: Annotated[
        Path, Argument(help="The table of anchors and positives.", exists=True, dir_okay=False)
    ],
    output: Annotated[
        Path, Argument(help="The .tsv or .jsonl file to write.", parser=named_output)
    ],
    loading: LoadingOnGpu,
    mining: _Mining,
    corpus: Annotated[Path | None, Option(help=TEXTS, exists=True, dir_okay=False)] = None,
    column: TextColumn = None,
    members: Annotated[
        str | None, Option("--members", "-m", help="The columns of the pairs: anchor,positive.")
    ] = None,
    reranker: Annotated[
        str | None, Option(help="A reranker that scores the candidates.", callback=not_empty)
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Find hard negatives for pairs: texts that are similar to the anchor, and wrong.

    They are searched among the positives of all pairs, and the texts of --corpus. The file that is
    written is one for training, with a row for each pair: anchor, positive, negative_1, and so on,
    and the scores of the positive and the negatives.
    """
    check_new(output, pairs_path, corpus, overwrite=overwrite)
    with exit_on_error(f"Cannot write {output}"):
        check_table_name(output)

    from ..bulk.loading import load_reranker
    from ..reranker import find_reranker
    from ..search.hard_negatives import mine_hard_negatives

    options = without_none(**vars(mining))
    with exit_on_error(f"Cannot read {pairs_path}"):
        pairs = _read_pairs(pairs_path, members, shown=loading.shown)
    if corpus is not None:
        columns = ColumnOptions(column)
        columns.check(corpus)
        texts, _ = read_with_vectors(corpus, columns, None, shown=loading.shown)
        options["corpus"] = texts.texts
    nlp = loading.load(pipeline)
    if reranker is not None:
        with exit_on_error(f"Cannot load {reranker}"):
            options["cross_encoder"] = find_reranker(load_reranker(reranker))
    with encoder_for(pairs_path, nlp, loading.pipe) as encoder:
        mined = mine_hard_negatives(encoder, pairs, progress=loading.shown, **options)
    names = [f"negative_{number + 1}" for number in range(mining.num_negatives)]
    rows = [
        (pair.anchor, pair.positive, *pair.negatives, list(pair.scores))
        for pair in mined
        if len(pair.negatives) == len(names)
    ]
    write_rows(output, ["anchor", "positive", *names, "scores"], rows)
    if len(rows) < len(mined):
        msg.warn(
            f"Left out {len(mined) - len(rows)} pairs with fewer negatives",
            "Wider ranks or scores, a smaller margin or more texts give more.",
        )


def _read_pairs(path: Path, members: str | None, *, shown: bool) -> list[tuple[str, str]]:
    """Return the pairs of a table; if it has scores, those with 1, the highest of the scale."""
    from ..readers import PairCorpus

    reading = reading_of(path, TableLayout(members=members).settings(), shown=shown)
    pairs = []
    for row in PairCorpus(path, **reading).rows():
        if len(row.members) == 2 and row.label is None and row.score in (None, 1):
            pairs.append(row.members)
    return pairs
