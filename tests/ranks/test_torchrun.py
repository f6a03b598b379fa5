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
from pipelines import shipped_config

ROOT = Path(__file__).parent.parent.parent
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


def begin(config, output, *options, ranks=2):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m"]
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


def test_two_ranks_train_as_one_does(config, tmp_path):
    said = {}
    for ranks in (1, 2):
        process = begin(config, tmp_path / str(ranks), *TWO_STEPS, ranks=ranks)
        said[ranks] = process.communicate(timeout=300)[0]
        assert process.returncode == 0, said[ranks]
    assert said[2].count("Saved the pipeline to") == said[2].count("LOSS SBERT") + said[2].count("loss sbert") == 1
    first, second = (spacy.load(tmp_path / str(ranks) / "model-last") for ranks in (1, 2))
    assert first.meta["performance"]["sbert_loss"] == pytest.approx(second.meta["performance"]["sbert_loss"], rel=1e-4)
    assert first.meta["performance"]["pair_ap"] == pytest.approx(second.meta["performance"]["pair_ap"], abs=1e-3)
    vectors = [numpy.stack([doc.vector for doc in nlp.pipe(TEXTS)]) for nlp in (first, second)]
    assert abs(vectors[0] - vectors[1]).max() < 1e-4
    assert sorted(path.name for path in (tmp_path / "2").iterdir()) == ["model-best", "model-last"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds ranks in /proc")
def test_the_death_of_a_rank_ends_the_job(config, tmp_path):
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
