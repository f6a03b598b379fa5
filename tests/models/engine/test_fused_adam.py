"""The fused update is Thinc's own: the same weights, moments and steps, and one may take over from
the other.
"""

import math

import numpy
import pytest
import torch
from helpers.pipelines import HOLDER, gradients, make_pipeline, weights
from thinc.api import SGD, Adam, Optimizer, RAdam, warmup_linear

from spacy_sbert.models.engine.fused_adam import (
    can_fuse,
    clear_gradients,
    clip_gradients,
    update_fused,
)

N_STEPS = 10
SETTINGS = {
    "plain": {"grad_clip": 0.0},
    # The matrix is, the others are not
    "clipped": {"grad_clip": 3.0},
    "decay": {"L2": 0.1},
    "penalty": {"L2": 0.1, "L2_is_weight_decay": False, "grad_clip": 3.0},
    "betas": {"beta1": 0.8, "beta2": 0.98, "eps": 0.01, "grad_clip": 0.0},
}


class OneByOne(Optimizer):
    """Thinc's optimizer, which can_fuse does not know."""


def make_adam(kind=Optimizer, **settings):
    return kind(warmup_linear(0.01, 4, 20), use_averages=False, **settings)


def make_parameters():
    generator = torch.Generator().manual_seed(0)
    shapes = {"matrix": (301, 67), "bias": (67,), "sometimes": (5, 7), "frozen": (3,)}
    found = {
        (4, name): torch.nn.Parameter(torch.randn(shape, generator=generator))
        for name, shape in shapes.items()
    }
    found[4, "frozen"].requires_grad_(False)
    return found


def with_gradient(parameters, step):
    """Those that have a gradient in a step; each is given one."""
    generator = torch.Generator().manual_seed(step)
    found = {
        key: p
        for key, p in parameters.items()
        if p.requires_grad and (key[1] != "sometimes" or step % 3 == 1)
    }
    for parameter in found.values():
        parameter.grad = torch.randn(parameter.shape, generator=generator) * 0.1
    return found


def update_one_by_one(optimizer, parameters):
    for key, parameter in parameters.items():
        optimizer(key, parameter.detach().numpy(), parameter.grad.numpy())


def train(optimizer, updates):
    """The parameters after a step by each of the updates."""
    parameters = make_parameters()
    for step, update in enumerate(updates):
        update(optimizer, with_gradient(parameters, step))
        optimizer.step_schedules()
    return {key: parameter.detach().numpy() for key, parameter in parameters.items()}


def assert_alike(given, expected, atol):
    assert given.keys() == expected.keys()
    for key in given:
        assert given[key].dtype == numpy.float32
        assert numpy.allclose(given[key], expected[key], rtol=1e-6, atol=atol), key


ORDERS = {
    "fused": [update_fused] * N_STEPS,
    "in turn": [update_one_by_one, update_fused] * (N_STEPS // 2),
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_the_update_is_that_of_thinc(settings, order):
    """Weights are about 1 and move by 0.05: they agree to float32 rounding, also if one takes over
    from the other.
    """
    alone = make_adam(**settings)
    fused = make_adam(**settings)
    expected = train(alone, [update_one_by_one] * N_STEPS)
    given = train(fused, order)
    assert_alike(given, expected, atol=2e-7)
    assert_alike(fused.mom1, alone.mom1, atol=1e-8)
    assert_alike(fused.mom2, alone.mom2, atol=1e-10)
    assert (
        fused.nr_update
        == alone.nr_update
        == {(4, "matrix"): 10, (4, "bias"): 10, (4, "sometimes"): 3}
    )
    start = make_parameters()
    moved = {key[1]: abs(given[key] - start[key].detach().numpy()).max() for key in given}
    assert moved["frozen"] == 0.0
    assert all(moved[name] > 0.01 for name in ("matrix", "bias", "sometimes"))


def test_the_first_step_by_hand():
    """m = 0.1 g and v = 0.001 g², so that the correction makes a step of lr * g / (|g| + eps /
    √0.001).
    """
    parameter = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    parameter.grad = torch.tensor([0.5, -0.25])
    optimizer = Adam(0.1, eps=0.01, L2=0.5, grad_clip=0.0, use_averages=False)
    update_fused(optimizer, {(1, "w"): parameter})
    eps = 0.01 / 0.001**0.5
    stepped = numpy.array([1 - 0.1 * 0.5 / (0.5 + eps), 2 + 0.1 * 0.25 / (0.25 + eps)])
    assert parameter.detach().numpy() == pytest.approx(stepped * (1 - 0.1 * 0.5), rel=1e-5)
    assert optimizer.mom1[1, "w"] == pytest.approx(numpy.array([0.05, -0.025]), rel=1e-5)
    # 1 - 0.999 in float32
    assert optimizer.mom2[1, "w"] == pytest.approx(numpy.array([0.00025, 0.0000625]), rel=1e-4)


def test_other_optimizers_and_parameters_are_left_alone():
    others = [make(0.01, use_averages=False) for make in (RAdam, SGD, OneByOne)]
    others += [
        Adam(0.01),
        Adam(0.01, beta1=0.0, use_averages=False),
        lambda key, weights, gradient: None,
    ]
    assert not any(can_fuse(optimizer, with_gradient(make_parameters(), 0)) for optimizer in others)

    def fused(weights, gradient):
        parameter = torch.nn.Parameter(weights)
        parameter.grad = gradient
        return can_fuse(make_adam(), {(1, "w"): parameter})

    plain = torch.ones(2, 3)
    turned = torch.ones(3, 2).T
    given = [(plain, plain), (plain.double(), plain.double()), (turned, plain), (plain, turned)]
    assert [fused(*each) for each in given] == [True, False, False, False]


@pytest.mark.parametrize("encoder", ["own", pytest.param("shared", marks=pytest.mark.slow)])
def test_pipelines_learn_the_same(make_nlp, examples, encoder):
    found = []
    for kind in (Optimizer, OneByOne):
        nlp = make_pipeline(make_nlp, encoder, max_grad_norm=1.0)
        optimizer = make_adam(kind, L2=0.01)
        pipe = nlp.get_pipe(HOLDER[encoder])
        before = weights(nlp, HOLDER[encoder])
        for _ in range(5):
            nlp.update(examples(nlp), sgd=False)
            pipe.finish_update(optimizer)
            assert not any(gradient.any() for gradient in gradients(nlp, HOLDER[encoder]).values())
            optimizer.step_schedules()
        found.append((weights(nlp, HOLDER[encoder]), len(optimizer.mom1)))
    (fused, n_fused), (alone, n_alone) = found
    assert n_fused == n_alone > 30
    for key in fused:
        # No gradient, or rounding alone: softmax ignores it
        if "pooler" not in key and not key.endswith("key.bias"):
            assert abs(fused[key] - before[key]).max() > 0.01, key
            assert abs(fused[key] - alone[key]).max() < 1e-5, key


def test_gradients_are_dropped_but_for_those_of_tables():
    """Each step would add to zeros what it could store."""
    model = torch.nn.ModuleDict({"table": torch.nn.Embedding(3, 2), "layer": torch.nn.Linear(2, 1)})
    model["layer"](model["table"](torch.tensor([0, 2]))).sum().backward()
    kept = model["table"].weight.grad
    assert kept.any()
    clear_gradients(model)
    assert model["table"].weight.grad is kept
    assert not kept.any()
    assert model["layer"].weight.grad is None
    assert model["layer"].bias.grad is None


@pytest.mark.parametrize("scale", [0.0, 0.1, 0.2, 0.5, 1e6, math.inf, math.nan])
def test_gradients_are_clipped_as_by_pytorch(scale):
    clipped = [torch.nn.Linear(3, 2) for _ in range(2)]
    for layer in clipped:
        layer.weight.grad = torch.arange(6.0).view(2, 3) * scale
    clip_gradients(clipped[0], 1.5)
    torch.nn.utils.clip_grad_norm_(clipped[1].parameters(), 1.5)
    ours, theirs = (layer.weight.grad for layer in clipped)
    assert torch.equal(ours.isnan(), theirs.isnan())
    assert torch.equal(ours.nan_to_num(), theirs.nan_to_num())
    assert clipped[0].bias.grad is None
