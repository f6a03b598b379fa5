"""Ranks of models, how they change, and the rank correlation of transfer and probing tasks."""

import json

import numpy
import pytest
from helpers.made_results import OWN, classified, results
from rankings import _fisher_interval, main, rankings, ranks, report

FILES = ["1", "2", "3", "4", "5"]


def test_ranks_by_hand():
    assert ranks([0.5, 0.9, 0.5, 0.1]) == [2, 1, 2, 4]
    assert ranks([0.5, None]) is None
    assert ranks([0.5, "-"]) is None


def varied(lr, mlp, zscore):
    scores = [
        {"lr": {"accuracy": lr}, "mlp": {"accuracy": mlp}},
        {"lr": {"accuracy": zscore}, "mlp": {"accuracy": mlp}},
    ]
    keys = [OWN, {**OWN, "normalization": "zscore"}]
    return classified(
        0, variants=[{**key, "scores": one} for key, one in zip(keys, scores, strict=True)]
    )


def test_rank_changes_by_hand():
    figures = {"a": (0.9, 0.6, 0.7), "b": (0.8, 0.7, 0.8), "c": (0.7, 0.5, 0.6)}
    models = [
        results({"MR": varied(*values), "CR": varied(0.5, 0.5, 0.5)}, name)
        for name, values in figures.items()
    ]
    found = rankings(models, FILES[:3])
    changes = found["rank_changes"]
    change = {"from": "none, own", "to": "zscore, own", "before": [1, 2, 3], "after": [2, 1, 3]}
    # MR and the mean of both tasks change, CR does not
    changed = [{"task": "MR", **change}, {"task": "mean of transfer", **change}]
    assert changes["variants"] == {"compared": 3, "changes": changed}
    assert changes["classifiers"]["compared"] == 3
    assert [change["task"] for change in changes["classifiers"]["changes"]] == [
        "MR",
        "mean of transfer",
    ]
    assert changes["similarities"] == {"compared": 0, "changes": []}
    text = report(found).markdown()
    assert "| MR | none, own | zscore, own | 1 to 2 | 2 to 1 | 3 |" in text
    assert "Between normalisation and size, 2 of 3 rankings of the models change." in text


def test_transfer_against_probing_by_hand():
    """Over five models MR runs 1 2 3 4 5, CR the other way, Tense 1 2 4 3 5; SST-5 and SICK-E are
    not asked.
    """
    models = []
    for mr, tense in zip((1, 2, 3, 4, 5), (1, 2, 4, 3, 5), strict=True):
        figures = {"MR": mr / 10, "CR": (6 - mr) / 10, "SST-5": mr / 10, "SICK-E": tense**2 / 30}
        tasks = {name: classified(value) for name, value in figures.items()}
        models.append(results({**tasks, "Tense": classified(tense / 10, suite="probing")}))
    comparison = rankings(models, FILES)
    found = comparison["transfer_probing"]
    assert found["models"] == 5
    assert found["left_out"] == ["SST-5", "SICK-E"]
    # 1 - 6 sum d^2 / (n (n^2 - 1)) with d = 0 0 1 1 0; every model has the same mean of MR and CR
    rho = 1 - 6 * 2 / 120
    each = {name: column["Tense"] for name, column in found["correlations"].items()}
    assert each == {"MR": pytest.approx(rho), "CR": pytest.approx(-rho), "mean": None}
    half = 1.96 * (1.06 / 2) ** 0.5
    z = 0.5 * numpy.log(1.9 / 0.1)
    low = numpy.tanh(z - half)
    high = numpy.tanh(z + half)
    assert found["intervals"]["MR"]["Tense"] == pytest.approx([low, high], abs=1e-4)
    assert found["intervals"]["CR"]["Tense"] == pytest.approx([-high, -low], abs=1e-4)
    assert found["intervals"]["mean"]["Tense"] is None
    text = report(comparison).markdown()
    assert "| MR | 90.00 (4.53 to 99.40) |" in text
    assert "| mean | undefined |" in text
    assert "Left out: SST-5, SICK-E." in text
    assert "Fisher's z" in text
    few = rankings(models[:4], FILES[:4])
    assert few["transfer_probing"] == {"reason": "needs at least 5 models"}
    assert "needs at least 5 models" in report(few).markdown()


def test_equal_rankings_are_not_sure():
    assert _fisher_interval(1.0, 5) is None
    assert _fisher_interval(-1.0, 50) is None
    assert _fisher_interval(None, 5) is None
    low, high = _fisher_interval(0.5, 103)
    assert (low, high) == pytest.approx((0.3342, 0.6358), abs=1e-4)
    assert _fisher_interval(0.0, 5)[1] == pytest.approx(0.891, abs=1e-3)


def test_script(tmp_path, monkeypatch):
    """The script writes the JSON and the report of saved results."""
    for name in "ab":
        found = results({"MR": varied(0.5, 0.6, 0.7)}, name)
        (tmp_path / f"{name}.json").write_text(json.dumps(found), encoding="utf8")
    arguments = [tmp_path / "a.json", tmp_path / "b.json", "--output", tmp_path / "out.json"]
    monkeypatch.setattr("sys.argv", ["rankings.py", *map(str, arguments)])
    main()
    assert json.loads((tmp_path / "out.json").read_text())["models"] == ["a", "b"]
    assert "# Rankings of a, b" in (tmp_path / "out.md").read_text(encoding="utf8")
