"""Texts that formats find hard, and a pipeline to encode them with."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from helpers import made_tables

from spacy_sbert.bulk import load_pipe
from spacy_sbert.pipeline.sbert import SentenceBert

# Empty ones, equal ones, quotes, commas, and what str.splitlines takes for the end of a line.
TEXTS = [
    "A man is eating food.",
    "",
    'the "cat", sat',
    "on\u2028the\x85mat",
    "A man is eating food.",
    " ",
    "dog",
    "",
]


_loaded = cache(load_pipe)


@pytest.fixture(autouse=True)
def load_once(monkeypatch):
    """Each pipeline is loaded once for all tests."""

    def load(pipeline=None, *, gpu_ids=(), **options):
        return _loaded(pipeline, gpu_ids=tuple(gpu_ids), **options)

    for place in ("spacy_sbert.bulk.load_pipe", "spacy_sbert.bulk.dataset_encoding.load_pipe"):
        monkeypatch.setattr(place, load)


@pytest.fixture
def texts() -> list[str]:
    return list(TEXTS)


@pytest.fixture(scope="session")
def sbert(make_nlp) -> SentenceBert:
    """One for all tests that do not change it."""
    return make_nlp().get_pipe("sbert")


@pytest.fixture(scope="session")
def pipeline(make_nlp, tmp_path_factory) -> Path:
    """The folder of a saved pipeline."""
    folder = tmp_path_factory.mktemp("pipeline") / "nlp"
    make_nlp().to_disk(folder)
    return folder


@pytest.fixture
def write_texts(tmp_path) -> Callable[[str, Sequence[str]], Path]:
    """Write texts, and with them ids 0, 10, 20, ..., to a file whose name tells the format."""
    return lambda name, texts: made_tables.write_texts(tmp_path / name, texts)
