"""Each layout on a few lines of it, and each way in which a line can be wrong."""

import gzip
import json
import logging
import sys

import pytest
import spacy
from helpers.pipelines import real_data

from spacy_sbert.files.text_lines import read_lines
from spacy_sbert.readers import PairCorpus, convert, datasets, pair_doc, read_sts
from spacy_sbert.readers.examples import Row
from spacy_sbert.readers.formats import _starts_as_sts as starts_as_sts

QUORA = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
WIKI = "Article Title,Sentence1,Sentence2,Sentence3"
STS = [
    "main-captions\tMSRvid\t2012test\t0001\t5.000\tA plane is taking off.\tAn air plane is taking "
    "off.",
    'main-news\theadlines\t2013\t0002\t0\t He said "no \t\u00c9t\u00e9 \u4e2d\u6587 '
    "\tlicence\tmore",
]
NLP = spacy.blank("en")


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
    for example in PairCorpus(path, **settings)(NLP):
        group = example.reference.spans["sbert"]
        seen = example.predicted.spans["sbert"]
        assert [span.text for span in seen] == [span.text for span in group]
        assert not seen.attrs
        found.append(([span.text for span in group], dict(group.attrs)))
    return found


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".spacy"])
def test_sts(write, tmp_path, suffix):
    path = write("pairs.tsv" if suffix == ".tsv" else "pairs.csv", *STS, "")
    expected = [
        (["A plane is taking off.", "An air plane is taking off."], {"score": 1.0}),
        (['He said "no', "\u00c9t\u00e9 \u4e2d\u6587"], {"score": 0.0}),
    ]
    assert [
        ([first, second], {"score": score}) for first, second, score in read_sts(path)
    ] == expected
    if suffix == ".spacy":
        assert convert(path, tmp_path / "sub" / "pairs.spacy", expect=2) == 2
        path = tmp_path / "sub" / "pairs.spacy"
    assert read(path) == expected


@pytest.mark.parametrize(
    "texts", [["a b", "c"], ["(x)", ")y("], ["a  b", "c \n d"], ["end.", "Next"]]
)
def test_pair_doc_keeps_texts(texts):
    doc = pair_doc(NLP, *texts, 0.5)
    assert [span.text for span in doc.spans["sbert"]] == texts


def test_other_tables_of_seven_columns(write):
    """The first line of this layout has a year, a score from 0 to 5 and two texts; others are named
    when read.
    """
    rows = [
        "a\tb\t2017\tx1\tnoun\tA man.\tA boy.",
        "a\tb\t2017\tx2\t2\tA dog.\t17",
        "a\tb\t2017\tx3\t9\tA.\tB c.",
    ]
    rows += ["a\tb\t7\tx1\t2\tA man.\tA boy.", "genre\tfile\tyear\tid\tscore\tsentence1\tsentence2"]
    assert not any(starts_as_sts(write("a.csv", row, *STS)) for row in rows)
    assert all(starts_as_sts(write("a.csv", line, *rows)) for line in STS)
    assert starts_as_sts(write("a.csv"))
    with pytest.raises(ValueError, match=r"line 1: .* has no header"):
        list(read_sts(write("a.csv", rows[-1], *STS)))


def test_nli(write, caplog):
    path = write(
        "train.jsonl",
        nli("entailment"),
        nli("-"),
        "",
        nli("contradiction", "\u00c9t\u00e9 ", "No."),
        nli("-"),
    )
    with caplog.at_level(logging.INFO, logger="spacy"):
        assert read(path, format="nli") == [
            (["A man.", "Someone."], {"label": "entailment"}),
            (["\u00c9t\u00e9", "No."], {"label": "contradiction"}),
        ]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: left out 2 pairs without a consensus (gold_label '-')"
    ]


SICK_IN_ANOTHER_ORDER = "pair_ID\tentailment_judgment\trelatedness_score\tsentence_B\tsentence_A"


@pytest.mark.parametrize(
    ("header", "line", "gold"),
    [
        pytest.param(
            SICK,
            "1\tA kid.\tA boy.\t4.5\tNEUTRAL",
            {"score": 0.875, "label": "neutral"},
            id="as published",
        ),
        pytest.param(
            SICK_IN_ANOTHER_ORDER,
            "1\tENTAILMENT\t1\tA boy.\tA kid.",
            {"score": 0.0, "label": "entailment"},
            id="columns in another order",
        ),
    ],
)
def test_sick(write, header, line, gold):
    assert read(write("a.txt", header, line), format="sick") == [(["A kid.", "A boy."], gold)]


def test_wikisection(write):
    path = write(
        "train.csv",
        "\ufeff" + WIKI,
        'Law,"One, two.","He said ""no"".",Three.',
        'Art,"A\nb.",C.,D.',
    )
    expected = [["One, two.", 'He said "no".', "Three."], ["A\nb.", "C.", "D."]]
    assert read(path, format="wikisection") == [(members, {}) for members in expected]


def test_quora(write, caplog):
    lines = [
        "1\t2\t3\tHow?\tWhy?\t0",
        '2\t4\t5\t"So" it is\tIs it so?\t1',
        "3\t6\t7\ttorn",
        "apart\t1",
        "4\t8\t9\tA?\t\t0",
    ]
    torn = pytest.warns(
        UserWarning, match=r"sbert-torn-records.*do not have 6 columns \(lines 4, 5\)"
    )
    with caplog.at_level(logging.INFO, logger="spacy"), torn:
        assert read(write("train.tsv", QUORA, *lines), format="quora") == [
            (["How?", "Why?"], {"score": 0.0}),
            (['"So" it is', "Is it so?"], {"score": 1.0}),
        ]
    assert "left out 1 records with an empty question" in caplog.text


def test_texts(write):
    assert read(write("a.txt.gz", "One line.", "", " Two. \r"), format="text") == [
        (["One line."], {}),
        (["Two."], {}),
    ]


TABLES = {
    "a.csv": ("kind,left,right,grade", '7,"A, b",C,2'),
    "a.tsv.gz": ("grade\tleft\tright\tkind", "2\tA, b\tC\t7"),
    "a.jsonl": ('{"right": "C", "left": "A, b", "grade": 2, "kind": 7}',),
}


@pytest.mark.parametrize("format", ["auto", "table"])
@pytest.mark.parametrize("name", TABLES)
def test_tables(write, name, format):
    settings = {
        "members": ["left", "right"],
        "score": "grade",
        "label": "kind",
        "min_score": 1,
        "max_score": 5,
    }
    assert read(write(name, *TABLES[name]), format=format, **settings) == [
        (["A, b", "C"], {"score": 0.25, "label": "7"})
    ]


def test_table_without_a_header(write):
    path = write("a.tsv", "1\tA\tB\tC", '0\t"D\tE\tF')
    assert read(path, members=["3", "1"], score="0", header=False) == [
        (["C", "A"], {"score": 1.0}),
        (["F", '"D'], {"score": 0.0}),
    ]


def test_parquet(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    # More than a batch
    size = 1030
    path = tmp_path / "a.parquet"
    table = {"b": [f"B {i}" for i in range(size)], "a": [f"A {i}" for i in range(size)]}
    table |= {
        "score": [4.0] * size,
        "flag": [True] * size,
        "label": ["x"] * size,
        "other": [None] * size,
    }
    write_table(pyarrow.table(table), path)
    for column, score in (("score", 1.0), ("flag", 0.25)):
        settings = {"members": ["a", "b"], "score": column, "label": "label", "max_score": 4.0}
        assert PairCorpus(path, **settings).count() == size
        assert read(path, **settings)[-1] == (["A 1029", "B 1029"], {"score": score, "label": "x"})
    for member, message in (
        ("c", "expected a column 'c', got b, a, score"),
        ("other", r"a\.parquet, line 1: expected a text in the column 'other', got None"),
    ):
        with pytest.raises(ValueError, match=message):
            read(path, members=["a", member])
    path.write_bytes(b"PAR1 no PAR1")
    with pytest.raises(ValueError, match=r"a\.parquet, record 1: cannot be read as \.parquet"):
        read(path, members=["a", "b"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'spacy-sbert\[parquet\]"):
        read(path, members=["a"])


TABLE = {"members": ["a", "b"], "score": "s", "label": "l"}
HEAD = "a\tb\ts\tl"


NLI, SICK_, WIKI_, QUORA_, TEXT = (
    {"format": name} for name in ("nli", "sick", "wikisection", "quora", "text")
)


@pytest.mark.parametrize(
    ("name", "settings", "lines", "message"),
    [
        ("a.csv", {}, [STS[0], "a\tb\tc\td\t3.2\tonly one"], "line 2: .*7 .*6"),
        *(
            (
                "a.csv",
                {},
                [STS[0], f"a\tb\tc\td\t{score}\ts\tt"],
                f"line 2: .*from 0 to 5.*'{score}'",
            )
            for score in ("three", "5.1", "nan")
        ),
        ("a.csv", {}, [STS[0], "a\tb\tc\td\t1\ts\t  "], "line 2: sentence2"),
        ("a.csv", {}, [STS[0], "a\tb\tc\td\t1\t\tt"], "line 2: sentence1"),
        ("a.csv", {}, [STS[0], "a\tb\tc\td\t1\ts\t\u200b\x00"], "line 2: has a NUL character"),
        ("a.csv", {}, [STS[0], b"a\tb\tc\td\t1\tcaf\xe9\tt\n"], "line 2: .*UTF-8"),
        ("a.csv", {}, [""], "no pairs"),
        ("a.jsonl", NLI, [nli(), nli("maybe")], "line 2: .*'maybe'"),
        ("a.jsonl", NLI, [nli(), nli(None)], "line 2: .*'None'"),
        ("a.jsonl", NLI, ["", nli(second="\t ")], "line 2: sentence2"),
        ("a.jsonl", NLI, [nli(), nli(first=3)], "line 2: .*'sentence1', got 3"),
        ("a.jsonl", NLI, ["{"], "line 1: .*JSON"),
        ("a.jsonl", NLI, ["[" * 100000], "line 1: .*JSON"),
        ("a.jsonl", NLI, ["[1]"], "line 1: .*list"),
        ("a.jsonl", NLI, ['{"gold_label": "-"}'], "line 1: .*'sentence1'"),
        ("a.jsonl", NLI, [nli("-")], "no pairs"),
        ("a.jsonl", NLI, [nli(first="A \ud83d")], "line 1: .*UTF-8"),
        ("a.txt", SICK_, ["a\tb", "1\t2"], "line 1: .*'sentence_A'"),
        ("a.txt", SICK_, [SICK, "1\tA\tB\t0.5\tNEUTRAL"], "line 2: .*from 1 to 5.*'0.5'"),
        ("a.txt", SICK_, [SICK, "", "1\tA\tB\t2\tOTHER"], "line 3: .*'other'"),
        ("a.txt", SICK_, [SICK, "1\tA\tB\t2"], "line 2: .*'entailment_judgment'"),
        ("a.txt", SICK_, [SICK, "1\tA\tB\t4.5\tNEUTRAL\tmore"], "line 2: 6 columns"),
        ("a.txt", SICK_, [SICK], "no pairs"),
        ("a.csv", WIKI_, [WIKI, "T,A,B,A"], "line 2: .*Sentence1 and Sentence3"),
        ("a.csv", WIKI_, [WIKI, 'T,A,"B\n",C', "T,A,,B"], "line 4: Sentence2"),
        ("a.csv", WIKI_, [WIKI, "T,A,B"], "line 2: .*'Sentence3'"),
        ("a.csv", WIKI_, [WIKI, "T,a, b,c,d"], "line 2: 5 columns, but the first line has 4"),
        ("a.csv", WIKI_, [WIKI, 'T,A,"B', "T,A,B,C"], "line 2: .*comma-separated"),
        ("a.tsv", QUORA_, [QUORA, "1\t2\t3\tA\tB\t0.5"], "line 2: .*0 or 1"),
        ("a.tsv", QUORA_, [QUORA.replace("question2", "q2")], "line 1: .*'question2'"),
        ("a.tsv", QUORA_, [QUORA, "1\t2\t3\tA\t\t1"], "no pairs"),
        ("a.txt", TEXT, ["One.", "\u200b"], "line 2: text"),
        ("a.txt", TEXT, ["One.", b"caf\xe9\n"], "line 2: .*UTF-8"),
        *(
            ("a.tsv", TABLE, [HEAD, f"A\tB\t{score}\tx"], f"line 2: .*'{score}'")
            for score in ("", "NaN", "inf")
        ),
        ("a.tsv", TABLE, [HEAD, "A\tB\t0.5\t "], "line 2: l "),
        ("a.tsv", TABLE, [HEAD, "A\tB\t0.5"], "line 2: .*'l'"),
        ("a.tsv", TABLE, ["a\ts\tl"], "line 1: .*'b'"),
        ("a.jsonl", TABLE, ['{"a": "A", "b": "B", "s": NaN, "l": "x"}'], "line 1: .*'nan'"),
        (
            "a.jsonl",
            TABLE,
            ['{"a": "A", "b": "B", "s": 1%s, "l": "x"}' % ("0" * 400)],
            "line 1: .*score",
        ),
        ("a.jsonl", TABLE, ['{"a": "A", "b": "B", "s": [1], "l": "x"}'], r"line 1: .*'\[1\]'"),
        ("a.jsonl", TABLE, ['{"a": "A", "b": "B", "s": 1, "l": null}'], "line 1: .*'l'"),
        ("a.xml", {"format": "table", "members": ["a"]}, ["x"], r"\.csv, \.jsonl"),
        ("a.tsv", {"members": ["a"], "header": False}, ["x"], "'a'"),
        ("a.tsv", {"format": "table", "score": "1"}, ["x"], "no columns"),
    ],
)
def test_bad_lines_are_named(write, name, settings, lines, message):
    path = write(name, *lines)
    with pytest.raises(ValueError, match=message) as caught:
        read(path, **settings)
    assert str(path) in str(caught.value)
    with pytest.raises(ValueError, match=message):
        PairCorpus(path, **settings).count()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        pytest.param("bad.csv", {}, r"bad\.csv, line 2", id="bad line"),
        pytest.param("a.csv", {"expect": 5749}, "2 pairs.* 5749", id="few pairs"),
        pytest.param("none.csv", {}, "no file", id="no file"),
        pytest.param("pairs.json", {}, "Cannot read", id="unknown format"),
    ],
)
def test_convert_writes_nothing_of_bad_files(write, tmp_path, name, options, message):
    write("a.csv", *STS)
    write("bad.csv", STS[0], "a\tb\tc\td\t5.1\ts\tt")
    with pytest.raises(ValueError, match=message):
        convert(tmp_path / name, tmp_path / "out.spacy", **options)
    assert not (tmp_path / "out.spacy").exists()


def test_convert_writes_spacy_files(write, tmp_path):
    with pytest.raises(ValueError, match=r"\.spacy"):
        convert(write("a.csv", *STS), tmp_path / "out.docbin")
    assert not (tmp_path / "out.docbin").exists()


def test_limit_of_line_length(write, monkeypatch):
    monkeypatch.setattr("spacy_sbert.files.text_lines.MAX_LINE", 100)
    assert PairCorpus(write("a.txt", "x" * 99), format="text").count() == 1
    with pytest.raises(ValueError, match="line 2: longer than 100 bytes"):
        PairCorpus(write("a.txt", "x", "x" * 100), format="text").count()
    unclosed = [f'T,A,"{"x" * 60}', "x" * 60, "x,C"]
    with pytest.raises(ValueError, match=r"line 2: .*field limit"):
        PairCorpus(write("a.csv", WIKI, *unclosed), format="wikisection").count()


def test_text_without_tokens(write):
    nlp = spacy.blank("xx")
    nlp.tokenizer = lambda text: spacy.tokens.Doc(
        nlp.vocab, words=[word for word in text.split() if word != "x"]
    )
    with pytest.raises(ValueError, match=r"a\.txt, line 2: .*\('x'\) has no tokens"):
        list(PairCorpus(write("a.txt", "a", "x"), format="text")(nlp))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"format": "excel"}, "'excel'"),
        ({"format": "nli", "members": ["a"]}, "'nli'"),
        ({"format": "sts", "max_score": 5.0, "header": False}, "max_score, header"),
        ({"format": "auto", "score": "s"}, "'sts'"),
        ({"members": ["a"], "min_score": 1.0}, "min_score"),
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
        (
            "argument/UKP_ASPECT.tsv",
            {"members": ["sentence_1", "sentence_2"], "label": "label"},
            3595,
        ),
        pytest.param(
            "quora/paraphrase_train.tsv.gz",
            {"members": ["0", "1"], "header": False},
            100000,
            marks=pytest.mark.slow,
        ),
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


def test_function_is_all_that_a_layout_needs(tmp_path, monkeypatch):
    # Restored at the end
    monkeypatch.setitem(datasets.FORMATS, "bars", None)

    @datasets.register_format("bars")
    def bar_rows(path):
        for line, text in read_lines(path):
            first, second, score = text.split("|")
            yield Row((first, second), line, score=float(score))

    path = tmp_path / "own.txt"
    path.write_text("a cat|a dog|0.5\n")
    nlp = spacy.blank("en")
    (example,) = PairCorpus(path, format="bars")(nlp)
    assert [span.text for span in example.reference.spans["sbert"]] == ["a cat", "a dog"]
    assert example.reference.spans["sbert"].attrs["score"] == 0.5
    with pytest.raises(ValueError, match=r"Unknown format 'rods': expected one of .*, bars, text"):
        PairCorpus(path, format="rods")
