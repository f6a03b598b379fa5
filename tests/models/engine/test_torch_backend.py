"""What encodes in use is made anew whenever the weights change, and is never saved with them."""

import platform
from copy import deepcopy

import numpy
import pytest
import torch
from helpers.pipelines import (
    HOLDER,
    finish_update,
    make_pipeline,
    no_warnings,
    one_pipe,
    shim_of,
    warnings_with,
)
from helpers.small_models import make_model
from srsly import cloudpickle
from thinc.api import SGD, Adam, RAdam
from transformers import AutoModel, AutoTokenizer

from spacy_sbert.models.engine import fused_adam
from spacy_sbert.models.engine.huggingface import HFBackend
from spacy_sbert.models.engine.packed_bert import PackedBert
from spacy_sbert.models.engine.torch_backend import TorchBackendCache, resolve_precision
from spacy_sbert.models.private_attributes import has_bfloat16_arithmetic

TEXT = "A man is eating food."
SLOW = pytest.param("shared", "reference", marks=pytest.mark.slow)
# Which is not packed
MODELS = {
    "packed": make_model("bert"),
    "padded": make_model("distilbert", activation="silu"),
}


@pytest.fixture(params=MODELS)
def model(request):
    return deepcopy(MODELS[request.param])


IDS = torch.tensor([[13, 19, 14, 18, 15]])


@torch.inference_mode()
def states(encoder):
    if isinstance(encoder, PackedBert):
        return encoder(IDS, torch.arange(5)[None], None, torch.zeros_like(IDS)).float()
    model = encoder.model if isinstance(encoder, HFBackend) else encoder
    return model(IDS).last_hidden_state[0].float()


def assert_encodes_as(encoder, model, precision):
    """The model itself has the weights as they are now."""
    found = states(encoder)
    expected = states(model)
    if precision == "float32":
        assert torch.allclose(found, expected, atol=1e-5)
    else:
        cosine = torch.cosine_similarity(found.flatten(), expected.flatten(), dim=0)
        assert cosine > 0.999
        assert not torch.equal(found, expected)


@torch.no_grad()
def by_hand(model):
    for end in ("word_embeddings.weight", "1.output.dense.bias", "ffn.lin2.weight"):
        for parameter in (p for name, p in model.named_parameters() if name.endswith(end)):
            parameter.mul_(3)


def a_loaded_state(model):
    model.load_state_dict({name: value.roll(1, 0) for name, value in model.state_dict().items()})


def a_step_of_pytorch(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(IDS).last_hidden_state[0, :, :3].sum().backward()
    optimizer.step()


def another_parameter(model):
    layer = next(
        m for name, m in model.named_modules() if name.endswith(("intermediate.dense", "ffn.lin1"))
    )
    layer.weight = torch.nn.Parameter(2 * layer.weight.detach().roll(1, 0))


CHANGES = [by_hand, a_loaded_state, a_step_of_pytorch, another_parameter]


@pytest.mark.parametrize(
    ("change", "precision"), [*((c, "float32") for c in CHANGES), (by_hand, "bfloat16")]
)
def test_changes_behind_its_back_are_noticed(model, change, precision):
    cache = TorchBackendCache()
    before = states(cache.backend_of(model, precision)).clone()
    change(model)
    encoder = cache.backend_of(model, precision)
    assert_encodes_as(encoder, model, precision)
    assert (states(encoder) - before).abs().max() > 0.05
    assert cache.backend_of(model, precision) is encoder


# In the pipeline


def plain_vector(folder, state):
    """The mean of Hugging Face's states, on weights."""
    model = AutoModel.from_pretrained(folder).eval()
    model.load_state_dict({name: torch.as_tensor(value) for name, value in state.items()})
    with torch.no_grad():
        return (
            model(**AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt"))
            .last_hidden_state[0]
            .mean(0)
        )


def is_vector(vector, expected, precision="float32"):
    if precision != "bfloat16":
        return numpy.allclose(vector, expected, atol=1e-5)
    return (
        vector @ expected.numpy() / numpy.linalg.norm(vector) / numpy.linalg.norm(expected) > 0.999
    )


def train(nlp, examples, encoder, optimizer):
    """A step; a shared encoder has its gradient when all pipes have run, and is updated then, as
    `spacy train` does.
    """
    nlp.update(examples(nlp), sgd=optimizer if encoder == "own" else False)
    if encoder == "shared":
        finish_update(nlp, optimizer)


OPTIMIZERS = {
    "fused": (lambda: Adam(0.02, use_averages=False), 1),
    "averages": (lambda: Adam(0.02), 0),
    "radam": (lambda: RAdam(0.5), 0),
    "sgd": (lambda: SGD(0.5, use_averages=False), 0),
}


@pytest.mark.parametrize(
    ("name", "encoder", "precision"),
    [
        ("fused", "own", "float32"),
        ("fused", "shared", "bfloat16"),
        pytest.param("averages", "own", "bfloat16", marks=pytest.mark.slow),
        ("averages", "shared", "float32"),
        ("radam", "own", "reference"),
        ("sgd", "own", "float32"),
    ],
)
def test_after_a_step_the_vector_is_that_of_the_plain_model(
    make_nlp, examples, tiny_bert, monkeypatch, name, encoder, precision
):
    make, n_fused = OPTIMIZERS[name]
    fused = []
    update = fused_adam.update_fused
    monkeypatch.setattr(
        fused_adam, "update_fused", lambda *given: (fused.append(1), update(*given))
    )
    nlp = make_pipeline(make_nlp, encoder, precision=precision)
    optimizer = make()
    model = shim_of(nlp, HOLDER[encoder])._model
    vectors = [nlp(TEXT).vector]
    assert is_vector(vectors[0], plain_vector(tiny_bert, model.state_dict()), precision)
    for step in (1, 2):
        train(nlp, examples, encoder, optimizer)
        vectors.append(nlp(TEXT).vector)
        assert is_vector(vectors[-1], plain_vector(tiny_bert, model.state_dict()), precision)
        assert abs(vectors[-1] - vectors[-2]).max() > 0.05
        assert len(fused) == n_fused * step


@pytest.mark.parametrize(("encoder", "precision"), [("own", "bfloat16"), SLOW])
def test_other_weights_from_bytes_and_for_a_while(
    make_nlp, examples, tiny_bert, encoder, precision
):
    trained, nlp = (make_pipeline(make_nlp, encoder, precision=precision) for _ in range(2))
    before = nlp(TEXT).vector
    shim = shim_of(nlp, HOLDER[encoder])
    others = {name: value.numpy()[::-1].copy() for name, value in shim._model.state_dict().items()}
    keys = {
        name: f"pytorch_{shim.id}_{name}" if "layer" in name else (shim.id, name) for name in others
    }
    # As Thinc has it, and as averages
    with nlp.use_params({keys[name]: value for name, value in others.items()}):
        inside = nlp(TEXT).vector
        assert is_vector(inside, plain_vector(tiny_bert, others), precision)
    assert abs(inside - before).max() > 0.1
    assert numpy.array_equal(nlp(TEXT).vector, before)
    train(trained, examples, encoder, Adam(0.05))
    nlp.from_bytes(trained.to_bytes())
    assert numpy.array_equal(nlp(TEXT).vector, trained(TEXT).vector)
    assert abs(nlp(TEXT).vector - before).max() > 0.05


def test_a_copy_of_a_pipeline_is_trained_alone(make_nlp, examples):
    nlp = make_pipeline(make_nlp)
    before = nlp(TEXT).vector
    copied = cloudpickle.loads(cloudpickle.dumps(nlp))
    train(copied, examples, "own", Adam(0.05))
    assert numpy.array_equal(nlp(TEXT).vector, before)
    assert abs(copied(TEXT).vector - before).max() > 0.05


# Precision


@pytest.mark.parametrize(
    ("avx512", "amx", "expected"),
    [(False, False, "float32"), (True, False, "bfloat16"), (False, True, "bfloat16")],
)
def test_auto_on_a_cpu(monkeypatch, make_nlp, avx512, amx, expected):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    assert resolve_precision("auto", "cpu") == expected
    assert resolve_precision("auto", "mps") == "float32"
    assert {resolve_precision("float16", device) for device in ("cpu", "cuda", "mps")} == {
        "float16"
    }
    # Turing and older emulate bfloat16
    for native, on_gpu in (
        (False, "float16"),
        (True, "bfloat16"),
    ):
        supported = lambda including_emulation=True, native=native: including_emulation or native  # noqa: E731
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
        assert resolve_precision("auto", "cuda") == on_gpu
    if not torch.cuda.is_available():
        auto, given = (
            make_pipeline(make_nlp, precision=precision) for precision in ("auto", expected)
        )
        assert shim_of(auto).precision == expected
        assert numpy.array_equal(auto(TEXT).vector, given(TEXT).vector)


@pytest.mark.parametrize("name", ["fused", pytest.param("sgd", marks=pytest.mark.slow)])
def test_what_another_thread_makes_amid_an_update_is_not_kept(
    make_nlp, examples, tiny_bert, monkeypatch, name
):
    nlp = make_pipeline(make_nlp)
    optimizer = OPTIMIZERS[name][0]()
    shim = shim_of(nlp)
    update = fused_adam.update_fused
    monkeypatch.setattr(fused_adam, "update_fused", lambda *given: (shim.backend(), update(*given)))
    apply = type(optimizer).__call__
    monkeypatch.setattr(
        type(optimizer), "__call__", lambda *given: (shim.backend(), apply(*given))[1]
    )
    train(nlp, examples, "own", optimizer)
    assert is_vector(nlp(TEXT).vector, plain_vector(tiny_bert, shim._model.state_dict()))


@pytest.mark.parametrize(
    ("machine", "amx", "warned"),
    [("x86_64", False, True), ("AMD64", True, False), ("aarch64", False, False)],
)
def test_bfloat16_without_its_arithmetic(tiny_bert, monkeypatch, machine, amx, warned):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx, raising=False)
    with warnings_with("slow-bfloat16") as slow:
        sbert = one_pipe(tiny_bert, precision="bfloat16").get_pipe("sbert")
        sbert.encode(["a dog"])
        sbert.encode(["a dog"])
        other = one_pipe(tiny_bert).get_pipe("sbert").text_encoder()
        other.set_precision("bfloat16", [])
        other.set_precision("auto", [])
        one_pipe(tiny_bert, precision="auto").get_pipe("sbert").load()
    assert len(slow) == (2 if warned else 0)
    assert all('precision = "auto"' in message for message in slow)
    assert (has_bfloat16_arithmetic() is False) is warned
    with no_warnings():
        TorchBackendCache().warn_of_slow("bfloat16", "cuda")
