"""Baselines of each kind run on suites that need no more than vectors, through the command line."""

import json

import numpy
import pytest
import spacy
from made_data import write_benchmark, write_year
from typer.testing import CliRunner

from spacy_sbert.cli._util import app
from spacy_sbert.evaluation.protocols import classification, learned_similarity

SUITES = ("sts", "sick", "triplets", "arguments", "learned", "transfer", "probing", "speed")
FEW, SLOW = ("sts", "triplets", "speed"), pytest.mark.slow
WORDS = ["man", "cat", "dog", "eating", "food", "mat", "meal", "going"]


def text(*numbers):
    return " ".join(WORDS[number % len(WORDS)] for number in numbers)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A little of one data set of each suite."""
    root = tmp_path_factory.mktemp("data")
    write_year(root)
    for split in ("train", "dev", "test"):
        write_benchmark(root, split)
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    pairs = [f"{i}\t{text(i)}\t{text(i, i + i % 5)}\t{1 + i % 5}\tNEUTRAL" for i in range(12)]
    for split in ("train", "trial"):
        (root / f"SICK_{split}.txt").write_text("\n".join([header, *pairs]))
    (root / "wikisec").mkdir()
    triplets = [f"title,{text(i)},{text(i, i + 1)},{text(i + 2, i + 3)}" for i in range(9)]
    (root / "wikisec/test.csv").write_text("\n".join(["Article Title,Sentence1,Sentence2,Sentence3", *triplets]))
    rows = [("xy"[i % 2], text(i), text(i, i + 2), ("NS", "SS", "HS")[i % 3]) for i in range(24)]
    lines = ["topic\tsentence_1\tsentence_2\tlabel", *map("\t".join, rows)]
    (root / "UKP_ASPECT.tsv").write_text("\n".join(lines))
    (root / "MR").mkdir()
    for number, label in enumerate(("pos", "neg")):
        (root / f"MR/rt-polarity.{label}").write_text("\n".join(text(number, i, i // 3) for i in range(14)))
    probing = [f"{split}\t{i % 2}\t{text(i % 2, i)}" for split in ("tr", "va", "te") for i in range(12)]
    (root / "past_present.txt").write_text("\n".join(probing))
    return root


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A pipeline with static vectors, and no pipe of this package."""
    folder = tmp_path_factory.mktemp("vectors")
    nlp = spacy.blank("en")
    for number, word in enumerate(WORDS):
        nlp.vocab.set_vector(word, numpy.random.default_rng(number).normal(size=5).astype("float32"))
    nlp.to_disk(folder / "pipeline")
    (folder / "counts.txt").write_text("".join(f"{word} {9 * i + 1}\n" for i, word in enumerate(WORDS)))
    return folder


@pytest.mark.parametrize("baseline", ["tf-idf", "untuned-cls", *(pytest.param(x, marks=SLOW) for x in ("sif", None))])
def test_suites(data, vectors, tiny_bert, tmp_path, monkeypatch, baseline):
    monkeypatch.setattr(learned_similarity, "_MAX_PASSES", 0)
    monkeypatch.setattr(classification, "_MAX_PASSES", 8)
    suites, output = SUITES if baseline == "tf-idf" else FEW, tmp_path / "results.json"
    options = ["--suite", ",".join(suites), "--any-count", "--bootstrap", "0", "--seeds", "1", "--output", str(output)]
    options += ["--counts", str(vectors / "counts.txt"), "--encoder", str(tiny_bert), "--classifier", "mlp"]
    options += [] if baseline is None else ["--baseline", baseline]
    done = CliRunner().invoke(app, ["benchmark", str(vectors / "pipeline"), str(data), *options])
    assert done.exit_code == 0, done.output
    results = json.loads(output.read_text())
    assert results["failed"] == {}
    assert {task["suite"] for task in results["tasks"].values()} == set(suites)
    assert baseline is None or results["model"]["name"].startswith(baseline)
    speed = results["tasks"]["speed"]["variants"][0]["scores"]
    assert set(speed) == ({"naive", "smart", "own"} if (baseline or "").startswith("untuned") else {"own"})
