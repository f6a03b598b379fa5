"""Loss scaling: steps are those of float64 on gradients that were never scaled, and an overflow is
no step at all.
"""

from copy import deepcopy
from itertools import cycle
from math import inf, nan

import numpy
import pytest
import torch
from helpers.pipelines import HOLDER, PAIRS, gradients, make_pipeline, shim_of, weights
from thinc.api import Optimizer, PyTorchGradScaler, fix_random_seed
from transformers import AutoTokenizer

from spacy_sbert.models.engine import training as forward
from spacy_sbert.models.sbert_config import TransformerConfig
from spacy_sbert.models.shim import TransformerShim

# An eps by which the length of a gradient shows
RATE = 0.01
EPS = 0.01
B1 = 0.9
B2 = 0.999
MAX_NORM = 0.25


class OneByOne(Optimizer):
    """Updates parameters one by one, as on a GPU; fused_adam does not know it."""


@pytest.fixture(autouse=True)
def scaling_on_a_cpu(monkeypatch):
    """Thinc scales what is on a GPU alone; all else it does has kernels here, too."""

    def scale(self, tensor, scale_per_device, inplace):
        return tensor.mul_(self._scale) if inplace else tensor * self._scale

    monkeypatch.setattr(PyTorchGradScaler, "_scale_tensor", scale)


@pytest.fixture
def float16_on_a_cpu(monkeypatch):
    def autocast(device, precision):
        return torch.autocast(device.type, dtype=torch.float16, enabled=precision == "float16")

    monkeypatch.setattr(forward, "autocast", autocast)


def make(make_nlp, examples, encoder="own", kind=Optimizer, **settings):
    """A pipeline, its shim, its examples and an optimizer; settings: of the transformer."""
    nlp = make_pipeline(make_nlp, encoder, **{"max_grad_norm": MAX_NORM, **settings})
    optimizer = kind(RATE, beta1=B1, beta2=B2, eps=EPS, grad_clip=0.0, L2=0.0, use_averages=False)
    return nlp, shim_of(nlp, HOLDER[encoder]), examples(nlp), optimizer


def scaled(**settings):
    return {"grad_scaler_config": {"enabled": True, **settings}}


def spoil(monkeypatch, shim, name, value):
    """Have one number of the gradient of a parameter overflow in the next backward pass."""
    scaler = shim._grad_scaler
    stock = shim._grad_scaler.unscale

    def unscale(tensors):
        dict(shim._model.named_parameters())[name].grad.view(-1)[-1] = value
        monkeypatch.setattr(scaler, "unscale", stock)
        return stock(tensors)

    monkeypatch.setattr(scaler, "unscale", unscale)


class Reference:
    """The same in float64, without a scale: a step for the sum of the losses of batches, clipped,
    by Adam.

    SOURCE: Kingma and Ba 2015, Adam: A Method for Stochastic Optimization, the last lines of
        section 2, with the eps of Thinc beside the root of v.
    """

    def __init__(self, folder, network):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.network = deepcopy(network).double()
        self.parameters = {
            name: p for name, p in self.network.named_parameters() if "pooler" not in name
        }
        self.m = {name: torch.zeros_like(p) for name, p in self.parameters.items()}
        self.v = {name: torch.zeros_like(p) for name, p in self.parameters.items()}
        self.t = 0

    def vectors(self, texts):
        data = self.tokenizer(texts, padding=True, return_tensors="pt")
        states = self.network(**data).last_hidden_state
        mask = data["attention_mask"][:, :, None]
        return (states * mask).sum(1) / mask.sum(1)

    def step(self, *batches):
        """RETURNS (float): the norm of the gradient."""
        self.network.zero_grad()
        for batch in batches:
            first, second, gold = zip(*batch, strict=True)
            cosines = torch.cosine_similarity(self.vectors(list(first)), self.vectors(list(second)))
            torch.nn.functional.mse_loss(
                cosines, torch.tensor(gold, dtype=torch.float64)
            ).backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self.parameters.values(), MAX_NORM))
        self.t += 1
        with torch.no_grad():
            for name, p in self.parameters.items():
                self.m[name] = B1 * self.m[name] + (1 - B1) * p.grad
                self.v[name] = B2 * self.v[name] + (1 - B2) * p.grad**2
                correction = (1 - B2**self.t) ** 0.5 / (1 - B1**self.t)
                p -= RATE * correction * self.m[name] / (self.v[name].sqrt() + EPS)
        return norm

    def assert_equal(self, nlp, optimizer, encoder="own"):
        given = weights(nlp, HOLDER[encoder])
        m, v = (
            {key[1]: value for key, value in each.items()}
            for each in (optimizer.mom1, optimizer.mom2)
        )
        for name, p in self.parameters.items():
            assert abs(given[name] - p.detach().numpy()).max() < 2e-6, name
            assert abs(m[name] - self.m[name].numpy().ravel()).max() < 1e-6, name
            assert abs(v[name] - self.v[name].numpy().ravel()).max() < 1e-7, name
        steps = {key[1]: n for key, n in optimizer.nr_update.items() if "pooler" not in key[1]}
        assert steps == dict.fromkeys(self.parameters, self.t)


@pytest.mark.parametrize(("encoder", "kind"), [("own", Optimizer), ("shared", OneByOne)])
def test_ordinary_steps(make_nlp, examples, tiny_bert, encoder, kind):
    """Clipped where float64 is: the norm is that of the gradient without its scale. Then in parts,
    which add up.
    """
    nlp, shim, batch, optimizer = make(
        make_nlp, examples, encoder, kind, **scaled(init_scale=2.0**16)
    )
    reference = Reference(tiny_bert, shim.network)
    before = weights(nlp, HOLDER[encoder])
    norms = []
    pipe = nlp.get_pipe(HOLDER[encoder])
    for parts in ([3], [3], [3], [1, 2], [2, 1]):
        nlp.update(batch[: parts[0]], sgd=False)
        if len(parts) > 1:
            nlp.update(batch[parts[0] :], sgd=False)
        pipe.finish_update(optimizer)
        norms.append(reference.step(*filter(None, (PAIRS[: parts[0]], PAIRS[parts[0] :]))))
        reference.assert_equal(nlp, optimizer, encoder)
    assert min(norms) > MAX_NORM, "all were clipped"
    assert shim._grad_scaler._scale.item() == 2.0**16
    moved = {
        name: abs(after - before[name]).max()
        for name, after in weights(nlp, HOLDER[encoder]).items()
    }
    assert max(moved.values()) > 0.005


@pytest.mark.parametrize("kind", [Optimizer, pytest.param(OneByOne, marks=pytest.mark.slow)])
def test_overflow_in_any_parameter(make_nlp, examples, tiny_bert, monkeypatch, kind):
    nlp, shim, batch, optimizer = make(make_nlp, examples, kind=kind, **scaled(init_scale=2.0**60))
    reference = Reference(tiny_bert, shim.network)
    scale = 2.0**60
    names = [*reference.parameters]
    assert len(names) > 30

    def step():
        nlp.update(batch, sgd=False)
        nlp.get_pipe("sbert").finish_update(optimizer)

    step()
    reference.step(PAIRS)
    for name, value in zip(names[::5], cycle([inf, -inf, nan]), strict=False):
        spoil(monkeypatch, shim, name, value)
        step()
        scale /= 2
        assert shim._grad_scaler._scale.item() == scale, name
        assert not any(gradient.any() for gradient in gradients(nlp, "sbert").values()), (
            "nothing is left of it"
        )
        reference.assert_equal(nlp, optimizer)
    step()
    reference.step(PAIRS)
    reference.assert_equal(nlp, optimizer)
    assert shim._grad_scaler._scale.item() == scale


def test_overflow_in_a_part_of_a_batch(make_nlp, examples, monkeypatch):
    """Also where later parts are finite, and where it is the other way round."""
    nlp, shim, batch, optimizer = make(make_nlp, examples, **scaled(init_scale=2.0**16))
    before = weights(nlp, "sbert")
    names = [name for name, _ in shim._model.named_parameters() if "pooler" not in name]
    for number in range(2):
        for part in range(2):
            if part == number:
                spoil(monkeypatch, shim, names[5], inf)
            nlp.update(batch[part : part + 2], sgd=False)
        nlp.get_pipe("sbert").finish_update(optimizer)
        assert all(
            numpy.array_equal(before[name], value) for name, value in weights(nlp, "sbert").items()
        )
        assert optimizer.nr_update == {}
        assert optimizer.mom1 == {}
    assert shim._grad_scaler._scale.item() == 2.0**14


@pytest.mark.parametrize(
    ("settings", "precision", "is_scaled"),
    [
        ({"precision": "float16"}, "float16", True),
        ({"precision": "float16", "grad_scaler_config": {"enabled": False}}, "float16", False),
        ({"mixed_precision": True}, "float16", True),
        ({"precision": "bfloat16"}, "bfloat16", False),
        ({"precision": "float32"}, "float32", False),
    ],
)
def test_default_scaling_on_a_gpu(monkeypatch, settings, precision, is_scaled):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    shim = TransformerShim("nothing", TransformerConfig(**settings))
    assert (shim.precision, shim._grad_scaler._enabled) == (precision, is_scaled)


@pytest.mark.parametrize("encoder", ["own", pytest.param("shared", marks=pytest.mark.slow)])
def test_float16_finds_its_scale_and_learns(make_nlp, examples, float16_on_a_cpu, encoder):
    """From a scale that is too large by far: steps are skipped until it fits, without a NaN in the
    weights.
    """
    fix_random_seed(0)
    settings = {"precision": "float16", **scaled(init_scale=2.0**40)}
    nlp, shim, batch, optimizer = make(make_nlp, examples, encoder, OneByOne, **settings)
    before = weights(nlp, HOLDER[encoder])
    losses = []
    skipped = 0
    for _ in range(80):
        losses.append(nlp.update(batch, sgd=False)["sbert"])
        skipped += shim._grad_scaler.found_inf
        nlp.get_pipe(HOLDER[encoder]).finish_update(optimizer)
        if not optimizer.nr_update:
            after = weights(nlp, HOLDER[encoder])
            assert all(numpy.array_equal(value, before[name]) for name, value in after.items())
    assert shim._grad_scaler._scale.item() == 2.0 ** (40 - skipped)
    assert 10 < skipped < 40
    assert max(optimizer.nr_update.values()) == 80 - skipped
    assert losses[skipped] == pytest.approx(losses[0])
    assert losses[-1] < losses[0] / 10
    assert all(numpy.isfinite(value).all() for value in weights(nlp, HOLDER[encoder]).values())
