"""spacy-transformers' own tests on our model: what passes with its own passes with ours."""

import xml.etree.ElementTree as ElementTree

import pytest
from helpers.killing import python
from helpers.spacy_transformers_tests import make_models

PROMISE = "spacy-transformers' own tests pass on our model where they pass on its own"
QUICK = "empty_doc or replace_listeners_invalid or model_predict and distilbert or todisk_settings"
# Tests that the stock model itself may fail, with another version of what it needs
MOST = 5


def outcomes(folder, *options):
    """Of spacy-transformers' tests, in a process of their own: "passed" or what went wrong, by the
    name of the test.
    """
    report = folder / "report.xml"
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "spacy_transformers",
        f"--junit-xml={report}",
        *options,
    ]
    done = python("-m", "pytest", *options, folder=folder)
    assert report.exists(), done.stdout + done.stderr
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = [
            child.get("message", "")
            for child in case
            if child.tag in ("failure", "error", "skipped")
        ]
        found[f"{case.get('classname')}::{case.get('name')}"] = "; ".join(wrong) or "passed"
    report.unlink()
    return found


@pytest.mark.spacy_transformers
@pytest.mark.parametrize("models", [("Distil", "Albert"), pytest.param((), marks=pytest.mark.slow)])
def test_tests_of_spacy_transformers(counted, tmp_path, models):
    """Some tests, which all pass; and all, on models of all kinds, where those pass that pass with
    its own model.
    """
    make_models(tmp_path, *([models] if models else []))
    with counted(PROMISE) as cases:
        ours = outcomes(
            tmp_path, "-p", "helpers.spacy_transformers_tests", *(["-k", QUICK] if models else [])
        )
        stock = dict.fromkeys(ours, "passed") if models else outcomes(tmp_path)
        assert stock.keys() == ours.keys()
        assert len(stock) >= (7 if models else 60)
        passing = [name for name, outcome in stock.items() if outcome == "passed"]
        assert len(passing) >= len(stock) - MOST, {
            name: stock[name] for name in stock.keys() - set(passing)
        }
        for name in passing:
            cases.check(ours[name] == "passed", f"{name}: {ours[name]}")
