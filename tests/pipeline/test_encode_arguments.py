"""The arguments of `encode` and `similarity`, with those of sentence-transformers."""

import numpy
import pytest
import torch
from thinc.api import NumpyOps

from spacy_sbert.models.encoded_docs import check_device
from spacy_sbert.models.text_encoders import TransformerTextEncoder
from spacy_sbert.similarity import unit_length

TEXTS = ["A man is eating food.", "The cat sat on the mat.", "dog", "he ran", ""]


@pytest.fixture
def pipe(make_nlp):
    return make_nlp(model={"normalize": False}).get_pipe("sbert")


def test_the_same_vectors_in_their_form(pipe, capsys):
    expected = pipe.encode(TEXTS)
    assert not numpy.allclose(numpy.linalg.norm(expected[:-1], axis=1), 1)
    theirs = {"output_value": "sentence_embedding", "precision": "float32", "convert_to_numpy": True}
    assert numpy.array_equal(pipe.encode(TEXTS, show_progress_bar=None, **theirs), expected)
    assert capsys.readouterr().err == ""
    tensor = pipe.encode(TEXTS, convert_to_tensor=True, normalize_embeddings=True, show_progress_bar=True)
    assert isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float32
    assert numpy.allclose(tensor.numpy(), unit_length(expected), atol=1e-6) and not tensor[-1].any()
    assert "5/5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "together"), [({"batch_size": 2}, [2, 2, 1]), ({"batch_size": 3, "window": 1}, [1] * 5)]
)
def test_no_more_texts_than_a_batch_has_are_encoded_together(pipe, monkeypatch, given, together):
    expected, seen, kind = pipe.encode(TEXTS), [], TransformerTextEncoder
    tokenize = kind.tokenize
    monkeypatch.setattr(kind, "tokenize", lambda self, texts: (seen.append(len(texts)), tokenize(self, texts))[1])
    assert numpy.allclose(pipe.encode(TEXTS, **given), expected, atol=1e-6) and seen == together


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
        pipe.encode(TEXTS, **given)
    with pytest.raises(TypeError, match="got an unexpected keyword argument"):
        pipe.encode(TEXTS, chunk_size=10)


def test_the_device_is_that_of_the_model(pipe):
    for device in ("cpu", torch.device("cpu"), None):
        assert numpy.array_equal(pipe.encode(TEXTS, device=device), pipe.encode(TEXTS))
    ops = NumpyOps(device_type="gpu", device_id=1)
    for device in ("cuda", "cuda:1", torch.device("cuda", 1)):
        check_device(device, ops)
    for device in ("cpu", "cuda:0", torch.device("cpu")):
        with pytest.raises(ValueError, match=r"Cannot use device = .*require_cpu\(\)"):
            check_device(device, ops)


def test_width_length_and_the_warning_of_cut_texts_at_the_line_of_the_call(pipe, make_nlp):
    assert (pipe.width, pipe.max_length) == (16, 24)
    assert make_nlp(model={"truncate_dim": 8}).get_pipe("sbert").width == 8
    with pytest.warns(UserWarning, match="1 of 2 rows were longer") as seen:
        pipe.encode(["the dog " * 30, "dog"])
    assert [one.filename for one in seen] == [__file__]


def test_similarities(make_nlp):
    nlp = make_nlp()
    pipe, docs = nlp.get_pipe("sbert"), [nlp(text) for text in TEXTS[:-1]]
    vectors, tensor = pipe.encode(TEXTS), pipe.encode(TEXTS, convert_to_tensor=True)
    found = pipe.similarity(vectors, tensor[:-1])
    assert found.shape == (5, 4) and found.dtype == "float32" and not found[-1].any()
    assert numpy.allclose(found[:-1], [[one.similarity(other) for other in docs] for one in docs], atol=1e-6)
    assert numpy.allclose(pipe.similarity_pairwise(tensor[:3], vectors[1:4]), found[:3, 1:4].diagonal(), atol=1e-6)
    assert numpy.allclose(pipe.similarity(vectors[0].tolist(), vectors[:-1]), found[:1], atol=1e-6)


def test_what_cannot_be_compared(pipe, make_nlp):
    doc, rows = make_nlp()("a man eats"), numpy.ones((3, 16))
    for given in (["a", "b"], "a", doc, [doc], [None, 1.0]):
        with pytest.raises(TypeError, match=r"Cannot compare u = .*encode\(texts\)"):
            pipe.similarity(given, rows)
        with pytest.raises(TypeError, match=r"Cannot compare v = "):
            pipe.similarity_pairwise(rows, given)
    for do, message in [
        (lambda: pipe.similarity_pairwise(rows, rows[:2]), "Cannot compare 3 vectors with 2 pairwise"),
        (lambda: pipe.similarity(rows, rows[:, :3]), "Cannot compare vectors of unequal width: 16 and 3"),
        (lambda: pipe.similarity(rows, rows * numpy.nan), r"v.*finite|finite.*v"),
    ]:
        with pytest.raises(ValueError, match=message):
            do()
