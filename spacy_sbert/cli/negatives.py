"""`python -m spacy sbert mine-negatives`: hard negatives for pairs of texts."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option
from wasabi import msg

from ..files.tables import COLUMN, check_table_name
from ..validation import check
from ._corpus import encoder_for, write_rows
from ._util import check_new, command, exit_on_error, named_output
from .options import (
    TEXTS,
    LoadingOnGpu,
    Overwrite,
    Pipeline,
    SeedOption,
    TableLayout,
    TextColumn,
    not_empty,
    without_none,
)

if TYPE_CHECKING:
    from ..search.hard_negatives import MinedPair

_PAIRS = "The table of pairs, each an anchor and its positive."
_CORPUS = f"{TEXTS[:-1]}; they may be negatives, too."
_MEMBERS = "The columns of the pairs: anchor,positive."
_RERANKER = "A reranker, by name or folder, that scores the candidates."
_FORMAT = "triplet, a row for each negative, or n-tuple, a row for each pair."
_OutputFormat = Literal["triplet", "n-tuple"]


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
    sampling_strategy: Annotated[
        str, Option(help="top for the nearest, random to draw among those that count.")
    ] = "top"
    seed: SeedOption = None


@command("mine-negatives")
def _mine_negatives_cli(
    pipeline: Pipeline,
    pairs_path: Annotated[
        Path, Argument(metavar="PAIRS", help=_PAIRS, exists=True, dir_okay=False)
    ],
    output: Annotated[
        Path, Argument(help="The .tsv or .jsonl file to write.", parser=named_output)
    ],
    loading: LoadingOnGpu,
    mining: _Mining,
    corpus: Annotated[Path | None, Option(help=_CORPUS, exists=True, dir_okay=False)] = None,
    column: TextColumn = None,
    members: Annotated[str | None, Option("--members", "-m", help=_MEMBERS)] = None,
    reranker: Annotated[str | None, Option(help=_RERANKER, callback=not_empty)] = None,
    output_format: Annotated[str, Option(help=_FORMAT)] = "triplet",
    overwrite: Overwrite = False,
) -> None:
    """Find hard negatives for pairs: texts that are similar to the anchor, and wrong.

    They are searched among the positives of all pairs, and the texts of --corpus. The file that is
    written is one for training; its column of scores has those of the positive and the negatives.
    """
    check_new(output, pairs_path, corpus, overwrite=overwrite)
    with exit_on_error(f"Cannot write {output}"):
        check_table_name(output)
        check("--output-format", output_format, _OutputFormat)

    from ..bulk.loading import load_reranker
    from ..reranker import find_reranker
    from ..search.hard_negatives import mine_hard_negatives
    from ..search.texts import read_corpus

    options: dict[str, Any] = without_none(**vars(mining))
    with exit_on_error(f"Cannot read {pairs_path}"):
        pairs = _read_pairs(pairs_path, members)
    if corpus is not None:
        with exit_on_error(f"Cannot read {corpus}"):
            options["corpus"] = read_corpus(corpus, column or COLUMN, progress=loading.shown).texts
    nlp = loading.load(pipeline)
    if reranker is not None:
        with exit_on_error(f"Cannot load {reranker}"):
            options["cross_encoder"] = find_reranker(load_reranker(reranker))
    with encoder_for(pairs_path, nlp, loading.pipe) as encoder:
        mined = mine_hard_negatives(encoder, pairs, progress=loading.shown, **options)
    rows = [pair for pair in mined if len(pair.negatives) == mining.num_negatives]
    n_few = len(mined) - len(rows)
    columns = [f"negative_{number + 1}" for number in range(mining.num_negatives)]
    if output_format == "triplet":
        rows = [triplet for pair in mined for triplet in _triplets(pair)]
        columns = ["negative"]
    table = [(*row[:2], *row.negatives, list(row.scores)) for row in rows]
    write_rows(output, ["anchor", "positive", *columns, "scores"], table)
    if n_few:
        msg.warn(
            f"{n_few} of {len(mined)} pairs have fewer than {mining.num_negatives} negatives",
            "An n-tuple needs all of them. Wider ranks or scores, a smaller margin or more texts "
            "give more.",
        )


def _read_pairs(path: Path, members: str | None) -> list[tuple[str, str]]:
    """Return the pairs of a table; where it has scores of 0 and 1, those of 1."""
    from ..readers.infer_schema import find_table

    table = find_table(path, **TableLayout(members=members).settings())
    if table.kind not in ("positives", "binary"):
        raise ValueError(
            f"Its columns {', '.join(table.columns.names)} are read as {table.kind}. Name those of "
            "the anchors and their positives: --members anchor,positive."
        )
    pairs = []
    for row in table.columns.rows(path):
        if row is not None and row.score != 0:
            anchor, positive = row.members
            pairs.append((anchor, positive))
    return pairs


def _triplets(pair: "MinedPair") -> list["MinedPair"]:
    """Return a pair with each of its negatives alone."""
    positive, *scores = pair.scores
    found = zip(pair.negatives, scores, strict=True)
    return [pair._replace(negatives=(text,), scores=(positive, score)) for text, score in found]
