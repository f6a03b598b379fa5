"""The ablation of poolings and concatenations: one tiny run of the script."""

import pytest
from helpers.paper_runs import read_rows, read_scores, refuse_training


@pytest.mark.parametrize("of_classification", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_ablation(
    load_script, run_script, tiny_bert, tmp_path, monkeypatch, dev, of_classification
):
    """Both columns of Table 6: the regression has poolings alone."""
    options = [
        "--encoder",
        tiny_bert,
        "--output",
        tmp_path,
        "--steps",
        1,
        "--limit",
        16,
        "--learn-rate",
        0.001,
    ]
    poolings = ["mean"] if of_classification else ["mean", "max"]
    options += ["--dev", dev, "--pooling", *poolings, "--concatenation", "u,v,abs_diff"]
    options += [] if of_classification else ["--config", "configs/sts.cfg"]
    run_script("ablation", *options)
    (rows,) = read_rows(tmp_path)
    written = "(u, v, \\|u-v\\|)" if of_classification else "-"
    assert [row[:2] for row in rows] == [[pooling, written] for pooling in poolings]
    saved = read_scores(tmp_path)
    name = "mean-u-v-abs_diff" if of_classification else "mean-none"
    scores = [100 * saved[f"{name}-{seed}"]["spearman"] for seed in (1, 2)]
    assert rows[0][2:] == [
        f"{sum(scores) / 2:.2f}",
        f"{abs(scores[0] - scores[1]) / 2**0.5:.2f}",
        "2",
    ]
    assert all(run["seconds"] > 0 for run in saved.values())
    refuse_training(load_script, monkeypatch)
    run_script("ablation", *options)
