"""Rows of tables, their separators, quotes and encodings: read as they were meant, or refused by line."""

import csv
import gzip
import json
import tracemalloc

import pytest

from spacy_sbert.files.header import is_data
from spacy_sbert.files.tables import TextColumns, column_names, read_columns, read_table, read_text_rows
from spacy_sbert.files.text_lines import read_lines
from spacy_sbert.readers import PairCorpus
from spacy_sbert.readers.datasets import quora_rows
from spacy_sbert.readers.infer_schema import find_table


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
        ("a.csv", "text,id\nfine,1\nHello\n", "line 3: 1 columns, but the first line has 2"),
        ("a.tsv", "text\tid\nfine\t1\nHello\tthere\t2\n", "line 3: 3 columns, but the first line has 2"),
        ("a.csv", "text,id\na b,1\ntext,id\nc d,2\n", "line 3: the header comes again"),
        ("a.csv", "text,id\na b,1\n\ufefftext,id\nc d,2\n", "line 3: the header comes again"),
        ("a.csv", "| id | text |\n|---|:---:|\n| 1 | one |\n", "line 1: a table in Markdown"),
        ("a.txt", "\n# Texts\n\nid | text\n-- | --\n1 | one\n", "line 4: a table in Markdown"),
        ("a.csv", "+----+------+\n| id | text |\n+----+------+\n| 1  | one  |\n", "line 1: .* drawn with hyphens"),
        ("a.csv", "text,id\na b,1\nText,ID\nc d,2\n", "line 3: the header comes again"),
        ("a.csv", "text\na b\ntext\nc d\n", "line 3: the header comes again"),
        ("a.csv", '"text","note"\n"1","a man",\n"2","a dog",\n', "line 2: 3 columns as in all rows, but"),
        ("a.tsv", "text\tnote\nRow a\ta man\t\nRow b\ta dog\t\n", "line 2: 3 columns as in all rows, but"),
        ("a.csv", "text,id,text\na,1,b\n", "line 1: two columns are named 'text'"),
        ("a.jsonl", '{"text": "a"}\n{"text": "a", "text": "b"}\n', "line 2: .* the field 'text' twice"),
        ("a.jsonl", '[{"text": "a"}]\n', r"line 1: .* a list.* a name that ends in \.json"),
        ("a.json", '[{"text": "a"},\n {"text": "b"}', "line 2: .* the end of the file in an array"),
        ("a.json", '[{"text": "a"}\n {"text": "b"}]', "line 2: .* '{' in an array"),
        ("a.json", '[{"text": "a"},\n{"text": }]', "line 2: expected a JSON object, got Expecting value"),
        ("a.json", '[\n["a"]]', "line 2: expected a JSON object, got a list"),
        ("a.tsv", 'text\tb\n"one ""x"""\t1\n"broken" here\t2\n', "line 3: cannot tell whether the quotes"),
        ("a.tsv", 'text\tb\n"one \\"x\\""\t1\n', "line 2: .* backslashes"),
        ("a.tsv", '"text"\t"b"\n"one" two\t1\n', "line 2: cannot tell whether the quotes"),
        ("a.tsv", 'text\tb\n"Hello"\t1\nplain\t2\n', "line 2: cannot tell whether the quotes"),
        ("a.tsv", 'text\tb\nx\t"stray\nand\tclosed"\n', "line 2: cannot tell whether the quotes"),
        ("a.csv", "text\na\0b\n", "line 2: has a NUL"),
        ("a.csv", "text\na\n".encode("utf-16-le"), "line 1: not UTF-8 .it has NUL"),
        ("a.csv", "text\ncaf\xe9\n".encode("cp1252"), "line 2: not UTF-8"),
        ("a.csv", "a;b,c\n1;2,3\n", "line 1: comma and semicolon may both be the separator"),
        ("a.csv", "id;text\n1;one\n2;two;three\n", "line 3: 3 columns, but the first line has 2"),
    ],
)
def test_bad_lines(write, name, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        texts(write(name, text))
    assert str(write(name, text)) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.csv", "id,text,,\n1,one,,\n2,two,,,,\n,,,\n", ["one", "two", ""]),
        ("a.csv", "id;text\n1;Eins, zwei\n2;Drei\n", ["Eins, zwei", "Drei"]),
        ("a.csv", "id|text\n1|one, two; three\n", ["one, two; three"]),
        ("a.csv", "id\ttext\n1\tone, two\n2\tthree\n", ["one, two", "three"]),
        ("a.csv", "sep=;\r\nid;text\r\n1;a,b\r\n", ["a,b"]),
        ("a.csv", 'id, text\n1, "Hello, ""you"""\n2, plain\n', ['Hello, "you"', "plain"]),
        ("a.csv", "id,text\rone,two\rthree,four\r", ["two", "four"]),
        ("a.csv", "\ufeffid,text\r\n1,one\r\n", ["one"]),
        ("a.txt", "id\ttext\n1\tone\n", ["one"]),
        ("a.ndjson", '{"text": "one"}\n', ["one"]),
        ("a.json", '{"text": "one"}\n{"text": "two"}\n', ["one", "two"]),
        ("a.json", '[\n  {"text": "one"},\n  {"text": "two"}\n]\n', ["one", "two"]),
        ("a.json", "[]", []),
        ("a.tsv", 'text\tb\n"Hello" he said\t1\n', ['"Hello" he said']),
        ("a.tsv", 'text\tb\n"Half\t1\nHe said "no"\t2\n', ['"Half', 'He said "no"']),
        ("a.tsv", 'text\tb\n"one\ttwo"\t1\n"three\nfour"\t2\n', ["one\ttwo", "three\nfour"]),
        ("a.tsv", 'text\tb\n"""Hello"""\t1\n', ['"Hello"']),
        ("a.tsv", '"text"\t"b"\n"one"\t1\n', ["one"]),
        ("a.tsv", 'text\tb\n"one"\t1\n"two"\t2\n"three"\t3\n', ["one", "two", "three"]),
        ("a.tsv", 'text\tb\n"one, two"\t1\nthree\t2\n"a, b"\t2\n"c, d"\t2\n', ["one, two", "three", "a, b", "c, d"]),
        ("a.tsv", 'text\tb\n""\tx\nthree\t2\n', ["", "three"]),
        ("a.csv", "text\na b\nText\n", ["a b", "Text"]),
        ("a.csv", "id|text\n1|one\n-|-\n", ["one", "-"]),
        ("a.csv", "id,text\n1,a | b\n2,---\n", ["a | b", "---"]),
        ("a.csv", 'id,text\n1,"| a | b |\n|---|---|"\n', ["| a | b |\n|---|---|"]),
        ("a.csv", "id,text\n1,one\n\n \n", ["one"]),
        ("a.jsonl", '{"text": "one"}\n\n \n', ["one"]),
        ("a.tsv", "id\ttext\n1\tone\n\n", ["one"]),
        ("a.csv", "text,id\none,1,\none,2,\n", ["one", "one"]),
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
    assert [line for _, line in read_lines(write("b.txt", "one\rtwo"))] == ["one\r", "two"]


def test_duplicate_column_names(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    arrays = [pyarrow.array(["x y"]), pyarrow.array(["z w"]), pyarrow.array(["id"])]
    write_table(pyarrow.table(arrays, names=["text", "text", "id"]), tmp_path / "a.pq")
    with pytest.raises(ValueError, match="two columns are named 'text'"):
        texts(tmp_path / "a.pq")
    assert texts(tmp_path / "a.pq", "id") == ["id"]


def test_json_arrays_are_streamed(write):
    records = [{"text": "x" * 1000, "n": i} for i in range(4000)]
    path = write("a.json", json.dumps(records))
    tracemalloc.start()
    lines = 0
    for line, (text,) in read_table(path, ["text"]):
        assert line == 1 and len(text) == 1000
        lines += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lines == 4000 and peak < 1_500_000 < path.stat().st_size


BELOW = {
    "sentence1,sentence2,score": ["A man eats.,A man dines.,4.8", "It rains.,A dog barks.,0.2"],
    "text": ["A man eats.", "It rains now."],
    "Frage,Antwort": ["Wer ist da?,Ein Mann ist da.", "Was ist das?,Das ist ein Hund."],
    "id,text,label": ["1,A man eats.,x", "2,It rains now.,y"],
    "country,2019,2020": ["Here,3,4", "There,5,6"],
    "0,1,2": ["A man eats.,A man dines.,4.8", "It rains.,A dog barks.,0.2"],
    "text,0,1,2": ["A man eats.,0.1,0.2,0.3", "It rains.,0.1,0.2,0.4"],
    "Timestamp,How old are you?,What do you think of it?": [
        "2024/01/02 10:11,42,It is fine.",
        "2024/01/02 10:12,7,Bad.",
    ],
    "Text of the first sentence,Text of the other one,Score (0 to 5)": ["A man.,A man.,4.8", "It rains.,A dog.,0.2"],
    ",text": ["0,A man eats.", "1,It rains now."],
    "a,b": ["A man 1,B man 1", "A man 2,B man 2"],
    "First phrase,Second phrase": ["red car,crimson car", "blue sky,azure sky"],
    "Product,Matching product,verdict": ["red car,crimson car,yes", "blue sky,azure sky,no"],
    "car,automobile": ["sky,air", "dog,hound"],
    "\u53e5\u5b50\u4e00,\u53e5\u5b50\u4e8c": ["\u7ea2\u8272\u7684\u8f66,\u6df1\u7ea2", "\u84dd\u8272\u7684,\u5929"],
    "\u7532,\u4e59": ["\u7ea2\u8272\u7684\u8f66,\u6df1\u7ea2\u8272", "\u84dd\u8272\u7684,\u5929\u7a7a\u5f88\u84dd"],
}
DATA = [
    ["A man eats food.,A man eats.,4.8", "A dog barks.,It rains now.,0.2", "She sings well.,She sings songs.,3.9"],
    ["cat,dog,0.3", "car,tree,0.1"],
    ["1,How are you?,Fine thanks.", "2,Who is it?,It is me."],
    [
        "A man eats.,Someone eats.,entailment",
        "A dog barks.,A cat barks.,neutral",
        "It rains.,It pours.,entailment",
        "A boy.,A girl.,entailment",
    ],
    [
        "what are the best jobs a civil engineer can get,what is the best job for an engineer now",
        "how do we control our own thoughts,how do i control my thoughts",
    ],
    [
        "\u4e00\u4e2a\u4eba\u5728\u5403\u996d\u3002,\u6709\u4eba\u5728\u7528\u9910\u3002",
        "\u5929\u5728\u4e0b\u96e8\u3002,\u72d7\u5728\u53eb\u3002",
    ],
    ["A man eats.", "It rains now."],
    ["red car,crimson car", "blue sky,azure sky", "old dog,aged dog"],
    ["a red car,a crimson car", "a blue sky,one azure sky"],
    ["red car,crimson car,yes", "blue sky,azure sky,no", "old dog,young cat,no"],
    ["Red Car,Crimson Car,same", "Blue Sky,Azure Sky,same", "Old Dog,Young Cat,other"],
    ["car,auto,no", "sky,air,yes", "dog,cat,yes"],
    ["car,auto", "auto,vehicle", "car,vehicle"],
    ["\u7ea2\u8272\u7684\u8f66,\u6df1\u7ea2\u8272\u7684\u8f66", "\u84dd\u8272\u7684\u5929,\u5929\u7a7a\u5f88\u84dd"],
]


@pytest.mark.parametrize("header", BELOW)
def test_headers(header):
    assert not is_data(header.split(","), [row.split(",") for row in BELOW[header]])


@pytest.mark.parametrize("rows", DATA)
def test_data_in_the_first_row(rows, write):
    path = write("a.csv", "\n".join(rows) + "\n")
    message = r"a\.csv, line 1: the first row .*looks like data.*--no-header"
    with pytest.raises(ValueError, match=message):
        find_table(path)
    with pytest.raises(ValueError, match=message):  # as encode and search read it
        list(read_text_rows(path, TextColumns()))
    assert len(list(read_text_rows(path, TextColumns("0", header=False)))) == len(rows)
    names = column_names(path)
    if len(set(names)) == len(names) > 1 and rows[0].startswith("what"):
        assert find_table(path, members=names).count == len(rows) - 1, "the header, if its columns are named"


def test_blank_column_names(write):
    rows = "".join(f"{i},A man {i}.,A dog {i}.,0.{i},,\n" for i in range(1, 9))
    found = find_table(write("a.csv", f",first,second,score,,\n{rows}"))
    assert found.columns.members == ("first", "second") and found.columns.score == "score" and found.count == 8


def test_quora_files(write, tmp_path):
    header = ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"]
    rows = [["0", "1", "2", 'What is "x"?', "What\nis\tit?", "1"], ["1", "3", "4", "Who?", "Why?", "0"]]
    with (tmp_path / "q.tsv").open("w", newline="", encoding="utf8") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows([header, *rows])
    assert [row.members for row in quora_rows(tmp_path / "q.tsv")] == [
        ('What is "x"?', "What\nis\tit?"),
        ("Who?", "Why?"),
    ]
    path = write("glue.tsv", "\t".join(header) + '\n0\t1\t2\t"So" it is\tIs it?\t1\n1\t3\t4\ttorn\napart\tWhy?\t0\n')
    with pytest.warns(UserWarning, match=r"glue\.tsv: left out records that do not have 6 columns \(lines 3, 4\)"):
        assert [row.members for row in quora_rows(path)] == [('"So" it is', "Is it?")]


def test_table_in_txt(write):
    path = write("a.txt", "first\tsecond\tscore\nA man.\tA boy.\t1\n")
    assert PairCorpus(path, members=["first", "second"], score="score").count() == 1
    assert PairCorpus(path, format="table", members=["first"]).count() == 1
