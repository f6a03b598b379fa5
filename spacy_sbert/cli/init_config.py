"""`python -m spacy sbert init-config`: from two tables to a config that trains on them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option
from wasabi import msg

from .ending import check_new, fail, or_fail
from .errors import Errors
from .group import app
from .options import (
    MAX_SCORE,
    MIN_SCORE,
    Header,
    Label,
    Lang,
    Members,
    Overwrite,
    Score,
    given,
    listed,
    takes_options,
)

SAID = {  # of a kind of table: what it has, and what is learned of it
    "graded": ("pairs with scores", "the cosine of a pair is to be its score"),
    "binary": ("pairs with scores of 0 and 1", "pairs scored 1 are to be near, pairs scored 0 apart"),
    "labelled": ("pairs with labels", "a head is to tell the label of a pair"),
    "positives": ("pairs", "of all second texts in a batch the own one is to be the nearest"),
    "triplets": ("triplets", "the second text is to be nearer to the first than the third, and than others'"),
}


@dataclass(frozen=True)
class Told:
    """What is known of the tables; None for what is to be found out."""

    members: Members = None
    score: Score = None
    label: Label = None
    min_score: Annotated[float | None, MIN_SCORE] = None
    max_score: Annotated[float | None, MAX_SCORE] = None
    header: Header = True

    def known(self) -> dict[str, Any]:
        """As find_table takes them."""
        return given(self) | {"members": None if self.members is None else listed(self.members)}


@app.command("init-config")
@takes_options
def init_config_cli(
    train_path: Annotated[Path, Argument(help="The table to learn from: .csv, .tsv, .jsonl or .parquet.", exists=True)],
    dev_path: Annotated[Path, Argument(help="The table to score by, with the same columns.", exists=True)],
    output: Annotated[Path | None, Option("--output", "-o", help="The config to write.", dir_okay=False)] = None,
    out: Annotated[Path | None, Option("--out", hidden=True, dir_okay=False)] = None,  # as it was called before
    encoder: Annotated[
        str | None, Option("--encoder", help="The encoder to begin with: a folder or a name; by default MiniLM.")
    ] = None,
    lang: Lang = "en",
    epochs: Annotated[
        int | None,
        Option("--epochs", help="The number of epochs; by default 4, and 1 of 20,000 examples or more.", min=1),
    ] = None,
    overwrite: Overwrite = False,
    *,
    told: Told,
) -> None:
    """Write a config that trains on tables of your own.

    Both tables are read whole, so that what is wrong in them is said now and not while training; what can be learned
    from them is chosen, and 'spacy sbert train' takes the config.
    """
    from ..files.whole import write_text
    from ..readers.own_table import find_table
    from ..training.own_config import own_config

    out = out if output is None else output
    if out is None:
        fail(Errors.NO_OUTPUT)
    check_new(out, overwrite=overwrite)
    with or_fail(f"Cannot make a config for {train_path} and {dev_path}"):
        train = find_table(train_path, **told.known())
        names = {"members": train.columns.members, "score": train.columns.score, "label": train.columns.label}
        ends = {"min_score": train.columns.min_score, "max_score": train.columns.max_score}
        of_train = told.known() | {key: value for key, value in names.items() if value is not None}
        dev = find_table(dev_path, **(of_train | (ends if train.columns.score is not None else {})))
        if train.kind == "positives" and dev.kind not in ("graded", "binary"):
            fail(Errors.INIT_NO_GOLD.format(path=dev_path))
        config = own_config(
            {"path": str(train_path), **train.reading()},
            {"path": str(dev_path), **dev.reading()},
            kind=train.kind,
            count=train.count,
            scored=dev.kind if train.kind == "positives" else None,
            encoder=encoder,
            lang=lang,
            epochs=epochs,
        )
        write_text(out, config.to_str(interpolate=False))
    what, learned = SAID[train.kind]
    gold = train.columns.score or train.columns.label
    columns = ", ".join((*train.columns.members, *([] if gold is None else [gold])))
    msg.good(f"Saved {out}: {train.count} {what} ({columns}), scored on {dev.count}")
    if train.columns.score is not None:
        msg.info(f"Scores are scaled from {train.columns.min_score:g}..{train.columns.max_score:g} to 0..1")
    if train.unused:
        msg.info(f"Columns not used: {', '.join(train.unused)}")
    msg.info(f"Objective: {learned}")
    msg.text(f"Next: python -m spacy sbert train {out} --output training/mine")
