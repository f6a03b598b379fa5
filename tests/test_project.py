"""Both project.yml: every command of the workflows runs, and the sample has pairs of every
grade.
"""

import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
import zipfile

import pytest
import spacy
import srsly
from helpers.killing import typed
from helpers.pipelines import ROOT, SHARING, blocks, shim_of
from helpers.workflows import copy_project

from spacy_sbert.readers import PairCorpus, read_sts


@pytest.fixture
def project(tmp_path, tiny_bert):
    return copy_project(tmp_path, tiny_bert)


@pytest.fixture
def papers(project):
    """The project of the papers' experiments, in such a copy."""
    folder = project / "benchmarks" / "papers"
    (folder / "assets").mkdir(parents=True)
    for file in (ROOT / "benchmarks" / "papers").glob("*.[py][ym]*"):
        shutil.copy(file, folder)
    shutil.copytree(ROOT / "benchmarks" / "papers" / "protocols", folder / "protocols")
    return folder


def run(project, name, **settings):
    """Run a workflow, with settings for `--vars`."""
    words = (word for key, value in settings.items() for word in (f"--vars.{key}", value))
    return typed("project", "run", name, ".", *words, folder=project)


def succeed(project, name, **settings):
    done = run(project, name, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def said_by_failed(project, name, **settings):
    done = run(project, name, **settings)
    assert done.returncode == 1
    return " ".join((done.stdout + done.stderr).split())


def metrics(project, name):
    return json.loads((project / "metrics" / f"{name}.json").read_text())


def write_table(path, header, rows):
    with path.open("w", newline="", encoding="utf8") as file:
        csv.writer(file).writerows([header, *rows])


def test_train_workflow(project):
    """On a table of one's own. What is wrong in it, or cannot be told, ends the workflow at its
    first command.
    """
    header = ("left", "right", "mine", "other")
    pairs = list(read_sts(project / "assets" / "pairs-dev.csv"))[:30]
    rows = [(first, second, 5 * score, score) for first, second, score in pairs]
    write_table(project / "my.csv", header, rows)
    write_table(project / "bad.csv", header, [*rows[:9], ("a b", "c d", "?", 1), *rows])
    assert "mine, other may be the gold" in said_by_failed(project, "train", dev="my.csv")
    assert "bad.csv, line 11: expected a number" in said_by_failed(
        project, "train", dev="bad.csv", score="mine"
    )
    assert not (project / "training").exists() or not any((project / "training").iterdir())
    succeed(project, "train", dev="my.csv", score="mine", members="left,right")
    assert metrics(project, "after")["pairs"] == 30
    succeed(project, "baseline")
    assert metrics(project, "before")["pairs"] == 160
    done = succeed(project, "check", dev="my.csv", label="other", members="left,right")
    assert "Columns found: left, right, other" in done.stdout
    assert "30 examples" in done.stdout


@pytest.mark.parametrize("encoder", SHARING)
def test_the_workflows_over_either_transformer(project, encoder):
    factory, architecture = SHARING[encoder]
    for name in ("baseline", "train", "joint"):
        succeed(project, name, transformer=factory)
    folders = [project / "training" / name for name in ("before", "model-best", "joint/model-best")]
    for nlp in map(spacy.load, folders):
        assert nlp.get_pipe_meta("transformer").factory == factory
        assert nlp.config["components"]["transformer"]["model"]["@architectures"] == architecture
    assert nlp.pipe_names == ["transformer", "ner", "sbert"]


@pytest.mark.slow
def test_the_commands_of_readme_and_tour(project):
    """In their order, but for those that need data sets of others."""
    for part in ("train", "dev"):
        table = (project / "assets" / f"nli-{part}.jsonl").read_text(encoding="utf8").splitlines()
        rows = [
            [row["sentence1"], row["sentence2"], row["gold_label"]]
            for row in map(json.loads, table)
        ]
        write_table(project / f"{part}.csv", ("sentence1", "sentence2", "label"), rows)
    (project / "packages").mkdir()
    pages = [ROOT / "README.md", ROOT / "docs" / "tour.md"]
    shown = [block for page in pages for block in blocks(page.read_text(encoding="utf8"), "bash")]
    lines = "\n".join(shown).replace("\\\n", " ").splitlines()
    commands = [
        words[3:]
        for words in (shlex.split(line, comments=True) for line in lines)
        if words[1:3] == ["-m", "spacy"]
    ]
    commands = [words for words in commands if not {"DATA", "other.json"} & set(words)]
    assert len(commands) > 12
    for words in commands:
        # The tiny teacher has no more than 16 dimensions
        words = ["8" if word == "64" else word for word in words]
        done = typed(*words, folder=project)
        assert done.returncode == 0, (words, done.stdout + done.stderr)


def test_an_unknown_transformer_is_refused(project):
    done = run(project, "train", transformer="curated_transformer")
    assert done.returncode
    assert "invalid choice: 'curated_transformer'" in done.stderr


@pytest.mark.slow
def test_every_command_in_a_process_that_begins_with_nothing(project):
    for name in ("train", "package"):
        subprocess.run(
            [sys.executable, "-m", "spacy", "project", "run", name, "."], check=True, cwd=project
        )
    assert metrics(project, "after")["pairs"] == 160
    assert list((project / "packages").rglob("en_sbert_sts-*.whl"))


@pytest.mark.slow
def test_visualize_and_evaluate_workflows(project):
    succeed(project, "visualize")
    assert (project / "metrics" / "heatmap.html").read_text(encoding="utf8").count(
        "data-cosine="
    ) == 16 * 16
    assert "Map of 120 texts" in (project / "metrics" / "map.html").read_text(encoding="utf8")
    succeed(project, "evaluate")
    results = metrics(project, "evaluation")
    assert list(results["tasks"]) == ["STSb-dev", "wikisec"]
    assert not results["failed"]


@pytest.mark.slow
def test_two_step_workflow(papers, tiny_bert):
    succeed(papers, "two-step", encoder=tiny_bert, epochs=0, max_steps=2)
    assert metrics(papers, "two_step")["pairs"] == 160
    start, after = (
        shim_of(spacy.load(papers / "training" / name / model), "transformer")
        for name, model in (("nli", "model-best"), ("two_step", "model-last"))
    )
    before = dict(start._model.named_parameters())
    moved = [
        abs((value - before[key]).detach().numpy()).max()
        for key, value in after._model.named_parameters()
    ]
    # It went on from there: two steps of at most 2e-5
    assert 0 < max(moved) < 1e-3


def zipped(path, folder, files):
    """A zip of small files, with the layout of the official one."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, lines in files.items():
            archive.writestr(f"{folder}{name}", "".join(f"{line}\n" for line in lines))


@pytest.mark.slow
def test_nli_workflow(papers, tiny_bert, monkeypatch):
    """From zips that are laid out as the official ones: both are trained on in one epoch, as one
    file.
    """
    train, dev = (
        (ROOT / "assets" / f"nli-{part}.jsonl").read_text().splitlines()
        for part in ("train", "dev")
    )
    skipped = json.dumps({"gold_label": "-", "sentence1": "A man.", "sentence2": "A dog."})
    snli = {
        "snli_1.0_train.jsonl": [*train[:40], skipped],
        "snli_1.0_dev.jsonl": dev[:20],
        "README.txt": ["SNLI"],
    }
    multinli = {
        "multinli_1.0_train.jsonl": train[40:81],
        "multinli_1.0_dev_matched.jsonl": dev[20:50],
    }
    zipped(
        papers / "assets" / "snli_1.0.zip", "snli_1.0/", {**snli, "snli_1.0_test.jsonl": dev[:3]}
    )
    zipped(papers / "assets" / "multinli_1.0.zip", "multinli_1.0/", multinli)
    monkeypatch.chdir(papers)
    done = succeed(papers, "nli", encoder=tiny_bert, eval_frequency=4)
    nlp = spacy.load(papers / "training" / "official_nli" / "model-last")
    assert len(nlp.config["paths"]["train"]) == 2
    schedule = nlp.config.interpolate()["training"]["optimizer"]["learn_rate"]
    assert (
        PairCorpus(**{k: v for k, v in schedule["corpus"].items() if k != "@readers"}).count() == 81
    )
    assert re.findall(r"^ +0 +(\d+) ", done.stdout, re.MULTILINE) == ["0", "4"], (
        "the pair left over joins a batch"
    )
    assert metrics(papers, "official_nli")["pairs"] == 160
    assert metrics(papers, "official_nli_labels")["pairs"] == 30
    streamed = {"epochs": -1, "max_steps": 3, "shuffle_buffer": 50, "eval_frequency": 3}
    succeed(papers, "fit-official-nli", encoder=tiny_bert, **streamed)


def test_wikisec_workflow(papers, tiny_bert):
    head, *lines = (ROOT / "assets" / "triplets-train.csv").read_text().splitlines()
    parts = {"train.csv": lines[:33], "validation.csv": lines[33:49], "test.csv": lines[49:60]}
    official = {name: [head, *part] for name, part in parts.items()}
    zipped(papers / "assets" / "wikipedia-sections-triplets.zip", "", official)
    succeed(papers, "wikisec", encoder=tiny_bert, eval_frequency=1)
    scores = metrics(papers, "wikisec")
    assert scores["pairs"] == 11
    assert 0 <= scores["triplet_acc"] <= 1


@pytest.mark.parametrize("folder", [".", "benchmarks/papers"])
def test_assets_that_the_workflows_unpack_are_listed(folder):
    project = srsly.read_yaml(ROOT / folder / "project.yml")
    deps = {dep for command in project["commands"] for dep in command.get("deps", [])}
    assert {dep for dep in deps if dep.endswith((".zip", ".gz"))} == {
        asset["dest"] for asset in project["assets"]
    }
    assert all(
        re.fullmatch("|[0-9a-f]{32}", asset.get("checksum", "")) for asset in project["assets"]
    )


@pytest.mark.slow
def test_reranker_workflows(project, papers):
    succeed(project, "reranker")
    scores = metrics(project, "reranker")
    performance = spacy.load(project / "training" / "reranker" / "model-best").meta["performance"]
    assert scores["pairs"] == 160
    assert scores["sts_spearman"] == pytest.approx(performance["sts_spearman"], abs=1e-6)
    succeed(papers, "reranker-two-step")
    assert metrics(papers, "reranker_two_step")["pairs"] == 160


# Four trainings
@pytest.mark.slow
def test_ablation_workflow(papers, tiny_bert):
    succeed(papers, "ablation", encoder=tiny_bert, poolings="mean cls", steps=1, limit=32)
    folder = papers / "metrics" / "ablation"
    rows = [line.split(" | ") for line in (folder / "table.md").read_text().splitlines()[2:]]
    assert [row[:2] for row in rows] == [
        [f"| {pooling}", written]
        for pooling in ("mean", "cls")
        for written in ("(u, v)", "(u, v, \\|u-v\\|)")
    ]
    saved = json.loads((folder / "scores.json").read_text())["runs"]
    scores = [100 * saved[f"mean-u-v-{seed}"]["scores"]["spearman"] for seed in (1, 2)]
    assert rows[0][2:4] == [f"{sum(scores) / 2:.2f}", f"{abs(scores[0] - scores[1]) / 2**0.5:.2f}"]


def test_sts_workflow_counts_the_pairs(project):
    folder = project / "assets" / "stsbenchmark"
    folder.mkdir()
    for part in ("train", "dev"):
        shutil.copy(project / "assets" / f"pairs-{part}.csv", folder / f"sts-{part}.csv")
    assert "holds 480 pairs, expected 5749" in said_by_failed(project, "convert-sts")


@pytest.mark.parametrize("part", ["train", "dev"])
def test_each_grade_is_that_of_a_tenth_of_the_sample(part):
    grades = [
        min(int(score * 5), 4) for *_, score in read_sts(ROOT / "assets" / f"pairs-{part}.csv")
    ]
    assert min(grades.count(grade) for grade in range(5)) >= len(grades) / 10


@pytest.mark.slow
def test_meta_embeddings_workflow(papers, tiny_bert):
    """Every method on the sample, with three poolings of the tiny BERT."""
    succeed(papers, "meta-embeddings", encoder=tiny_bert, meta_size=8, meta_epochs=2)
    found = json.loads((papers / "metrics" / "meta" / "scores.json").read_text())
    methods = [
        "conc (paper)",
        "avg (paper)",
        "svd (paper)",
        "gcca, raw (paper)",
        "gcca, unit length",
    ]
    methods = [*methods, "ae, raw (paper)", "ae, unit length"]
    members = ["mean", "max", "cls"]
    # No member is narrower than 8
    assert list(found["table2"]) == [*members, *methods]
    assert list(found["table3"]) == ["nobody", *members]
    assert all(list(row) == methods for row in found["table3"].values())
    assert len(found["table1"]) == 1 + 2 * (5 + 12)
    assert all(
        -100 <= row["tasks"]["STSb-dev"]["spearman"] <= 100 for row in found["table2"].values()
    )
    assert all(
        -100 <= each["dev"]["pearson"] <= 100
        for row in found["table3"].values()
        for each in row.values()
    )
    lines = (
        (papers / "metrics" / "meta" / "table2.md").read_text(encoding="utf8").splitlines()[2:12]
    )
    assert [line.split(" | ")[0].strip("| ") for line in lines] == list(found["table2"])
    doc = spacy.load(papers / "training" / "meta")("A man.")
    assert doc.vector.shape == (8,)
    assert doc._.mean_vector.shape == (16,)
