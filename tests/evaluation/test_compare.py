"""Bootstrap intervals and tests; comparisons of models, and files that are not results."""

import json
import re

import numpy
import pytest
from helpers.made_results import GOLD, OWN, classified, graded, results
from scipy import stats

from spacy_sbert.evaluation.compare import compare
from spacy_sbert.evaluation.report import comparison_report
from spacy_sbert.evaluation.results import (
    FORMAT,
    interval,
    mean_of,
    paired_difference,
    read_results,
    resample,
    spearman_of,
)


def report(models, found=None):
    return comparison_report(models, found or compare(models, resamples=10))


def right(count, of=200, **more):
    """A task of which the first examples are right."""
    return classified(count / of, predictions={"right": "1" * count + "0" * (of - count)}, **more)


def first_test(*tasks):
    """The test of the second of two models' tasks against the first."""
    return compare([results({"X": task}) for task in tasks])["tasks"]["X"]["tests"][0]


def test_a_model_against_itself():
    one = results({"MR": right(120), "STS12": graded(0.5)})
    found = compare([one, one])
    for task in found["tasks"].values():
        assert task["tests"] == [{"difference": 0.0, "low": 0.0, "high": 0.0, "p": 1.0}]
    assert [model["name"] for model in found["models"]] == ["en_model (1)", "en_model (2)"]
    assert any("one and the same model" in warning for warning in found["warnings"])


def test_a_better_model():
    models = [results({"MR": right(100)}, "worse"), results({"MR": right(150)}, "better")]
    found = compare(models)
    task = found["tasks"]["MR"]
    assert task["figures"] == [0.5, 0.75]
    test = task["tests"][0]
    assert test["difference"] == 0.25
    assert test["p"] == pytest.approx(2 / 1001)
    # the difference of an example is 0 or 1: the error of its mean is sqrt(p (1 - p) / n)
    error = 1.96 * numpy.sqrt(0.25 * 0.75 / 200)
    assert [test["low"], test["high"]] == pytest.approx([0.25 - error, 0.25 + error], abs=0.015)
    text = report(models, found).markdown()
    assert "| MR | better | lr.accuracy | +25.00 |" in text
    assert "| 0.002 |" in text


RNG = numpy.random.default_rng(0)
SCORES = RNG.integers(11, size=300) / 2
GOOD = SCORES + RNG.normal(0, 0.5, 300)
BAD = SCORES + RNG.normal(0, 4.0, 300)
PREDICTIONS = {"predicted": GOLD, "gold": GOLD[::-1], "subset": ["all"] * 6}
UNTESTED = [
    (graded(0.5, data={"sts/file.txt": "other"}), "the data files differ"),
    (graded(0.5, primary="dot.spearman.pooled"), "the figures that stand for the task differ"),
    (graded(0.5, predictions={}), "no predictions were kept"),
    (graded(0.5, predictions=PREDICTIONS), "the gold scores, or their order, differ"),
    (
        graded(None, predictions={**PREDICTIONS, "predicted": [1.0] * 6, "gold": GOLD}),
        "undefined for most resamples",
    ),
]


@pytest.mark.parametrize(("task", "reason"), UNTESTED)
def test_no_test_and_why(task, reason):
    found = [results({"STS12": graded(0.5)}), results({"STS12": task}, "other")]
    comparison = compare(found)
    assert comparison["tasks"]["STS12"]["tests"] == [{"reason": reason}]
    assert f"no test: {reason}" in report(found, comparison).markdown()


def test_the_same_data_in_another_folder():
    assert first_test(right(5, 10), right(5, 20)) == {"reason": "the numbers of examples differ"}
    both = [
        results({"MR": right(5, 10), "CR": right(5, 10)}, "a"),
        results({"MR": right(5, 10)}, "b"),
    ]
    assert list(compare(both)["tasks"]) == ["MR"]
    assert compare(both)["not_shared"] == {"CR": ["a"]}
    assert first_test(right(5, 10), right(6, 10, data={"elsewhere.txt": "d2"}))[
        "difference"
    ] == pytest.approx(0.1)


def test_page_escapes_and_draws_differences():
    models = [results({"MR": right(100)}, "<b>a</b>"), results({"MR": right(150)}, "b|c")]
    page = report(models).html()
    assert "<b>" not in page
    assert "&lt;b&gt;a&lt;/b&gt;" in page
    assert len(re.findall("<svg", page)) == 1
    assert "b|c less &lt;b&gt;a" in page
    assert page == report(models).html()
    assert r"b\|c" in report(models).markdown()
    json.dumps(compare(models), allow_nan=False)


def test_another_format_is_refused():
    with pytest.raises(ValueError, match="Cannot compare 1 results"):
        compare([results({})])
    other = {**results({}), "format": "evaluation 99"}
    with pytest.raises(ValueError, match=f"'evaluation 99', expected '{FORMAT}'"):
        compare([results({}), other])


def test_saved_results_are_read_back(tmp_path):
    path = tmp_path / "a.json"
    found = results({"MR": right(5, 10), "STS12": graded(None, subsets={"a": None, "b": 0.5})})
    path.write_text(json.dumps(found), encoding="utf8")
    assert read_results(path) == found


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "cannot be read", id="empty"),
        pytest.param("[" * 100_000, "cannot be read", id="deep"),
        pytest.param('{"sts_spearman": 0.8}', "has the format None", id="no format"),
        pytest.param("[1]", "has the format [1]", id="a list"),
        pytest.param(
            json.dumps({"format": FORMAT, "model": {}}),
            "it has no versions, settings, tasks, skipped, failed",
            id="missing keys",
        ),
        pytest.param(
            json.dumps({**results({}), "sha256": "0"}), "its SHA-256 is not the one", id="changed"
        ),
    ],
)
def test_what_is_no_file_of_results(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf8")
    with pytest.raises(ValueError, match=rf"a\.json.*{re.escape(message)}"):
        read_results(path)


def test_what_differs_is_said():
    one = right(5, 10)
    other = results({"MR": right(5, 10)}, "b", digest="d", normalizations=["unit"])
    other["versions"]["spacy"] = "3.9"
    models = [results({"MR": one}, "a"), other]
    found = compare(models)
    version = "The version of spacy differs. a: 3.8.18; b: 3.9."
    assert found["warnings"] == ["The setting normalizations differs. a: none; b: unit.", version]
    assert f"Warning: {version}" in report(models, found).markdown()


def test_figures_are_of_a_variant_that_all_models_have():
    def both(*names):
        entries = {"none": 0.8, "zscore": 0.6}
        return [
            {**OWN, "normalization": name, "scores": {"lr": {"accuracy": entries[name]}}}
            for name in names
        ]

    tasks = [
        classified(0.8, variants=both("zscore", "none")),
        classified(0.8, variants=both("none")),
    ]
    models = [results({"MR": task}, name) for task, name in zip(tasks, ("a", "b"), strict=True)]
    found = compare(models)["tasks"]["MR"]
    assert found["figures"] == [0.8, 0.8]
    assert found["tests"] == [{"reason": "no predictions were kept"}]
    # What was given is as it was
    assert models[0]["tasks"]["MR"]["variants"][0]["normalization"] == "zscore"


def test_spearman_of_resamples_is_that_of_scipy():
    indices = RNG.integers(300, size=(20, 300))
    expected = [stats.spearmanr(GOOD[row], SCORES[row]).statistic for row in indices]
    assert numpy.allclose(spearman_of(GOOD, SCORES)(indices), expected, atol=1e-12)
    drawn = spearman_of(numpy.array([1.0, 2.0]), numpy.array([1.0, 2.0]))(
        numpy.array([[0, 0], [0, 1]])
    )
    assert numpy.isnan(drawn[0]) and drawn[1] == pytest.approx(1.0), "all alike"
    assert interval(numpy.array([numpy.nan, numpy.nan, 1.0])) is None
    assert interval(numpy.array([numpy.nan, 1.0, 1.0])) == [1.0, 1.0]


def test_interval_of_an_accuracy_is_near_the_normal_one():
    right = (RNG.random(2000) < 0.8).astype("float64")
    error = 1.96 * (right.mean() * (1 - right.mean()) / 2000) ** 0.5
    expected = [right.mean() - error, right.mean() + error]
    assert interval(resample(mean_of(right), 2000, 4000, 1)) == pytest.approx(expected, abs=0.003)


def test_the_seed_decides_and_blocks_do_not(monkeypatch):
    whole = resample(mean_of(SCORES), 300, 50, 3)
    assert numpy.array_equal(whole, resample(mean_of(SCORES), 300, 50, 3))
    assert not numpy.array_equal(whole, resample(mean_of(SCORES), 300, 50, 4))
    # Two resamples at once
    monkeypatch.setattr("spacy_sbert.evaluation.results._BLOCK", 700)
    assert numpy.array_equal(whole, resample(mean_of(SCORES), 300, 50, 3))


def test_paired_difference():
    found = paired_difference(spearman_of(GOOD, SCORES), spearman_of(BAD, SCORES), 300, 1000, 1)
    expected = stats.spearmanr(GOOD, SCORES).statistic - stats.spearmanr(BAD, SCORES).statistic
    assert found["difference"] == pytest.approx(expected, abs=1e-12)
    assert 0 < found["low"] < found["difference"] < found["high"]
    assert found["p"] == pytest.approx(2 / 1001)
    back = paired_difference(spearman_of(BAD, SCORES), spearman_of(GOOD, SCORES), 300, 1000, 1)
    assert back["low"] == pytest.approx(-found["high"])
    assert back["p"] == pytest.approx(2 / 1001)
    tasks = (
        graded(
            0.5,
            predictions={
                "predicted": each.tolist(),
                "gold": SCORES.tolist(),
                "subset": ["all"] * 300,
            },
        )
        for each in (BAD, GOOD)
    )
    assert first_test(*tasks) == found
