"""The commands as a user types them, in processes of their own: `python -m spacy ...`."""

import json
import subprocess
import sys

import pytest
import spacy
from killing import typed
from pipelines import ROOT, TRAINED, real_data
from spacy.tokens import DocBin

SAMPLE = ROOT / "assets"


def test_convert_and_evaluate(make_nlp, tmp_path):
    path = tmp_path / "sub" / "dev.spacy"
    done = typed("sbert", "convert", SAMPLE / "pairs-dev.csv", path, "--expect", 160)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Wrote 160 pairs" in done.stdout
    assert len(list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))) == 160
    make_nlp(TRAINED).to_disk(tmp_path / "nlp")
    done = typed("sbert", "evaluate", tmp_path / "nlp", path, "--output", tmp_path / "scores" / "dev.json")
    assert done.returncode == 0, done.stdout + done.stderr
    scores = json.loads((tmp_path / "scores" / "dev.json").read_text())
    assert scores["pairs"] == 160 and f"{100 * scores['sts_spearman']:.2f}" in done.stdout


@pytest.mark.spacy_transformers
def test_train_logs_and_keeps_the_scores(tiny_bert, tmp_path):
    """`spacy train` with the shipped recipe, two steps of it, on a tiny encoder."""
    settings = {
        "--output": tmp_path / "training",
        "--paths.train": SAMPLE / "pairs-train.csv",
        "--paths.dev": SAMPLE / "pairs-dev.csv",
        "--components.transformer.model.name": tiny_bert,
        "--training.max_steps": 2,
        "--training.eval_frequency": 1,
    }
    done = typed("train", ROOT / "configs" / "sts.cfg", *(part for pair in settings.items() for part in pair))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sts_spearman" in done.stdout and "ex/s" in done.stdout
    meta = json.loads((tmp_path / "training" / "model-best" / "meta.json").read_text())
    assert {"sts_spearman", "sts_pearson", "sbert_loss"} <= meta["performance"].keys()
    assert spacy.load(tmp_path / "training" / "model-last")("A man is eating.").has_vector


@pytest.mark.slow
def test_one_epoch_on_stsb(tmp_path):
    """Reaches what sentence-transformers reaches with the same recipe: 89.32 on STSb dev; about ten minutes."""

    def run(*arguments):
        subprocess.run([sys.executable, "-m", "spacy", *map(str, arguments)], capture_output=True, check=True)

    folder = real_data() / "sts" / "STSBenchmark"
    for split, count in (("train", 5749), ("dev", 1500)):
        run("sbert", "convert", folder / f"sts-{split}.csv", tmp_path / f"{split}.spacy", "-e", count)
    paths = ["--paths.train", tmp_path / "train.spacy", "--paths.dev", tmp_path / "dev.spacy"]
    every = ["--training.eval_frequency", 359]  # of 360 steps
    run("train", ROOT / "configs" / "sts.cfg", "--output", tmp_path / "training", *paths, *every)
    meta = json.loads((tmp_path / "training" / "model-best" / "meta.json").read_text())
    assert 100 * meta["performance"]["sts_spearman"] >= 89.1
