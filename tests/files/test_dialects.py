"""Rows of tables, their separators, quotes and encodings: read as they were meant, or refused by line."""

import gzip

import pytest

from spacy_sbert.files.tables import TextColumns, read_columns, read_table, read_text_rows
from spacy_sbert.files.text_lines import read_lines


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
        ("a.tsv", "text\tid\nfine\t1\nHello\tthere\t2\n", "line 3: 3 columns, but the first line has 2"),
        ("a.csv", "text,id\na b,1\ntext,id\nc d,2\n", "line 3: the header comes again"),
        ("a.csv", "text,id\na b,1\n\ufefftext,id\nc d,2\n", "line 3: the header comes again"),
        ("a.csv", "| id | text |\n|---|:---:|\n| 1 | one |\n", "line 1: a table in Markdown"),
        ("a.csv", "text,id,text\na,1,b\n", "line 1: two columns are named 'text'"),
        ("a.jsonl", '{"text": "a"}\n{"text": "a", "text": "b"}\n', "line 2: .* the field 'text' twice"),
        ("a.jsonl", '[{"text": "a"}]\n', r"line 1: .* a list.* a name that ends in \.json"),
        ("a.json", '[{"text": "a"},\n {"text": "b"}', "line 2: expected a JSON object, got Expecting ',' delimiter"),
        ("a.json", '[{"text": "a"},\n["a"]]', "line 2: expected a JSON object, got a list"),
        ("a.tsv", 'text\tb\n"one ""x"""\t1\n"broken" here\t2\n', "line 3: cannot tell whether the quotes"),
        ("a.tsv", 'text\tb\n"one \\"x\\""\t1\n', "line 2: .* backslashes"),
        ("a.tsv", '"text"\t"b"\n"one" two\t1\n', "line 2: cannot tell whether the quotes"),
        ("a.tsv", 'text\tb\n"Hello"\t1\nplain\t2\n', "line 2: cannot tell whether the quotes"),
        ("a.tsv", 'text\tb\nx\t"stray\nand\tclosed"\n', "line 2: cannot tell whether the quotes"),
        ("a.csv", "text\na\0b\n", "line 2: has a NUL"),
        ("a.csv", "text\na\n".encode("utf-16-le"), "line 1: not UTF-8 .it has NUL"),
        ("a.csv", "text\ncaf\xe9\n".encode("cp1252"), "line 2: not UTF-8"),
        ("a.csv", "a;b,c\n1;2,3\n", r"line 1: expected a column 'text', got a;b, c"),
    ],
)
def test_bad_lines(write, name, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        texts(write(name, text))
    assert str(write(name, text)) in str(caught.value)


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
        ("a.csv", "text,x,x,\na,1,2,3\n", ["a"]),  # what is not asked for may be named as it likes
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
    assert [row["text"] for row in rows] == texts(path) and [row["id"] for row in rows] == ["1", "2"]


def test_utf16_and_members_of_gzip(write):
    text = 'id\ttext\r\n1\t"two\nlines, ""x"""\r\n2\t"needless"\r\n'
    for encoding in ("utf-16", "utf-32"):
        assert texts(write("a.txt", text, encoding)) == ['two\nlines, "x"', "needless"]
    assert [line for _, line in read_lines(write("a.txt", "\u00e9\nb", "utf-16"))] == ["\u00e9\n", "b"]
    with pytest.raises(ValueError, match=r"a\.txt, line 2: not UTF-8"):
        list(read_lines(write("a.txt", b"\xff\xfea\x00\n\x00b")))
    path = write("a.csv.gz", gzip.compress(b"id,text\n1,o") + gzip.compress(b"ne\n2,two\n"))
    assert texts(path) == ["one", "two"]
    for text in ("one\rtwo", "one\rtwo\r"):
        with pytest.raises(ValueError, match=r"b\.txt, line 1: lines end in CR"):
            list(read_lines(write("b.txt", text)))


def test_duplicate_column_names(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    arrays = [pyarrow.array(["x y"]), pyarrow.array(["z w"]), pyarrow.array(["id"])]
    write_table(pyarrow.table(arrays, names=["text", "text", "id"]), tmp_path / "a.pq")
    with pytest.raises(ValueError, match="two columns are named 'text'"):
        texts(tmp_path / "a.pq")
    assert texts(tmp_path / "a.pq", "id") == ["id"]
