"""`spacy sbert train` as torchrun starts it: one folder and one log, ended by Ctrl-C and by the death of a rank."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy
import pytest
import spacy
from pipelines import ROOT, shipped_config
from ranks import start, typed
from typer.testing import CliRunner

from spacy_sbert.cli import app

TEXTS = ["How do I learn Python?", "What is the best way to learn Python?", "Why is the sky blue?"]
FEW = ["--corpora.train.limit", "70", "--corpora.dev.limit", "20", "--training.max_epochs", "0"]
TWO_STEPS = [*FEW, "--training.max_steps", "2", "--training.eval_frequency", "1"]
NO_END = [*FEW, "--training.max_steps", "100000", "--training.eval_frequency", "2"]


@pytest.fixture
def config(tiny_bert, tmp_path, monkeypatch):
    """The shipped config of ranking, with the random tiny BERT."""
    monkeypatch.chdir(ROOT)
    config = shipped_config("ranking", tiny_bert)
    config["training"]["dropout"] = 0.0
    config.to_disk(tmp_path / "ranking.cfg", interpolate=False)
    return tmp_path / "ranking.cfg"


def test_two_ranks_train_as_one_does(config, tmp_path):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    command = [sys.executable, *launcher, "spacy", "sbert", "train", config, "--output", tmp_path / "2", *TWO_STEPS]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(list(map(str, command)), env={**os.environ, "OMP_NUM_THREADS": "1"}, **output)
    alone = CliRunner().invoke(app, ["train", str(config), "--output", str(tmp_path / "1"), *TWO_STEPS])
    said = process.communicate(timeout=300)[0]
    assert alone.exit_code == process.returncode == 0, said
    assert said.count("Saved the pipeline to") == said.count("LOSS SBERT") + said.count("loss sbert") == 1
    first, second = (spacy.load(tmp_path / ranks / "model-last") for ranks in "12")
    assert first.meta["performance"]["sbert_loss"] == pytest.approx(second.meta["performance"]["sbert_loss"], rel=1e-4)
    assert first.meta["performance"]["pair_ap"] == pytest.approx(second.meta["performance"]["pair_ap"], abs=1e-3)
    vectors = [numpy.stack([doc.vector for doc in nlp.pipe(TEXTS)]) for nlp in (first, second)]
    assert abs(vectors[0] - vectors[1]).max() < 1e-4
    assert sorted(path.name for path in (tmp_path / "2").iterdir()) == ["model-best", "model-last"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed rank", "Ctrl-C"])
def test_ended_job(config, tmp_path, number):
    """A rank whose peer is killed ends by itself; what both had saved is whole."""
    output = tmp_path / "out"
    ranks = start(partial(typed, tmp_path / "log", "sbert", "train", config, "--output", output, *NO_END))
    end = time.monotonic() + 300
    while not (output / "model-best" / "meta.json").exists():
        logs = "".join(path.read_text() for path in tmp_path.glob("log-*"))
        assert ranks[0].is_alive() and time.monotonic() < end, logs
        time.sleep(0.1)
    for rank in ranks[1:] if number == signal.SIGKILL else ranks:
        os.kill(rank.pid, number)
    for rank in ranks:
        rank.join(120)
    said = " ".join((tmp_path / "log-0").read_text().split())
    assert all(rank.exitcode for rank in ranks), said
    assert ("Rank 0 of 2 lost the other ranks" if number == signal.SIGKILL else "Stopped") in said
    assert "Traceback" not in said
    for name in ("model-last", "model-best"):
        assert len(spacy.load(output / name)(TEXTS[0]).vector) == 16
