"""How commands read a file of examples: as options say, or a table by what is in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wasabi import msg

from .options import AUTO

_GOLDS = ("score", "label")


def reading_of(
    path: Path, layout: Mapping[str, Any], scored_as: Mapping[str, Any] | None = None, *, shown: bool
) -> dict[str, Any]:
    """Return how a file is read, and print in one line what was chosen.

    A table is read by the columns that the pipeline was scored by in training if it has them, else by their names; its
    header, range of scores and missing labels are its own. Other layouts are read as the options say.

    path (Path): the file. layout (Mapping): the options, see layout_of.
    scored_as (Mapping): the reader in the pipeline's config, if there is one. shown (bool): whether a bar is.
    RETURNS (dict): settings of PairCorpus.
    RAISES (ValueError): for a table whose names do not tell its columns, see find_table; without a header, for one
        whose columns may be others than those in training.
    """
    from ..files.text_lines import format_suffix
    from ..progress import ticking
    from ..readers.formats import TABLE, is_own_table
    from ..readers.infer_schema import find_table

    named = [*layout.get("members", ()), *(layout[gold] for gold in _GOLDS if gold in layout)]
    if not is_own_table(path, layout["format"], named, header=layout["header"]):
        if layout["format"] == AUTO and format_suffix(path) in (".csv", ".tsv"):
            msg.info("Layout found: the STS benchmark's, two texts and a score from 0 to 5 in seven columns")
        return dict(layout)
    known = {name: value for name, value in layout.items() if name != "format"}
    trained = _columns_of(scored_as or {}) if known == {"header": True} else {}
    as_trained = bool(trained) and _has_columns(path, trained)
    with ticking("Finding the columns", shown=shown):
        found = find_table(path, **(trained if as_trained else known))
    columns = found.columns
    scaled = "" if columns.score is None else f", scores from {columns.min_score:g} to {columns.max_score:g}"
    unused = f"; not used: {', '.join(found.unused)}" if found.unused else ""
    skipped = f"; {found.skipped_rows()}" if found.skipped else ""
    how = "Columns as in its training" if as_trained else "Columns found"
    msg.info(f"{how}: {', '.join(columns.names)}{scaled}{unused}{skipped}")
    return {"format": TABLE, **found.reading()}


def _columns_of(scored_as: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a reader of tables, as find_table takes them; none if it reads others."""
    if scored_as.get("format") != "table" or not scored_as.get("members"):
        return {}
    golds = {name: scored_as[name] for name in _GOLDS if scored_as.get(name)}
    return {"members": list(scored_as["members"]), "header": scored_as.get("header", True), **golds}


def _has_columns(path: Path, trained: Mapping[str, Any]) -> bool:
    """Return whether a table has the columns that the pipeline was scored by in training.

    RAISES (ValueError): if these are without names, and by the types of its columns the table has others.
    """
    from ..files.tables import column_names
    from ..readers.infer_schema import find_table

    wanted = {*trained["members"], *(trained[gold] for gold in _GOLDS if gold in trained)}
    has_columns = wanted <= {*column_names(path, header=trained["header"])}
    if trained["header"] or not has_columns:
        return has_columns
    try:
        found = find_table(path, header=False).columns
        is_same = {*found.members} == {*trained["members"]} and {*found.names} == wanted
    except ValueError:
        is_same = False
    if not is_same:
        gold = "".join(f" --{name} {trained[name]}" for name in _GOLDS if name in trained)
        options = f"--no-header --members {','.join(trained['members'])}{gold}"
        raise ValueError(
            f"The pipeline was trained on tables without a header, and {path} has one, or other columns. If "
            f"its columns are the same, give {options}; otherwise name them with --members and --score or "
            "--label."
        )
    return True
