"""From a table of one's own to a config, to a trained and scored pipeline, without a setting by hand."""

import csv
import json
import random

import pytest
import spacy
from invoking import said as run
from spacy.cli.train import train
from spacy.util import load_config

from spacy_sbert.readers.infer_schema import find_table

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "he", "man", "food"]


def texts(n, size=4):
    rng = random.Random(n)
    return [" ".join(rng.sample(WORDS, size)) for _ in range(n)]


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def weighted(config):
    return {name: weight for name, weight in config["training"]["score_weights"].items() if weight is not None}


GRADES = [0, 1.5, 2.5, 4, 5, 3]
TABLES = {  # header, the columns beside the texts, kind, score, measure
    "graded": (("id", "one", "two", "sim"), lambda i: GRADES[i % 6], "graded", "sts_spearman"),
    "binary": (("id", "one", "two", "same"), lambda i: i % 2, "binary", "pair_ap"),
    "labelled": (("id", "one", "two", "relation"), lambda i: ["yes", "no", "maybe"][i % 3], "labelled", "nli_acc"),
}


def table(path, name, n=60):
    header, gold, *_ = TABLES[name]
    return write(path, header, [(i, *texts(n + i)[:2], gold(i)) for i in range(n)])


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


QUICK = ("graded", "positives")  # test_roles trains on labels


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in (*TABLES, "positives", "triplets")]
)
def test_config_is_trained_and_scored(tmp_path, name, tiny_bert):
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
    said = run("init-config", *paths, "--output", out, "--encoder", tiny_bert, "--epochs", 2)
    assert f"python -m spacy sbert train {out} --output training/mine" in said and "60 " in said
    config = load_config(out, interpolate=True)
    assert config["training"]["max_epochs"] == 2 and weighted(config) == {measure: 1.0}
    steps = 2 * -(-60 // config["training"]["batcher"]["size"])
    assert f"{steps} steps; {measure} every {config['training']['eval_frequency']}\x1b" in said
    assert f"--checkpoint-every {config['training']['eval_frequency']}, and then --resume" in said
    assert ("Columns not used: id" in said) == (name in TABLES)
    assert config["training"]["eval_frequency"] == max(1, (steps - 1) // 10)
    assert config["training"]["patience"] == 3 * config["training"]["eval_frequency"]
    train(out, tmp_path / "training", overrides={"training.logger.progress_bar": False})
    nlp = spacy.load(tmp_path / "training/model-best")
    assert measure in nlp.meta["performance"] and weighted(nlp.config) == {measure: 1.0}  # and no mean with another
    assert nlp("the cat").vector.any()
    said = run("evaluate", tmp_path / "training/model-best", paths[1])
    assert "Columns as in its training" in said and "Examples 60" in said.replace("  ", " ")


def graded_rows(n=60, scores=GRADES):
    return [[*texts(n + i)[:2], scores[i % len(scores)]] for i in range(n)]


def with_score(rows, line, score):
    """The rows, of which the one that stands in a line of the file has another score."""
    return [[*row[:2], score if place == line else row[2]] for place, row in enumerate(rows, 2)]


@pytest.mark.parametrize("scores", [GRADES, [0, 1, 2, 3], [i / 59 for i in range(60)], list(range(60))])
def test_bad_score_is_named_and_never_drops_the_column(tmp_path, scores):
    header, out = ("one", "two", "sim"), tmp_path / "x.cfg"
    good = write(tmp_path / "good.csv", header, graded_rows(scores=scores))
    for bad in ("", "  ", "n/a", "3,5", "nan", "inf"):
        path = write(tmp_path / "bad.csv", header, with_score(graded_rows(scores=scores), 41, bad))
        for given in ({}, {"score": "sim"}):
            with pytest.raises(ValueError, match=rf"(?s)bad\.csv, line 41: .*'sim', got '\s*{bad.strip()}\s*'"):
                find_table(path, **given)
    for paths in ((path, good), (good, path)):
        for options in ((), ("--score", "sim"), ("--members", "one,two")):
            assert "bad.csv, line 41" in run("init-config", *paths, "--output", out, *options, code=1)
    assert not out.exists()


def test_decimal_commas_are_not_labels(tmp_path):
    path = write(tmp_path / "own.csv", ("one", "two", "sim"), graded_rows(scores=["0,5", "2,0", "4,5"]))
    with pytest.raises(ValueError, match=r"line 2: expected a number.*'0,5' \(60 of its 60"):
        find_table(path)
    rows = graded_rows(scores=["12", "24a", "12b"])  # codes, of which a third are numbers
    assert find_table(write(tmp_path / "codes.csv", ("one", "two", "verdict"), rows)).kind == "labelled"
    rows = graded_rows(scores=[1, 2, "none"])  # mostly numbers, under a name that says what they are
    assert find_table(write(tmp_path / "labels.csv", ("one", "two", "label"), rows)).kind == "labelled"


def test_whole_scores_are_not_ids(tmp_path):
    path = write(tmp_path / "own.csv", ("one", "two", "grade"), graded_rows(scores=[2 * i for i in range(50)]))
    found = find_table(path)
    assert (found.kind, found.columns.score, found.columns.max_score) == ("graded", "grade", 100)
    path = write(tmp_path / "ids.csv", ("one", "two", "id"), [(*texts(60 + i)[:2], i) for i in range(60)])
    found = find_table(path)
    assert (found.kind, found.unused) == ("positives", ("id",))


@pytest.mark.parametrize("missing", [0, 7])
def test_missing_json_field_is_a_blank_cell(tmp_path, missing):
    rows = [dict(zip(("one", "two", "sim"), row, strict=True)) for row in graded_rows()]
    del rows[missing]["sim"]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=rf"own.jsonl, line {missing + 1}: expected a number.*'sim', got ''"):
        find_table(path)
    path.write_text(
        "".join(json.dumps({**row, "sim": 1.5} | ({"note": "x"} if row is rows[5] else {})) + "\n" for row in rows)
    )
    assert find_table(path).unused == ("note",)


@pytest.mark.parametrize(
    ("scores", "given", "wide", "others"),
    [
        (GRADES, 35, "0 to 100", "0 to 5"),
        (GRADES, -1, "-1 to 5", "0 to 5"),
        ([0, 1], 2, "0 to 5", "0 to 1"),
        ([0.5, 0.25, 1], 7.5, "0 to 10", "0 to 1"),
        ([200, 950.5, 400], 99999, "200 to 99999", "200 to 950.5"),
    ],
)
def test_outlier_does_not_decide_the_range(tmp_path, scores, given, wide, others):
    rows = with_score(graded_rows(scores=scores), 33, given)
    path = write(tmp_path / "own.csv", ("one", "two", "sim"), rows)
    said = run("init-config", path, path, "--output", tmp_path / "x.cfg", code=1)
    assert f"own.csv, line 33: the score {given:g} in the column 'sim'" in said
    assert f"1 of 60 are outside of {others}" in said and f"scaled from {wide}" in said
    remedy = said[said.index("--min-score") :].rstrip(". ").split()
    found = find_table(path, min_score=float(remedy[1]), max_score=float(remedy[3]))
    assert (found.columns.min_score, found.columns.max_score) == tuple(map(float, wide.split(" to ")))


@pytest.mark.parametrize(("scores", "end"), [([0, 0.25, 1], 1), ([0.5, 4.5, 4.75], 5)])
def test_score_just_below_the_range(tmp_path, scores, end):
    """Both remedies work: the end of the range in its place, or the range that holds it."""
    rows, header, out = graded_rows(scores=scores), ("one", "two", "sim"), tmp_path / "x.cfg"
    path = write(tmp_path / "own.csv", header, with_score(rows, 33, -0.02))
    said = run("init-config", path, path, "--output", out, code=1)
    assert "own.csv, line 33" in said and "-0.02" in said and f"0 to {end}" in said
    run("init-config", path, path, "--output", out, *said[said.index("--min-score") :].rstrip(". ").split())
    repaired = write(tmp_path / "repaired.csv", header, with_score(rows, 33, 0))
    run("init-config", repaired, repaired, "--output", tmp_path / "y.cfg")
    assert load_config(tmp_path / "y.cfg")["corpora"]["train"]["max_score"] == end


def test_many_far_scores_decide_the_range(tmp_path):
    """Far values are refused only where they are few; an end that was given is not doubted."""
    many = with_score(with_score(graded_rows(), 33, 35), 34, 70)
    assert find_table(write(tmp_path / "many.csv", ("one", "two", "sim"), many)).columns.max_score == 100
    one = write(tmp_path / "one.csv", ("one", "two", "sim"), with_score(graded_rows(), 33, 35))
    assert find_table(one, max_score=100).columns.min_score == 0
    with pytest.raises(ValueError, match="line 33"):
        find_table(one, min_score=0)
    half = write(tmp_path / "half.csv", ("one", "two", "sim"), with_score(graded_rows(scores=[1, 3, 5]), 33, 0.5))
    assert find_table(half).columns.min_score == 0  # 0 to 5, which is little wider


def test_wrong_tables_are_refused_before_training(tmp_path):
    path, out = table(tmp_path / "train.csv", "graded"), tmp_path / "x.cfg"
    bad = write(tmp_path / "dev.csv", ("one", "two", "sim"), [("a b", "c d", 9)])
    other = write(tmp_path / "other.csv", ("one", "three", "sim"), [("a b", "c d", 1)])
    without = write(tmp_path / "own.csv", ("one", "two"), [texts(9 + i)[:2] for i in range(20)])
    for paths, messages in (
        ((path, bad), ("dev.csv, line 2", "'9'")),
        ((path, other), ("'two'",)),
        ((without, without), ("gold",)),
    ):
        said = run("init-config", *paths, "--output", out, code=1)
        assert all(message in said for message in messages)
    assert not out.exists()
    with pytest.raises(ValueError, match=r"empty\.csv"):
        find_table(write(tmp_path / "empty.csv", ("a", "b"), []), members=["a", "b"])
