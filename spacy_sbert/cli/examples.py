"""`python -m spacy sbert convert` and `evaluate`: files of examples, to .spacy or to scores."""

import logging
from collections.abc import Collection, Mapping
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import srsly
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.util import logger
from typer import Argument, Option
from wasabi import msg

from ..files.atomic import write_text
from ..files.tables import column_names
from ..files.text_lines import format_suffix
from ..progress import ticking
from ._util import check_new, command, exit_on_error, fail, named_output
from .options import (
    AUTO_FORMAT,
    Code,
    Lang,
    Layout,
    Limit,
    LoadingOnGpu,
    Output,
    Overwrite,
    Pipeline,
    Quiet,
    without_none,
)

if TYPE_CHECKING:
    from ..readers.infer_schema import OwnTable

_GOLDS = ("score", "label")
_LABELS = {
    "sts_spearman": "Spearman",
    "sts_pearson": "Pearson",
    "pair_ap": "Average precision",
    "pair_acc": "Accuracy of the best threshold",
    "pair_acc_threshold": "Threshold of that accuracy, not x 100",
    "pair_f1": "F1 of the best threshold",
    "pair_f1_threshold": "Threshold of that F1, not x 100",
    "pair_precision": "Precision at that F1",
    "pair_recall": "Recall at that F1",
    "pair_mcc": "Matthews correlation at that F1",
    "nli_acc": "Accuracy of labels",
    "triplet_acc": "Accuracy of triplets",
    "knn_acc": "Accuracy of the nearest text's label",
}


@command("convert")
def _convert_cli(
    input_path: Annotated[
        Path, Argument(help="The file of examples, see --format.", exists=True, dir_okay=False)
    ],
    output_path: Annotated[Path, Argument(help="The .spacy file to write.", parser=named_output)],
    layout: Layout,
    code: Code = None,
    lang: Lang = "en",
    expect: Annotated[
        int | None, Option("--expect", "-e", help="How many examples it must have.")
    ] = None,
    limit: Limit = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Convert pairs, triplets or texts to .spacy.

    The reader spacy-sbert.PairCorpus.v1 reads the file.
    """
    from ..readers import convert

    import_code(code)
    check_new(output_path, input_path, overwrite=overwrite)
    # The reader logs what it skipped
    logger.setLevel(logging.INFO)
    with exit_on_error(f"Cannot convert {input_path}"):
        given = layout.settings()
        if layout.members and not layout.score and not layout.label:
            # Columns of texts that are named alone need no gold
            reading = given
            _name_unread_columns(input_path, given)
        else:
            reading = reading_of(input_path, given, shown=not quiet)
        _check_range(input_path, given, reading)
        _warn_of_odd_rows(input_path, reading, limit)
        count = convert(
            input_path,
            output_path,
            lang=lang,
            expect=expect,
            limit=limit,
            progress=not quiet,
            **reading,
        )
    n_steps = ceil(count / 16)
    msg.good(f"Wrote {count} pairs to {output_path} (one epoch in batches of 16: {n_steps} steps)")


def _name_unread_columns(path: Path, reading: Mapping[str, Any]) -> None:
    """Print which columns are read, and which are not."""
    members = reading["members"]
    unread = [name for name in column_names(path, header=reading["header"]) if name not in members]
    if unread:
        msg.info(f"Columns read: {', '.join(members)}; not read: {', '.join(unread)}")


def _check_range(path: Path, given: Mapping[str, Any], reading: dict[str, Any]) -> None:
    """Raise ValueError if scores would be scaled by their range in this file.

    Other files of the data set may have a wider one.
    """
    edges = ("min_score", "max_score")
    low = reading.get("min_score", 0.0)
    high = reading.get("max_score", 1.0)
    if (low, high) != (0.0, 1.0) and not any(edge in given for edge in edges):
        raise ValueError(
            f"The scores of {path} (column '{reading['score']}') are in the range {low:g} to "
            f"{high:g}. Give the range of the whole data set, from which 0 to 1 is made: "
            f"--min-score {low:g} --max-score {high:g}."
        )
    for edge in edges:
        if edge not in given:
            reading.pop(edge, None)


def _warn_of_odd_rows(path: Path, reading: Mapping[str, Any], limit: int = 0) -> None:
    """Warn of signs that the rows of a file, but for .spacy, are not what they should be."""
    from ..readers.corpora import PairCorpus
    from ..readers.table_checks import scan_rows

    for finding in scan_rows(PairCorpus(path, limit=limit, **reading).rows()).findings(str(path)):
        if not finding.is_rare:
            msg.warn(finding.message)


@command("evaluate")
def _evaluate_cli(
    pipeline: Pipeline,
    data_path: Annotated[Path, Argument(help="The file of examples, see --format.", exists=True)],
    layout: Layout,
    loading: LoadingOnGpu,
    output: Output = None,
    overwrite: Overwrite = False,
) -> None:
    """Score a pipeline on pairs, triplets or texts with labels.

    On the standard tasks of a folder of data sets, see `benchmark`; for results side by side, see
    `compare`.
    """
    if data_path.is_dir():
        fail(
            f"{data_path} is a folder: give a file of examples, or see 'python -m spacy sbert "
            "benchmark'."
        )
    given = layout.settings()
    check_new(output, data_path, overwrite=overwrite)
    nlp = loading.load(pipeline, answering=True, also_scores=True)

    from ..evaluation.scoring import evaluate_with_reasons

    with exit_on_error(f"Cannot evaluate on {data_path}"):
        scored_as = nlp.config.get("corpora", {}).get("dev")
        reading = reading_of(data_path, given, scored_as, shown=loading.shown)
        _check_gold(data_path, reading)
        _warn_of_odd_rows(data_path, reading)
        scores, reasons = evaluate_with_reasons(nlp, data_path, progress=loading.shown, **reading)
        measured = without_none(**scores)
        count = measured.pop("pairs")
        if not measured:
            raise ValueError(
                f"Nothing can be measured on {data_path}: {'; '.join(reasons)}. Give another file."
            )
    _show_scores(nlp, count, measured)
    if reasons and measured.keys() <= _LABELS.keys():
        msg.warn(f"Other scores are not defined: {'; '.join(reasons)}")
    if output is not None:
        with exit_on_error(f"Cannot write {output}"):
            write_text(output, srsly.json_dumps(scores, indent=2))
        msg.good(f"Saved the scores to {output}")


def _show_scores(nlp: Language, count: int, measured: Mapping[str, Any]) -> None:
    """Print a table of scores, and of how many examples they are."""
    from ..training.gold import shown_score

    rows = [("Examples", str(count))]
    rows += [(_LABELS.get(key, key), shown_score(key, score)) for key, score in measured.items()]
    # Longer labels would push their scores out of the column
    width = max(len(label) for label, _ in rows)
    msg.table(rows, title=_title(nlp, measured), max_col=width)


def _title(nlp: Language, measured: Collection[str]) -> str:
    """Return the title of a table of scores: how the texts were compared."""
    factories = {nlp.get_pipe_meta(name).factory for name in nlp.pipe_names}
    if "sbert_reranker" in factories and not factories & {"sbert", "sbert_meta"}:
        return "Scores x 100 of the cross-encoder"
    title = "Scores x 100"
    if any(key.startswith(("sts_", "pair_", "knn_")) for key in measured):
        title += ", vectors compared by cosine"
    if "triplet_acc" in measured:
        title += ", triplets by Euclidean distance"
    return title


def _check_gold(path: Path, reading: Mapping[str, Any]) -> None:
    """End the command if a table of pairs has neither scores nor labels."""
    members = reading.get("members", ())
    has_gold = any(gold in reading for gold in _GOLDS)
    if reading.get("format") == "table" and len(members) == 2 and not has_gold:
        fail(
            f"{path} has no gold beside ({', '.join(members)}): name its column by --score or "
            "--label."
        )


def reading_of(
    path: Path,
    layout: Mapping[str, Any],
    scored_as: Mapping[str, Any] | None = None,
    *,
    shown: bool,
) -> dict[str, Any]:
    """Return how a file is read, and print in one line what was chosen.

    A table is read by the columns that the pipeline was scored by in training if it has them, else
    by their names; its header, range of scores and missing labels are its own. Other layouts are
    read as the options say.

    layout (Mapping): the settings of a Layout. scored_as (Mapping): the reader in the pipeline's
        config, if any.
    RETURNS (dict): settings of PairCorpus. RAISES (ValueError): as find_table.
    """
    from ..readers.formats import TABLE, is_own_table
    from ..readers.infer_schema import find_table

    known = dict(layout)
    format = known.pop("format", AUTO_FORMAT)
    golds = [known[gold] for gold in _GOLDS if gold in known]
    named = [*known.get("members", ()), *golds]
    if not is_own_table(path, format, named, header=known["header"]):
        if format == AUTO_FORMAT and format_suffix(path) in (".csv", ".tsv"):
            msg.info(
                "Layout found: the STS benchmark's, two texts and a score from 0 to 5 in seven "
                "columns"
            )
        return dict(layout)
    how = "Columns found"
    if known == {"header": True} and scored_as is not None:
        trained = _columns_of(path, scored_as)
        if trained:
            how = "Columns as in its training"
            known = trained
    with ticking("Finding the columns", shown=shown):
        found = find_table(path, **known)
    msg.info(f"{how}: {_found_columns(found)}")
    return {"format": TABLE, **found.reading()}


def _found_columns(found: "OwnTable") -> str:
    """Return which columns of a table are read and how, in one line."""
    columns = found.columns
    line = ", ".join(columns.names)
    if columns.score is not None:
        line += f", scores from {columns.min_score:g} to {columns.max_score:g}"
    if found.unused:
        line += f"; not used: {', '.join(found.unused)}"
    if found.skipped:
        line += f"; {found.skipped_rows()}"
    return line


def _columns_of(path: Path, scored_as: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named columns of a reader of tables, as find_table takes them.

    There are none if this table has others.
    """
    members = scored_as.get("members")
    if scored_as.get("format") != "table" or not members or not scored_as.get("header", True):
        return {}
    golds = {name: scored_as[name] for name in _GOLDS if scored_as.get(name)}
    wanted = {*members, *golds.values()}
    if not wanted <= set(column_names(path, header=True)):
        return {}
    return {"members": list(members), "header": True, **golds}
