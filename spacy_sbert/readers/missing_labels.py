"""Labels that mark rows without gold, in tables that a config reads as if they were labels."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..files.tables import read_table
from .column_facts import ColumnFacts
from .errors import Errors

READER = "spacy-sbert.PairCorpus.v1"


def check_missing_labels(corpora: Mapping[str, Any], name: str = "corpora") -> None:
    """Refuse tables with labels such as "-" and "-1" beside others, unless their reader's `missing` has them.

    `missing = []` reads them as they are.

    corpora: the section of a config, interpolated. name (str): what it is called.
    RAISES (ValueError): for such a table; what cannot be read at all, its reader says.
    """
    for block_name, block in corpora.items():
        if not isinstance(block, Mapping):
            continue
        if block.get("@readers") != READER:
            check_missing_labels(block, f"{name}.{block_name}")
            continue
        given = block.get("missing")
        for path in _paths(block) if block.get("label") and given != [] else ():
            found = [value for value in _missing_in(path, block) if value not in (given or ())]
            if found:
                named = {"path": path, "column": block["label"], "given": ", ".join(found)}
                setting = json.dumps([*(given or ()), *found])
                raise ValueError(Errors.MISSING_LABELS.format(block=f"{name}.{block_name}", setting=setting, **named))


def _paths(block: Mapping[str, Any]) -> Iterator[Path]:
    paths = block.get("path") or []
    for path in map(Path, [paths] if isinstance(paths, str) else paths):
        if path.suffix != ".spacy" and path.is_file():
            yield path


def _missing_in(path: Path, block: Mapping[str, Any]) -> tuple[str, ...]:
    facts = ColumnFacts(block["label"])
    try:
        for line, (value,) in read_table(path, [block["label"]], header=block.get("header", True)):
            facts.add(line, value)
    except ValueError:  # which the reader says
        return ()
    return facts.missing
