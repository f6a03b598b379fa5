"""Which columns of a table are the texts and the gold: tables as others name and write them."""

import csv
import json
import random

import pytest
import spacy

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


DATE = cycle("2024-03-04 12:10:07", "March 4, 2024 at 5 pm", "04/03/2024 12:10", "Mon, 4 Mar 2024")
FOUND = {
    "a date and a gold": (("question1", "question2", "created_at", "is_duplicate"), pair(DATE, cycle(0, 1)), "binary"),
    "an explanation": (
        ("premise", "hypothesis", "label", "explanation"),
        pair(cycle(*NLI), lambda i: text()),
        "labelled",
    ),
    "a person": (("Text A", "Text B", "author", "Score"), pair(lambda i: text(2), cycle(1.5, 4)), "graded"),
    "a category": (("q1", "q2", "category", "gold"), pair(cycle("home and garden", "sports"), cycle(0, 0.5)), "graded"),
    "the STS benchmark of the hub": (
        ("sentence1", "sentence2", "genre", "year", "score", "split"),
        pair(cycle("main-news", "main-forums"), cycle("2012test", "2017"), cycle(0.5, 5, 3), cycle("train")),
        "graded",
    ),
    "MRPC": (("#1 String", "#2 String", "#1 ID", "Quality"), pair(lambda i: 10 + 3 * i, cycle(0, 1)), "binary"),
    "labels beside gold labels": (("s1", "s2", "label1", "gold_label"), pair(cycle(*NLI), cycle(*NLI)), "labelled"),
    "few rows": (("premise", "hypothesis", "label"), pair(cycle(0, 1, 2)), "labelled"),
    "words": (("one", "two", "verdict"), pair(cycle("supports", "refutes")), "labelled"),
    "a fraction": (("one", "two", "sim"), pair(lambda i: i / 60), "graded"),
    "two words": (("left_text", "right_text", "humanScore"), pair(lambda i: i / 60), "graded"),
    "classes of a compound": (("first sentence", "second sentence", "final_label"), pair(cycle(0, 1, 2)), "labelled"),
    "a distance beside it": (
        ("a", "b", "cos_dist", "relatedness_score"),
        pair(lambda i: i / 60, cycle(1, 4)),
        "graded",
    ),
    "a target": (("text_a", "text_b", "target"), pair(cycle(0, 1)), "binary"),
    "columns of Python": (("x1", "x2", "y"), pair(cycle(0, 1)), "binary"),
    "German": (("satz1", "satz2", "Ähnlichkeit"), pair(cycle(0.5, 1, 4)), "graded"),
    "Chinese": (("sentence1", "sentence2", "相似度"), pair(cycle(0, 1)), "binary"),
    "an original": (("original", "paraphrase", "label"), pair(cycle(0, 1)), "binary"),
    "gold of two texts": (("search term", "product", "relevance"), pair(cycle(1, 2, 3)), "graded"),
    "fractions are no classes": (("foo", "bar", "rating"), pair(lambda i: i / 60), "graded"),
    "an aside": (("q1", "q2", "explanation", "label"), pair(lambda i: text(), cycle(0, 1)), "binary"),
}


@pytest.mark.parametrize("name", FOUND)
def test_roles(tmp_path, name):
    header, row, kind = FOUND[name]
    gold = next(one for one in reversed(header) if one not in ("split", "explanation"))
    table = find_table(write(tmp_path, header, row, n=3 if name == "few rows" else 60))
    assert roles(table) == (kind, header[:2], gold)
    assert set(table.unused) == {*header[2:]} - {gold}


@pytest.mark.parametrize(
    ("header", "column"),
    [
        (("question1", "question2", "when"), DATE),
        (("one", "two", "link"), lambda i: f"https://example.org/{i} www.example.org"),
        (("a", "b", "year"), lambda i: 2010 + i % 11),
        (("a", "b", "cv_fold"), lambda i: i % 5),
        (("a", "b", "upvotes"), lambda i: i * i % 37),
        (("a", "b", "text_length"), lambda i: 5 + i % 7),
        (("one", "two", "split"), cycle("train", "test")),
        (("anchor", "Positive", "category"), cycle("x", "y")),
        (("one", "two", "user_id"), lambda i: i // 2),
    ],
)
def test_unused_columns(tmp_path, header, column):
    table = find_table(write(tmp_path, header, pair(column)))
    assert roles(table) == ("positives", header[:2], None) and table.unused == header[2:]


@pytest.mark.parametrize(
    ("header", "row", "readings"),
    [
        (("foo", "bar", "comment"), pair(lambda i: text()), ["foo,bar (pairs", "foo,bar,comment (trip"]),
        (
            ("foo", "bar", "note", "score"),
            pair(lambda i: text(), cycle(0, 1)),
            ["foo,bar --score score", "foo,bar,note"],
        ),
        (("foo", "bar", "person"), pair(lambda i: text(2)), ["foo,bar (pairs alone)", "foo,bar,person"]),
        (("a", "b", "karma"), pair(lambda i: i * i % 37), ["a,b --score karma", "a,b (pairs alone)"]),
        (
            ("question", "answer", "category"),
            pair(cycle("x", "y")),
            ["--label category", "question,answer (pairs alone)"],
        ),
        (("title", "text", "label"), pair(cycle("x", "y")), ["title,text --label label", "text --label label (texts"]),
        (
            ("keyword", "location", "text", "target"),
            lambda i: (text(2), text(2), text(), i % 2),
            ["keyword,location --score target", "keyword,location,text (triplets)", "text --label target (texts"],
        ),
        (
            ("query", "pos", "neg_1", "neg_2"),
            lambda i: [text() for _ in range(4)],
            ["pos,neg_1", "pos,neg_2", "y,pos ("],
        ),
        (
            ("utterance", "what is it"),
            lambda i: (text(), ["my card", "a loan"][i % 2]),
            ['utterance --label "what is it"'],
        ),
    ],
)
def test_ambiguous_tables(tmp_path, header, row, readings):
    path = write(tmp_path, header, row)
    with pytest.raises(ValueError, match=r"own\.csv") as caught:
        find_table(path)
    shown = str(caught.value)
    assert all(reading in shown for reading in readings), shown
    for line in shown.splitlines()[1:]:  # each of the options works
        words = next(csv.reader([line.partition(" (")[0].strip()], delimiter=" "))
        given = dict(zip((word.removeprefix("--") for word in words[::2]), words[1::2], strict=True))
        members = tuple(given.pop("members").split(","))
        table = find_table(path, members=members, **given)
        assert roles(table)[1:] == (members, given.get("score") or given.get("label"))


NUMBERS = {"0 and 1": cycle(0, 1), "fractions": lambda i: i / 60, "whole": cycle(1, 2, 3)}


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("name", ["X", "karma", "is_weekend", "bm25_score", "sentiment", "Target2"])
def test_numbers_with_other_names_are_not_gold(tmp_path, name, numbers):
    path = write(tmp_path, ("a", "b", name), pair(NUMBERS[numbers]))
    with pytest.raises(ValueError, match="--members") as caught:
        find_table(path)
    assert f"--members a,b --score {name} (pairs with scores)" in str(caught.value)
    assert "--members a,b (pairs alone)" in str(caught.value)
    assert ("--label" in str(caught.value)) is (numbers == "whole")
    table = find_table(path, members=("a", "b"))
    assert roles(table) == ("positives", ("a", "b"), None) and table.unused == (name,)
    assert roles(find_table(path, score=name)) == ("binary" if numbers == "0 and 1" else "graded", ("a", "b"), name)


@pytest.mark.parametrize(
    "name",
    ["distance", "cos_dist", "cosinedistance", "dissimilarity", "dissimilarity_score", "is_different", "isDifferent",
     "not_duplicate", "notduplicate", "is_not_similar", "unrelated", "difference", "contradiction", "no_match",
     "Levenshtein"],
)  # fmt: skip
def test_distances_are_not_gold(tmp_path, name):
    path = write(tmp_path, ("a", "b", name), pair(cycle(0, 1)))
    with pytest.raises(ValueError, match=f"'{name}'") as caught:
        find_table(path)
    assert f"with --members a,b, or give --score {name} if" in str(caught.value)
    assert roles(find_table(path, members=("a", "b")))[2] is None
    assert roles(find_table(path, score=name)) == ("binary", ("a", "b"), name)
    path = write(tmp_path, ("a", "b", "score", name), pair(cycle(0.5, 1), cycle(0.5, 0)))
    assert roles(find_table(path)) == ("graded", ("a", "b"), "score")


@pytest.mark.parametrize(
    ("header", "given"),
    [
        (("text1", "text2", "text3", "text4"), "text1, text2, text3, text4"),
        (("a", "b", "c", "d"), "a, b, c, d"),
        (("q1", "q2", "q3", "q4", "q5"), "q1, q2, q3, q4, q5"),
        (("question", "option_a", "option_b", "option_c"), "option_a, option_b, option_c, question"),
        (("passage", "s1", "s2", "s3"), "s1, s2, s3, passage"),
    ],
)
def test_series_of_texts(tmp_path, header, given):
    path = write(tmp_path, header, lambda i: [text() for _ in header])
    with pytest.raises(ValueError, match=given):
        find_table(path)
    assert roles(find_table(path, members=header[:3]))[1] == header[:3]


@pytest.mark.parametrize(
    "header",
    [("question", "answer1", "answer2"), ("prompt", "response_a", "response_b"), ("goal", "sol1", "sol2"),
     ("context", "sentence1", "sentence2"), ("query", "left_doc", "right_doc")],
)  # fmt: skip
def test_numbered_pair_and_another_text(tmp_path, header):
    for names, kind in (((), "(pairs alone)"), (("label",), "--score label (pairs with scores)")):
        path = write(tmp_path, (*header, *names), lambda i: [text() for _ in header] + [i % 2] * len(names))  # noqa: B023
        with pytest.raises(ValueError, match="--members") as caught:
            find_table(path)
        assert f"--members {','.join(header[1:])} {kind}" in str(caught.value)
        assert f"--members {','.join(header)} (triplets)" in str(caught.value)


def test_labels_are_not_texts(tmp_path):
    path = write(tmp_path, ("v1", "v2"), lambda i: ("ham" if i % 3 else "spam", text()))
    assert roles(find_table(path)) == ("classes", ("v2",), "v1")
    path = write(tmp_path, ("question", "answer"), lambda i: (text(), "Paris" if i % 3 else "Rome"))
    with pytest.raises(ValueError, match=r"question,answer \(pairs alone\)\n  --members question --label answer"):
        find_table(path)


@pytest.mark.parametrize(
    ("header", "values", "body"),
    [
        (("text", "author_name", "label"), cycle(0, 1), "text"),
        (("text", "explanation", "label"), cycle("good", "bad"), "text"),
        (("text", "text_clean", "label"), cycle(0, 1, 2), "text"),
        (("tweet", "user_name", "hate"), cycle(0, 1), "tweet"),
        (("title", "review", "rating"), cycle(1, 2, 3, 4, 5), "review"),
        (("review", "summary", "rating"), cycle(1, 2, 3, 4, 5), "review"),
        (("subject", "message", "spam"), cycle(0, 1), "message"),
        (("subject", "message", "category"), cycle("spam", "ham"), "message"),
        (("foo", "bar", "gold_score"), cycle(1, 2, 3), "foo"),
        (("title", "review", "rating"), cycle(1.5, 4.5, 4, 5), "review"),
    ],
)
def test_two_texts_that_are_no_pair(tmp_path, header, values, body):
    sizes = [9 if name == body else 4 for name in header[:2]]
    path = write(tmp_path, header, lambda i: (*map(text, sizes), values(i)))
    with pytest.raises(ValueError, match="--members") as caught:
        find_table(path)
    assert f"--members {header[0]},{header[1]} --" in str(caught.value)
    assert f"--members {body} --label {header[2]} (texts with labels)" in str(caught.value)
    assert roles(find_table(path, members=(body,), label=header[2])) == ("classes", (body,), header[2])
    assert roles(find_table(path, members=header[:2], label=header[2])) == ("labelled", header[:2], header[2])


@pytest.mark.parametrize(
    "header",
    [("query", "positive", "negative"), ("anchor", "pos", "hard_neg"), ("question", "answer", "wrong answer"),
     ("text1", "text2", "text3"), ("a", "b", "c"), ("Sentence A", "Sentence B", "Sentence C")],
)  # fmt: skip
def test_triplets(tmp_path, header):
    path = write(tmp_path, ("id", *header), lambda i: (f"q{i}", text(), text(), text()))
    assert roles(find_table(path)) == ("triplets", header, None)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("values", [(True, False), ("True", "False"), ("yes", "no"), ("TRUE", "FALSE")])
def test_booleans(tmp_path, suffix, values):
    path = write(tmp_path, ("left", "right", "same"), pair(cycle(*values)), suffix=suffix)
    table = find_table(path)
    assert roles(table) == ("binary", ("left", "right"), "same")
    examples = PairCorpus(path, format="table", **table.reading())(NLP)
    scores = [example.reference.spans["sbert"].attrs["score"] for example in examples]
    assert scores == [1.0, 0.0] * 30


MISSING = {  # values, those that mark no gold, kind
    "numbers of SNLI": ((0, 1, 2, -1), ("-1",), "labelled"),
    "floats": ((0.0, 1.0, 2.0, -1.0), ("-1.0",), "labelled"),
    "words": ((*NLI, "-"), ("-",), "labelled"),
    "words and -1": ((*NLI, "-1", "", "-"), ("-", "-1", ""), "labelled"),
    "0 and 1, seldom -1": ((0, 1, 0, 1, 0, 1, -1), ("-1",), "binary"),
    "0 and 1, or blank": ((0, 1, 0, 1, ""), ("",), "binary"),
    "against, neutral, for": ((-1, 0, 1), (), "labelled"),
    "plus and minus": (("+", "-"), (), "labelled"),
    "three signs": (("+", "-", "?"), (), "labelled"),
    "pandas": ((1.0, 0.0, "NA"), ("NA",), "binary"),
    "pandas, mostly blank": ((1, 0, "nan", "nan", "NaN", "nan"), ("NaN", "nan"), "binary"),
    "spreadsheets": ((*NLI, "#N/A", "N/A", "n/a"), ("#N/A", "N/A", "n/a"), "labelled"),
    "databases": ((0, 1, 2, "NULL", "null", "\\N"), ("NULL", "\\N", "null"), "labelled"),
    "questions": ((*NLI, "?", "--"), ("--", "?"), "labelled"),
    "None beside numbers": ((0.0, 1.0, 2.0, "None"), ("None",), "labelled"),
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


def test_scores_are_never_missing(tmp_path):
    path = write(tmp_path, ("one", "two", "score"), pair(lambda i: -1 if i == 9 else i % 2))
    with pytest.raises(ValueError, match=r"line 11: the score -1"):
        find_table(path)


@pytest.mark.parametrize(
    ("first", "second"),
    [("一个人在吃饭。", "有人在用餐。"), ("猫が寝ている", "犬が走る"), ("ฉันกินข้าว", "เขากำลังกิน"), ("iPhone", "Telefon")],
)
@pytest.mark.parametrize("header", [("sentence1", "sentence2", "score"), ("x", "y", "sim")])
def test_texts_without_spaces(tmp_path, first, second, header):
    letter = lambda i: chr(ord(first[-2]) + i % 3) + first[i % 3] + second[i % 2 :]  # noqa: E731
    path = write(tmp_path, header, lambda i: (first + letter(i), second + letter(i + 1), i % 6), n=30)
    assert roles(find_table(path)) == ("graded", header[:2], header[2])


@pytest.mark.parametrize(
    ("header", "column"),
    [
        (("text", "category"), lambda i: f"card_{i % 30}"),
        (("sentence", "label"), lambda i: i % 2),
        (("utterance", "intent"), cycle("lost my card", "open an account")),
        (("text", "verdict"), cycle("good", "bad")),
        (("text", "label"), lambda i: i % 30),
    ],
)
def test_texts_with_classes(tmp_path, header, column):
    path = write(tmp_path, ("id", *header), lambda i: (i, text(), column(i)), n=90)
    assert roles(find_table(path)) == ("classes", header[:1], header[1])
    assert roles(find_table(path, members=header[:1], label=header[1])) == ("classes", header[:1], header[1])


@pytest.mark.parametrize(
    "row",
    [{"query": "a b", "pos": ["c d"]}, {"a": "a b", "c": ["d"]}, {"query": "a b", "title": "c d", "pos": [{"t": 1}]}],
)
def test_nested_json(tmp_path, row):
    path = tmp_path / "own.jsonl"
    path.write_text(f"{json.dumps(row)}\n" * 3)
    with pytest.raises(ValueError, match=rf"own\.jsonl, line 1: .*'{[*row][-1]}'"):
        find_table(path)


def test_columns_without_names(tmp_path):
    path = write(tmp_path, (1, text(), text(), 17), lambda i: (i % 2, text(), text(), 18 + i))
    assert roles(find_table(path, header=False)) == ("binary", ("1", "2"), "0")
    path = write(tmp_path, (text(), text(), 0.5), lambda i: (text(), text(), i % 5 + 0.5))
    assert roles(find_table(path, header=False)) == ("graded", ("0", "1"), "2")


# Rows without gold


def test_all_labels_missing(tmp_path):
    for row in (pair(cycle("")), pair(cycle("-")), pair(cycle("", "-")), lambda i: (text(), text(), " ")):
        for name, options in (("label", {}), ("gold_label", {}), ("kind", {"members": ["a", "b"], "label": "kind"})):
            path = write(tmp_path, ("a", "b", name), row)
            with pytest.raises(ValueError, match=f"'{name}'.* 60 rows"):
                find_table(path, **options)
    path = write(tmp_path, ("a", "b", "label"), pair(cycle("")))
    assert find_table(path, members=["a", "b"]).kind == "positives"
    path = write(tmp_path, ("a", "b", "label", "score"), pair(cycle(""), cycle(0.5, 0.2)))
    assert find_table(path).columns.score == "score"


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
    with pytest.raises(ValueError, match="line 1: expected a column 'glod'"):
        list(PairCorpus(path, format="table", members=["a", "b"], label="glod", missing=[""])(NLP))
