"""spacy-transformers' own tests on our model: what passes with its own passes with ours."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hub_cache import make_hub_cache

TESTS = Path(__file__).parent.parent
QUICK = "empty_doc or replace_listeners_invalid or model_predict and distilbert or todisk_settings"
MOST = 5  # tests that the stock model itself may fail, with another version of what it needs


def outcomes(hub: Path, folder: Path, in_place: str, *options: str) -> dict[str, str]:
    """Of spacy-transformers' tests, in a process of their own: "passed" or what went wrong, by the name of the test."""
    report = folder / f"{in_place}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "in_place_of_stock", "-p", "no:cacheprovider"]
    command += ["--pyargs", "spacy_transformers", f"--junit-xml={report}", *options]
    settings = {"IN_PLACE_OF_STOCK": in_place, "HF_HUB_CACHE": str(hub), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    paths = [str(TESTS.parent), str(TESTS)]
    environment = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert report.exists(), done.stdout + done.stderr
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = [child.get("message", "") for child in case if child.tag in ("failure", "error", "skipped")]
        found[f"{case.get('classname')}::{case.get('name')}"] = "; ".join(wrong) or "passed"
    return found


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub")
    make_hub_cache(folder)
    return folder


@pytest.mark.spacy_transformers
def test_some_tests_of_spacy_transformers(counted, hub, tmp_path):
    with counted("spacy-transformers' own tests pass on our model where they pass on its own") as cases:
        ours = outcomes(hub, tmp_path, "yes", "-k", QUICK)
        assert len(ours) > 6
        for name, outcome in ours.items():
            cases.check(outcome == "passed", f"{name}: {outcome}")


@pytest.mark.slow
def test_all_tests_of_spacy_transformers(counted, hub, tmp_path):
    with counted("spacy-transformers' own tests pass on our model where they pass on its own") as cases:
        stock, ours = (outcomes(hub, tmp_path, in_place) for in_place in ("no", "yes"))
        assert stock.keys() == ours.keys() and len(stock) >= 60
        passing = [name for name, outcome in stock.items() if outcome == "passed"]
        assert len(passing) >= len(stock) - MOST, {name: stock[name] for name in stock.keys() - set(passing)}
        for name in passing:
            cases.check(ours[name] == "passed", f"{name}: {ours[name]}")
