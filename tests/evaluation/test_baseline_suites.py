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
FEW = ("sts", "triplets", "speed")
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
    write_rows(root / "SICK_train.txt", "\t".join(("pair_ID", "sentence_A", "sentence_B", "relatedness_score")), 12)
    write_rows(root / "SICK_trial.txt", "\t".join(("pair_ID", "sentence_A", "sentence_B", "relatedness_score")), 12)
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


def write_rows(file, header, n):
    lines = [f"{i}\t{text(i)}\t{text(i, i + i % 5)}\t{1 + i % 5}\tNEUTRAL" for i in range(n)]
    file.write_text("\n".join([f"{header}\tentailment_judgment", *lines]))


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


@pytest.mark.parametrize(
    ("baseline", "suites"),
    [
        ("tf-idf", SUITES),
        ("untuned-cls", FEW),
        pytest.param("sif", FEW, marks=pytest.mark.slow),
        pytest.param(None, FEW, marks=pytest.mark.slow),
    ],
)
def test_suites(data, vectors, tiny_bert, tmp_path, monkeypatch, baseline, suites):
    monkeypatch.setattr(learned_similarity, "_MAX_PASSES", 0)
    monkeypatch.setattr(classification, "_MAX_PASSES", 8)
    output = tmp_path / "results.json"
    options = ["--suite", ",".join(suites), "--any-count", "--bootstrap", "0", "--seeds", "1", "--output", str(output)]
    options += ["--counts", str(vectors / "counts.txt"), "--encoder", str(tiny_bert)]
    options += ["--classifier", "mlp"]
    options += [] if baseline is None else ["--baseline", baseline]
    done = CliRunner().invoke(app, ["benchmark", str(vectors / "pipeline"), str(data), *options])
    assert done.exit_code == 0, done.output
    results = json.loads(output.read_text())
    assert results["failed"] == {}
    assert {task["suite"] for task in results["tasks"].values()} == set(suites)
    assert baseline is None or results["model"]["name"].startswith(baseline)
    speed = results["tasks"]["speed"]["variants"][0]["scores"]
    assert set(speed) == ({"naive", "smart", "own"} if (baseline or "").startswith("untuned") else {"own"})
