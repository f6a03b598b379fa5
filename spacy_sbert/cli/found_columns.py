"""How commands read a file of examples: as options say, or a table by what is in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wasabi import msg

from .options import Layout


def reading_of(
    path: Path, layout: Layout, scored_as: Mapping[str, Any] | None = None, *, shown: bool
) -> dict[str, Any]:
    """How a file is read: a table as a pipeline was scored in training, if it has these columns, else by what is in it;
    other layouts as the options say.

    path (Path): the file. layout (Layout): the options.
    scored_as (Mapping): the reader in the pipeline's config, if there is one. shown (bool): whether a bar is.
    RETURNS (dict): settings of PairCorpus.
    RAISES (ValueError): for a table whose columns cannot be told apart, see find_table.
    """
    from ..errors.progress import ticking
    from ..files.tables import column_names
    from ..readers.layouts import TABLE, is_own_table
    from ..readers.own_table import find_table

    if not is_own_table(path, layout.format):
        return layout.reading()
    own = {name: value for name, value in (scored_as or {}).items() if name in Layout.__dataclass_fields__}
    if layout.known() == Layout().known() and own.get("format") == TABLE and own.get("members"):
        wanted = {*own["members"], *(own[gold] for gold in ("score", "label") if own.get(gold))}
        if wanted <= set(column_names(path, header=own.get("header", True))):
            msg.info(f"Columns as in its training: {', '.join(own['members'])}")
            return own
    with ticking("Finding the columns", shown=shown):
        found = find_table(path, **layout.known())
    columns = found.columns
    scaled = "" if columns.score is None else f", scores from {columns.min_score:g} to {columns.max_score:g}"
    msg.info(f"Columns found: {', '.join(columns.names)}{scaled}")
    return {"format": TABLE, **found.reading()}
