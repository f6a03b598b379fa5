"""Both project.yml: every command of the workflows runs, and the sample is what it says."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import spacy
import srsly
from killing import typed
from workflows import use_tiny_bert

from spacy_sbert.readers import PairCorpus, read_sts

ROOT = Path(__file__).parent.parent


@pytest.fixture
def project(tmp_path):
    for name in ("configs", "scripts", "assets"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "project.yml", tmp_path)
    return tmp_path


@pytest.fixture
def papers(project):
    """Return the project of the papers' experiments, in a copy of the repository."""
    folder = project / "benchmarks" / "papers"
    folder.mkdir(parents=True)
    for file in (ROOT / "benchmarks" / "papers").glob("*.[py][ym]*"):
        shutil.copy(file, folder)
    return folder


def run(project, name, *arguments):
    return typed("project", "run", name, ".", *arguments, folder=project)


def run_anew(project, name):
    command = [sys.executable, "-m", "spacy", "project", "run", name, "."]
    return subprocess.run(command, capture_output=True, text=True, cwd=project)


def succeed(project, *arguments, run=run):
    done = run(project, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.spacy_transformers
def test_train_workflow(project, tiny_bert):
    use_tiny_bert(project, tiny_bert)
    succeed(project, "train", run=run_anew)  # every command in a process that begins with nothing
    assert json.loads((project / "metrics" / "after.json").read_text())["pairs"] == 160
    succeed(project, "baseline")
    assert json.loads((project / "metrics" / "before.json").read_text())["pairs"] == 160
    succeed(project, "visualize")
    assert (project / "metrics" / "heatmap.html").read_text(encoding="utf8").count("data-cosine=") == 16 * 16
    assert "Map of 120 texts" in (project / "metrics" / "map.html").read_text(encoding="utf8")
    succeed(project, "evaluate")
    results = json.loads((project / "metrics" / "evaluation.json").read_text())
    assert list(results["tasks"]) == ["STSb-dev", "wikisec", "UKP-ASPECT"] and not results["failed"]
    succeed(project, "package")
    assert list((project / "packages").rglob("en_sbert_sts-*.whl"))


@pytest.mark.spacy_transformers
def test_a_table_to_score_on_is_checked_before_training(project, tiny_bert):
    """What is wrong in it, or cannot be told, ends the workflow at its first command."""
    use_tiny_bert(project, tiny_bert)
    pairs = list(read_sts(project / "assets" / "pairs-dev.csv"))[:30]
    rows = [f"{first.replace(',', '')},{second.replace(',', '')},{5 * score},{score}" for first, second, score in pairs]
    (project / "my.csv").write_text("\n".join(["left,right,mine,other", *rows]), encoding="utf8")
    done = run(project, "train", "--vars.dev", "my.csv")
    assert done.returncode == 1 and "mine, other may be the gold" in " ".join(done.stdout.split())
    (project / "bad.csv").write_text("\n".join(["left,right,mine,other", *rows[:9], "a b,c d,?,1", *rows]))
    done = run(project, "train", "--vars.dev", "bad.csv", "--vars.score", "mine")
    assert done.returncode == 1 and "bad.csv, line 11: expected a number" in " ".join(done.stdout.split())
    assert not (project / "training").exists() or not any((project / "training").iterdir())
    labelled = [
        f"{first.replace(',', '')},{second.replace(',', '')},{'nyu'[i % 3]},{i % 2}"
        for i, (first, second, _) in enumerate(pairs)
    ]
    (project / "labels.csv").write_text("\n".join(["left,right,kind,mine", *labelled]), encoding="utf8")
    done = run(project, "check", "--vars.dev", "labels.csv")
    assert done.returncode == 1 and "kind, mine may be the gold" in " ".join(done.stdout.split())
    done = succeed(project, "check", "--vars.dev", "labels.csv", "--vars.label", "kind")
    assert "Columns found: left, right, kind" in done.stdout and "30 examples" in done.stdout
    succeed(project, "train", "--vars.dev", "my.csv", "--vars.score", "mine", "--vars.members", "left,right")
    assert json.loads((project / "metrics" / "after.json").read_text())["pairs"] == 30


@pytest.mark.slow
@pytest.mark.spacy_transformers
def test_two_step_workflow(papers, tiny_bert):
    use_tiny_bert(papers, tiny_bert)
    succeed(papers, "two-step", "--vars.encoder", tiny_bert, "--vars.epochs", 0, "--vars.max_steps", 2)
    assert json.loads((papers / "metrics" / "two_step.json").read_text())["pairs"] == 160
    start, after = (
        spacy.load(papers / "training" / name / model).get_pipe("transformer").model.layers[0].shims[0]
        for name, model in (("nli", "model-best"), ("two_step", "model-last"))
    )
    before = dict(start._model.named_parameters())
    moved = [abs((value - before[key]).detach().numpy()).max() for key, value in after._model.named_parameters()]
    assert 0 < max(moved) < 1e-3  # it went on from there: two steps of at most 2e-5


def zipped(path, folder, files):
    """A zip of small files, with the layout of the official one."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, lines in files.items():
            archive.writestr(f"{folder}{name}", "".join(f"{line}\n" for line in lines))


@pytest.mark.slow
@pytest.mark.spacy_transformers
def test_nli_workflow(papers, tiny_bert, monkeypatch):
    """From zips that are laid out as the official ones: both are trained on in one epoch, as one file."""
    train, dev = ((ROOT / "assets" / f"nli-{part}.jsonl").read_text().splitlines() for part in ("train", "dev"))
    skipped = json.dumps({"gold_label": "-", "sentence1": "A man.", "sentence2": "A dog."})
    snli = {"snli_1.0_train.jsonl": [*train[:40], skipped], "snli_1.0_dev.jsonl": dev[:20], "README.txt": ["SNLI"]}
    multinli = {"multinli_1.0_train.jsonl": train[40:81], "multinli_1.0_dev_matched.jsonl": dev[20:50]}
    (papers / "assets").mkdir()
    zipped(papers / "assets" / "snli_1.0.zip", "snli_1.0/", {**snli, "snli_1.0_test.jsonl": dev[:3]})
    zipped(papers / "assets" / "multinli_1.0.zip", "multinli_1.0/", multinli)
    monkeypatch.chdir(papers)
    settings = ("--vars.encoder", tiny_bert, "--vars.eval_frequency", 4)
    done = succeed(papers, "nli", *settings)
    nlp = spacy.load(papers / "training" / "official_nli" / "model-last")
    assert len(nlp.config["paths"]["train"]) == 2
    schedule = nlp.config.interpolate()["training"]["optimizer"]["learn_rate"]
    assert PairCorpus(**{k: v for k, v in schedule["corpus"].items() if k != "@readers"}).count() == 81
    assert re.findall(r"^ +0 +(\d+) ", done.stdout, re.MULTILINE) == ["0", "4"], "the pair left over joins a batch"
    assert json.loads((papers / "metrics" / "official_nli.json").read_text())["pairs"] == 160
    assert json.loads((papers / "metrics" / "official_nli_labels.json").read_text())["pairs"] == 30
    streamed = ("--vars.epochs", -1, "--vars.max_steps", 3, "--vars.shuffle_buffer", 50, "--vars.eval_frequency", 3)
    succeed(papers, "fit-official-nli", *settings[:2], *streamed)


@pytest.mark.spacy_transformers
def test_wikisec_workflow(papers, tiny_bert):
    lines = (ROOT / "assets" / "triplets-train.csv").read_text().splitlines()
    parts = {
        "train.csv": lines[:34],
        "validation.csv": [lines[0], *lines[34:50]],
        "test.csv": [lines[0], *lines[50:61]],
    }
    (papers / "assets").mkdir()
    zipped(papers / "assets" / "wikipedia-sections-triplets.zip", "", parts)
    succeed(papers, "wikisec", "--vars.encoder", tiny_bert, "--vars.eval_frequency", 1)
    scores = json.loads((papers / "metrics" / "wikisec.json").read_text())
    assert scores["pairs"] == 11 and 0 <= scores["triplet_acc"] <= 1


@pytest.mark.parametrize("folder", [".", "benchmarks/papers"])
def test_assets_that_the_workflows_unpack_are_listed(folder):
    project = srsly.read_yaml(ROOT / folder / "project.yml")
    listed = {asset["dest"] for asset in project["assets"]}
    archives = {
        dep for command in project["commands"] for dep in command.get("deps", []) if dep.endswith((".zip", ".gz"))
    }
    assert archives == listed
    assert [
        asset["dest"] for asset in project["assets"] if not re.fullmatch("|[0-9a-f]{32}", asset.get("checksum", ""))
    ] == []


def test_reranker_workflow(project, tiny_bert):
    use_tiny_bert(project, tiny_bert)
    succeed(project, "reranker")
    scores = json.loads((project / "metrics" / "reranker.json").read_text())
    performance = spacy.load(project / "training" / "reranker" / "model-best").meta["performance"]
    assert scores["pairs"] == 160
    assert scores["sts_spearman"] == pytest.approx(performance["sts_spearman"], abs=1e-6)


@pytest.mark.slow  # the steps of two others, one after the other
def test_reranker_two_step_workflow(papers, tiny_bert):
    use_tiny_bert(papers, tiny_bert)
    succeed(papers, "reranker-two-step")
    assert json.loads((papers / "metrics" / "reranker_two_step.json").read_text())["pairs"] == 160


@pytest.mark.slow  # four trainings
def test_ablation_workflow(papers, tiny_bert):
    use_tiny_bert(papers, tiny_bert)
    succeed(
        papers,
        "ablation",
        "--vars.encoder",
        tiny_bert,
        "--vars.poolings",
        "mean cls",
        "--vars.steps",
        1,
        "--vars.limit",
        32,
    )
    folder = papers / "metrics" / "ablation"
    rows = [line.split(" | ") for line in (folder / "table.md").read_text().splitlines()[2:]]
    assert [row[:2] for row in rows] == [
        [f"| {pooling}", written] for pooling in ("mean", "cls") for written in ("(u, v)", "(u, v, \\|u-v\\|)")
    ]
    saved = json.loads((folder / "scores.json").read_text())["runs"]
    scores = [100 * saved[f"mean-u-v-{seed}"]["scores"]["spearman"] for seed in (1, 2)]
    assert rows[0][2:4] == [f"{sum(scores) / 2:.2f}", f"{abs(scores[0] - scores[1]) / 2**0.5:.2f}"]


def test_sts_workflow_counts_the_pairs(project):
    folder = project / "assets" / "stsbenchmark"
    folder.mkdir()
    for part in ("train", "dev"):
        shutil.copy(project / "assets" / f"pairs-{part}.csv", folder / f"sts-{part}.csv")
    done = run(project, "convert-sts")
    assert done.returncode != 0 and "holds 480 pairs, expected 5749" in " ".join((done.stdout + done.stderr).split())


def test_sample_is_what_the_script_writes(tmp_path):
    command = [sys.executable, ROOT / "scripts" / "make_sample.py", "--output", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    for name in ("pairs-train.csv", "pairs-dev.csv"):
        assert (tmp_path / name).read_bytes() == (ROOT / "assets" / name).read_bytes()


def test_sample_is_graded_and_disjoint():
    train, dev = (list(read_sts(ROOT / "assets" / f"pairs-{split}.csv")) for split in ("train", "dev"))
    assert (len(train), len(dev)) == (480, 160)
    sentences = [{s for first, second, _ in pairs for s in (first, second)} for pairs in (train, dev)]
    assert not sentences[0] & sentences[1]
    for pairs in (train, dev):
        grades = [min(int(score * 5), 4) for *_, score in pairs]
        assert min(grades.count(grade) for grade in range(5)) >= len(pairs) / 10


@pytest.mark.slow
@pytest.mark.spacy_transformers
def test_meta_embeddings_workflow(papers, tiny_bert):
    """Every method on the sample, with three poolings of the tiny BERT."""
    settings = ("--vars.encoder", tiny_bert, "--vars.meta_size", 8, "--vars.meta_epochs", 2)
    succeed(papers, "meta-embeddings", *settings)
    found = json.loads((papers / "metrics" / "meta" / "scores.json").read_text())
    methods = ["conc (paper)", "avg (paper)", "svd (paper)", "gcca, raw (paper)", "gcca, unit length"]
    methods += ["ae, raw (paper)", "ae, unit length"]
    members = ["mean", "max", "cls"]
    assert list(found["table2"]) == [*members, *methods]  # no member is narrower than 8
    assert list(found["table3"]) == ["nobody", *members]
    assert all(list(row) == methods for row in found["table3"].values())
    assert len(found["table1"]) == 1 + 2 * (5 + 12)
    assert all(-100 <= row["tasks"]["STSb-dev"]["spearman"] <= 100 for row in found["table2"].values())
    assert all(-100 <= each["dev"]["pearson"] <= 100 for row in found["table3"].values() for each in row.values())
    text = (papers / "metrics" / "meta" / "table2.md").read_text(encoding="utf8")
    assert [line.split(" | ")[0].strip("| ") for line in text.splitlines()[2 : 2 + 10]] == list(found["table2"])
    nlp = spacy.load(papers / "training" / "meta")
    assert nlp("A man.").vector.shape == (8,) and nlp("A man.")._.mean_vector.shape == (16,)
