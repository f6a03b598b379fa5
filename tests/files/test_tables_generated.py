"""2,000 seeded tables, as different programs write them: each is read as it was meant, or refused
by line.
"""

import csv
import gzip
import io
import json
import random
import re
from collections import Counter

import pyarrow
import pytest
from pyarrow.csv import WriteOptions, write_csv
from pyarrow.parquet import write_table

from spacy_sbert.files.tables import TextColumns, column_names, read_table, read_text_rows

# Seeds
TABLES = [range(500), pytest.param(range(500, 2000), marks=pytest.mark.slow)]
WORDS = [
    "A",
    "man",
    "eats",
    "food",
    "the",
    "dog's",
    "barks;",
    "isn't",
    "3,5",
    "|",
    "&",
    "\\",
    "\\n",
    "#",
    "sep=;",
]
WORDS += [
    "NULL",
    "\u00e9t\u00e9",
    "\u4e00\u4e2a\u4eba\u3002",
    "\U0001f600",
    "e\u0301",
    "\u2028",
    "x\x85y",
]
NASTY = [
    'He said "no".',
    '"All of it."',
    '"Half of it',
    'the end"',
    '""',
    '"',
    "One, two",
    "One; two; three",
    "a|b",
]
NASTY += [
    "a\tb",
    "line\nbreak",
    "line\r\nbreak",
    '"quoted", then\n"broken"\tup',
    " leading",
    "trailing ",
    "  ",
    "42",
]
NASTY += [
    "4,5",
    "- dash",
    "=SUM(A1)",
    "'single'",
    '\\"escaped\\"',
    "100 %",
    "text",
    "\U0001f469\u200d\U0001f52c",
]
NAMES = [
    "text",
    "label",
    "id",
    "score",
    "Frage",
    "sentence 2",
    "a;b",
    "q,r",
    "Unnamed: 0",
    "x.y",
    "caf\u00e9",
]


def make_text(rng):
    if rng.random() < 0.4:
        return rng.choice(NASTY)
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 8)))


def make_table(rng, least):
    """The names of at least so many columns, rows of texts, of which some are empty, and a name to
    read.
    """
    names = rng.sample(NAMES, rng.randint(least, 4))
    if rng.random() < 0.2 and len(names) > 1:
        # pandas' index
        names[-1] = ""
    rows = [[make_text(rng) for _ in names] for _ in range(rng.randint(1, 8))]
    for row in rows:
        for place in range(len(names)):
            if rng.random() < 0.1:
                row[place] = ""
        if len(names) == 1 and not row[0]:
            # A blank line is what some programs write, and others pass over
            row[0] = "filled"
    order = list(range(len(names)))
    rng.shuffle(order)
    return (
        [names[place] for place in order],
        [[row[place] for place in order] for row in rows],
        names[0],
    )


def written_by_csv(rng, names, rows, **dialect):
    file = io.StringIO()
    writer = csv.writer(file, lineterminator=rng.choice(["\n", "\r\n"]), **dialect)
    writer.writerows([names, *rows])
    return file.getvalue()


def unquoted(rows):
    """What a file without quoting can hold; two quotes alone are an empty text to all that read
    quotes.
    """
    return [
        ["x" if cell == '""' else re.sub(r"[\n\r\t]", " ", cell) for cell in row] for row in rows
    ]


def by_csv(*suffixes, encoding="utf8", quoting=(csv.QUOTE_MINIMAL,), delimiter=","):
    """A writer as Python's csv, with one of these suffixes and ways to quote."""

    def write(rng, names, rows):
        text = written_by_csv(rng, names, rows, delimiter=delimiter, quoting=rng.choice(quoting))
        return rng.choice(suffixes), text.encode(encoding)

    return write


as_csv = by_csv(".csv", quoting=(csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
as_tsv = by_csv(
    ".tsv", ".tab", delimiter="\t", quoting=(csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)
)
as_semicolons = by_csv(".csv", delimiter=";", encoding="utf-8-sig")
as_pipes = by_csv(".csv", delimiter="|")
as_unicode_text = by_csv(".txt", ".tsv", ".csv", delimiter="\t", encoding="utf-16")


def as_directive(rng, names, rows):
    separator = rng.choice(";,\t|")
    return ".csv", f"sep={separator}\r\n".encode() + written_by_csv(
        rng, names, rows, delimiter=separator
    ).encode()


def as_trailing(rng, names, rows):
    """A spreadsheet with columns that were emptied."""
    empty = [""] * rng.randint(1, 3)
    return ".csv", written_by_csv(rng, [*names, *empty], [[*row, *empty] for row in rows]).encode(
        "utf-8-sig"
    )


def as_upper_gzip(rng, names, rows):
    data = written_by_csv(rng, names, rows).encode()
    cut = rng.randint(0, len(data))
    return rng.choice([".CSV.GZ", ".csv.gz"]), gzip.compress(data[:cut]) + gzip.compress(data[cut:])


def as_plain_tsv(rng, names, rows):
    """As programs write that do not quote."""
    return rng.choice([".tsv", ".txt"]), "".join(
        "\t".join(row) + "\n" for row in [names, *unquoted(rows)]
    ).encode()


def as_arrow(rng, names, rows):
    file = io.BytesIO()
    suffix = rng.choice([".csv", ".tsv", ".parquet", ".pq"])
    columns = [
        pyarrow.array(list(column), type=pyarrow.string()) for column in zip(*rows, strict=True)
    ]
    if suffix in (".csv", ".tsv"):
        delimiter = "," if suffix == ".csv" else "\t"
        write_csv(pyarrow.table(columns, names=names), file, WriteOptions(delimiter=delimiter))
    else:
        write_table(pyarrow.table(columns, names=names), file)
    return suffix, file.getvalue()


def as_lines(rng, names, rows):
    lines = [
        json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=rng.random() < 0.5)
        for row in rows
    ]
    return rng.choice([".jsonl", ".ndjson", ".json", ".JSONL"]), "\n".join(lines).encode()


def as_array(rng, names, rows):
    records = [dict(zip(names, row, strict=True)) for row in rows]
    text = json.dumps(records, indent=rng.choice([None, 2]), ensure_ascii=rng.random() < 0.5)
    return ".json", text.encode(rng.choice(["utf8", "utf-8-sig"]))


QUOTED = [
    as_csv,
    as_semicolons,
    as_directive,
    as_pipes,
    as_unicode_text,
    as_trailing,
    as_upper_gzip,
]
QUOTED += [as_arrow, as_arrow, as_arrow, as_lines, as_array]
# Of which a few can be read in two ways
DOUBTFUL = [as_tsv, as_plain_tsv]
WRITERS = [*QUOTED, *DOUBTFUL, as_tsv, as_plain_tsv]
# Which no table of one column shows
SEPARATED = [as_semicolons, as_pipes]


def is_doubtful(writer, names):
    """Whether a few tables can be read in two ways: quotes with tabs, names with other separators
    in small tables.
    """
    return writer in DOUBTFUL or any(set(name) & set(",;") for name in names)


@pytest.mark.parametrize("seeds", TABLES, ids=["some", "others"])
def test_tables_are_read_as_meant_or_refused_by_line(tmp_path, seeds):
    refused = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        writer = WRITERS[seed % len(WRITERS)]
        names, rows, wanted = make_table(rng, 2 if writer in SEPARATED else 1)
        suffix, data = writer(rng, names, rows)
        path = tmp_path / f"{seed}{suffix}"
        path.write_bytes(data)
        expected = [
            row[names.index(wanted)] for row in (unquoted(rows) if writer is as_plain_tsv else rows)
        ]
        said = f"{seed} {WRITERS.index(writer)}: {data!r}"
        try:
            assert [
                record[0] for _, record in read_table(path, [wanted], keep_blank=True)
            ] == expected, said
            assert column_names(path)[: len(names)] == names, said
            if suffix != ".txt":
                assert [
                    row.text for row in read_text_rows(path, TextColumns(wanted))
                ] == expected, said
        except ValueError as error:
            # Which may be that of a second file
            is_header = names in rows and len(names) == 1
            assert f"{path}, line " in str(error) and (is_header or is_doubtful(writer, names)), (
                f"{error}\n{said}"
            )
            refused[writer] += 1
        path.unlink()
    assert refused.total() <= 0.02 * len(seeds), refused
