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


def test_supervised_sts(load_script, run_script, sts_options, tmp_path, monkeypatch):
    """A second step goes on from the first; nothing is trained twice; vectors and cross-encoders
    are compared.
    """
    script = load_script("supervised_sts")
    output = tmp_path / "out"
    trained = script.trained
    seen = {}

    def look_and_train(folder, settings, config, args, overrides):
        if not folder.exists():
            assert folder.name not in seen
            seen[folder.name] = args, overrides
        return trained(folder, settings, config, args, overrides)

    monkeypatch.setattr(script, "trained", look_and_train)
    names = ["sts", "nli", "nli-sts", "cross-sts"]
    options = [*sts_options, "--seeds", 1, "--rows", *names]
    run_script("supervised_sts", *options, "--keep-models")
    assert sorted(seen) == sorted(f"{name}-1" for name in names), "NLI once"
    args, overrides = seen["nli-sts-1"]
    assert overrides["paths.checkpoint"] == str(output / "models" / "nli-1")
    pipe = spacy.load(output / "models" / "cross-sts-1").get_pipe("sbert_reranker")
    assert (pipe.objective, pipe.model.activation) == ("squared_error", "identity")
    with pytest.raises(
        SystemExit, match=r"models/nli-1/training.json was made with .* choose another --output"
    ):
        script.model_of(argparse.Namespace(**{**vars(args), "learn_rate": 0.5}), "nli", 1)

    rows, differences = read_rows(output)
    assert [row[0] for row in rows] == [script.TRAININGS[name].title for name in names]
    assert len({row[2] for row in rows}) == 4, "each training moves the scores"
    saved = read_scores(output)
    assert [row[2] for row in rows] == [
        f"{100 * saved[f'{name}-1']['files']['dev.csv']['spearman']:.2f}" for name in names
    ]
    assert list(saved["sts-1"]["seconds"]) == ["sts"]
    assert list(saved["nli-sts-1"]["seconds"]) == [
        "nli",
        "nli-sts",
    ]
    assert rows[2][6] == f"{sum(saved['nli-sts-1']['seconds'].values()):.0f}"
    assert differences[0][0] == "NLI, then STS, less STS"
    assert differences[0][-1] == "1"
    assert float(differences[0][2]) == pytest.approx(
        float(rows[2][2]) - float(rows[0][2]), abs=0.011
    )
    refuse_training(load_script, monkeypatch)
    run_script("supervised_sts", *options)
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
    with pytest.raises(SystemExit, match="--rows nli: name the NLI pairs to train on, --nli FILE"):
        run_script("supervised_sts", "--rows", "nli")
