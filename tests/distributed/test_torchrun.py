"""`spacy sbert train` as torchrun starts it: one folder and one log, ended by Ctrl-C and by the death of a rank."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest
import spacy
from pipelines import ROOT, shipped_config
from typer.testing import CliRunner

from spacy_sbert.cli import app

TEXTS = ["How do I learn Python?", "What is the best way to learn Python?", "Why is the sky blue?"]
TWO_STEPS = ["--training.max_epochs", "0", "--training.max_steps", "2", "--training.eval_frequency", "1"]
NO_END = ["--training.max_epochs", "0", "--training.max_steps", "100000", "--training.eval_frequency", "2"]


@pytest.fixture
def config(tiny_bert, tmp_path):
    """The shipped config of ranking, with the random tiny BERT."""
    config = shipped_config("ranking", tiny_bert)
    config["training"]["dropout"] = 0.0
    config.to_disk(tmp_path / "ranking.cfg", interpolate=False)
    return tmp_path / "ranking.cfg"


def begin(config, output, *options):
    """Start a training on two ranks."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    command = [sys.executable, *launcher, "spacy", "sbert", "train", str(config), "--output", str(output), *options]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def until_saved(process, output):
    """Wait for a first checkpoint."""
    end = time.monotonic() + 300
    while not (output / "model-best" / "meta.json").exists():
        assert process.poll() is None and time.monotonic() < end, process.communicate()[0]
        time.sleep(0.2)


def ranks_of(process):
    """The processes that the launcher has started, in order."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children]


def is_whole(folder):
    return len(spacy.load(folder)(TEXTS[0]).vector) == 16


def test_two_ranks_train_as_one_does(config, tmp_path, monkeypatch):
    process = begin(config, tmp_path / "2", *TWO_STEPS)
    monkeypatch.chdir(ROOT)
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


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds ranks in /proc")
def test_killed_rank_ends_the_job(config, tmp_path):
    output = tmp_path / "out"
    process = begin(config, output, *NO_END)
    until_saved(process, output)
    os.kill(ranks_of(process)[1], signal.SIGKILL)
    said = process.communicate(timeout=120)[0]
    assert process.returncode != 0
    assert "SIGKILL" in said or "exitcode: -9" in said.replace(" ", "").replace("exitcode:-9", "exitcode: -9")
    assert is_whole(output / "model-last") and is_whole(output / "model-best")


def test_ctrl_c_ends_the_job(config, tmp_path):
    output = tmp_path / "out"
    process = begin(config, output, *NO_END)
    until_saved(process, output)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=120)[0]
    assert process.returncode != 0
    assert "Stopped" in said, said
    assert is_whole(output / "model-last") and is_whole(output / "model-best")
