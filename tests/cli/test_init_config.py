"""From a table of one's own to a config, to a trained and scored pipeline, without a setting by hand."""

import csv
import json
import random

import pytest
import spacy
from spacy.cli.train import train
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_sbert.cli import app
from spacy_sbert.readers.own_table import find_table

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "he", "man", "food"]


def run(*arguments, code=0):
    found = CliRunner().invoke(app, list(map(str, arguments)))
    assert found.exit_code == code, found.output
    return " ".join(found.output.split())


def texts(n, size=4):
    rng = random.Random(n)
    return [" ".join(rng.sample(WORDS, size)) for _ in range(n)]


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


GRADES = [0, 1.5, 2.5, 4, 5, 3]
TABLES = {  # header, the columns beside the texts, kind, score, measure
    "graded": (("id", "one", "two", "sim"), lambda i: GRADES[i % 6], "graded", "sts_spearman"),
    "binary": (("id", "one", "two", "same"), lambda i: i % 2, "binary", "pair_ap"),
    "labelled": (("id", "one", "two", "relation"), lambda i: ["yes", "no", "maybe"][i % 3], "labelled", "nli_acc"),
    "classes": (("id", "one", "two", "label"), lambda i: i % 3, "labelled", "nli_acc"),
}


def table(path, name, n=60):
    header, gold, *_ = TABLES[name]
    return write(path, header, [(i, *texts(n + i)[:2], gold(i)) for i in range(n)])


@pytest.mark.parametrize("name", TABLES)
def test_columns_and_kind_are_found(tmp_path, name):
    header, _, kind, _ = TABLES[name]
    found = find_table(table(tmp_path / "own.csv", name))
    gold = (header[3], None) if kind != "labelled" else (None, header[3])
    assert (found.kind, found.count, found.columns.members) == (kind, 60, ("one", "two"))
    assert (found.columns.score, found.columns.label) == gold
    if kind == "graded":
        assert (found.columns.min_score, found.columns.max_score) == (0, 5)


@pytest.mark.parametrize(
    ("scores", "ends"),
    [
        ([0, 0.3, 1], (0, 1)),
        ([1, 3, 5], (1, 5)),
        ([0, 5, 2.5], (0, 5)),
        ([-0.5, 0.25, 1], (-1, 1)),
        ([7, 950.5, 2], (2, 950.5)),
    ],
)
def test_range_of_scores(tmp_path, scores, ends):
    rows = [(*texts(9 + i)[:2], scores[i % 3]) for i in range(12)]
    found = find_table(write(tmp_path / "own.csv", ("a", "b", "score"), rows))
    assert (found.columns.min_score, found.columns.max_score) == ends
    found = find_table(tmp_path / "own.csv", min_score=-1000, max_score=1000)
    assert (found.columns.min_score, found.columns.max_score) == (-1000, 1000)


def test_positives_triplets_and_other_formats(tmp_path):
    rows = [dict(zip(("q", "good", "bad"), texts(9 + i)[:3], strict=True)) for i in range(30)]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert find_table(path).kind == "triplets"
    assert find_table(path, members=["q", "good"]).kind == "positives"
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "own.parquet")
    assert find_table(tmp_path / "own.parquet").columns.members == ("q", "good", "bad")
    write(tmp_path / "own.csv", texts(3)[:2], [texts(40 + i)[:2] for i in range(9)])
    assert find_table(tmp_path / "own.csv", header=False).count == 10


def test_what_cannot_be_told_apart_is_said(tmp_path):
    path = write(tmp_path / "own.csv", ("text", "score"), [(text, 0.5) for text in texts(20)])
    with pytest.raises(ValueError, match=r"\[sbert-table-no-pair\].*are text, of text, score"):
        find_table(path)
    rows = [(*texts(9 + i)[:2], i % 7 / 7, i % 5 / 5) for i in range(40)]
    path = write(tmp_path / "two.csv", ("a", "b", "mine", "yours"), rows)
    with pytest.raises(ValueError, match=r"\[sbert-table-many-gold\].*'mine, yours'"):
        find_table(path)
    assert find_table(path, score="yours").columns.score == "yours"
    with pytest.raises(ValueError, match=r"line 5.*'3'"):
        find_table(
            write(tmp_path / "bad.csv", ("a", "b", "s"), [("a b", "c d", [0, 1][i != 5] * i) for i in range(6)] + []),
            max_score=2,
        )
    with pytest.raises(ValueError, match=r"\[sbert-table-empty\]"):
        find_table(write(tmp_path / "empty.csv", ("a", "b"), []), members=["a", "b"])


@pytest.mark.parametrize("name", [*TABLES, "positives", "triplets"])
def test_what_it_writes_is_trained_and_scored(tmp_path, name, tiny_bert):
    if name in TABLES:
        paths = [table(tmp_path / f"{part}.csv", name) for part in ("train", "dev")]
        measure = TABLES[name][3]
    elif name == "positives":
        paths = [write(tmp_path / "train.csv", ("one", "two"), [texts(9 + i)[:2] for i in range(60)])]
        paths += [table(tmp_path / "dev.csv", "binary")]
        measure = "pair_ap"
    else:
        paths = [
            write(tmp_path / f"{part}.csv", ("a", "p", "n"), [texts(9 + i, 5)[:3] for i in range(60)])
            for part in ("train", "dev")
        ]
        measure = "triplet_acc"
    out = tmp_path / "own.cfg"
    said = run("init-config", *paths, "--out", out, "--encoder", tiny_bert, "--epochs", 2)
    assert f"python -m spacy train {out}" in said and "60 " in said
    config = load_config(out, interpolate=True)
    assert config["training"]["max_epochs"] == 2 and config["training"]["score_weights"] == {measure: 1.0}
    steps = 2 * -(-60 // config["training"]["batcher"]["size"])
    assert config["training"]["eval_frequency"] == max(1, (steps - 1) // 10)
    assert config["training"]["patience"] == 3 * config["training"]["eval_frequency"]
    train(out, tmp_path / "training", overrides={"training.logger.progress_bar": False})
    nlp = spacy.load(tmp_path / "training/model-best")
    assert measure in nlp.meta["performance"]
    assert nlp("the cat").vector.any()
    said = run("evaluate", tmp_path / "training/model-best", paths[1])
    assert "Columns as in its training" in said and "Examples 60" in said.replace("  ", " ")


def test_pairs_alone_cannot_be_scored(tmp_path):
    path = write(tmp_path / "own.csv", ("one", "two"), [texts(9 + i)[:2] for i in range(20)])
    assert "[sbert-init-no-gold]" in run("init-config", path, path, "--out", tmp_path / "x.cfg", code=1)
    assert not (tmp_path / "x.cfg").exists()


def test_what_is_wrong_in_a_table_is_said_before_training(tmp_path):
    path = table(tmp_path / "train.csv", "graded")
    bad = write(tmp_path / "dev.csv", ("one", "two", "sim"), [("a b", "c d", 9)])
    said = run("init-config", path, bad, "--out", tmp_path / "x.cfg", code=1)
    assert "dev.csv, line 2" in said and "'9'" in said
    other = write(tmp_path / "other.csv", ("one", "three", "sim"), [("a b", "c d", 1)])
    assert "'two'" in run("init-config", path, other, "--out", tmp_path / "x.cfg", code=1)
