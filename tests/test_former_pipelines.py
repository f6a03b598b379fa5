"""What the commit d0391a8 saved, before modules, models and attrs were laid out anew, loads, answers the same, and
trains on. tests/former/make.py says how it was made."""

import importlib.util
import pickle
import tarfile
from pathlib import Path

import numpy
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin

import spacy_sbert

FORMER = Path(__file__).parent / "former"
REPLACED = pytest.param("replaced", marks=pytest.mark.spacy_transformers)
PIPELINES = ("own", "slow", "ranking", "shared", "replaced", "meta", "reranker")
CASES = [REPLACED if name == "replaced" else name for name in PIPELINES]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def load_make():
    spec = importlib.util.spec_from_file_location("former_make", FORMER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKE = load_make()


@pytest.fixture(scope="module")
def former(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("former")
    with tarfile.open(FORMER / "d0391a8.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def expected(former) -> dict[str, numpy.ndarray]:
    return dict(numpy.load(former / "expected.npz"))


def assert_same(name, given, expected, tolerance):
    own = {key.removeprefix(f"{name}/"): value for key, value in expected.items() if key.startswith(f"{name}/")}
    assert given.keys() <= own.keys() and given
    for key, value in given.items():
        assert value.shape == own[key].shape
        assert abs(value - own[key]).max() <= tolerance, key


@pytest.mark.parametrize("name", CASES)
def test_answers_are_the_same(former, expected, name):
    assert_same(name, MAKE.answers(spacy.load(former / name)), expected, 2e-6)


@pytest.mark.parametrize("name", [case for case in CASES if case != "meta"])
def test_training_goes_on_the_same(former, expected, name):
    assert_same(name, MAKE.train_on(spacy.load(former / name)), expected, 1e-5)


@pytest.mark.parametrize("name", CASES)
def test_saved_again_they_answer_the_same(former, expected, tmp_path, name):
    spacy.load(former / name).to_disk(tmp_path)
    assert_same(name, MAKE.answers(spacy.load(tmp_path)), expected, 2e-6)


def test_docs_answer_for_themselves(former, expected):
    """Pickled Docs name the functions that are their hooks."""
    vectors = expected["own/vectors"]
    pickled = pickle.loads((former / "docs.pickle").read_bytes())
    assert numpy.array_equal(numpy.stack([doc.vector for doc in pickled]), vectors)
    assert pickled[0].similarity(pickled[1]) == pytest.approx(float(spacy_cosine(vectors[0], vectors[1])), abs=1e-6)
    stored = DocBin().from_disk(former / "docs.spacy").get_docs(Language().vocab)
    assert numpy.array_equal(numpy.stack([doc.vector for doc in spacy_sbert.restore(stored)]), vectors)


def spacy_cosine(u, v):
    return u @ v / (numpy.linalg.norm(u) * numpy.linalg.norm(v))
