"""Runs that are saved, and the figures of their tables."""

import argparse
import json

import pytest
from helpers.pipelines import ROOT


def test_a_run_is_saved_and_not_made_again(load_script, tmp_path):
    """A setting holds the weights of a folder, not its place."""
    made = []

    def make():
        made.append(1)
        return {"spearman": 0.5 + len(made) / 10}

    for folder in "ab":
        (tmp_path / folder / "encoder").mkdir(parents=True)
        (tmp_path / folder / "encoder" / "weights").write_text(folder, encoding="utf8")
    first, second = ({"encoder": str(tmp_path / folder / "encoder")} for folder in "ab")
    # As two calls of a script
    for settings in (first, first):
        runs = load_script("runs").Runs(
            tmp_path / "new", {"seeds": [1]}, lambda scores: f"{scores}\n"
        )
        assert runs("u,v", "1", settings=settings, make=make) == {"spearman": 0.6}
        assert (tmp_path / "new" / "table.md").read_text() == "{('u,v', '1'): {'spearman': 0.6}}\n"
    saved = (tmp_path / "new" / "scores.json").read_text()
    kept = json.loads(saved)
    assert made == [1]
    assert str(tmp_path) not in saved
    assert kept["settings"] == {"seeds": [1]}
    assert kept["runs"].keys() == {"u-v-1"}
    run = kept["runs"]["u-v-1"]
    assert run["scores"] == {"spearman": 0.6}
    assert run["device"] == "cpu"
    assert run["seconds"] >= 0
    assert run["versions"]["spacy"]
    with pytest.raises(SystemExit, match=r"was made with .* not .*choose another --output"):
        runs("u,v", "1", settings=second, make=make)


def test_means_deviations_and_paired_differences(load_script):
    """By hand: d = 1, 2, 3; t = 2 / (1 / sqrt(3)); 4.3027 is the 97.5 % quantile of Student's t of
    2 degrees.
    """
    tables = load_script("runs")
    assert tables.mean_and_deviation([0.5, 0.7]) == ("60.00", "14.14")
    assert tables.in_one([0.5, 0.7]) == "60.00 ± 14.14"
    assert tables.mean_and_deviation([0.5]) == ("50.00", "-")
    assert tables.in_one([0.5]) == "50.00"
    assert tables.mean_and_deviation([0.5, None]) == tables.mean_and_deviation([]) == ("-", "-")
    assert tables.mean_of([0.5, 0.7]) == pytest.approx(0.6)
    assert tables.mean_of([0.5, None]) is tables.mean_of([]) is None
    mean, interval, t, p = tables.paired_difference([0.81, 0.83, 0.82], [0.80, 0.80, 0.80])
    assert [mean, interval, t] == ["+2.00", "-0.48 to +4.48", f"{2 * 3**0.5:.2f}"]
    assert float(p) == pytest.approx(0.074)
    assert tables.paired_difference([0.8], [0.7]) == ["+10.00", "-", "-", "-"]
    assert tables.paired_difference([0.5, 0.5], [0.5, 0.5]) == ["+0.00", "-", "-", "-"]
    assert tables.paired_difference([0.5, None], [0.5, 0.4]) == ["-"] * 4


def test_the_encoder_before_training_is_that_of_the_config(load_script, tiny_bert, make_nlp):
    args = argparse.Namespace(encoder=str(tiny_bert), precision=None, gpu_id=-1)
    nlp = load_script("runs").untrained(ROOT / "configs" / "sts.cfg", args)
    assert nlp("A man is eating.").vector == pytest.approx(
        make_nlp("own")("A man is eating.").vector, abs=1e-6
    )
