"""The log of a training run as a file: a line for each evaluation, as JSON or as a row of a table."""

import csv
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import srsly

from ..files.whole import write_text, writing

Line = Mapping[str, object]


def append_to_log(path: Path, line: Line) -> None:
    """Add an evaluation to a log.

    path (Path): a table if it ends in .csv, whose columns are named like `losses.sbert`, else lines of JSON. Where an
        evaluation has something new, such as the loss of another objective, the table gets a column for it.
    line (Mapping): names and values; values may be mappings themselves.
    """
    with writing(path):
        if path.suffix != ".csv":
            with path.open("a", encoding="utf8") as file:
                file.write(srsly.json_dumps(dict(line)) + "\n")
        else:
            _append_row(path, dict(_flat(line)))


def _append_row(path: Path, row: dict[str, object]) -> None:
    rows: list[dict[str, object]] = []
    if path.is_file():
        with path.open(encoding="utf8", newline="") as file:
            rows = [dict(known) for known in csv.DictReader(file)]
    names = list(rows[0]) if rows else []
    if rows and row.keys() <= set(names):
        with path.open("a", encoding="utf8", newline="") as file:
            csv.DictWriter(file, names, lineterminator="\n").writerow(row)
        return
    write_text(path, _table([*rows, row]))


def _flat(line: Line, before: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name, value in line.items():
        found += _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else [(before + name, value)]
    return found


def _table(rows: list[dict[str, object]]) -> str:
    out = StringIO(newline="")
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
