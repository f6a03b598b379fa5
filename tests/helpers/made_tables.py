"""Tables and texts to write: of a few words, with columns of gold beside them."""

import csv
import gzip
import json
import random

import pytest

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "he", "man", "food", "is"]
NLI = ("entailment", "neutral", "contradiction")
_RANDOM = random.Random(0)


def text(i=0, size=5):
    """One of the texts in a column of them: another each time, whatever the row."""
    return " ".join(_RANDOM.sample(WORDS, size))


def cycle(*values):
    """A column in which these values come one after the other, again and again."""
    return lambda i: values[i % len(values)]


def write_rows(path, header, rows):
    """Write a file in the format that its name tells, and return its path; .txt has the last
    column, a row a line.
    """
    records = [dict(zip(header, row, strict=True)) for row in rows]
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(records), path)
        return path
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf8", newline="") as file:
        if ".csv" in path.name:
            csv.writer(file).writerows([header, *rows])
        elif ".jsonl" in path.name:
            file.writelines(json.dumps(record) + "\n" for record in records)
        elif ".tsv" in path.name:
            file.writelines("\t".join(map(str, row)) + "\n" for row in [header, *rows])
        else:
            file.writelines(f"{row[-1]}\n" for row in rows)
    return path


def write_columns(path, header, *columns, n=40):
    """Write n rows of columns, each of which says what it has in row i."""
    return write_rows(path, header, [[column(i) for column in columns] for i in range(n)])


def write_classes(path, n=60):
    """Write short texts of three classes, in turn, most of whose words are those of one class."""
    words = (["cat", "dog", "ran"], ["food", "mat", "sat"], ["he", "man", "is"])
    rows = []
    for i in range(n):
        own = [_RANDOM.choice(words[i % 3]) for _ in range(2)]
        rows.append((" ".join(own + _RANDOM.sample(WORDS, 3)), f"class {i % 3}"))
    return write_rows(path, ("text", "label"), rows)


def write_texts(path, texts):
    """Write texts with the ids 0, 10, 20, ..."""
    return write_rows(path, ("id", "text"), [(10 * i, text) for i, text in enumerate(texts)])
