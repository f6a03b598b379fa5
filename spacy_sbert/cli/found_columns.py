"""How commands read a file of examples: as options say, or a table by what is in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wasabi import msg

from .options import Layout

MISSING = "missing"  # of PairCorpus


def reading_of(
    path: Path, layout: Layout, scored_as: Mapping[str, Any] | None = None, *, shown: bool
) -> dict[str, Any]:
    """Return how a file is read, and print in one line what was chosen.

    A table is read as the pipeline was scored in training if it has these columns, else by what is in it; other layouts
    as the options say.

    path (Path): the file. layout (Layout): the options.
    scored_as (Mapping): the reader in the pipeline's config, if there is one. shown (bool): whether a bar is.
    RETURNS (dict): settings of PairCorpus.
    RAISES (ValueError): for a table whose columns cannot be told apart, see find_table.
    """
    from ..errors.progress import ticking
    from ..files.lines import format_suffix
    from ..files.tables import TABLES, column_names
    from ..readers.layouts import AUTO, TABLE, is_own_table
    from ..readers.own_table import find_table

    if not _has_named_columns(path, layout) and not is_own_table(path, layout.format):
        if layout.format == AUTO and format_suffix(path) in TABLES:
            msg.info("Layout found: the STS benchmark's, two texts and a score from 0 to 5 in seven columns")
        return layout.reading()
    own = {name: value for name, value in (scored_as or {}).items() if name in {*Layout.__dataclass_fields__, MISSING}}
    if layout.known() == Layout().known() and own.get("format") == TABLE and own.get("members"):
        wanted = {*own["members"], *(own[gold] for gold in ("score", "label") if own.get(gold))}
        if wanted <= set(column_names(path, header=own.get("header", True))):
            msg.info(f"Columns as in its training: {', '.join(own['members'])}")
            return own
    with ticking("Finding the columns", shown=shown):
        found = find_table(path, **layout.known())
    columns = found.columns
    scaled = "" if columns.score is None else f", scores from {columns.min_score:g} to {columns.max_score:g}"
    unused = f"; not used: {', '.join(found.unused)}" if found.unused else ""
    skipped = f"; {found.skipped_rows()}" if found.skipped else ""
    msg.info(f"Columns found: {', '.join(columns.names)}{scaled}{unused}{skipped}")
    return {"format": TABLE, **found.reading()}


def _has_named_columns(path: Path, layout: Layout) -> bool:
    """Return whether a file is a table as it has a column that an option names, or as --no-header says."""
    from ..files.delimited import read_delimited
    from ..files.lines import format_suffix
    from ..files.tables import DELIMITED
    from ..readers.layouts import AUTO

    if layout.format != AUTO or format_suffix(path) not in DELIMITED:
        return False
    if not layout.header:
        return True
    known = layout.known()
    names = {*known.get("members", ()), *(known[gold] for gold in ("score", "label") if gold in known)}
    _, first = next(read_delimited(path, header=False), (0, []))
    return bool(names & {name.strip() for name in first})
