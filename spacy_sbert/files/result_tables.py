"""Tables of what was found: .tsv or .jsonl, whole or not at all."""

import json
from collections.abc import Sequence
from pathlib import Path

from .errors import Errors
from .whole import whole_file


def write_table(path: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write rows as .tsv, the names first, or as .jsonl, whole or not at all.

    RAISES (ValueError): if the name of the file ends otherwise, or a text has a tab or line end in it that .tsv cannot
        hold.
    """
    check_name(path)
    with whole_file(path) as file:
        if path.suffix == ".tsv":
            file.write(("\t".join(names) + "\n").encode("utf8"))
        for number, row in enumerate(rows, start=1):
            if path.suffix == ".jsonl":
                line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)
            else:
                line = "\t".join(_cell(value, number) for value in row)
            file.write((line + "\n").encode("utf8"))


def check_name(path: Path) -> None:
    """RAISES (ValueError): if the name of a file does not end in .tsv or .jsonl."""
    if path.suffix not in (".tsv", ".jsonl"):
        raise ValueError(Errors.SEARCH_BAD_OUTPUT.format(path=path))


def _cell(value: object, number: int) -> str:
    text = f"{value:.6f}" if isinstance(value, float) else str(value)
    if set(text) & set("\t\r\n"):
        raise ValueError(Errors.SEARCH_TAB.format(number=number, text=text[:50]))
    return text
