"""Resamples of scores."""

import numpy
import pytest

from spacy_sbert.similarity import spearman


def test_resamples_are_those_of_each_subset(load_script):
    script = load_script("meta_scores")
    rng = numpy.random.default_rng(0)
    gold = rng.normal(size=60)
    subset = ["a"] * 40 + ["b"] * 20
    near = gold + 0.5 * rng.normal(size=60)
    far = gold + 2 * rng.normal(size=60)

    def tasks(predicted):
        given = {"gold": gold, "subset": subset}
        return {"one": {"predicted": predicted, **given}, "tuned": {"predicted": gold, **given}}

    ours, theirs = (script.resampled(tasks(predicted), ["tuned"]) for predicted in (near, far))
    halves = slice(40), slice(40, None)
    expected = [
        100 * numpy.mean([spearman(p[half], gold[half]) for half in halves]) for p in (near, far)
    ]
    assert [ours[0], theirs[0]] == pytest.approx(expected)
    found = script.difference(ours, theirs)
    assert found["difference"] == pytest.approx(expected[0] - expected[1])
    assert found["low"] > 0
    assert script.difference(ours, ours) == {"difference": 0.0, "low": 0.0, "high": 0.0}
    shifted = script.resampled(tasks(3 * near + 1), ["tuned"])
    # Ranks alone count, of the same resamples
    assert shifted == pytest.approx(ours)
    assert script.difference(script.resampled(tasks(near), ["one", "tuned"]), ours) is None
