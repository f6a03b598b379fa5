"""Which columns of a table are the texts and the gold: by options, by well-known names, or refused
with the options.
"""

import json
import re
from functools import partial

import pytest
import spacy
from helpers.made_tables import NLI, cycle, text, write_columns

from spacy_sbert.files.tables import TextColumns, read_text_rows
from spacy_sbert.readers import PairCorpus
from spacy_sbert.readers.infer_schema import find_table
from spacy_sbert.readers.text_cells import find_texts

NLP = spacy.blank("en")


def roles(table):
    columns = table.columns
    return table.kind, columns.members, columns.score or columns.label


@pytest.fixture
def write(tmp_path):
    """Write a table of these columns."""
    return lambda header, *columns, suffix=".csv", **n: write_columns(
        tmp_path / f"own{suffix}", header, *columns, **n
    )


# The kind of a table; its header, of which the first two are texts and the last is the gold; other
# columns
FOUND = {
    "Quora": (
        "binary",
        ("question1", "question2", "created_at", "is_duplicate"),
        cycle("2024-03-04"),
        cycle(0, 1),
    ),
    "e-SNLI": (
        "labelled",
        ("premise", "hypothesis", "annotator", "label"),
        partial(text, size=2),
        cycle(*NLI),
    ),
    "a person": (
        "graded",
        ("Text A", "Text B", "author", "Score"),
        partial(text, size=2),
        cycle(1.5, 4),
    ),
    "fractions under a label": ("graded", ("q1", "q2", "gold"), cycle(0, 0.5)),
    "the STS benchmark of the hub": (
        "graded",
        ("sentence1", "sentence2", "genre", "year", "split", "score"),
        cycle("main-news", "main-forums"),
        cycle("2012test", "2017"),
        cycle("train"),
        cycle(0.5, 5, 3),
    ),
    "MRPC": (
        "binary",
        ("#1 String", "#2 String", "#1 ID", "Quality"),
        lambda i: 10 + 3 * i,
        cycle(0, 1),
    ),
    "labels beside gold labels": (
        "labelled",
        ("s1", "s2", "label", "gold_label"),
        cycle(*NLI),
        cycle(*NLI),
    ),
    "words": ("labelled", ("one", "two", "verdict"), cycle("supports", "refutes")),
    "left and right": ("graded", ("left_text", "right_text", "humanScore"), lambda i: i / 60),
    "first and second": (
        "labelled",
        ("first sentence", "second sentence", "label"),
        cycle(0, 1, 2),
    ),
    "a distance beside it": (
        "graded",
        ("a", "b", "distance", "relatedness_score"),
        cycle(1, 0),
        cycle(1, 4),
    ),
    "columns of Python": ("binary", ("x1", "x2", "target"), cycle(0, 1)),
    "an original": ("binary", ("original", "paraphrase", "label"), cycle(0, 1)),
}


@pytest.mark.parametrize("name", FOUND)
def test_well_known_names(write, name):
    kind, header, *others = FOUND[name]
    table = find_table(write(header, text, text, *others))
    assert roles(table) == (kind, header[:2], header[-1])
    assert table.unused == header[2:-1]


@pytest.mark.parametrize(
    "header", [("a", "b", "year"), ("one", "two", "split"), ("anchor", "Positive", "row_id")]
)
def test_unused_columns(write, header):
    table = find_table(write(header, text, text, cycle(2010, "train", 7)))
    assert roles(table) == ("positives", header[:2], None)
    assert table.unused == header[2:]


def test_index_of_pandas_and_blank_columns_are_unused(write):
    path = write(
        ("", "first", "second", "score", "", ""), int, text, text, cycle(0.5), cycle(""), cycle("")
    )
    assert roles(find_table(path)) == ("graded", ("first", "second"), "score")
    # As scikit-learn's
    table = find_table(write(("Unnamed: 0", "text", "topic"), int, text, cycle(*"xyz")))
    assert roles(table) == ("classes", ("text",), "topic")
    assert table.unused == ("Unnamed: 0",)


# What is not known by its name is neither guessed nor passed over
REFUSED = {
    ("foo", "bar", "score"): "no names are those of a pair",
    ("text1", "text2", "text3", "text4"): "text1, text2 and text3 are more than a pair",
    ("a", "b", "c"): "a, b and c are more than a pair",
    ("question", "answer1", "answer2"): "answer1, answer2 may be the gold",
    ("question", "answer", "category"): "category may be the gold",
    ("query", "pos", "neg", "hard_negative"): "not one anchor, one positive and one kind of neg",
    ("sentence1", "sentence2", "text_a", "text_b", "score"): "several pairs",
    ("a", "b", "similarity", "label"): "similarity, label may each be the gold",
    ("title", "review", "rating"): "rating may be the gold",
    **{
        ("a", "b", name): f"{name} may be the gold"
        for name in ("karma", "distance", "is_different", "not_duplicate")
    },
}


@pytest.mark.parametrize("header", REFUSED)
def test_other_names_are_refused(write, header):
    path = write(header, *(text for _ in header[1:]), cycle(0, 1))
    with pytest.raises(ValueError, match=REFUSED[header]) as caught:
        find_table(path)
    said = str(caught.value)
    assert f"{path}" in said
    assert f"Its columns are: {', '.join(header)}." in said
    assert "--members first,second --score COLUMN (or --label COLUMN)" in said
    assert "--no-header" in said
    for gold in ("score", "label"):
        table = find_table(path, members=header[:2], **{gold: header[-1]})
        assert roles(table) == ("binary" if gold == "score" else "labelled", header[:2], header[-1])
    assert roles(find_table(path, members=header[:1], label=header[-1]))[:2] == (
        "classes",
        header[:1],
    )


# Headers whose second name is not known, and the column of texts that would not be read
UNREAD = {
    ("message", "other", "same"): "other",
    ("text", "text_b", "label"): "text_b",
    ("utterance", "reference", "target"): "reference",
    ("sentence", "rewritten", "is_paraphrase"): "rewritten",
    ("query", "found", "relevant"): "found",
    ("premise", "hypothesis", "explanation", "label"): "explanation",
    ("query", "positive", "negative", "title"): "title",
}


@pytest.mark.parametrize("names", ["text,,label", "text, ,tag,label", ",text,label"])
def test_texts_of_a_column_without_a_name_are_refused(tmp_path, names):
    cells = {
        "text": "My card number {} was stolen.",
        "label": "{}",
        "": "Somebody took my card {}.",
        "tag": "4",
    }
    header = [name.strip() for name in names.split(",")]
    rows = [
        ",".join(cells[name].format(row % 2 if name == "label" else row) for name in header)
        for row in range(30)
    ]
    path = tmp_path / "own.csv"
    path.write_text("\n".join([names, *rows]), encoding="utf8")
    with pytest.raises(ValueError, match=f"column {header.index('') + 1} .* no name"):
        find_table(path)
    assert find_table(path, members=["text"]).columns.members == ("text",)


@pytest.mark.parametrize("blank", ["", " ", "\t", "\u00a0"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_texts_without_a_name_are_refused_in_every_format(write, suffix, blank):
    if suffix == ".tsv" and blank == "\t":
        pytest.skip("a tab separates columns there")
    header = (
        ("text", blank, "label") if suffix != ".csv" else ("text", f" {blank.strip()} ", "label")
    )
    path = write(header, text, text, cycle("a", "b"), suffix=suffix)
    label = re.escape(f"the field {blank!r}") if suffix == ".jsonl" else "column 2"
    with pytest.raises(ValueError, match=f"{label} .* no name"):
        find_table(path)
    assert find_table(path, members=["text"]).columns.members == ("text",)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("values", [cycle(0.5, 1.5, 4), cycle("same", "other"), cycle(0, 1)])
def test_gold_without_a_name_is_refused(write, suffix, values):
    """Numbers of rows, as pandas writes its index, are none."""
    header = ("sentence1", "sentence2", "")
    with pytest.raises(ValueError, match=r"(column 3|the field '') has no name"):
        find_table(write(header, text, text, values, suffix=suffix))
    assert find_table(write(header, text, text, int, suffix=suffix)).kind == "positives"
    assert (
        find_table(write((*header, "score"), text, text, values, cycle(0, 1), suffix=suffix)).kind
        == "binary"
    )


@pytest.mark.parametrize("name", [" text", "text "])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_spaces_around_a_name(write, suffix, name):
    path = write((name, "label"), text, cycle("a", "b"), suffix=suffix)
    assert find_table(path).columns.members == ("text",)
    assert len(list(read_text_rows(path, TextColumns("text")))) == find_table(path).count


def test_numbers_in_a_column_without_a_name_pass(tmp_path):
    path = tmp_path / "own.csv"
    rows = [f"{row},My card number {row} was stolen.,{row % 2}," for row in range(30)]
    path.write_text("\n".join([",text,label,", *rows]), encoding="utf8")
    assert find_table(path).columns.members == ("text",)


@pytest.mark.parametrize("header", UNREAD)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_texts_that_are_not_read_are_refused(write, header, suffix):
    columns = [
        cycle("0", "1") if name == header[-1] and name != "title" else text for name in header
    ]
    path = write(header, *columns, suffix=suffix)
    name = UNREAD[header]
    with pytest.raises(ValueError, match=f"'{name}' holds texts") as caught:
        find_table(path)
    to_read, to_leave_out = re.findall("--members ([^ ]+) to", str(caught.value))
    assert name in to_read.split(",")
    assert name not in to_leave_out.split(",")
    if len(header) == 3:
        assert find_table(path, members=to_read.split(",")).columns.members == header[:2]
    assert name in find_table(path, members=to_leave_out.split(",")).unused


# What a column may hold: texts
TEXTS = {
    "sentences": ["My card was stolen.", "Where is it?", "Top up failed."],
    "questions without marks": ["how old must i be", "is it free", "where is my card"],
    "two words": ["Kart\u0131m \u00e7al\u0131nd\u0131.", "Karte gestohlen!", "Geht nicht."],
    "Chinese": [
        "\u4e00\u4e2a\u4eba\u5728\u5403\u996d\u3002",
        "\u5929\u5728\u4e0b\u96e8\u3002",
        "\u6211\u7684\u5361\u4e22\u4e86",
    ],
    "with numbers": ["I paid 30 pounds on 4 March", "The 2nd card is lost", "Room 12 is too cold"],
    "some blank": ["My card was stolen.", "", "Where is my card?"],
    "long": [
        "One, two, and then three things that I would say. " * 30,
        "Another one of them. " * 50,
        "A third one, too.",
    ],
}
# And what passes
OTHERS = {
    "ids": ["a1b2-c3d4", "A 1 2", "77"],
    "dates": ["2024-03-04", "Mon, 04 Mar 2024 10:00:00 GMT", "March 4, 2024"],
    "times": [
        "4. M\u00e4rz 2024 um 10 Uhr",
        "2024-03-04T10:00:00Z",
        "Monday, 4 March 2024 at 10:00",
    ],
    "categories": ["card not working"] * 9 + ["top up has failed"] * 9,
    "numbers": ["1", "2.5", "1,000 000"],
    "urls": ["https://example.com/a-page", "www.example.com", "https://example.com/a b?c=d e"],
    "names": ["Ada Lovelace", "Grace Hopper", "J. R. R. Tolkien"],
    "words": ["card", "money", "free"],
    "lists": ["news, sports, uk", "music; the uk; food", "sports|news|world"],
    "markup": ["<p>one two three</p>", '{"a": "b c d"}', "['x y z', 'u']"],
    "paths": ["/data/a.txt", "C:\\data\\b.txt", "a/b/c.txt"],
    "blank": ["", " ", ""],
}


@pytest.mark.parametrize("name", [*TEXTS, *OTHERS])
def test_columns_of_texts_are_known_by_their_values(write, name):
    values = {**TEXTS, **OTHERS}[name]
    path = write(
        ("message", "added", "label"), text, lambda i: values[i], cycle("x", "y"), n=len(values)
    )
    assert find_texts(path, ["added", "label"]) == (["added"] if name in TEXTS else [])


def test_texts_in_lists_of_json(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        "".join(
            json.dumps({"others": [text(), text()], "n": {"a": 1}, "no": None}) + "\n"
            for _ in range(9)
        )
    )
    assert find_texts(path, ["others", "n", "no", "left_out"]) == ["others"]


def test_members_that_options_name_need_no_gold(write):
    path = write(("a", "b", "karma"), text, text, cycle(0, 1))
    assert roles(find_table(path, members=("a", "b"))) == ("positives", ("a", "b"), None)
    assert roles(find_table(path, score="karma")) == ("binary", ("a", "b"), "karma")
    path = write(("a", "b", "similarity"), text, text, cycle(0, 1))
    assert roles(find_table(path, members=("b", "a"))) == ("binary", ("b", "a"), "similarity")
    with pytest.raises(ValueError, match="expected a column 'glod'"):
        find_table(path, score="glod")


@pytest.mark.parametrize(
    "names",
    [
        "query positive negative",
        "anchor pos hard_neg",
        "question answer wrong_answer",
        "sent0 sent1 hard_neg",
    ],
)
def test_triplets(write, names):
    header = tuple(names.split())
    path = write(("id", *header), "q{}".format, text, text, text)
    assert roles(find_table(path)) == ("triplets", header, None)
    assert roles(find_table(path, members=header[::-1])) == ("triplets", header[::-1], None)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("values", [(True, False), ("yes", "no"), ("TRUE", "FALSE")])
def test_booleans(write, values, suffix):
    path = write(("left", "right", "same"), text, text, cycle(*values), suffix=suffix)
    table = find_table(path)
    assert roles(table) == ("binary", ("left", "right"), "same")
    examples = PairCorpus(path, format="table", **table.reading())(NLP)
    assert [example.reference.spans["sbert"].attrs["score"] for example in examples] == [
        1.0,
        0.0,
    ] * 20


# values, those that mark no gold, kind
MISSING = {
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
    "None beside truths": (("True", "False", "None"), ("None",), "binary"),
    "None beside truths in lower case": (("true", "false", "none", ""), ("none", ""), "binary"),
    "none beside yes and no": (("yes", "no", "none"), (), "labelled"),
    "none beside words": (("favor", "against", "none"), (), "labelled"),
}


@pytest.mark.parametrize("name", MISSING)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_rows_without_gold(write, name, suffix):
    values, marks, kind = MISSING[name]
    path = write(
        ("premise", "hypothesis", "label"), text, text, cycle(*values), n=84, suffix=suffix
    )
    table = find_table(path)
    skipped = sum(str(values[i % len(values)]) in marks for i in range(84))
    assert (table.kind, table.columns.missing, table.skipped, table.count) == (
        kind,
        marks,
        skipped,
        84 - skipped,
    )
    corpus = PairCorpus(path, format="table", **table.reading())
    golds = [example.reference.spans["sbert"].attrs for example in corpus(NLP)]
    assert len(golds) == corpus.count() == 84 - skipped
    assert {str(gold[key]) for gold in golds for key in gold}.isdisjoint(marks)


@pytest.mark.parametrize(
    ("bad", "message"),
    [(-1, "line 11: the score -1"), ("NA", "line 11: expected a number.* got 'NA'")],
)
def test_scores_are_never_missing(write, bad, message):
    path = write(("one", "two", "score"), text, text, lambda i: bad if i == 9 else i % 2)
    with pytest.raises(ValueError, match=message):
        find_table(path)


def test_numbers_are_no_texts(write):
    path = write(("text", "paraphrase", "score"), text, cycle(0, 1), cycle(0, 1, 2))
    with pytest.raises(ValueError, match="paraphrase is a text, but it holds numbers"):
        find_table(path)


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"query": "a b", "pos": ["c d"]}, "pos"),
        ({"anchor": "a", "positive": "b", "negative": [{"t": 1}]}, "negative"),
    ],
)
def test_lists_are_no_texts(tmp_path, row, column):
    path = tmp_path / "own.jsonl"
    path.write_text(f"{json.dumps(row)}\n" * 3)
    with pytest.raises(ValueError, match=rf"own\.jsonl, line 1: .*'{column}'"):
        find_table(path)


@pytest.mark.parametrize(
    ("header", "name"),
    [("text,text,score", "text"), ("label,text,text", "text"), ("text,note,note", "note")],
)
def test_columns_of_the_same_name(tmp_path, header, name):
    path = tmp_path / "own.csv"
    path.write_text(f"{header}\na b,c d,e f\n")
    with pytest.raises(ValueError, match=rf"own\.csv.* two columns are named '{name}'"):
        find_table(path)


def test_columns_without_names(write):
    """Two columns of words, and one of numbers at most."""
    path = write((1, text(), text()), cycle(0, 1), text, text)
    assert roles(find_table(path, header=False)) == ("binary", ("1", "2"), "0")
    path = write((text(), text()), text, text)
    assert roles(find_table(path, header=False)) == ("positives", ("0", "1"), None)


@pytest.mark.parametrize(
    ("row", "member"),
    [
        pytest.param((1, text(), text(), 17), "1", id="two columns of numbers"),
        pytest.param((text(), text(), "x"), "0", id="three columns of words"),
        pytest.param((text(), 0.5), "0", id="one column of words"),
    ],
)
def test_columns_without_names_that_need_options(write, row, member):
    path = write(row, *map(cycle, row))
    last = str(len(row) - 1)
    with pytest.raises(ValueError, match=f"are: 0, 1.*{last}"):
        find_table(path, header=False)
    assert find_table(path, header=False, members=[member], label=last).count == 41


@pytest.mark.parametrize(
    "rows",
    [
        "A man eats food.,A man eats.,4.8\nA dog barks.,It rains now.,0.2\n",
        "cat,dog,0.3\ncar,tree,0.1\n",
        "A man eats.\nIt rains now.\n",
        "A man eats.,Someone eats.,entailment\nA dog barks.,A cat barks.,neutral\n",
        "\u4e00\u4e2a\u4eba\u3002,\u6709\u4eba\u3002\n\u5929\u5728\u4e0b\u96e8\u3002,\u72d7\u3002\n",
    ],
)
def test_first_row_of_data_is_no_header(tmp_path, rows):
    path = tmp_path / "own.csv"
    path.write_text(rows, encoding="utf8")
    with pytest.raises(ValueError, match=r"own\.csv.*--no-header"):
        find_table(path)
    with pytest.raises(ValueError, match=r"own\.csv, line 1: .*'text'.*--no-header"):
        # As encode and search read it
        list(read_text_rows(path, TextColumns()))
    assert len(list(read_text_rows(path, TextColumns("0", header=False)))) == 2


# Rows without gold


@pytest.mark.parametrize("values", [[""], ["-"], ["", "-"], [" "]])
@pytest.mark.parametrize(
    ("name", "options"),
    [("label", {}), ("gold_label", {}), ("kind", {"members": ["a", "b"], "label": "kind"})],
)
def test_all_labels_missing(write, values, name, options):
    path = write(("a", "b", name), text, text, cycle(*values))
    with pytest.raises(ValueError, match=f"'{name}'.* 40 rows"):
        find_table(path, **options)
    assert find_table(path, members=["a", "b"]).kind == "positives"


@pytest.mark.parametrize("none", [None, float("nan"), "left out"])
@pytest.mark.parametrize("values", [("x", "y"), (0, 1)], ids=["label", "score"])
def test_json_objects_without_gold(tmp_path, values, none):
    path = tmp_path / "own.jsonl"
    rows = [{"gold": value, "a": text(), "b": text()} for value in [none, *values * 20]]
    rows = [{name: value for name, value in row.items() if value != "left out"} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = find_table(path)
    assert (found.count, found.skipped, found.columns.missing) == (40, 1, ("",))
    assert len(found.gold) == 2
    assert len(list(PairCorpus(path, format="table", **found.reading())(NLP))) == 40
    with pytest.raises(ValueError, match=r"line 1: .*'gold'"):
        list(PairCorpus(path, format="table", **(found.reading() | {"missing": ["-"]}))(NLP))
    with pytest.raises(ValueError, match="holds no pairs"):
        list(PairCorpus(path, format="table", members=["a", "b"], label="glod", missing=[""])(NLP))
    with pytest.raises(ValueError, match="'glod' has no gold in any of 41 rows"):
        find_table(path, score="glod")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.json"])
@pytest.mark.parametrize("content", ["", "\n", " \n\t\n"])
def test_a_table_without_a_header_holds_no_examples(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ValueError, match=r"holds no examples\. Give a table"):
        find_table(path)


def test_a_score_is_no_number_of_python(write):
    with pytest.raises(ValueError, match="'score', got '1_0'"):
        find_table(write(("sentence1", "sentence2", "score"), text, text, cycle("1_0", "2_0")))


@pytest.mark.parametrize("name", ["valid", "is_valid", "Paid", "isVoid"])
def test_a_word_that_ends_as_ids_do_may_be_the_gold(write, name):
    path = write(("sentence1", "sentence2", name), text, text, cycle(0, 1))
    with pytest.raises(ValueError, match=f"{name} may be the gold"):
        find_table(path)
    assert roles(find_table(path, score=name)) == ("binary", ("sentence1", "sentence2"), name)


@pytest.mark.parametrize(
    "given",
    [
        {"members": ("a", "a")},
        {"members": ("a", "b", "a")},
        {"members": ("a", "b"), "label": "b"},
        {"members": ("a",), "label": "a"},
    ],
)
def test_a_column_that_is_named_twice_is_refused(write, given):
    """A text would be compared with itself, or be its own label."""
    path = write(("a", "b", "score"), text, text, cycle(0, 1))
    twice = next(iter({*given["members"][1:], given.get("label")} - {None, "b"}), "b")
    with pytest.raises(ValueError, match=f"column '{twice}' is named twice"):
        find_table(path, **given)
    with pytest.raises(ValueError, match=f"column '{twice}' is named twice"):
        PairCorpus(path, **{**given, "members": list(given["members"])})
