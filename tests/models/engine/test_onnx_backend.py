"""ONNX Runtime encodes as PyTorch does, wherever a pipeline encodes, and is refused in training."""

import shutil

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import one_pipe, scored_pairs, shim_of
from helpers.small_models import MODELS, batch_of, make_model, make_window

from spacy_sbert.models.engine import onnx_backend
from spacy_sbert.models.engine.backend import encode_windows
from spacy_sbert.models.engine.torch_backend import TorchBackendCache
from spacy_sbert.models.fingerprint import precision_of

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

TEXTS = ["A man is eating food.", "the cat sat", "a dog is sleeping on the mat", "the cat sat"]
LENGTHS = [9, 5, 20, 3, 8, 1, 8]
WITHOUT_TYPES = ("mpnet", "distilbert", "camembert")


def windows(name):
    rows = [make_window(length, 2, seed) for seed, length in enumerate(LENGTHS)]
    ids = [number for row, _ in rows for number in row]
    types = [number for _, row in rows for number in row]
    with_types = not name.startswith(WITHOUT_TYPES)
    return batch_of(LENGTHS, ids, numpy.array(types) if with_types else None)


def states(cache, model, precision, name):
    """The states of all windows, one after another."""
    found = {}
    for part in encode_windows(cache.backend_of(model, precision), windows(name)):
        ends = numpy.cumsum(part.lengths)[:-1]
        found.update(zip(part.windows.tolist(), numpy.split(part.values, ends), strict=True))
    return numpy.concatenate([found[window] for window in range(len(LENGTHS))])


def softened(name):
    model = make_model(name)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.4)
    return model


@pytest.mark.parametrize("name", MODELS)
def test_each_family_has_the_states_of_pytorch(name):
    model = softened(name)
    expected = states(TorchBackendCache(), model, "float32", name)
    given = states(onnx_backend.ONNXBackendCache(), model, "float32", name)
    assert numpy.abs(given - expected).max() < 2e-6


@pytest.mark.parametrize("name", ["bert", "roberta", "mpnet", "electra_narrow", "distilbert_relu"])
def test_int8_is_near(name):
    model = softened(name)
    expected = states(TorchBackendCache(), model, "float32", name)
    given = states(onnx_backend.ONNXBackendCache(), model, "int8", name)
    cosines = torch.cosine_similarity(torch.from_numpy(given), torch.from_numpy(expected))
    assert cosines.min() > 0.999
    assert numpy.abs(given - expected).max() > 1e-4


def vectors(nlp):
    sbert = nlp.get_pipe("sbert")
    docs = list(nlp.pipe(TEXTS))
    spans = [span.vector for doc in docs for span in (doc[:2], doc[1:])]
    return numpy.concatenate([sbert.encode(TEXTS), [doc.vector for doc in docs], spans])


@pytest.mark.parametrize("overflow", ["truncate", "windows"])
@pytest.mark.parametrize("factory", ["sbert", "sbert_transformer"])
def test_vectors_of_texts_docs_and_spans(tiny_bert, factory, overflow):
    settings = {"overflow": overflow, "tokenizer_config": {"model_max_length": 6}}

    def make(backend):
        if factory == "sbert":
            return one_pipe(tiny_bert, backend=backend, **settings)
        nlp = one_pipe(tiny_bert, "sbert_transformer", backend=backend, **settings)
        encoder = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}
        nlp.add_pipe("sbert", config={"model": encoder})
        return nlp

    given, expected = vectors(make("onnx")), vectors(make("torch"))
    assert numpy.abs(given - expected).max() < 1e-5


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_saved_pipelines_copies_and_processes(tiny_bert, tmp_path, precision):
    nlp = one_pipe(tiny_bert, backend="onnx", precision=precision)
    expected = vectors(nlp)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert isinstance(shim_of(again).backend(), onnx_backend.ONNXBackend)
    assert numpy.array_equal(vectors(again), expected)
    docs = list(again.pipe(TEXTS, n_process=2, batch_size=2))
    in_processes = numpy.array([doc._.sbert_vector for doc in docs])
    assert numpy.allclose(in_processes, expected[len(TEXTS) : 2 * len(TEXTS)], atol=1e-6)


def test_a_pipeline_changes_its_backend(tiny_bert, tmp_path):
    nlp = one_pipe(tiny_bert)
    expected = vectors(nlp)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path, config={"components.sbert.model.backend": "onnx"})
    assert isinstance(shim_of(again).backend(), onnx_backend.ONNXBackend)
    assert numpy.abs(vectors(again) - expected).max() < 1e-5


def test_another_number_of_threads(tiny_bert, threads):
    threads(1)
    nlp = one_pipe(tiny_bert, backend="onnx")
    expected = vectors(nlp)
    threads(2)
    assert numpy.allclose(vectors(nlp), expected, atol=1e-6)
    backend = shim_of(nlp).backend()
    assert [n_threads for _, n_threads in backend._sessions] == [2]


def test_training_is_refused(tiny_bert):
    nlp = one_pipe(tiny_bert, backend="onnx")
    pairs = scored_pairs(nlp)
    nlp.initialize(lambda: pairs)
    with pytest.raises(ValueError, match=r"backend = 'torch'"):
        nlp.update(pairs)


def test_changed_weights_are_noticed(tiny_bert):
    nlp = one_pipe(tiny_bert, backend="onnx")
    before = nlp.get_pipe("sbert").encode(TEXTS)
    with torch.no_grad():
        shim_of(nlp).network.embeddings.word_embeddings.weight.mul_(-3)
    after = nlp.get_pipe("sbert").encode(TEXTS)
    assert numpy.abs(after - before).max() > 1e-2


@pytest.mark.parametrize("precision", ["bfloat16", "float16", "reference"])
def test_precisions_that_it_does_not_have(tiny_bert, precision):
    with pytest.raises(ValueError, match=f"backend = 'onnx' has no precision = '{precision}'"):
        one_pipe(tiny_bert, backend="onnx", precision=precision)


def test_nothing_is_calibrated(tiny_bert):
    nlp = one_pipe(tiny_bert, backend="onnx", precision="int8")
    with pytest.raises(ValueError, match="nothing to calibrate"):
        nlp.get_pipe("sbert").calibrate(TEXTS)


# Files that the folder has


@pytest.fixture
def with_file(tiny_bert, tmp_path):
    """A copy of the folder with onnx/NAME, made of its weights times a factor."""

    def make(name="model.onnx", factor=1.0):
        folder = tmp_path / f"encoder_{factor}"
        shutil.copytree(tiny_bert, folder)
        nlp = one_pipe(tiny_bert, backend="onnx")
        nlp.get_pipe("sbert").load()
        with torch.no_grad():
            shim_of(nlp).network.embeddings.word_embeddings.weight.mul_(factor)
        (folder / "onnx").mkdir()
        (folder / "onnx" / name).write_bytes(shim_of(nlp).backend().graph)
        return folder

    return make


@pytest.mark.parametrize("name", ["model.onnx", "model_O3.onnx"])
def test_the_file_of_a_folder_is_read_and_saved(with_file, tiny_bert, monkeypatch, tmp_path, name):
    folder = with_file(name)
    settings = {} if name == "model.onnx" else {"backend_config": {"file_name": name}}
    expected = vectors(one_pipe(tiny_bert, backend="onnx"))
    # From now on no graph can be built
    monkeypatch.setattr("spacy_sbert.models.engine.onnx_graph.bert_graph", None)
    nlp = one_pipe(folder, backend="onnx", **settings)
    assert numpy.allclose(vectors(nlp), expected, atol=1e-6)
    nlp.to_disk(tmp_path / "saved")
    assert numpy.array_equal(vectors(spacy.load(tmp_path / "saved")), vectors(nlp))


def test_a_file_of_other_weights(with_file):
    with pytest.raises(ValueError, match="other states than the weights"):
        one_pipe(with_file(factor=1.5), backend="onnx").get_pipe("sbert").load()


def test_a_damaged_file(with_file):
    folder = with_file()
    (folder / "onnx" / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ValueError, match=r"model\.onnx"):
        one_pipe(folder, backend="onnx").get_pipe("sbert").load()


def test_a_file_that_is_not_there(tiny_bert):
    nlp = one_pipe(tiny_bert, backend="onnx", backend_config={"file_name": "model_O4.onnx"})
    with pytest.raises(ValueError, match=r"'model_O4\.onnx', which is not in"):
        nlp.get_pipe("sbert").load()


@pytest.mark.slow
def test_minilm():
    given, expected = (
        spacy.blank("en").add_pipe("sbert", config={"model": {"backend": backend}}).encode(TEXTS)
        for backend in ("onnx", "torch")
    )
    assert numpy.abs(given - expected).max() < 1e-6


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "float32"),
        ({"backend": "onnx"}, "float32 of ONNX Runtime"),
        ({"backend": "onnx", "precision": "int8"}, "int8 of ONNX Runtime"),
    ],
)
def test_its_vectors_are_not_mixed_with_those_of_others(tiny_bert, settings, expected):
    nlp = one_pipe(tiny_bert, **settings)
    nlp.get_pipe("sbert").load()
    assert precision_of(shim_of(nlp)) == expected
