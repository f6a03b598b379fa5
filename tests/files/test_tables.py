"""Texts and tables: whoever reads a file gets the same of it, as it was meant, or an error that
names the line.
"""

import csv
import gzip
import json

import pytest
import spacy
from helpers.made_tables import write_texts

from spacy_sbert.files.delimited import by_name, read_delimited
from spacy_sbert.files.tables import (
    TextColumns,
    read_columns,
    read_table,
    read_text_rows,
    read_texts,
    write_table,
)
from spacy_sbert.files.text_lines import read_lines
from spacy_sbert.readers import PairCorpus, convert
from spacy_sbert.readers.formats import Columns
from spacy_sbert.search.texts import read_corpus

# characters: csv by itself reads 131,072
LONG = "x" * 200_000
TEXTS = [LONG, 'the "cat", sat', "on\u2028the\x85mat", "a dog"]


@pytest.mark.parametrize("name", ["a.csv.gz", "a.tsv", "a.jsonl"])
def test_all_commands_take_the_same_texts(tmp_path, name):
    """encode, convert, train, visualize and search."""
    table = write_texts(tmp_path / name, TEXTS)
    assert [row.text for row in read_text_rows(table, TextColumns())] == TEXTS
    nlp = spacy.blank("xx")
    nlp.tokenizer = lambda text: spacy.tokens.Doc(nlp.vocab, words=[text])
    assert convert(table, tmp_path / "out.spacy", members=["text"]) == len(TEXTS)
    assert [
        example.reference.text.strip() for example in PairCorpus(table, members=["text"])(nlp)
    ] == TEXTS
    assert read_texts(table, label="id") == (TEXTS, ["0", "10", "20", "30"])
    assert read_corpus(table).texts == TEXTS
    if table.suffix == ".tsv":
        assert read_corpus(table, "1", header=False).texts == ["text", *TEXTS]
    # A setting of the process
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize("columns", [{"column": "text"}, {"label": "kind"}])
def test_text_file_that_has_no_columns(tmp_path, columns):
    path = tmp_path / "texts.txt"
    path.write_text("One.\nTwo.\n", encoding="utf8")
    assert read_texts(path) == (["One.", "Two."], None)
    with pytest.raises(ValueError, match="line 1: expected a column 'text', got One"):
        read_texts(path, **columns)


def test_columns_of_text_files(tmp_path):
    """Only the columns that are asked for make a table of it."""
    (tmp_path / "table.txt").write_text("kind\ttext\nx\tOne.\ny\tTwo.\n", encoding="utf8")
    assert read_texts(tmp_path / "table.txt", column="text", label="kind") == (
        ["One.", "Two."],
        ["x", "y"],
    )


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_blank_lines(tmp_path, delimiter):
    path = tmp_path / "a.txt"
    path.write_text("a\n\nb\n \n")
    every = [(1, ["a"]), (2, [""]), (3, ["b"]), (4, [" "])]
    assert list(read_delimited(path, delimiter=delimiter)) == [(1, ["a"]), (3, ["b"])]
    assert list(read_delimited(path, delimiter=delimiter, keep_blank=True)) == every
    path.write_text(f"a{delimiter}c\n\nb{delimiter}d\n \n{delimiter}\n")
    every = [(1, ["a", "c"]), (3, ["b", "d"]), (5, ["", ""])]
    assert list(read_delimited(path, delimiter=delimiter, keep_blank=True)) == every
    assert list(read_delimited(path, delimiter=delimiter)) == every[:2]
    path.write_text("\n \na\n\nb\n")
    header = [(3, ["a"]), (4, [""]), (5, ["b"])]
    assert list(read_delimited(path, delimiter=delimiter, keep_blank=True)) == header
    every = [(1, [""]), (2, [" "]), *header]
    assert list(read_delimited(path, delimiter=delimiter, keep_blank=True, header=False)) == every


# Rows with a blank line before, among and behind them
BLANK = {
    ".csv": "\ntext,label\n\na b,x\n \nc d,y\n\n",
    ".tsv": "\ntext\tlabel\n\na b\tx\n \nc d\ty\n\n",
    ".jsonl": '\n{"text": "a b", "label": "x"}\n \n{"text": "c d", "label": "y"}\n\n',
}


@pytest.mark.parametrize("suffix", BLANK)
def test_blank_lines_are_passed_over_by_every_reader(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_text(BLANK[suffix])
    expected = ["a b", "c d"]
    # encode, search, mine, cluster
    assert [text for text, _ in read_text_rows(path, TextColumns())] == expected
    assert read_corpus(path, others=True).rows == [0, 1]
    assert [row["text"] for row in read_columns(path)] == expected
    # training, evaluate
    assert [row.members[0] for row in Columns(("text",), label="label").rows(path)] == expected
    # Visualize
    assert read_texts(path) == (expected, None)


READERS = {
    "read_text_rows": lambda path: read_text_rows(path, TextColumns()),
    "read_columns": read_columns,
    "Columns.rows": lambda path: Columns(("text",), label="label").rows(path),
    "read_table": lambda path: read_table(path, ["label"]),
    "read_texts": read_texts,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("suffix", BLANK)
def test_a_broken_record_has_one_line(tmp_path, suffix, reader):
    path = tmp_path / f"a{suffix}"
    path.write_text(BLANK[suffix].replace("c d", "c\n d").replace('"c', "c"))
    line = BLANK[suffix][: BLANK[suffix].index("c d")].count("\n") + 1
    with pytest.raises(ValueError, match=f", line {line}: "):
        list(READERS[reader](path))


def test_columns_by_name_or_number(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(" b \ta\tc\n1\t2\t3\n4\t5\n")
    assert next(by_name(read_delimited(path, delimiter="\t"), ["a", "b"], path)) == (2, ["2", "1"])
    with pytest.raises(ValueError, match="line 3: 2 columns, but the first line has 3"):
        list(read_table(path, ["1"], header=False))
    with pytest.raises(ValueError, match="line 3: no column 'c'"):
        list(read_table(path, ["c"]))
    with pytest.raises(ValueError, match="expected a number counted from 0"):
        list(read_table(path, ["a"], header=False))
    path.write_text("")
    assert list(read_table(path, ["a"])) == []
    with pytest.raises(ValueError, match=r"ends in one of \.csv, \.jsonl, \.parquet, \.tsv"):
        read_table(tmp_path / "a.docx", ["a"])


@pytest.fixture
def write(tmp_path):
    def write(name, text, encoding="utf8"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    return write


def texts(path, column="text"):
    found = [row[0] for _, row in read_table(path, [column], keep_blank=True)]
    if path.suffix != ".txt":
        assert [row.text for row in read_text_rows(path, TextColumns(column))] == found
    return found


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "id,text\n1,Hello, world\n", "line 2: 3 columns, but the first line has 2"),
        (
            "a.tsv",
            "text\tid\nfine\t1\nHello\tthere\t2\n",
            "line 3: 3 columns, but the first line has 2",
        ),
        ("a.csv", "text,id\na b,1\ntext,id\nc d,2\n", "line 3: the header comes again"),
        ("a.csv", "text,id\na b,1\n\ufefftext,id\nc d,2\n", "line 3: the header comes again"),
        ("a.csv", "| id | text |\n|---|:---:|\n| 1 | one |\n", "line 1: a table in Markdown"),
        ("a.csv", "text,id,text\na,1,b\n", "line 1: two columns are named 'text'"),
        (
            "a.jsonl",
            '{"text": "a"}\n{"text": "a", "text": "b"}\n',
            "line 2: .* the field 'text' twice",
        ),
        ("a.jsonl", '[{"text": "a"}]\n', r"line 1: .* a list.* a name that ends in \.json"),
        (
            "a.json",
            '[{"text": "a"},\n {"text": "b"}',
            "line 2: expected a JSON object, got Expecting ',' delimiter",
        ),
        ("a.json", '[{"text": "a"},\n["a"]]', "line 2: expected a JSON object, got a list"),
        (
            "a.tsv",
            'text\tb\n"one ""x"""\t1\n"broken" here\t2\n',
            "line 3: cannot tell whether the quotes",
        ),
        ("a.tsv", 'text\tb\n"one \\"x\\""\t1\n', "line 2: .* backslashes"),
        ("a.tsv", '"text"\t"b"\n"one" two\t1\n', "line 2: cannot tell whether the quotes"),
        ("a.tsv", 'text\tb\n"Hello"\t1\nplain\t2\n', "line 2: cannot tell whether the quotes"),
        ("a.tsv", 'text\tb\nx\t"stray\nand\tclosed"\n', "line 2: cannot tell whether the quotes"),
        ("a.csv", "text\na\0b\n", "line 2: has a NUL"),
        ("a.csv", "text\na\n".encode("utf-16-le"), "line 1: not UTF-8 .it has NUL"),
        ("a.csv", "text\ncaf\xe9\n".encode("cp1252"), "line 2: not UTF-8"),
        ("a.csv", "a;b,c\n1;2,3\n", r"line 1: expected a column 'text', got a;b, c"),
        ("a.csv", "text\na\n".encode("utf-32"), "encoded in UTF-32: .* Save it as UTF-8"),
    ],
)
def test_bad_lines(write, name, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        texts(write(name, text))
    assert str(write(name, text)) in str(caught.value)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"PK\x03\x04", "a workbook or a .zip file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "a workbook of Excel"),
        (b"%PDF-1.7", "a .pdf file"),
        (b"PAR1\x15\x04", "a .parquet file: expected text. Rename it"),
        (b"ARROW1\x00\x00", "an Arrow file"),
        (b"\x93NUMPY\x01", "a file of vectors"),
        (b"BZh91AY&SY", "compressed by bzip2"),
        (b"\xfd7zXZ\x00", "compressed by xz"),
        (b"\x28\xb5\x2f\xfd", "compressed by Zstandard"),
        (b"\x1f\x8b\x08", "compressed by gzip: expected text. Give it a name"),
        (b"SQLite format 3\x00", "a database of SQLite"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.json", "a.txt", "a.csv.gz"])
def test_files_of_other_kinds(write, name, start, kind):
    content = start + bytes(100)
    path = write(name, gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(ValueError, match=kind):
        list(read_text_rows(path, TextColumns()))


def test_a_long_value_is_shown_short(write):
    path = write("a.jsonl", json.dumps({"text": ["one text"] * 1000}))
    with pytest.raises(ValueError, match="expected a text in the column 'text', got ") as caught:
        texts(path)
    assert len(str(caught.value)) < 300 + len(str(path))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.csv", "id,text,,\n1,one,,\n2,two,,\n,,,\n", ["one", "two", ""]),
        ("a.csv", "id;text\n1;Eins, zwei\n2;Drei\n", ["Eins, zwei", "Drei"]),
        ("a.csv", "id|text\n1|one, two; three\n", ["one, two; three"]),
        ("a.csv", "id\ttext\n1\tone, two\n2\tthree\n", ["one, two", "three"]),
        ("a.csv", "sep=;\r\nid;text\r\n1;a,b\r\n", ["a,b"]),
        ("a.csv", 'id, text\n1, "Hello, ""you"""\n2, plain\n', ['Hello, "you"', "plain"]),
        ("a.csv", "\ufeffid,text\r\n1,one\r\n", ["one"]),
        ("a.txt", "id\ttext\n1\tone\n", ["one"]),
        ("a.json", '{"text": "one"}\n{"text": "two"}\n', ["one", "two"]),
        ("a.json", '[\n  {"text": "one"},\n  {"text": "two"}\n]\n', ["one", "two"]),
        ("a.tsv", 'text\tb\n"Hello" he said\t1\n', ['"Hello" he said']),
        ("a.tsv", 'text\tb\n"Half\t1\nHe said "no"\t2\n', ['"Half', 'He said "no"']),
        ("a.tsv", 'text\tb\n"one\ttwo"\t1\n"three\nfour"\t2\n', ["one\ttwo", "three\nfour"]),
        ("a.tsv", 'text\tb\n"""Hello"""\t1\n', ['"Hello"']),
        ("a.tsv", '"text"\t"b"\n"one"\t1\n', ["one"]),
        ("a.tsv", 'text\tb\n""\tx\nthree\t2\n', ["", "three"]),
        ("a.csv", "text\na b\nText\n", ["a b", "Text"]),
        ("a.csv", "id,text\n1,a | b\n2,---\n", ["a | b", "---"]),
        ("a.csv", 'id,text\n1,"| a | b |\n|---|---|"\n', ["| a | b |\n|---|---|"]),
        ("a.jsonl", '{"text": "one"}\n\n \n', ["one"]),
        # What is not asked for may be named as it likes
        ("a.csv", "text,x,x,\na,1,2,3\n", ["a"]),
        ("a.csv", "text,id\n", []),
        ("a.tsv", "", []),
    ],
)
def test_texts_of_tables(write, name, text, expected):
    assert texts(write(name, text)) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", 'id\ttext\n1\t"one\ntwo ""x"""\n2\tthree\n'),
        ("a.csv", "id;text;\n1;one, two;\n2;three;\n"),
        ("a.csv", "sep=|\nid|text\n1|one, two\n2|three\n"),
        ("a.csv", "id,text\n1,one\n2,two\n\n\n"),
        ("a.json", '[{"id": "1", "text": "one"}, {"id": "2", "text": "two"}]'),
    ],
)
def test_read_columns(write, name, text):
    path = write(name, text)
    rows = list(read_columns(path))
    assert [row["text"] for row in rows] == texts(path)
    assert [row["id"] for row in rows] == [
        "1",
        "2",
    ]


def test_utf16_and_members_of_gzip(write):
    text = 'id\ttext\r\n1\t"two\nlines, ""x"""\r\n2\t"needless"\r\n'
    assert texts(write("a.txt", text, "utf-16")) == ['two\nlines, "x"', "needless"]
    assert [line for _, line in read_lines(write("a.txt", "\u00e9\nb", "utf-16"))] == [
        "\u00e9\n",
        "b",
    ]
    with pytest.raises(ValueError, match=r"a\.txt, line 2: not UTF-8"):
        list(read_lines(write("a.txt", b"\xff\xfea\x00\n\x00b")))
    path = write("a.csv.gz", gzip.compress(b"id,text\n1,o") + gzip.compress(b"ne\n2,two\n"))
    assert texts(path) == ["one", "two"]


@pytest.mark.parametrize(
    "content",
    [
        "id,text\n1,Zo\u00eb\n",
        "id;text\n1;Zo\u00eb\n",
        "id\ttext\n1\tZo\u00eb\n",
        "text\nZo\u00eb\n",
    ],
)
def test_separators_of_utf16(write, content):
    assert texts(write("a.csv", content, "utf-16")) == ["Zo\u00eb"]


def test_commas_in_the_only_column_of_utf16(write):
    assert texts(write("a.csv", "text\na, b\n", "utf-16")) == ["a, b"]


@pytest.mark.parametrize("text", ["one\rtwo", "one\rtwo\r"])
def test_lines_that_end_in_cr(write, text):
    with pytest.raises(ValueError, match=r"b\.txt, line 1: lines end in CR"):
        list(read_lines(write("b.txt", text)))


def test_duplicate_column_names(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    arrays = [pyarrow.array(["x y"]), pyarrow.array(["z w"]), pyarrow.array(["id"])]
    parquet.write_table(pyarrow.table(arrays, names=["text", "text", "id"]), tmp_path / "a.pq")
    with pytest.raises(ValueError, match="two columns are named 'text'"):
        texts(tmp_path / "a.pq")
    assert texts(tmp_path / "a.pq", "id") == ["id"]


def test_tabs_quotes_and_line_ends_are_quoted(tmp_path):
    path = tmp_path / "out.tsv"
    texts = ["fine", "a\tb", 'He said "no"', '"All."', "two\r\nlines", "one\rother", ""]
    write_table(path, ("score", "text"), [(0.5, text) for text in texts])
    assert [text for _, (text,) in read_table(path, ["text"])] == texts
    with path.open(encoding="utf8", newline="") as file:
        assert [row["text"] for row in csv.DictReader(file, delimiter="\t", strict=True)] == texts
    write_table(tmp_path / "new" / "out.jsonl", ("score", "text"), [(0.25, "Käse \u2028 a")])
    assert json.loads((tmp_path / "new" / "out.jsonl").read_text("utf8")) == {
        "score": 0.25,
        "text": "Käse \u2028 a",
    }
    write_table(path, ("id", "kept"), [(None, ["x", {"y": 1}]), (2, True)])
    assert path.read_text() == 'id\tkept\n\t"[""x"", {""y"": 1}]"\n2\tTrue\n'
    with pytest.raises(ValueError, match=r"ends in \.tsv or \.jsonl"):
        write_table(tmp_path / "out.csv", ("text",), [])
