"""Supervised STS and argument similarity: what is trained on and scored, and a tiny run of each script."""

import argparse
import importlib
import json
import sys
from itertools import combinations
from pathlib import Path

import pytest
from pipelines import real_data

from spacy_sbert.readers.arguments import ArgumentRow, read_arguments

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "assets" / "arguments.tsv"


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    monkeypatch.chdir(ROOT)
    return importlib.import_module


def keys(rows, indices):
    return {frozenset(rows[i].members) for i in indices}


def check_splits(rows, splits):
    assert sorted(i for split in splits for i in split.test) == list(range(len(rows))), "each pair is scored once"
    for split in splits:
        assert not keys(rows, split.train) & keys(rows, split.test)
        left_out = set(range(len(rows))) - {*split.train, *split.test}
        assert keys(rows, left_out) <= keys(rows, split.test), "only pairs that are scored are left out"


def make_rows(*pairs):
    return [ArgumentRow((first, second), 1, score=0.5, topic=topic) for topic, first, second in pairs]


def test_a_pair_that_is_scored_is_never_trained_on(load):
    script = load("argument_similarity")
    rows = make_rows(("x", "a", "b"), ("x", "c", "d"), ("y", "b", "a"), ("y", "e", "f"), ("z", "a", "c"))
    splits = script.split_topics(rows)
    assert [(split.name, split.train, split.test) for split in splits] == [
        ("x", (3, 4), (0, 1)),  # the third pair is the first in the other order
        ("y", (1, 4), (2, 3)),
        ("z", (0, 1, 2, 3), (4,)),
    ]
    check_splits(rows, splits)
    check_splits(rows, script.split_folds(rows, 3))


def test_folds_of_the_sample(load):
    script = load("argument_similarity")
    rows = read_arguments(SAMPLE, "ukp")
    folds = script.split_folds(rows, 10)
    check_splits(rows, folds)
    assert [len(split.test) for split in folds] == [16] * 10
    assert folds == script.split_folds(rows, 10)
    topics = script.split_topics(rows)
    check_splits(rows, topics)
    for split in topics:
        assert {rows[i].topic for i in split.test} == {split.name} not in [{rows[i].topic for i in split.train}]


def test_folds_of_the_aspect_corpus(load):
    script = load("argument_similarity")
    rows = read_arguments(real_data() / "argument", "ukp")
    for splits in (script.split_folds(rows, 10), script.split_topics(rows)):
        check_splits(rows, splits)
    assert sum(len(rows) - len(split.train) - len(split.test) for split in splits) == 2 * 39


def test_sample_is_what_the_script_writes(load):
    import random

    lines = load("sample_arguments").argument_lines(random.Random("0 arguments.tsv"), "arguments", 160)
    assert "".join(f"{line}\n" for line in lines) == SAMPLE.read_text(encoding="utf8")
    rows = read_arguments(SAMPLE, "ukp")
    assert {(row.topic, row.label): 10 for row in rows}.keys() == {(r.topic, r.label) for r in rows}
    counts = [sum((row.topic, row.label) == key for row in rows) for key in {(r.topic, r.label) for r in rows}]
    assert counts == [10] * 16
    assert all(a.isdisjoint(b) or a != b for a, b in combinations(map(frozenset, (row.members for row in rows)), 2))


def test_a_run_is_saved_and_not_made_again(load, tmp_path):
    runs = load("runs")
    made = []

    def make():
        made.append(1)
        return {"spearman": 0.5}

    for _ in range(2):
        assert runs.run_once(tmp_path / "new" / "run.json", {"steps": 1}, make) == {"spearman": 0.5}
    assert made == [1]
    with pytest.raises(SystemExit, match=r"was made with .*'steps': 1.* not .*'steps': 2.*choose another --output"):
        runs.run_once(tmp_path / "new" / "run.json", {"steps": 2}, make)


def test_steps_means_and_deviations(load):
    runs = load("runs")
    assert [runs.count_steps(480, 4, 0), runs.count_steps(481, 4, 0), runs.count_steps(481, 1, 20)] == [120, 124, 2]
    assert runs.mean_and_deviation([0.5, 0.7]) == ("60.00", "14.14")
    assert runs.mean_and_deviation([0.5]) == ("50.00", "-")
    assert runs.mean_and_deviation([0.5, None]) == runs.mean_and_deviation([]) == ("-", "-")


def test_the_table_is_over_splits_of_means_over_seeds(load):
    script = load("argument_similarity")
    splits = {"one": [{"pearson": 0.1, "spearman": 0.2}, {"pearson": 0.3, "spearman": 0.4}]}
    splits["two"] = [{"pearson": 0.6, "spearman": 0.7}, {"pearson": 0.6, "spearman": None}]
    row = script.table({"topics": {"arguments": splits}}).splitlines()[2]
    assert row == "| leave one topic out (2) | arguments | 40.00 | 28.28 | - | - | 2 | 2 |"


def test_argument_similarity(load, tiny_bert, tmp_path, monkeypatch):
    script = load("argument_similarity")
    lines = SAMPLE.read_text(encoding="utf8").splitlines()
    data = tmp_path / "arguments.tsv"
    data.write_text("\n".join([lines[0], *(x for x in lines if x.startswith(("city", "night")))]), encoding="utf8")
    fit, trained = script.fit, []

    def look_and_fit(config, folder, args, **overrides):
        records = [json.loads(line) for line in Path(overrides["paths__train"]).read_text().splitlines()]
        trained.append({frozenset((record["first"], record["second"])) for record in records})
        return fit(config, folder, args, **overrides)

    monkeypatch.setattr(script, "fit", look_and_fit)
    output = tmp_path / "out"
    options = ["--data", data, "--encoder", tiny_bert, "--output", output, "--folds", 2, "--steps", 2, "--limit", 30]
    monkeypatch.setattr(sys, "argv", ["argument_similarity.py", *map(str, options)])
    script.main()
    rows = read_arguments(data, "ukp")
    splits = [*script.split_folds(rows, 2), *script.split_topics(rows)]
    assert [len(pairs) for pairs in trained] == [30] * 4
    for split, pairs in zip(splits, trained, strict=True):
        assert pairs <= keys(rows, split.train) and not pairs & keys(rows, split.test)
    table = (output / "table.md").read_text().splitlines()[2:]
    assert [line.split(" | ")[:2] for line in table] == [
        [f"| {protocol}", training]
        for protocol in ("2-fold cross-validation", "leave one topic out (2)")
        for training in ("nothing", "arguments")
    ]
    saved = {file.stem: json.loads(file.read_text())["scores"] for file in output.glob("*.json")}
    assert set(saved) == {"folds-untrained", "topics-untrained", "folds-fold-1-1", "folds-fold-2-1"} | {
        f"topics-{topic}-1" for topic in ("city-tolls", "night-trains")
    }
    spearman = [100 * saved[f"folds-fold-{fold}-1"]["spearman"] for fold in (1, 2)]
    assert table[1].split(" | ")[4:6] == [f"{sum(spearman) / 2:.2f}", f"{abs(spearman[0] - spearman[1]) / 2**0.5:.2f}"]
    monkeypatch.setattr(script, "fit", None)
    script.main()  # nothing is trained again
    assert (output / "table.md").read_text().splitlines()[2:] == table


def test_argument_similarity_of_a_cross_encoder(load, tiny_bert, tmp_path, monkeypatch):
    """One split of several, by the scores of pairs."""
    script = load("argument_similarity")
    options = ["--config", "configs/reranker.cfg", "--encoder", tiny_bert, "--output", tmp_path, "--steps", 1]
    options += ["--limit", 16, "--protocols", "topics", "--only", "city tolls"]
    monkeypatch.setattr(sys, "argv", ["argument_similarity.py", *map(str, options)])
    script.main()
    saved = json.loads((tmp_path / "topics-city-tolls-1.json").read_text())["scores"]
    table = (tmp_path / "table.md").read_text().splitlines()[2:]
    assert table[1].split(" | ")[:3] == ["| leave one topic out (1)", "arguments", f"{100 * saved['pearson']:.2f}"]
    monkeypatch.setattr(sys, "argv", [*sys.argv[:-1], "moon"])
    with pytest.raises(SystemExit, match="--only moon: expected some of city tolls"):
        script.main()


def test_supervised_sts(load, tiny_bert, tmp_path, monkeypatch):
    script = load("supervised_sts")
    output = tmp_path / "out"
    options = ["--encoder", tiny_bert, "--output", output, "--steps", 2, "--nli-steps", 2, "--limit", 32]
    options += ["--seeds", 1, 2, "--nli", ROOT / "assets" / "nli-train.jsonl", "--learn-rate", 0.001]
    monkeypatch.setattr(sys, "argv", ["supervised_sts.py", *map(str, options)])
    script.main()
    rows = [line.split(" | ") for line in (output / "table.md").read_text().splitlines()[2:]]
    assert [row[0] for row in rows] == ["| nothing", "| STS", "| NLI", "| NLI, then STS"]
    assert [row[-1] for row in rows] == ["1 |", "2 |", "2 |", "2 |"]
    assert len({row[2] for row in rows}) == 4, "each training moves the scores"
    files = [json.loads((output / f"sts-{seed}.json").read_text()) for seed in (1, 2)]
    scores = [100 * file["scores"]["sts"]["pairs-dev.csv"]["spearman"] for file in files]
    assert rows[1][2:4] == [f"{sum(scores) / 2:.2f}", f"{abs(scores[0] - scores[1]) / 2**0.5:.2f}"]
    monkeypatch.setattr(script, "fit", None)
    script.main()  # nothing is trained again


def test_the_encoder_before_training_is_that_of_the_config(load, tiny_bert, make_nlp):
    runs = load("runs")
    args = argparse.Namespace(encoder=str(tiny_bert), gpu_id=-1)
    nlp = runs.untrained(ROOT / "configs" / "sts.cfg", args)
    text = "A man is eating food."
    assert nlp(text).vector == pytest.approx(make_nlp("own")(text).vector, abs=1e-6)
