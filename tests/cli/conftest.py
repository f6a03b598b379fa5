"""A saved pipeline and tables, each made once."""

import shutil
from pathlib import Path

import pytest
from spacy.language import Language

from spacy_sbert.bulk.loading import load_pipeline

TEXTS = [
    "the cat sat on the mat",
    "a dog ran",
    "the dog ran",
    "food for the man",
    "the cat sat on a mat",
    "he can",
]
LOADED: dict[tuple[object, ...], Language] = {}


@pytest.fixture
def loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands that leave a pipeline as it is load each one once, by what is in its files."""

    def load(pipeline: str, name: str | None = None, *, factory: str = "sbert") -> Language:
        files = sorted(file for file in Path(pipeline).rglob("*") if file.is_file())
        if not files or factory != "sbert":
            return load_pipeline(pipeline, name, factory=factory)
        key = (name, *((file.relative_to(pipeline), file.read_bytes()) for file in files))
        if key not in LOADED:
            LOADED[key] = load_pipeline(pipeline, name)
        return LOADED[key]

    monkeypatch.setattr("spacy_sbert.bulk.loading.load_pipeline", load)


@pytest.fixture(scope="session")
def saved_nlp(make_nlp, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a saved pipeline."""
    folder = tmp_path_factory.mktemp("saved") / "nlp"
    make_nlp(lang="en").to_disk(folder)
    return folder


@pytest.fixture
def nlp_folder(
    saved_nlp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded_once: None
) -> Path:
    """The working directory, with that pipeline as `nlp`."""
    shutil.copytree(saved_nlp, tmp_path / "nlp")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, all pairs of them with scores from 0 to 2, also as the STS benchmark has
    them, and anchors with positives.
    """
    at = tmp_path_factory.mktemp("tables")
    (at / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    pairs = [(a, b) for a in TEXTS for b in TEXTS if a < b]
    rows = [f"{a},{b},{i % 3}" for i, (a, b) in enumerate(pairs)]
    (at / "pairs.csv").write_text("\n".join(["first,second,score", *rows]) + "\n")
    (at / "positives.csv").write_text("anchor,positive\nhe can,he can go\na dog,the dog\n")
    (at / "data" / "STSBenchmark").mkdir(parents=True)
    rows = [f"g\tf\ty\t{i}\t{i % 6}\t{a}\t{b}\n" for i, (a, b) in enumerate(pairs)]
    (at / "data" / "STSBenchmark" / "sts-dev.csv").write_text("".join(rows))
    return at
