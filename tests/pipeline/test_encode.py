"""encode: an array straight from texts, the same vectors that Docs get."""

import subprocess
import sys

import numpy
import pytest
import spacy
from pipelines import OTHERS, TRANSFORMERS

TEXTS = ["A man is eating food.", "", "The cat sat on the mat.", " \n", "dog", "A man is eating food.", "he ran"]
LONG = "the cat sat on a mat he is eating food " * 6


@pytest.mark.parametrize(
    ("encoder", "pooling"),
    [
        *((encoder, "cls+max") for encoder in TRANSFORMERS),
        *(pytest.param(encoder, "cls+mean", marks=pytest.mark.slow) for encoder in OTHERS),
    ],
)
def test_equals_the_vectors_of_docs(make_nlp, encoder, pooling, tmp_path):
    nlp = make_nlp(encoder, model={"pooling": pooling, "normalize": True})
    expected = numpy.array([doc.vector for doc in nlp.pipe(TEXTS)])
    given = nlp.get_pipe("sbert").encode(TEXTS)
    assert given.dtype == numpy.float32 and given.shape == expected.shape
    assert numpy.allclose(given, expected, atol=1e-6)
    assert not given[1].any() and not given[3].any(), "no text, no vector"
    nlp.to_disk(tmp_path)
    assert numpy.allclose(spacy.load(tmp_path).get_pipe("sbert").encode(TEXTS), given, atol=1e-6)


def test_texts_are_read_in_windows(make_nlp):
    sbert, read = make_nlp().get_pipe("sbert"), []
    for window in (1, 3):
        assert numpy.allclose(sbert.encode(iter(TEXTS), window=window), sbert.encode(TEXTS), atol=1e-6)

    def texts():
        for number in range(100):
            read.append(number)
            yield "dog"
        raise OSError("the source broke")

    with pytest.raises(OSError, match="the source broke"):
        sbert.encode(texts(), window=10)
    assert read == list(range(100)) and sbert.encode([]).shape == (0, 16)


def test_overflow(make_nlp):
    with pytest.warns(UserWarning, match="1 of 2 rows were longer than the encoder's limit of 24"):
        make_nlp().get_pipe("sbert").encode([LONG, "dog"])
    nlp = make_nlp(model={"overflow": "windows"})
    assert numpy.allclose(nlp.get_pipe("sbert").encode([LONG, "dog"])[0], nlp(LONG).vector, atol=1e-6)


@pytest.mark.slow
def test_processes_that_cannot_start(make_nlp, tmp_path):
    """Standard input is no file that they could import; nobody waits for them."""
    make_nlp().to_disk(tmp_path)
    code = f"import spacy\nspacy.load({str(tmp_path)!r}).get_pipe('sbert').encode(['a', 'b'], window=1, n_process=2)"
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "One of 2 processes" in done.stderr


def test_in_processes(make_nlp):
    sbert = make_nlp().get_pipe("sbert")
    given = sbert.encode(TEXTS * 3, window=4, n_process=2)
    assert numpy.allclose(given, sbert.encode(TEXTS * 3), atol=1e-6)
    with pytest.raises(ValueError, match="There is no GPU 99"):
        sbert.encode(TEXTS, gpu_ids=[99])
