"""project.yml: every command of the workflows runs, and the sample is what it says."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import srsly

from spacy_sbert.readers import read_sts

ROOT = Path(__file__).parent.parent


@pytest.fixture
def project(tmp_path):
    for name in ("configs", "scripts", "assets"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "project.yml", tmp_path)
    return tmp_path


def run(project, *arguments):
    command = [sys.executable, "-m", "spacy", "project", "run", arguments[0], ".", *map(str, arguments[1:])]
    return subprocess.run(command, capture_output=True, text=True, cwd=project)


def test_train_workflow(project, tiny_bert):
    config = (project / "configs" / "sts.cfg").read_text()
    name = "sentence-transformers/all-MiniLM-L6-v2"
    assert name in config
    (project / "configs" / "tiny.cfg").write_text(config.replace(name, str(tiny_bert)))
    tiny = ["--vars.config", "configs/tiny.cfg", "--vars.steps", 2, "--vars.eval_frequency", 1]
    done = run(project, "train", *tiny)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((project / "metrics" / "after.json").read_text())["pairs"] == 160
    done = run(project, "zero-shot", *tiny)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((project / "metrics" / "before.json").read_text())["pairs"] == 160
    done = run(project, "package", *tiny)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((project / "packages").rglob("en_sbert_sts-*.whl"))


def test_wrong_number_of_pairs_stops_the_workflow(project):
    done = run(project, "convert", "--vars.train_pairs", 481)
    assert done.returncode != 0 and "holds 480 pairs, expected 481" in " ".join((done.stdout + done.stderr).split())


def test_sample_is_what_the_script_writes(tmp_path):
    command = [sys.executable, ROOT / "scripts" / "make_sample.py", "--output", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    for name in ("pairs-train.csv", "pairs-dev.csv"):
        assert (tmp_path / name).read_bytes() == (ROOT / "assets" / name).read_bytes()


def test_sample_is_graded_and_disjoint():
    train, dev = (list(read_sts(ROOT / "assets" / f"pairs-{split}.csv")) for split in ("train", "dev"))
    variables = srsly.read_yaml(ROOT / "project.yml")["vars"]
    assert (len(train), len(dev)) == (variables["train_pairs"], variables["dev_pairs"])
    sentences = [{s for first, second, _ in pairs for s in (first, second)} for pairs in (train, dev)]
    assert not sentences[0] & sentences[1]
    for pairs in (train, dev):
        grades = [min(int(score * 5), 4) for *_, score in pairs]
        assert min(grades.count(grade) for grade in range(5)) >= len(pairs) / 10
