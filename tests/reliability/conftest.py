"""Counts the cases of all reliability tests: `--counts FILE` writes them, by promise, as JSON."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.counted_cases import COUNTS, SHOWN, Cases
from spacy.language import Language


@pytest.fixture
def counted(request: pytest.FixtureRequest) -> Callable:
    """`with counted("promise") as cases:` counts cases and fails where one went wrong, or where
    there was none.
    """

    @contextmanager
    def count_cases(promise: str) -> Iterator[Cases]:
        cases = Cases(promise)
        try:
            yield cases
        finally:
            counts = request.config.stash.setdefault(COUNTS, {})
            counts.setdefault(promise, Counter()).update(cases.counts)
        assert cases.counts, f"no case of: {promise}"
        shown = "\n".join(cases.failures[:SHOWN])
        assert not cases.failures, f"{len(cases.failures)} wrong of {cases.counts.total()}: {shown}"

    return count_cases


@pytest.fixture(scope="module")
def nlp(make_nlp: Callable[..., Language]) -> Language:
    """A pipeline whose encoder is loaded."""
    nlp = make_nlp()
    nlp.get_pipe("sbert").encode(["a"])
    return nlp


def pytest_sessionfinish(session: pytest.Session) -> None:
    table = {
        promise: dict(found)
        for promise, found in sorted(session.config.stash.get(COUNTS, {}).items())
    }
    output = getattr(session.config, "workeroutput", None)
    # A process of pytest-xdist hands them to the one that writes
    if output is not None:
        output["counts"] = table
    elif session.config.getoption("--counts"):
        Path(session.config.getoption("--counts")).write_text(
            json.dumps(table, indent=2) + "\n", encoding="utf8"
        )


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:  # type: ignore[no-untyped-def]
    counts = node.config.stash.setdefault(COUNTS, {})
    for promise, found in getattr(node, "workeroutput", {}).get("counts", {}).items():
        counts.setdefault(promise, Counter()).update(found)
