"""encode gives an array of the vectors that Docs get; its arguments and those of `similarity`."""

import subprocess
import sys

import numpy
import pytest
import torch
from helpers.pipelines import EVERY_ENCODER, TRANSFORMERS, reloaded
from thinc.api import NumpyOps

from spacy_sbert.models import text_encoders
from spacy_sbert.models.text_encoders import TransformerTextEncoder
from spacy_sbert.pipeline.call_options import check_device
from spacy_sbert.similarity import unit_length

TEXTS = [
    "A man is eating food.",
    "",
    "The cat sat on the mat.",
    " \n",
    "dog",
    "A man is eating food.",
    "he ran",
]
GIVEN = ["A man is eating food.", "The cat sat on the mat.", "dog", "he ran", ""]
LONG = "the cat sat on a mat he is eating food " * 6


@pytest.fixture(scope="module")
def pipe(make_nlp):
    return make_nlp(model={"normalize": False}).get_pipe("sbert")


@pytest.mark.parametrize("encoder", EVERY_ENCODER)
def test_equals_the_vectors_of_docs(make_nlp, encoder, tmp_path):
    pooling = "cls+max" if encoder in TRANSFORMERS else "cls+mean"
    nlp = make_nlp(encoder, model={"pooling": pooling, "normalize": True})
    expected = numpy.array([doc.vector for doc in nlp.pipe(TEXTS)])
    given = nlp.get_pipe("sbert").encode(TEXTS)
    assert given.dtype == numpy.float32
    assert given.shape == expected.shape
    assert numpy.allclose(given, expected, atol=1e-6)
    assert not given[1].any() and not given[3].any(), "no text, no vector"
    assert numpy.allclose(reloaded(nlp, tmp_path).get_pipe("sbert").encode(TEXTS), given, atol=1e-6)


def test_texts_are_read_in_windows(pipe):
    read = []
    for window in (1, 3):
        assert numpy.allclose(
            pipe.encode(iter(TEXTS), window=window), pipe.encode(TEXTS), atol=1e-6
        )

    def texts():
        for number in range(100):
            read.append(number)
            yield "dog"
        raise OSError("the source broke")

    with pytest.raises(OSError, match="the source broke"):
        pipe.encode(texts(), window=10)
    assert read == list(range(100))
    assert pipe.encode([]).shape == (0, 16)


def test_texts_that_are_too_long(pipe, make_nlp):
    with pytest.warns(UserWarning, match="1 of 2 rows .* limit of 24") as seen:
        pipe.encode([LONG, "dog"])
    assert [one.filename for one in seen] == [__file__], "at the line of the call"
    nlp = make_nlp(model={"overflow": "windows"})
    assert numpy.allclose(
        nlp.get_pipe("sbert").encode([LONG, "dog"])[0], nlp(LONG).vector, atol=1e-6
    )


@pytest.mark.slow
def test_processes_that_cannot_start(make_nlp, tmp_path):
    """Standard input is no file that they could import; nobody waits for them."""
    make_nlp().to_disk(tmp_path)
    code = (
        f"import spacy\nspacy.load({str(tmp_path)!r}).get_pipe('sbert').encode(['a', 'b'], "
        "window=1, n_process=2)"
    )
    done = subprocess.run(
        [sys.executable, "-"], input=code, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "One of 2 processes" in done.stderr


def test_in_processes(pipe):
    given = pipe.encode(TEXTS * 3, window=4, n_process=2)
    assert numpy.allclose(given, pipe.encode(TEXTS * 3), atol=1e-6)
    with pytest.raises(ValueError, match="There is no GPU 99"):
        pipe.encode(TEXTS, gpu_ids=[99])


# Arguments


def test_the_same_vectors_in_their_form(pipe, capsys):
    expected = pipe.encode(GIVEN)
    assert not numpy.allclose(numpy.linalg.norm(expected[:-1], axis=1), 1)
    theirs = {
        "output_value": "sentence_embedding",
        "precision": "float32",
        "convert_to_numpy": True,
    }
    assert numpy.array_equal(pipe.encode(GIVEN, show_progress_bar=None, **theirs), expected)
    assert capsys.readouterr().err == ""
    tensor = pipe.encode(
        GIVEN, convert_to_tensor=True, normalize_embeddings=True, show_progress_bar=True
    )
    assert isinstance(tensor, torch.Tensor)
    assert tensor.dtype == torch.float32
    assert numpy.allclose(tensor.numpy(), unit_length(expected), atol=1e-6)
    assert not tensor[-1].any()
    assert "5/5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "together"),
    [({"batch_size": 2}, [2, 2, 1]), ({"batch_size": 3, "window": 1}, [1] * 5)],
)
def test_no_more_texts_than_a_batch_has_are_encoded_together(pipe, monkeypatch, given, together):
    expected = pipe.encode(GIVEN)
    seen = []
    kind = TransformerTextEncoder
    tokenize = kind.tokenize
    monkeypatch.setattr(
        kind, "tokenize", lambda self, texts: (seen.append(len(texts)), tokenize(self, texts))[1]
    )
    assert numpy.allclose(pipe.encode(GIVEN, **given), expected, atol=1e-6)
    assert seen == together


@pytest.mark.parametrize(
    "given",
    [
        {"device": "cuda"},
        {"device": ["cpu", "cpu"]},
        {"output_value": "token_embeddings"},
        {"precision": "int8"},
        {"convert_to_numpy": False},
        {"batch_size": 0},
        {"n_process": 10**9},
        {"gpu_ids": [-1]},
    ],
    ids=str,
)
def test_wrong_values(pipe, given):
    with pytest.raises(ValueError, match=f"Cannot use {next(iter(given))} = "):
        pipe.encode(GIVEN, **given)
    with pytest.raises(TypeError, match="got an unexpected keyword argument"):
        pipe.encode(GIVEN, chunk_size=10)


def test_the_device_is_that_of_the_model(pipe):
    for device in ("cpu", torch.device("cpu"), None):
        assert numpy.array_equal(pipe.encode(GIVEN, device=device), pipe.encode(GIVEN))
    ops = NumpyOps(device_type="gpu", device_id=1)
    for device in ("cuda", "cuda:1", torch.device("cuda", 1)):
        check_device(device, ops)
    for device in ("cpu", "cuda:0", torch.device("cpu")):
        with pytest.raises(ValueError, match=r"Cannot use device = .*require_cpu\(\)"):
            check_device(device, ops)


def test_width_and_length(pipe, make_nlp):
    assert (pipe.width, pipe.max_length) == (16, 24)
    assert make_nlp(model={"truncate_dim": 8}).get_pipe("sbert").width == 8


def test_similarities(make_nlp):
    nlp = make_nlp()
    pipe = nlp.get_pipe("sbert")
    docs = [nlp(text) for text in GIVEN[:-1]]
    vectors = pipe.encode(GIVEN)
    tensor = pipe.encode(GIVEN, convert_to_tensor=True)
    found = pipe.similarity(vectors, tensor[:-1])
    assert found.shape == (5, 4)
    assert found.dtype == "float32"
    assert not found[-1].any()
    assert numpy.allclose(
        found[:-1], [[one.similarity(other) for other in docs] for one in docs], atol=1e-6
    )
    assert numpy.allclose(
        pipe.similarity_pairwise(tensor[:3], vectors[1:4]), found[:3, 1:4].diagonal(), atol=1e-6
    )
    assert numpy.allclose(pipe.similarity(vectors[0].tolist(), vectors[:-1]), found[:1], atol=1e-6)


@pytest.mark.parametrize("kind", ["texts", "a text", "a Doc", "Docs", "None"])
def test_what_is_no_vector_is_not_compared(pipe, make_nlp, kind):
    doc = make_nlp()("a man eats")
    given = {"texts": ["a", "b"], "a text": "a", "a Doc": doc, "Docs": [doc], "None": [None, 1.0]}
    rows = numpy.ones((3, 16))
    with pytest.raises(TypeError, match=r"Cannot compare u = .*encode\(texts\)"):
        pipe.similarity(given[kind], rows)
    with pytest.raises(TypeError, match=r"Cannot compare v = "):
        pipe.similarity_pairwise(rows, given[kind])


def test_vectors_that_do_not_fit_are_not_compared(pipe):
    rows = numpy.ones((3, 16))
    with pytest.raises(ValueError, match="3 vectors with 2 pairwise"):
        pipe.similarity_pairwise(rows, rows[:2])
    with pytest.raises(ValueError, match="unequal width: 16 and 3"):
        pipe.similarity(rows, rows[:, :3])
    with pytest.raises(ValueError, match=r"v.*finite|finite.*v"):
        pipe.similarity(rows, rows * numpy.nan)


def test_one_window_of_texts_starts_no_thread(pipe, monkeypatch):
    """A thread takes longer than the tokenizer does for a few texts."""
    expected = pipe.encode(TEXTS, window=3)

    def refuse(*args, **kwargs):
        raise AssertionError("a thread was started")

    monkeypatch.setattr(text_encoders, "ThreadPoolExecutor", refuse)
    assert numpy.allclose(pipe.encode(TEXTS), expected, atol=1e-6)
    assert numpy.allclose(pipe.encode(iter(TEXTS[:1])), expected[:1], atol=1e-6)
    with pytest.raises(AssertionError, match="a thread was started"):
        pipe.encode(TEXTS, window=3)


@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_a_text_by_itself_has_the_vector_it_has_among_others(make_nlp, encoder):
    """It is neither packed nor merged with equal ones, and its row is as long as itself."""
    pipe = make_nlp(encoder).get_pipe("sbert")
    texts = [*GIVEN, " ", LONG]
    together = pipe.encode(texts)
    alone = numpy.array([pipe.encode(text) for text in texts])
    assert numpy.allclose(alone, together, atol=1e-6)
