"""Each layout on a few lines of it, and each way in which a line can be wrong."""

import csv
import gzip
import json
import logging

import pytest
import spacy
from pipelines import real_data

from spacy_sbert.readers import PairCorpus, convert
from spacy_sbert.readers.arguments import afs_rows
from spacy_sbert.readers.wikisection import wikisection_rows

QUORA = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
WIKI = "Article Title,Sentence1,Sentence2,Sentence3"


def nli(label="neutral", first="A man.", second="Someone."):
    return json.dumps({"gold_label": label, "sentence1": first, "sentence2": second, "pairID": "7"})


@pytest.fixture
def write(tmp_path):
    def write(name, *lines):
        data = b"".join(line if isinstance(line, bytes) else f"{line}\n".encode() for line in lines)
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def read(path, **settings):
    """Members and gold of each example; the predicted Doc must have the former alone."""
    found = []
    for example in PairCorpus(path, **settings)(spacy.blank("en")):
        group, seen = example.reference.spans["sbert"], example.predicted.spans["sbert"]
        assert [span.text for span in seen] == [span.text for span in group] and not seen.attrs
        found.append(([span.text for span in group], dict(group.attrs)))
    return found


def test_nli(write, caplog):
    path = write(
        "train.jsonl", nli("entailment"), nli("-"), "", nli("contradiction", "\u00c9t\u00e9 ", "No."), nli("-")
    )
    with caplog.at_level(logging.INFO, logger="spacy"):
        assert read(path, format="nli") == [
            (["A man.", "Someone."], {"label": "entailment"}),
            (["\u00c9t\u00e9", "No."], {"label": "contradiction"}),
        ]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: left out 2 pairs without a consensus (gold_label '-')"
    ]


def test_sick(write):
    header = "pair_ID\tentailment_judgment\trelatedness_score\tsentence_B\tsentence_A"
    assert read(write("a.txt", SICK, "1\tA kid.\tA boy.\t4.5\tNEUTRAL"), format="sick") == [
        (["A kid.", "A boy."], {"score": 0.875, "label": "neutral"})
    ]
    assert read(write("b.txt", header, "1\tENTAILMENT\t1\tA boy.\tA kid."), format="sick") == [
        (["A kid.", "A boy."], {"score": 0.0, "label": "entailment"})
    ]


def test_wikisection(write):
    path = write("train.csv", "\ufeff" + WIKI, 'Law,"One, two.","He said ""no"".",Three.', 'Art,"A\nb.",C.,D.')
    assert read(path, format="wikisection") == [
        (["One, two.", 'He said "no".', "Three."], {}),
        (["A\nb.", "C.", "D."], {}),
    ]


def test_quora(write, caplog):
    lines = [
        "1\t2\t3\tHow?\tWhy?\t0",
        '2\t4\t5\t"So" it is\tIs it so?\t1',
        "3\t6\t7\ttorn",
        "apart\t1",
        "4\t8\t9\tA?\t\t0",
    ]
    torn = pytest.warns(UserWarning, match=r"sbert-torn-records.*do not have 6 columns \(lines 4, 5\)")
    with caplog.at_level(logging.INFO, logger="spacy"), torn:
        assert read(write("train.tsv", QUORA, *lines), format="quora") == [
            (["How?", "Why?"], {"score": 0.0}),
            (['"So" it is', "Is it so?"], {"score": 1.0}),
        ]
    assert "left out 1 records with an empty question" in caplog.text


def test_text(write):
    assert read(write("a.txt.gz", "One line.", "", " Two. \r"), format="text") == [(["One line."], {}), (["Two."], {})]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a.csv", ["kind,left,right,grade", '7,"A, b",C,2']),
        ("a.csv.gz", ["kind,left,right,grade", '7,"A, b",C,2']),
        ("a.tsv", ["grade\tleft\tright\tkind", "2\tA, b\tC\t7\t"]),
        ("a.tsv.gz", ["grade\tleft\tright\tkind", "2\tA, b\tC\t7"]),
        ("a.jsonl", ['{"right": "C", "left": "A, b", "grade": 2, "kind": 7}']),
    ],
)
def test_tables_by_name(write, name, lines):
    settings = {"members": ["left", "right"], "score": "grade", "label": "kind", "min_score": 1, "max_score": 5}
    expected = [(["A, b", "C"], {"score": 0.25, "label": "7"})]
    assert read(write(name, *lines), **settings) == expected
    assert read(write(name, *lines), format="table", **settings) == expected


def test_tables_without_header(write):
    path = write("a.tsv", "1\tA\tB\tC", '0\t"D\tE\tF')
    assert read(path, members=["3", "1"], score="0", header=False) == [
        (["C", "A"], {"score": 1.0}),
        (["F", '"D'], {"score": 0.0}),
    ]


def test_members_may_be_one_or_many(write):
    path = write("a.csv", "a,b,c,d", "One,Two,Three,Three")
    for members in (["b"], ["a", "b", "c"], ["a", "b", "c", "d"]):
        assert len(read(path, members=members)[0][0]) == len(members)


@pytest.mark.parametrize("column", ["score", "flag"])
def test_parquet(tmp_path, column):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    size = 3000  # more than a batch
    table = {"b": [f"B {i}" for i in range(size)], "a": [f"A {i}" for i in range(size)]}
    table |= {"score": [4.0] * size, "flag": [True] * size, "label": ["x"] * size, "other": [None] * size}
    write_table(pyarrow.table(table), tmp_path / "a.parquet")
    corpus = PairCorpus(tmp_path / "a.parquet", members=["a", "b"], score=column, label="label", max_score=4.0)
    assert corpus.count() == size
    found = read(tmp_path / "a.parquet", members=["a", "b"], score=column, label="label", max_score=4.0)
    assert found[2999] == (["A 2999", "B 2999"], {"score": 1.0 if column == "score" else 0.25, "label": "x"})

    with pytest.raises(ValueError, match="expected a column 'c', got b, a, score"):
        read(tmp_path / "a.parquet", members=["a", "c"])
    with pytest.raises(ValueError, match=r"a\.parquet, line 1: expected a text in the column 'other', got None"):
        read(tmp_path / "a.parquet", members=["a", "other"])
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(ValueError, match=r"a\.parquet, record 1: cannot be read as \.parquet"):
        read(tmp_path / "a.parquet", members=["a", "b"])


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(ImportError, match=r"pip install 'spacy-sbert\[parquet\]"):
        read(tmp_path / "a.parquet", members=["a"])


TABLE = {"members": ["a", "b"], "score": "s", "label": "l"}
HEAD = "a\tb\ts\tl"


@pytest.mark.parametrize(
    ("name", "settings", "lines", "message"),
    [
        ("a.jsonl", {"format": "nli"}, [nli(), nli("maybe")], "line 2: unknown label 'maybe', expected one of entail"),
        ("a.jsonl", {"format": "nli"}, [nli(), nli(None)], "line 2: unknown label 'None'"),
        ("a.jsonl", {"format": "nli"}, ["", nli(second="\t ")], "line 2: sentence2 is empty"),
        (
            "a.jsonl",
            {"format": "nli"},
            [nli(), nli(first=3)],
            "line 2: expected a text in the column 'sentence1', got 3",
        ),
        ("a.jsonl", {"format": "nli"}, ["{"], "line 1: expected a JSON object, got Expecting"),
        ("a.jsonl", {"format": "nli"}, ["[" * 100000], "line 1: expected a JSON object, got maximum recursion"),
        ("a.jsonl", {"format": "nli"}, ["[1]"], "line 1: expected a JSON object, got a list"),
        (
            "a.jsonl",
            {"format": "nli"},
            ['{"gold_label": "-"}'],
            "line 1: expected a column 'sentence1', got gold_label",
        ),
        ("a.jsonl", {"format": "nli"}, [nli("-")], "holds no pairs"),
        ("a.jsonl", {"format": "nli"}, [nli(first="A \ud83d")], "line 1: not UTF-8 .surrogates"),
        ("a.txt", {"format": "sick"}, ["a\tb", "1\t2"], "line 1: expected a column 'sentence_A', got a, b"),
        (
            "a.txt",
            {"format": "sick"},
            [SICK, "1\tA\tB\t0.5\tNEUTRAL"],
            "line 2: expected a score from 1 to 5, got '0.5'",
        ),
        ("a.txt", {"format": "sick"}, [SICK, "", "1\tA\tB\t2\tOTHER"], "line 3: unknown label 'other'"),
        (
            "a.txt",
            {"format": "sick"},
            [SICK, "1\tA\tB\t2"],
            "line 2: no column 'entailment_judgment', the line has only 4",
        ),
        ("a.txt", {"format": "sick"}, [SICK], "holds no pairs"),
        ("a.txt", {"format": "sick"}, [], "holds no pairs"),
        (
            "a.csv",
            {"format": "wikisection"},
            [WIKI, "T,A,B,A"],
            "line 2: the members Sentence1 and Sentence3 of a triplet",
        ),
        ("a.csv", {"format": "wikisection"}, [WIKI, 'T,A,"B\n",C', "T,A,,B"], "line 4: Sentence2 is empty"),
        ("a.csv", {"format": "wikisection"}, [WIKI, "T,A,B"], "line 2: no column 'Sentence3', the line has only 3"),
        ("a.csv", {"format": "wikisection"}, [WIKI, 'T,A,"B', "T,A,B,C"], "line 2: not comma-separated as expected"),
        ("a.csv", {"format": "wikisection"}, ["Title,A,B,C"], "line 1: expected a column 'Sentence1', got Title, A"),
        ("a.tsv", {"format": "quora"}, [QUORA, "1\t2\t3\tA\tB\t0.5"], "line 2: expected 0 or 1 in the column 'is_dup"),
        ("a.tsv", {"format": "quora"}, [QUORA.replace("question2", "q2")], "line 1: expected a column 'question2'"),
        ("a.tsv", {"format": "quora"}, [QUORA, "1\t2\t3\tA\t\t1"], "holds no pairs"),
        ("a.txt", {"format": "text"}, ["One.", "\u200b"], "line 2: text is empty"),
        ("a.txt", {"format": "text"}, ["One.", b"caf\xe9\n"], "line 2: not UTF-8"),
        ("a.tsv", TABLE, [HEAD, "A\tB\t\tx"], "line 2: expected a score from 0 to 1, got '' in the column 's'"),
        ("a.tsv", TABLE, [HEAD, "A\tB\tNaN\tx"], "line 2: expected a score from 0 to 1, got 'NaN'"),
        ("a.tsv", TABLE, [HEAD, "A\tB\tinf\tx"], "line 2: expected a score from 0 to 1, got 'inf'"),
        ("a.tsv", TABLE, [HEAD, "A\tB\t0.5\t "], "line 2: l is empty"),
        ("a.tsv", TABLE, [HEAD, "A\tB\t0.5"], "line 2: no column 'l', the line has only 3"),
        ("a.tsv", TABLE, ["a\ts\tl"], "line 1: expected a column 'b', got a, s, l"),
        ("a.tsv", TABLE, [HEAD, b"A\t\xff\t1\tx\n"], "line 2: not UTF-8"),
        ("a.jsonl", TABLE, ['{"a": "A", "b": "B", "s": NaN, "l": "x"}'], "line 1: expected a score .* got 'nan'"),
        ("a.jsonl", TABLE, ['{"a": "A", "b": "B", "s": 1%s, "l": "x"}' % ("0" * 400)], "line 1: expected a score"),
        ("a.jsonl", TABLE, ['{"a": "A", "b": "B", "s": [1], "l": "x"}'], r"line 1: expected a score .* got '\[1\]'"),
        (
            "a.jsonl",
            TABLE,
            ['{"a": "A", "b": "B", "s": 1, "l": null}'],
            "line 1: expected a text in the column 'l', got N",
        ),
        ("a.xml", {"format": "table", "members": ["a"]}, ["x"], r"ends in one of \.csv, \.jsonl"),
        ("a.tsv", {"members": ["a"], "header": False}, ["x"], "a column was named 'a': expected a number"),
        ("a.tsv", {"format": "table"}, ["x"], "no columns of texts were named"),
        ("a.tsv", {"format": "table", "score": "1"}, ["x"], "no columns of texts were named"),
    ],
)
def test_bad_lines_are_named(write, name, settings, lines, message):
    path = write(name, *lines)
    with pytest.raises(ValueError, match=message) as caught:
        read(path, **settings)
    assert str(path) in str(caught.value)
    with pytest.raises(ValueError, match=message):
        PairCorpus(path, **settings).count()


def test_damaged_gzip(write):
    path = write("a.txt.gz", *(f"Line {i} of {i * i}" for i in range(1000)))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"a\.txt\.gz, line \d+: the compressed file is damaged"):
        PairCorpus(path, format="text").count()
    path.write_bytes(b"no gzip at all")
    with pytest.raises(ValueError, match="line 1: the compressed file is damaged"):
        PairCorpus(path, format="text").count()


def test_long_lines_do_not_fill_the_memory(write, monkeypatch):
    monkeypatch.setattr("spacy_sbert.files.lines.MAX_LINE", 100)
    assert PairCorpus(write("a.txt", "x" * 99), format="text").count() == 1
    with pytest.raises(ValueError, match="line 2: longer than 100 bytes"):
        PairCorpus(write("a.txt", "x", "x" * 100), format="text").count()
    unclosed = [f'T,A,"{"x" * 60}', "x" * 60, "x,C"]
    with pytest.raises(ValueError, match=r"line 2: not comma-separated as expected .field larger than field limit"):
        PairCorpus(write("a.csv", WIKI, *unclosed), format="wikisection").count()


def test_long_columns_are_read(write):
    """Of which csv reads 131,072 characters, a setting of the process that is left as it was."""
    before = csv.field_size_limit()
    long = "x" * (before + 1)
    path = write("a.csv", "a,b", f"{long},C")
    assert PairCorpus(path, members=["a", "b"]).count() == 1
    assert convert(path, path.with_suffix(".spacy"), members=["a", "b"]) == 1
    path = write("ArgPairs_GC.csv", "score" + "," * 10, "0.5" + "," * 9 + f"b,{long}")
    (row,) = afs_rows(path)
    assert row.members == ("b", long) and csv.field_size_limit() == before


def test_text_that_leaves_no_token(write):
    nlp = spacy.blank("en")
    nlp.tokenizer = lambda text: spacy.tokens.Doc(nlp.vocab, words=[word for word in text.split() if word != "x"])
    with pytest.raises(ValueError, match=r"a\.txt, line 2: The member number 1 of an example \('x'\) has no tokens"):
        list(PairCorpus(write("a.txt", "a", "x"), format="text")(nlp))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"format": "excel"},
            "Unknown format 'excel': expected one of auto, sts, nli, sick, wikisection, quora, text, t",
        ),
        ({"format": "nli", "members": ["a"]}, "is read as 'nli', which has fixed columns .*: a. Set"),
        ({"format": "sts", "max_score": 5.0, "header": False}, "but these are set for a table: max_score, header. Set"),
        ({"format": "auto", "score": "s"}, "is read as 'sts', which has fixed columns"),
        ({"members": ["a"], "min_score": 1.0}, "from 1.0 to 1.0: expected min_score below max_score"),
        ({"members": ["a"], "max_score": float("nan")}, "max_score = nan: expected a finite number"),
        ({"limit": -1}, "limit = -1"),
        ({"shuffle_buffer": -1}, "shuffle_buffer = -1"),
    ],
)
def test_settings_that_do_not_fit(settings, message):
    with pytest.raises(ValueError, match=message):
        PairCorpus("a.tsv", **settings)


@pytest.mark.parametrize(
    ("file", "settings", "count"),
    [
        ("sts/STSBenchmark/sts-train.csv", {}, 5749),
        ("sts/STSBenchmark/sts-dev.csv", {}, 1500),
        ("nli/snli_dev.jsonl", {"format": "nli"}, 9842),
        ("nli/multinli_dev.jsonl", {"format": "nli"}, 19647),
        ("nli/snli_sample_train.jsonl", {"format": "nli"}, 20000),
        ("nli/multinli_sample_train.jsonl", {"format": "nli"}, 10000),
        ("sick/SICK_train.txt", {"format": "sick"}, 4500),
        ("sick/SICK_trial.txt", {"format": "sick"}, 500),
        ("wikisec/train.csv", {"format": "wikisection"}, 5877),
        ("wikisec/validation.csv", {"format": "wikisection"}, 1252),
        ("wikisec/test.csv", {"format": "wikisection"}, 1201),
        ("argument/UKP_ASPECT.tsv", {"members": ["sentence_1", "sentence_2"], "label": "label"}, 3595),
        ("quora/paraphrase_train.tsv.gz", {"members": ["0", "1"], "header": False}, 100000),
    ],
)
def test_real_data_in_full(file, settings, count):
    assert PairCorpus(real_data() / file, **settings).count() == count


def test_real_quora_pairs(tmp_path):
    settings = {"members": ["1", "2"], "score": "0", "header": False}
    path = real_data() / "quora" / "qqp_dev.tsv"
    with pytest.raises(ValueError, match="line 3: not UTF-8"):
        PairCorpus(path, **settings).count()
    repaired = tmp_path / "qqp.tsv"
    repaired.write_text(path.read_bytes().decode("utf8", errors="replace"), encoding="utf8")
    assert PairCorpus(repaired, **settings).count() == 10000


def test_real_values():
    sick = PairCorpus(real_data() / "sick" / "SICK_train.txt", format="sick", limit=1)
    (example,) = sick(spacy.blank("en"))
    assert example.reference.spans["sbert"].attrs == {"score": 0.875, "label": "neutral"}
    assert example.reference.spans["sbert"][0].text.startswith("A group of kids is playing")


def test_a_triplet_with_too_many_columns_is_refused(tmp_path):
    path = tmp_path / "test.csv"
    path.write_text("Article Title,Sentence1,Sentence2,Sentence3\nTitle,a, b,c,d\n")
    with pytest.raises(ValueError, match=r"test\.csv, line 2: .*4.*5"):
        list(wikisection_rows(path))
