"""Counts the cases of all reliability tests: `--counts FILE` writes them, by promise, as JSON."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import spacy
from counted_cases import COUNTS, SHOWN, Cases
from spacy.language import Language

from spacy_sbert.hub import export_folder


@pytest.fixture
def counted(request: pytest.FixtureRequest) -> Callable:
    """`with counted("promise") as cases:` counts cases and fails where one went wrong, or where there was none."""

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
def nlp(tiny_bert: Path) -> Language:
    """A pipeline whose encoder is loaded."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": str(tiny_bert)}})
    nlp.get_pipe("sbert").encode(["a"])
    return nlp


@pytest.fixture(scope="module")
def texts_and_pairs(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pipeline of two encoders, one of them exported, and files of texts and of pairs."""
    folder, nlp = tmp_path_factory.mktemp("files"), spacy.blank("en")
    for name in ("other", "sbert"):
        nlp.add_pipe("sbert", name=name, config={"model": {"name": str(tiny_bert)}})
    nlp.initialize()
    nlp.to_disk(folder / "nlp")
    export_folder(nlp, folder / "exported")
    (folder / "texts").mkdir()
    (folder / "texts" / "one.txt").write_text("One.\n")
    (folder / "corpus.txt").write_text("\n".join(["A man is eating.", "The dog ran fast.", "He cannot go."] * 12))
    (folder / "pairs.csv").write_text("".join(f"a\tb\tc\td\t{i}.0\tOne {i}.\tTwo {i}.\n" for i in range(4)))
    return folder


def pytest_sessionfinish(session: pytest.Session) -> None:
    table = {promise: dict(found) for promise, found in sorted(session.config.stash.get(COUNTS, {}).items())}
    output = getattr(session.config, "workeroutput", None)
    if output is not None:  # a process of pytest-xdist hands them to the one that writes
        output["counts"] = table
    elif session.config.getoption("--counts"):
        Path(session.config.getoption("--counts")).write_text(json.dumps(table, indent=2) + "\n", encoding="utf8")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:  # type: ignore[no-untyped-def]
    counts = node.config.stash.setdefault(COUNTS, {})
    for promise, found in getattr(node, "workeroutput", {}).get("counts", {}).items():
        counts.setdefault(promise, Counter()).update(found)
