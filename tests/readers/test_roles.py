"""Which columns of a table are the texts and the gold: by options, by well-known names, or refused with the options."""

import csv
import json
import random

import pytest
import spacy

from spacy_sbert.files.tables import TextColumns, read_text_rows
from spacy_sbert.readers import PairCorpus
from spacy_sbert.readers.infer_schema import find_table

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "he", "man", "food", "eats"]
NLI = ("entailment", "neutral", "contradiction")
RANDOM = random.Random(0)
NLP = spacy.blank("en")


def text(size=6):
    return " ".join(RANDOM.sample(WORDS, size))


def write(folder, header, row, n=60, suffix=".csv"):
    rows = [row(i) for i in range(n)]
    path = folder / f"own{suffix}"
    if suffix == ".parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist([dict(zip(header, one, strict=True)) for one in rows]), path)
    elif suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(header, one, strict=True))) + "\n" for one in rows))
    else:
        with path.open("w", newline="", encoding="utf8") as file:
            csv.writer(file).writerows([header, *rows])
    return path


def roles(table):
    columns = table.columns
    return table.kind, columns.members, columns.score or columns.label


def pair(*other):
    """Two texts, and what the other columns have in row i."""
    return lambda i: (text(), text(), *(column(i) for column in other))


def cycle(*values):
    return lambda i: values[i % len(values)]


FOUND = {
    "Quora": (
        ("question1", "question2", "created_at", "is_duplicate"),
        pair(cycle("2024-03-04"), cycle(0, 1)),
        "binary",
    ),
    "e-SNLI": (("premise", "hypothesis", "explanation", "label"), pair(lambda i: text(), cycle(*NLI)), "labelled"),
    "a person": (("Text A", "Text B", "author", "Score"), pair(lambda i: text(2), cycle(1.5, 4)), "graded"),
    "fractions under a label": (("q1", "q2", "gold"), pair(cycle(0, 0.5)), "graded"),
    "the STS benchmark of the hub": (
        ("sentence1", "sentence2", "genre", "year", "split", "score"),
        pair(cycle("main-news", "main-forums"), cycle("2012test", "2017"), cycle("train"), cycle(0.5, 5, 3)),
        "graded",
    ),
    "MRPC": (("#1 String", "#2 String", "#1 ID", "Quality"), pair(lambda i: 10 + 3 * i, cycle(0, 1)), "binary"),
    "labels beside gold labels": (("s1", "s2", "label", "gold_label"), pair(cycle(*NLI), cycle(*NLI)), "labelled"),
    "words": (("one", "two", "verdict"), pair(cycle("supports", "refutes")), "labelled"),
    "left and right": (("left_text", "right_text", "humanScore"), pair(lambda i: i / 60), "graded"),
    "first and second": (("first sentence", "second sentence", "label"), pair(cycle(0, 1, 2)), "labelled"),
    "a distance beside it": (("a", "b", "distance", "relatedness_score"), pair(cycle(1, 0), cycle(1, 4)), "graded"),
    "columns of Python": (("x1", "x2", "target"), pair(cycle(0, 1)), "binary"),
    "an original": (("original", "paraphrase", "label"), pair(cycle(0, 1)), "binary"),
    "a table of scikit-learn": (("Unnamed: 0", "text", "topic"), lambda i: (i, text(), "xyz"[i % 3]), "classes"),
}


@pytest.mark.parametrize("name", FOUND)
def test_well_known_names(tmp_path, name):
    header, row, kind = FOUND[name]
    members = header[1:2] if kind == "classes" else header[:2]
    table = find_table(write(tmp_path, header, row))
    assert roles(table) == (kind, members, header[-1])
    assert set(table.unused) == {*header} - {*members, header[-1]}


def test_unused_columns(tmp_path):
    for header in (("a", "b", "year"), ("one", "two", "split"), ("anchor", "Positive", "row_id")):
        table = find_table(write(tmp_path, header, pair(cycle(2010, "train", 7))))
        assert roles(table) == ("positives", header[:2], None) and table.unused == header[2:]
    header = ("", "first", "second", "score", "", "")
    path = write(tmp_path, header, lambda i: (i, text(), text(), 0.5, "", ""))
    assert roles(find_table(path)) == ("graded", ("first", "second"), "score")


REFUSED = {  # what is not known by its name is neither guessed nor passed over
    ("foo", "bar", "score"): "no names are those of a pair",
    ("text1", "text2", "text3", "text4"): "text1, text2 and text3 are more than a pair",
    ("a", "b", "c"): "a, b and c are more than a pair",
    ("question", "answer1", "answer2"): "answer1, answer2 may be the gold",
    ("question", "answer", "category"): "category may be the gold",
    ("query", "pos", "neg_1", "neg_2"): "not one anchor, one positive and one negative",
    ("sentence1", "sentence2", "text_a", "text_b", "score"): "several pairs",
    ("a", "b", "similarity", "label"): "similarity, label may each be the gold",
    ("title", "review", "rating"): "rating may be the gold",
    **{("a", "b", name): f"{name} may be the gold" for name in ("karma", "distance", "is_different", "not_duplicate")},
}


@pytest.mark.parametrize("header", REFUSED)
def test_other_names_are_refused(tmp_path, header):
    path = write(tmp_path, header, lambda i: [*(text() for _ in header[1:]), i % 2])
    with pytest.raises(ValueError, match=REFUSED[header]) as caught:
        find_table(path)
    said = str(caught.value)
    assert f"{path}" in said and f"Its columns are: {', '.join(header)}." in said
    assert "--members first,second --score COLUMN (or --label COLUMN)" in said and "--no-header" in said
    for gold in ("score", "label"):
        table = find_table(path, members=header[:2], **{gold: header[-1]})
        assert roles(table) == ("binary" if gold == "score" else "labelled", header[:2], header[-1])
    assert roles(find_table(path, members=header[:1], label=header[-1]))[:2] == ("classes", header[:1])


def test_members_that_options_name_need_no_gold(tmp_path):
    path = write(tmp_path, ("a", "b", "karma"), pair(cycle(0, 1)))
    assert roles(find_table(path, members=("a", "b"))) == ("positives", ("a", "b"), None)
    assert roles(find_table(path, score="karma")) == ("binary", ("a", "b"), "karma")
    path = write(tmp_path, ("a", "b", "similarity"), pair(cycle(0, 1)))
    assert roles(find_table(path, members=("b", "a"))) == ("binary", ("b", "a"), "similarity")
    with pytest.raises(ValueError, match="expected a column 'glod'"):
        find_table(path, score="glod")


def test_triplets(tmp_path):
    names = ("query positive negative", "anchor pos hard_neg", "question answer wrong_answer", "sent0 sent1 hard_neg")
    for header in map(tuple, map(str.split, names)):
        path = write(tmp_path, ("id", *header), lambda i: (f"q{i}", text(), text(), text()))
        assert roles(find_table(path)) == ("triplets", header, None)
        assert roles(find_table(path, members=header[::-1])) == ("triplets", header[::-1], None)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_booleans(tmp_path, suffix):
    for values in ((True, False), ("yes", "no"), ("TRUE", "FALSE")):
        path = write(tmp_path, ("left", "right", "same"), pair(cycle(*values)), suffix=suffix)
        table = find_table(path)
        assert roles(table) == ("binary", ("left", "right"), "same")
        examples = PairCorpus(path, format="table", **table.reading())(NLP)
        assert [example.reference.spans["sbert"].attrs["score"] for example in examples] == [1.0, 0.0] * 30


MISSING = {  # values, those that mark no gold, kind
    "numbers of SNLI": ((0, 1, 2, -1), ("-1",), "labelled"),
    "floats": ((0.0, 1.0, 2.0, -1.0), ("-1.0",), "labelled"),
    "words": ((*NLI, "-"), ("-",), "labelled"),
    "words and -1": ((*NLI, "-1", "", "-"), ("-", "-1", ""), "labelled"),
    "0 and 1, or blank": ((0, 1, 0, 1, ""), ("",), "binary"),
    "against, neutral, for": ((-1, 0, 1), (), "labelled"),
    "plus and minus": (("+", "-"), (), "labelled"),
    "three signs": (("+", "-", "?"), (), "labelled"),
    "pandas": ((1.0, 0.0, "NA"), ("NA",), "binary"),
    "spreadsheets": ((*NLI, "#N/A", "N/A", "n/a"), ("#N/A", "N/A", "n/a"), "labelled"),
    "databases": ((0, 1, 2, "NULL", "null", "\\N", "?"), ("?", "NULL", "\\N", "null"), "labelled"),
    "None beside 0 and 1": ((0, 1, "None", "-1"), ("None",), "labelled"),
    "none beside words": (("favor", "against", "none"), (), "labelled"),
}


@pytest.mark.parametrize("name", MISSING)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_rows_without_gold(tmp_path, name, suffix):
    values, marks, kind = MISSING[name]
    path = write(tmp_path, ("premise", "hypothesis", "label"), pair(cycle(*values)), n=84, suffix=suffix)
    table = find_table(path)
    skipped = sum(str(values[i % len(values)]) in marks for i in range(84))
    assert (table.kind, table.columns.missing, table.skipped, table.count) == (kind, marks, skipped, 84 - skipped)
    corpus = PairCorpus(path, format="table", **table.reading())
    golds = [example.reference.spans["sbert"].attrs for example in corpus(NLP)]
    assert len(golds) == corpus.count() == 84 - skipped
    assert {str(gold[key]) for gold in golds for key in gold}.isdisjoint(marks)


def test_bad_cells(tmp_path):
    """Scores are never missing, numbers are no texts, and neither are lists."""
    for bad, message in ((-1, "line 11: the score -1"), ("NA", "line 11: expected a number.* got 'NA'")):
        path = write(tmp_path, ("one", "two", "score"), pair(lambda i, bad=bad: bad if i == 9 else i % 2))
        with pytest.raises(ValueError, match=message):
            find_table(path)
    path = write(tmp_path, ("text", "paraphrase", "score"), lambda i: (text(), i % 2, i % 3))
    with pytest.raises(ValueError, match="paraphrase is a text, but it holds numbers"):
        find_table(path)
    path = tmp_path / "own.jsonl"
    for row in ({"query": "a b", "pos": ["c d"]}, {"anchor": "a", "positive": "b", "negative": [{"t": 1}]}):
        path.write_text(f"{json.dumps(row)}\n" * 3)
        with pytest.raises(ValueError, match=rf"own\.jsonl, line 1: .*'{[*row][-1]}'"):
            find_table(path)


def test_columns_without_names(tmp_path):
    """Two columns of words, and one of numbers at most."""
    path = write(tmp_path, (1, text(), text()), lambda i: (i % 2, text(), text()))
    assert roles(find_table(path, header=False)) == ("binary", ("1", "2"), "0")
    path = write(tmp_path, (text(), text()), lambda i: (text(), text()))
    assert roles(find_table(path, header=False)) == ("positives", ("0", "1"), None)
    for row in ((1, text(), text(), 17), (text(), text(), "x"), (text(), 0.5)):
        path = write(tmp_path, row, lambda i, row=row: row)
        with pytest.raises(ValueError, match=f"two columns of words and one of numbers .* are: 0, 1.*{len(row) - 1}"):
            find_table(path, header=False)
        texts = [str(place) for place, cell in enumerate(row) if isinstance(cell, str)][:2]
        assert find_table(path, header=False, members=texts[:1], label=str(len(row) - 1)).count == 61


def test_first_row_of_data_is_no_header(tmp_path):
    path = tmp_path / "own.csv"
    for rows in (
        "A man eats food.,A man eats.,4.8\nA dog barks.,It rains now.,0.2\n",
        "cat,dog,0.3\ncar,tree,0.1\n",
        "A man eats.\nIt rains now.\n",
        "A man eats.,Someone eats.,entailment\nA dog barks.,A cat barks.,neutral\n",
        "\u4e00\u4e2a\u4eba\u3002,\u6709\u4eba\u3002\n\u5929\u5728\u4e0b\u96e8\u3002,\u72d7\u3002\n",
    ):
        path.write_text(rows, encoding="utf8")
        with pytest.raises(ValueError, match=r"own\.csv.*--no-header"):
            find_table(path)
        with pytest.raises(ValueError, match=r"own\.csv, line 1: expected a column 'text'.*--no-header"):
            list(read_text_rows(path, TextColumns()))  # as encode and search read it
        assert len(list(read_text_rows(path, TextColumns("0", header=False)))) == 2


# Rows without gold


def test_all_labels_missing(tmp_path):
    for row in (pair(cycle("")), pair(cycle("-")), pair(cycle("", "-")), lambda i: (text(), text(), " ")):
        for name, options in (("label", {}), ("gold_label", {}), ("kind", {"members": ["a", "b"], "label": "kind"})):
            path = write(tmp_path, ("a", "b", name), row)
            with pytest.raises(ValueError, match=f"'{name}'.* 60 rows"):
                find_table(path, **options)
    path = write(tmp_path, ("a", "b", "label"), pair(cycle("")))
    assert find_table(path, members=["a", "b"]).kind == "positives"


@pytest.mark.parametrize("none", [None, float("nan"), "left out"])
@pytest.mark.parametrize("values", [("x", "y"), (0, 1)], ids=["label", "score"])
def test_json_objects_without_gold(tmp_path, values, none):
    path = tmp_path / "own.jsonl"
    rows = [{"gold": value, "a": text(), "b": text()} for value in [none, *values * 20]]
    rows = [{name: value for name, value in row.items() if value != "left out"} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = find_table(path)
    assert (found.count, found.skipped, found.columns.missing) == (40, 1, ("",)) and len(found.gold) == 2
    assert len(list(PairCorpus(path, format="table", **found.reading())(NLP))) == 40
    with pytest.raises(ValueError, match=r"line 1: .*'gold'"):
        list(PairCorpus(path, format="table", **(found.reading() | {"missing": ["-"]}))(NLP))
    with pytest.raises(ValueError, match="holds no pairs"):
        list(PairCorpus(path, format="table", members=["a", "b"], label="glod", missing=[""])(NLP))
    with pytest.raises(ValueError, match="'glod' has no gold in any of 41 rows"):
        find_table(path, score="glod")
