"""`python -m spacy sbert init-config`: from two tables to a config that trains on them."""

from math import ceil, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from thinc.api import Config
from typer import Argument, Option
from wasabi import msg

from ..errors import Warnings
from ..files.atomic import write_text
from ..progress import ticking
from ._util import check_new, command, exit_on_error, fail, named_file
from .options import MOST, Lang, Overwrite, Quiet, TableLayout, not_empty

if TYPE_CHECKING:
    from ..readers.infer_schema import OwnTable
    from ..readers.table_checks import Finding

# Kinds of tables: what the records are, and the objective
_KINDS = {
    "graded": ("pairs with scores", "the cosine of a pair should be its score"),
    "binary": (
        "pairs with scores of 0 and 1",
        "pairs scored 1 should be near, pairs scored 0 apart",
    ),
    "labelled": ("pairs with labels", "a head predicts the label of a pair"),
    "positives": ("pairs", "each text should be closest to its own partner among all in the batch"),
    "triplets": (
        "triplets",
        "the first text should be nearer to the second than to the third, and than to others'",
    ),
    "classes": (
        "texts with labels",
        "texts of one label should be nearer to each other than to those of another; the classes "
        "are fitted on their vectors",
    ),
}


_ENCODER = "The encoder: a folder or a name; by default MiniLM."
_EPOCHS = (
    "By default 4, 1 of 20,000 examples or more, or as many as make 40 steps from a few texts of "
    "each class."
)


@command("init-config")
def _init_config_cli(
    train_path: Annotated[
        Path, Argument(help="The table to learn from: .csv, .tsv, .jsonl or .parquet.", exists=True)
    ],
    dev_path: Annotated[
        Path, Argument(help="The table to score by, with the same columns.", exists=True)
    ],
    output: Annotated[
        Path, Option("--output", "-o", help="The config to write.", parser=named_file)
    ],
    layout: TableLayout,
    encoder: Annotated[str | None, Option(help=_ENCODER, callback=not_empty)] = None,
    lang: Lang = "en",
    epochs: Annotated[int | None, Option(help=_EPOCHS, min=1, max=MOST)] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write a config that trains on tables of your own.

    Both tables are read whole, so that what is wrong in them shows now and not while training; what
    can be learned from them is chosen, and 'spacy sbert train' takes the config.
    """
    check_new(output, train_path, dev_path, overwrite=overwrite)
    for option, column in (("score", layout.score), ("label", layout.label)):
        if column == "":
            fail(f"--{option} is empty. Name a column of the tables, or leave it out.")
    if layout.max_score is not None and not isfinite(layout.max_score):
        fail(f"--max-score is {layout.max_score}: expected a finite number.")
    with exit_on_error(f"Cannot make a config for {train_path} and {dev_path}"):
        train, dev = _tables(train_path, dev_path, layout.settings(), shown=not quiet)
        with ticking("Writing", shown=not quiet):
            from ..training.quickstart_config import quickstart_config

            config = quickstart_config(
                {"path": str(train_path), **train.reading()},
                {"path": str(dev_path), **dev.reading()},
                kind=train.kind,
                count=train.count,
                scored=dev.kind if train.kind == "positives" else None,
                encoder=encoder,
                lang=lang,
                epochs=epochs,
            )
            text = config.to_str(interpolate=False)
            # spaCy reads this escape as `$`, whether it interpolates or not
            write_text(output, text.replace("$$", r"\u0024"))
    _summarize(output, config, train, dev)


def _tables(
    train_path: Path, dev_path: Path, known: dict[str, Any], *, shown: bool
) -> "tuple[OwnTable, OwnTable]":
    """Read both tables; the second is read by the columns and the range of the first."""
    from ..readers.infer_schema import check_unread_texts, find_table

    with ticking(f"Reading {train_path.name}", shown=shown):
        train = find_table(train_path, **known)
    with ticking(f"Reading {dev_path.name}", shown=shown):
        dev = find_table(dev_path, **known | train.reading())
    if "members" not in known:
        check_unread_texts(dev_path, dev)
    _check_gold(train_path, dev_path, train, dev)
    with ticking("Comparing the rows", shown=shown):
        findings = _odd_rows(train_path, dev_path, train, dev)
    for finding in findings:
        if finding.is_rare:
            msg.info(finding.message.partition("] ")[2])
        else:
            msg.warn(finding.message)
    return train, dev


def _odd_rows(
    train_path: Path, dev_path: Path, train: "OwnTable", dev: "OwnTable"
) -> "list[Finding]":
    """Return what is odd about the rows of both tables."""
    from ..readers.table_checks import find_leak, scan_rows

    scanned = scan_rows(train.columns.rows(train_path))
    findings = scanned.findings(str(train_path))
    if dev_path.resolve() != train_path.resolve():
        findings += scan_rows(dev.columns.rows(dev_path)).findings(str(dev_path))
    findings += find_leak(scanned, dev.columns.rows(dev_path), str(dev_path), str(train_path))
    return findings


def _check_gold(train_path: Path, dev_path: Path, train: "OwnTable", dev: "OwnTable") -> None:
    """Check that something can be learned from the first table, and measured on the second."""
    if train.kind == "positives" and dev.kind not in ("graded", "binary"):
        fail(
            f"{dev_path} has no gold to score by. Give a dev table with a column 'score' of 0 and "
            "1."
        )
    for what, path, table in (("learned from", train_path, train), ("measured on", dev_path, dev)):
        if reason := table.undefined():
            fail(
                f"Nothing can be {what} {path}: {reason}. Give a table with several values, or "
                "without this column."
            )
    if train.kind == "binary" and dev.kind != "binary":
        fail(
            f"{train_path} has only scores of 0 and 1, {dev_path} has others. Give a dev table of "
            "0 and 1."
        )
    if train.kind in ("labelled", "classes"):
        _check_labels(train_path, dev_path, train, dev)


def _check_labels(train_path: Path, dev_path: Path, train: "OwnTable", dev: "OwnTable") -> None:
    """Warn of labels that only the second table has, and end the command if it has no others."""
    from ..training.gold import listed_labels

    known = train.labels()
    labels = dev.labels()
    unknown = [label for label in labels if label not in known]
    if not known or not unknown:
        return
    if len(unknown) == len(labels):
        fail(
            f"{dev_path} has the labels {listed_labels(unknown)}, {train_path} has "
            f"{listed_labels(known)}."
        )
    msg.warn(
        Warnings.UNKNOWN_INIT_LABELS.format(
            count=sum(labels[label] for label in unknown),
            train=train_path,
            dev=dev_path,
            given=listed_labels(unknown),
        )
    )


def _summarize(out: Path, config: Config, train: "OwnTable", dev: "OwnTable") -> None:
    """Print what was found, what is learned from it and for how long, and the next command."""
    records, objective = _KINDS[train.kind]
    columns = train.columns
    names = list(columns.members)
    if gold := columns.score or columns.label:
        names.append(gold)
    msg.good(f"Saved {out}: {train.count} {records} ({', '.join(names)}), scored on {dev.count}")
    if (columns.min_score, columns.max_score) != (0.0, 1.0):
        msg.info(f"Scores are scaled from {columns.min_score:g}..{columns.max_score:g} to 0..1")
    for part, table in (("train", train), ("dev", dev)):
        if table.skipped:
            msg.info(f"Of {part}, {table.skipped_rows()}")
    if train.unused:
        msg.info(f"Columns not used: {', '.join(train.unused)}")
    msg.info(f"Objective: {objective}")
    msg.info(f"Encoder: {config['components']['sbert']['model']['name']}, in the pipe itself")
    settings = config["training"]
    measure = next(name for name, weight in settings["score_weights"].items() if weight)
    every = settings["eval_frequency"]
    epochs = settings["max_epochs"]
    steps = epochs * ceil(train.count / settings["batcher"]["size"])
    unit = "epochs" if epochs > 1 else "epoch"
    msg.info(f"At most {epochs} {unit}, {steps} steps; {measure} every {every}")
    msg.text(f"Next: python -m spacy sbert train {out} --output training/mine")
    msg.text(
        f"To be able to go on after an interruption: --checkpoint-every {every}, and then --resume"
    )
