"""What writes refuses a path without a name, before any work, and writes nothing into the current
folder.
"""

import os
import re

import numpy
import pytest
from helpers.invoking import said

from spacy_sbert import find_sbert
from spacy_sbert.bulk import encode_dataset
from spacy_sbert.hub import export_folder
from spacy_sbert.search import BinaryVectors, Int8Vectors, VectorIndex, build_ivfpq
from spacy_sbert.search.corpus_search import search_texts
from spacy_sbert.training.logger import progress_logger

VECTORS = numpy.random.default_rng(0).normal(size=(5, 8)).astype("float32")
NAMELESS = ["", " ", "a\0b", "~/out"]


@pytest.fixture
def texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "texts.txt"
    path.write_text("A man is eating.\nThe cat sat.\n")
    return path


def functions(nlp, texts, name):
    sbert = find_sbert(nlp)
    return {
        "VectorIndex.save": lambda: VectorIndex.build(VECTORS).save(name),
        "build_ivfpq": lambda: build_ivfpq(VECTORS, name),
        "search_texts": lambda: search_texts(sbert, texts, ["man"], index=name),
        "Int8Vectors.save": lambda: Int8Vectors.fit(VECTORS).save(name),
        "BinaryVectors.save": lambda: BinaryVectors.of(VECTORS).save(name),
        "export_folder": lambda: export_folder(nlp, name),
        "encode_dataset": lambda: encode_dataset(texts.parent, name),
        "encode_dataset, source": lambda: encode_dataset(name, texts.parent / "out"),
        "encode_dataset, scratch": lambda: encode_dataset(
            texts.parent, texts.parent.parent / "out", scratch=name
        ),
        "progress_logger": lambda: progress_logger(output_file=name),
    }


@pytest.mark.parametrize("name", NAMELESS)
def test_functions(make_nlp, texts, name):
    for function, call in functions(make_nlp(), texts, name).items():
        with pytest.raises(ValueError, match=r"Cannot use .*expected a path|Cannot use the output"):
            call()
            raise AssertionError(function)
    assert os.listdir(texts.parent) == [texts.name]


@pytest.mark.parametrize("name", NAMELESS)
@pytest.mark.parametrize(
    "command",
    [
        "mine nlp texts.txt {}",
        "mine-negatives nlp texts.txt {}",
        "cluster nlp texts.txt {}",
        "search nlp texts.txt man -o {}",
        "search nlp texts.txt man --index {}",
        "index build vectors {}",
        "encode nlp texts.txt {}",
        "encode nlp . {}",
        "visualize nlp texts.txt {}",
        "convert texts.txt {}",
        "evaluate nlp texts.txt --output {}",
        "benchmark nlp . -o {}",
        "benchmark nlp . --cache {}",
        "compare texts.txt texts.txt -o {}",
        "init-config texts.txt texts.txt -o {}",
        "import encoder {}",
        "export nlp {}",
        "distill-static nlp {} -v texts.txt",
        "fit-meta nlp texts.txt {}",
        "fit-meta nlp texts.txt new --cache {}",
        "train texts.txt --output {}",
    ],
)
def test_commands(texts, command, name):
    arguments = [name if part == "{}" else part for part in command.split()]
    # Whose arguments have several meanings
    is_own = command.split()[0] == "encode"
    expected = (
        "(expected (a path|a name that ends in)|is no folder|no file)"
        if is_own
        else "Cannot use the output = .*expected a path"
    )
    assert re.search(expected, said(*arguments, code=1 if is_own else 2))
    assert os.listdir(texts.parent) == [texts.name]
