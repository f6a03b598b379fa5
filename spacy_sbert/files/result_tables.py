"""Tables of results: .tsv or .jsonl, whole or not at all."""

import json
from collections.abc import Sequence
from pathlib import Path

from .errors import Errors
from .whole import whole_file

QUOTED = frozenset('\t\r\n"')


def write_table(path: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write rows as .tsv, the names first, or as .jsonl, whole or not at all.

    A text with a tab, a line end or a quote is quoted in .tsv, as csv writes it. None is empty there.

    RAISES (ValueError): if the name of the file ends otherwise.
    """
    check_name(path)
    with whole_file(path) as file:
        if path.suffix == ".tsv":
            file.write(("\t".join(map(_cell, names)) + "\n").encode("utf8"))
        for row in rows:
            if path.suffix == ".jsonl":
                line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str)
            else:
                line = "\t".join(map(_cell, row))
            file.write((line + "\n").encode("utf8"))


def check_name(path: Path) -> None:
    """RAISES (ValueError): if the name of a file does not end in .tsv or .jsonl."""
    if path.suffix not in (".tsv", ".jsonl"):
        raise ValueError(Errors.SEARCH_BAD_OUTPUT.format(path=path))


def _cell(value: object) -> str:
    """Return a value as a column of .tsv."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6f}"
    text = json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list) else str(value)
    return '"' + text.replace('"', '""') + '"' if QUOTED & set(text) else text
