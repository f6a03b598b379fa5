"""Supervised STS: what is trained, what is scored, and tiny runs of the script."""

import argparse

import pytest
import spacy
from helpers.paper_runs import read_rows, read_scores, refuse_training
from helpers.pipelines import ROOT


@pytest.fixture
def sts_options(tiny_bert, tmp_path, dev):
    nli = tmp_path / "nli.jsonl"
    nli.write_text(
        (ROOT / "assets" / "nli-train.jsonl").read_text(encoding="utf8"), encoding="utf8"
    )
    options = [
        "--encoder",
        tiny_bert,
        "--output",
        tmp_path / "out",
        "--steps",
        2,
        "--nli-steps",
        2,
        "--limit",
        32,
    ]
    options += ["--score", dev, "--learn-rate", 0.001]
    return [*options, "--nli", ROOT / "assets" / "nli-train.jsonl", nli]


NAMES = ["sts", "nli", "nli-sts", "cross-sts"]


@pytest.fixture
def trained(load_script, run_script, sts_options, monkeypatch):
    """The arguments and overrides of each training of a run that keeps its models."""
    script = load_script("supervised_sts")
    train = script.trained
    seen = {}

    def look_and_train(folder, settings, config, args, overrides):
        if not folder.exists():
            assert folder.name not in seen
            seen[folder.name] = args, overrides
        return train(folder, settings, config, args, overrides)

    with monkeypatch.context() as patch:
        patch.setattr(script, "trained", look_and_train)
        options = [*sts_options, "--seeds", 1, "--rows", *NAMES]
        run_script("supervised_sts", *options, "--keep-models")
    return seen


def test_a_second_training_goes_on_from_the_first(trained, load_script, tmp_path):
    """And nothing is trained twice."""
    models = tmp_path / "out" / "models"
    assert sorted(trained) == sorted(f"{name}-1" for name in NAMES)
    args, overrides = trained["nli-sts-1"]
    assert overrides["paths.checkpoint"] == str(models / "nli-1")
    pipe = spacy.load(models / "cross-sts-1").get_pipe("sbert_reranker")
    assert pipe.objective == "squared_error"
    assert pipe.model.activation == "identity"
    changed = argparse.Namespace(**{**vars(args), "learn_rate": 0.5})
    with pytest.raises(SystemExit, match=r"models/nli-1/training.json .*--output"):
        load_script("supervised_sts").model_of(changed, "nli", 1)


def test_table_of_supervised_sts(
    trained, load_script, run_script, sts_options, tmp_path, monkeypatch
):
    script = load_script("supervised_sts")
    output = tmp_path / "out"
    rows, differences = read_rows(output)
    saved = read_scores(output)
    spearman = [saved[f"{name}-1"]["files"]["dev.csv"]["spearman"] for name in NAMES]
    assert [row[0] for row in rows] == [script.TRAININGS[name].title for name in NAMES]
    assert [row[2] for row in rows] == [f"{100 * score:.2f}" for score in spearman]
    assert len(set(spearman)) == 4, "each training moves the scores"
    assert list(saved["sts-1"]["seconds"]) == ["sts"]
    assert list(saved["nli-sts-1"]["seconds"]) == ["nli", "nli-sts"]
    assert rows[2][6] == f"{sum(saved['nli-sts-1']['seconds'].values()):.0f}"
    less = differences[0]
    assert less[0] == "NLI, then STS, less STS"
    assert less[-1] == "1"
    assert float(less[2]) == pytest.approx(100 * (spearman[2] - spearman[0]), abs=0.011)
    # A second run trains nothing, and keeps no models
    refuse_training(load_script, monkeypatch)
    run_script("supervised_sts", *sts_options, "--seeds", 1, "--rows", *NAMES)
    assert read_rows(output) == [rows, differences]
    assert not list((output / "models").iterdir())


@pytest.mark.slow
def test_supervised_sts_on_suites(run_script, sts_options, tmp_path, dev):
    """Table 1 from the same pipelines, with what was asked of the encoder and the head."""
    data = tmp_path / "data"
    (data / "STSBenchmark").mkdir(parents=True)
    (data / "STSBenchmark" / "sts-dev.csv").write_text(dev.read_text(encoding="utf8"))
    options = [
        *sts_options,
        "--seeds",
        1,
        "--rows",
        "untrained",
        "nli",
        "--suites",
        data,
        "--any-count",
    ]
    run_script(
        "supervised_sts", *options, "--precision", "bfloat16", "--head-factor", 1, "--keep-models"
    )
    _, suites = (tmp_path / "out" / "table.md").read_text().split("\n\n")
    lines = [line.strip("| ").split(" | ") for line in suites.splitlines()]
    assert lines[0] == ["trained on", "scored by", "STSb-dev", "mean", "seeds"]
    assert [line[0] for line in lines[2:]] == ["nothing", "nothing", "NLI", "NLI"]
    saved = read_scores(tmp_path / "out")["nli-1"]
    assert lines[4][2] == lines[4][3] == f"{100 * saved['suites']['STSb-dev']['pooled']:.2f}"
    assert lines[5][2] == "-"
    of_file = saved["files"]["dev.csv"]["spearman"]
    assert saved["suites"]["STSb-dev"]["pooled"] == pytest.approx(of_file, abs=1e-6), (
        "the same pipeline"
    )
    config = spacy.load(tmp_path / "out" / "models" / "nli-1").config["components"]
    assert config["transformer"]["model"]["precision"] == "bfloat16"
    assert config["sbert"]["loss"]["learn_rate_factor"] == 1
    with pytest.raises(SystemExit, match=r"--rows nli: .*--nli FILE"):
        run_script("supervised_sts", "--rows", "nli")
