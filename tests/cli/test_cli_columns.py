"""What a table says of its texts is kept: ids and other columns; texts of any kind are written."""

import csv
import os
import sys
from pathlib import Path

import pytest
import spacy
import srsly
from helpers.invoking import said
from helpers.made_tables import write_rows
from helpers.pipelines import ROOT

from spacy_sbert import SentenceBert
from spacy_sbert.visual.scatter import class_terms, words_of

TEXTS = [
    "the cat sat on the mat",
    "a dog ran",
    "the cat sat on the mat",
    "",
    "food for the man",
    "a dog ran",
    "he",
]
IDS = [f"t{i}" for i in range(len(TEXTS))]


@pytest.fixture(autouse=True)
def folder(nlp_folder):
    """A table of these texts in two formats; in one a row has a column that the others have not."""
    header = ("body", "sku", "cluster", "note")
    rows = [(text, IDS[i], i % 2, f"note {i}, more") for i, text in enumerate(TEXTS)]
    write_rows(nlp_folder / "a.csv", header, rows)
    records = [dict(zip(header, row, strict=True)) for row in rows]
    records[5]["tags"] = ["x"]
    srsly.write_jsonl(nlp_folder / "a.jsonl", records)


def read(path):
    if path.endswith(".jsonl"):
        return list(srsly.read_jsonl(path))
    with open(path, encoding="utf8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", strict=True))


COLUMNS = ("--column", "body", "--id-column", "sku", "--quiet")


# Those that have a text
KEPT = [i for i, text in enumerate(TEXTS) if text]


@pytest.mark.parametrize(
    ("source", "target", "more"), [("a.csv", "c.jsonl", []), ("a.jsonl", "c.tsv", ["tags"])]
)
def test_cluster_keeps_columns(source, target, more):
    said("cluster", "nlp", source, target, *COLUMNS, "-m", "hierarchical", "-n", 3)
    found = read(target)
    # The name "cluster" was taken
    names = ["cluster", "name", "row", "id", "text", "cluster_2", "note", *more]
    assert list(found[0]) == names
    assert [int(row["row"]) for row in found] == KEPT
    assert [row["id"] for row in found] == [IDS[i] for i in KEPT]
    assert [row["text"] for row in found] == [TEXTS[i] for i in KEPT]
    assert [row["note"] for row in found] == [f"note {i}, more" for i in KEPT]
    assert [int(row["cluster_2"]) for row in found] == [i % 2 for i in KEPT]
    assert [row["tags"] for row in found if row.get("tags")] == ['["x"]'] * len(more)


def test_cluster_names_rows_without_text(nlp_folder):
    """Also those at the end."""
    rows = [(text, IDS[i]) for i, text in enumerate([*TEXTS[:4], "", "he", ""])]
    write_rows(nlp_folder / "b.csv", ("body", "sku"), rows)
    told = said("cluster", "nlp", "b.csv", "c.jsonl", *COLUMNS, "-m", "hierarchical", "-n", 2)
    assert "Rows without text, which are left out: 3" in told
    assert [row["row"] for row in read("c.jsonl")] == [0, 1, 2, 5]


def test_clusters_are_named_by_their_words():
    said("cluster", "nlp", "a.csv", "c.jsonl", *COLUMNS, "-m", "hierarchical", "-n", 3)
    found = read("c.jsonl")
    labels = [int(row["cluster"]) for row in found]
    tokenize = spacy.blank("en").make_doc
    terms = class_terms([words_of(tokenize(TEXTS[i])) for i in KEPT], labels, 3)
    assert [row["name"] for row in found] == [", ".join(terms[label]) for label in labels]
    assert any(row["name"] for row in found)


def search_rows(corpus, *options):
    """Row, id and text of what is found, by row: equal texts score the same."""
    written = ("-k", 4, "-o", "f.jsonl", "--overwrite", "--quiet")
    said("search", "nlp", corpus, "a dog ran", *written, *options)
    return sorted((row["row"], row.get("id"), row["text"]) for row in read("f.jsonl"))


TEXT_ALONE = ("--column", "body")


def test_search_has_ids():
    pytest.importorskip("faiss")
    expected = search_rows("a.csv", *COLUMNS)
    assert {(1, "t1", "a dog ran"), (5, "t5", "a dog ran")} < set(expected)
    # Builds it
    assert search_rows("a.csv", *COLUMNS, "--index", "index", "--kind", "flat") == expected
    assert search_rows("a.csv", *COLUMNS, "--index", "index") == expected
    assert search_rows("index") == expected
    assert "--id-column" in said("search", "nlp", "index", "he", "--id-column", "sku", code=1)


def test_search_has_the_ids_that_are_asked_for():
    pytest.importorskip("faiss")
    with_ids = search_rows("a.csv", *COLUMNS)
    without = [(row, None, text) for row, _, text in with_ids]
    search_rows("a.csv", *COLUMNS, "--index", "index", "--kind", "flat")
    assert search_rows("a.csv", *TEXT_ALONE, "--index", "index") == without
    assert search_rows("a.csv", *TEXT_ALONE, "--index", "plain", "--kind", "flat") == without
    assert search_rows("plain") == without
    # The ids are in the file
    assert search_rows("a.csv", *COLUMNS, "--index", "plain") == with_ids


@pytest.mark.parametrize(("old", "new"), [("t5", "t9"), ("a dog ran", "a dog runs")])
def test_an_index_of_another_file(old, new):
    pytest.importorskip("faiss")
    search_rows("a.csv", *COLUMNS, "--index", "index", "--kind", "flat")
    text = Path("a.csv").read_text(encoding="utf8")
    Path("other.csv").write_text(text.replace(old, new), encoding="utf8")
    options = (*TEXT_ALONE, "--id-column", "sku", "--index", "index")
    assert "other.csv" in said("search", "nlp", "other.csv", "he", *options, code=1)


def test_texts_with_line_breaks():
    texts = [f'the cat {i}\nsat\ton "the" mat' for i in range(3)]
    write_rows(Path("n.csv"), ("text",), [[text] for text in texts])
    said("mine", "nlp", "n.csv", "m.tsv", "--quiet")
    assert {row["first"] for row in read("m.tsv")} == set(texts[:2])
    said("cluster", "nlp", "n.csv", "c.tsv", "--quiet", "-m", "hierarchical", "-n", 1)
    assert [row["text"] for row in read("c.tsv")] == texts
    said("search", "nlp", "n.csv", "a\tb", "-o", "s.tsv", "--quiet")
    assert {(row["query"], row["text"]) for row in read("s.tsv")} == {
        ("a\tb", text) for text in texts
    }


@pytest.mark.parametrize("charset", ["cp1252", "ascii"])
def test_console_without_unicode(tmp_path, charset):
    """They are replaced where they are shown, and kept in files."""
    text = "emoji \U0001f600 text, \u4e00"
    (tmp_path / "e.txt").write_text(f"{text}\nplain\n", encoding="utf8")
    (tmp_path / "\u4e00.txt").write_text("he\n", encoding="utf8")
    done = said("search", "nlp", "e.txt", "plain", "-o", "\u4e00.jsonl", charset=charset)
    assert "emoji ? text, ?" in done
    assert "plain" in done
    assert "Wrote 2 rows to ?.jsonl" in done
    assert {row["text"] for row in read("\u4e00.jsonl")} == {text, "plain"}
    assert "?" in said("mine", "nlp", "\u4e00.txt", "m.tsv", code=1, charset=charset)
    assert "Cannot load" in said("mine", "\U0001f600", "e.txt", "m.tsv", code=1, charset=charset)


# A module that is missing, and the command that needs it
MISSING = [
    ("faiss", "search nlp texts.txt he --index index"),
    ("faiss", "search nlp index he"),
    ("faiss", "index build vectors index"),
    ("sklearn", "cluster nlp texts.txt c.tsv --method kmeans --n-clusters 2"),
    ("sklearn", "visualize nlp texts.txt m.html --style map --clusters 2"),
    ("sklearn", "visualize nlp texts.txt m.html --style map --projection tsne"),
    ("sklearn", "benchmark nlp . --suite sts,transfer"),
    (
        "sklearn",
        f"benchmark nlp . --suite probing,learned --code {ROOT}/benchmarks/papers/paper_tasks.py",
    ),
    ("pyarrow", "encode nlp texts.txt v.parquet"),
    ("pyarrow", "mine nlp texts.parquet p.tsv"),
]


@pytest.mark.parametrize(("module", "command"), MISSING)
def test_missing_package_is_reported_before_encoding(tmp_path, monkeypatch, module, command):
    (tmp_path / "texts.txt").write_text("he\na dog ran\nfood\n")
    (tmp_path / "texts.parquet").write_bytes(b"")
    if "nlp index" in command:
        said("search", "nlp", "texts.txt", "he", "--index", "index", "--quiet")
    there = sorted(path.name for path in tmp_path.iterdir())
    encoded = []
    monkeypatch.setattr(SentenceBert, "encode", lambda self, texts, **_: encoded.append(texts))
    monkeypatch.setattr(SentenceBert, "predict", lambda self, docs, **_: encoded.append(docs))
    monkeypatch.setattr("spacy_sbert.bulk.PartVectors", lambda folder: folder)
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    done = said(*command.split(), "--quiet", code=1)
    assert "pip install" in done
    assert encoded == []
    assert sorted(path.name for path in tmp_path.iterdir()) == there


def test_ids_of_pairs():
    assert "There may be more pairs" not in said("mine", "nlp", "a.csv", "all.tsv", *COLUMNS)
    said("mine", "nlp", "a.csv", "p.tsv", *COLUMNS, "-k", 2)
    rows = read("p.tsv")
    names = "score first_row second_row first_id second_id first second"
    assert list(rows[0]) == names.split()
    assert {(row["first_id"], row["second_id"]) for row in rows} == {("t0", "t2"), ("t1", "t5")}


def test_ids_of_groups():
    groups = ("--groups", "--min-score", 0.9999)
    done = said("mine", "nlp", "a.csv", "g.jsonl", *COLUMNS, *groups)
    assert "2 groups of 4 texts; 2 are in none" in done
    assert read("g.jsonl") == [
        {"group": group, "row": row, "id": IDS[row], "text": TEXTS[row]}
        for group, row in [(0, 0), (0, 2), (1, 1), (1, 5)]
    ]
    said("mine", "nlp", "a.csv", "plain.tsv", *TEXT_ALONE, *groups)
    assert list(read("plain.tsv")[0]) == ["group", "row", "text"]


@pytest.mark.parametrize("wrong", [["--groups"], ["--groups", "--min-score", 0.9, "-k", 3]])
def test_options_of_groups(wrong):
    assert "--groups" in said("mine", "nope", "a.csv", "w.tsv", *wrong, code=1)


@pytest.mark.parametrize(
    ("command", "argument"), [("cluster", "o.tsv"), ("mine", "o.tsv"), ("search", "he")]
)
def test_a_column_of_ids_that_is_not_there(command, argument):
    options = (*TEXT_ALONE, "--id-column", "number")
    assert "'number'" in said(command, "nlp", "a.csv", argument, *options, code=1)


def test_texts_in_no_cluster_have_no_name():
    said("cluster", "nlp", "a.csv", "c.jsonl", *COLUMNS, "--threshold", 0.9999, "--min-size", 2)
    is_named = {row["cluster"]: bool(row["name"]) for row in read("c.jsonl")}
    assert is_named == {0: True, 1: True, -1: False}


# Their arguments; NAME is the output
WRITING = {
    "cluster": ("nlp", "a.csv", "NAME", *COLUMNS),
    "mine": ("nlp", "a.csv", "NAME", *COLUMNS),
    "search": ("nlp", "a.csv", "a query", "-o", "NAME", *COLUMNS),
    "visualize": ("nlp", "a.csv", "NAME", "--column", "body"),
    "evaluate": ("nlp", "a.csv", "-o", "NAME"),
    "encode": ("a.csv", "NAME", "--pipeline", "nlp"),
}


@pytest.mark.parametrize("name", ["a.csv", "linked.csv"])
@pytest.mark.parametrize("command", WRITING)
def test_an_output_that_is_an_input_is_refused(command, name):
    """With --overwrite, too, and by another name."""
    before = Path("a.csv").read_bytes()
    Path("linked.csv").unlink(missing_ok=True)
    os.link("a.csv", "linked.csv")
    arguments = [name if word == "NAME" else word for word in WRITING[command]]
    message = said(command, *arguments, "--overwrite", code=1)
    assert (
        "is the input, and was given as the output" in message
        or "expected a name that ends in" in message
    )
    assert Path("a.csv").read_bytes() == before
