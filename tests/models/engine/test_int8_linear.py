"""A linear layer in 8 bits: its formula in float64, and how far it is from the layer itself."""

import pytest
import torch
from torch.nn import functional

from spacy_sbert.models.engine.int8_linear import Int8Linear, Quantizer, fake_quantized
from spacy_sbert.models.private_attributes import has_int8_product

needs_int8 = pytest.mark.skipif(
    not has_int8_product(), reason="needs PyTorch's int8 products, and AVX-512 VNNI"
)
ACTIVATIONS = {
    None: lambda x: x,
    "gelu": functional.gelu,
    "gelu_new": lambda x: functional.gelu(x, approximate="tanh"),
    "relu": functional.relu,
}


@pytest.fixture
def layer():
    """Weight, bias, inputs of which two channels are large and one is zero, and their ranges."""
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(24, 16, generator=draw)
    bias = torch.randn(24, generator=draw)
    states = torch.randn(50, 16, generator=draw)
    states[:, 3] *= 20
    states[:, 5] = states[:, 5].abs() * 9
    states[:, 7] = 0
    return weight, bias, states, torch.stack([states.amin(0), states.amax(0)])


@pytest.mark.parametrize("factors", [None, torch.linspace(0.5, 3, 16)], ids=["plain", "smooth"])
def test_rounding_by_the_formula(layer, factors):
    _, _, states, ranges = layer
    f = torch.ones(16, dtype=torch.float64) if factors is None else factors.double()
    rounding = Quantizer(ranges, factors)
    low = (ranges.double() / f)[0].min()
    high = (ranges.double() / f)[1].max()
    assert rounding.scale == pytest.approx(float(high - low) / 255, rel=1e-6)
    assert rounding.zero == round(float(-low / (high - low) * 255))
    rounded = rounding(states)
    exact = states.double() / f / rounding.scale + rounding.zero
    assert rounded.dtype == torch.uint8
    assert (rounded - exact).abs().max() <= 0.5 + 1e-3
    assert rounded.min() == 0
    assert rounded.max() == 255


def test_beyond_the_range_is_its_end_and_zero_is_exact(layer):
    rounding = Quantizer(layer[3])
    far = torch.tensor([[-1e6, 1e6, 0.0] + [0.0] * 13])
    assert rounding(far)[0, :3].tolist() == [0, 255, rounding.zero]
    rounding = Quantizer(torch.tensor([[2.0, 3.0], [4.0, 5.0]]))
    assert rounding.zero == 0
    assert rounding(torch.zeros(1, 2)).tolist() == [[0, 0]]
    assert Quantizer(torch.zeros(2, 2))(torch.zeros(1, 2)).tolist() == [[0, 0]]


@needs_int8
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_product_by_the_formula(layer, activation, smooth, dtype):
    weight, bias, states, ranges = layer
    linear = Int8Linear(weight, bias, ranges, activation, smooth=smooth, dtype=dtype)
    f = torch.ones(16, dtype=torch.float64)
    if smooth:
        f = (
            (ranges.abs().amax(0).clamp(min=1e-5) / weight.abs().amax(0).clamp(min=1e-5))
            .sqrt()
            .double()
        )
    scaled = weight.double() * f
    d = scaled.abs().amax(1, keepdim=True) / 127
    states = states.to(dtype)
    q = linear.rounding(states).double()
    expected = (
        linear.rounding.scale * (q - linear.rounding.zero) @ (d * (scaled / d).round()).T
        + bias.double()
    )
    given = linear(states)
    assert given.dtype == dtype
    close = {"atol": 1e-3, "rtol": 1e-4} if dtype == torch.float32 else {"atol": 0.02, "rtol": 0.01}
    assert torch.allclose(given.double(), ACTIVATIONS[activation](expected), **close)
    if dtype == torch.float32:
        again = fake_quantized(weight, bias, ranges, activation, smooth=smooth)(states)
        assert torch.allclose(again, given, atol=1e-3, rtol=1e-4)


@needs_int8
def test_channels_that_differ_round_better_with_factors(layer):
    weight, bias, states, ranges = layer
    exact = functional.linear(states, weight, bias)
    errors = [
        float(
            (Int8Linear(weight, bias, ranges, smooth=smooth, dtype=torch.float32)(states) - exact)
            .square()
            .mean()
        )
        for smooth in (False, True)
    ]
    assert errors[1] < errors[0] / 2


@needs_int8
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_what_is_written_in_8_bits_for_the_next(layer, activation):
    weight, bias, states, ranges = layer
    plain = Int8Linear(weight, bias, ranges, activation, dtype=torch.float32)
    given = plain(states)
    ranges_of_given = torch.stack([given.amin(0), given.amax(0)])
    then = Quantizer(ranges_of_given)
    rounded = Int8Linear(weight, bias, ranges, activation, dtype=torch.float32, then=then)(states)
    assert rounded.dtype == torch.uint8
    difference = (rounded.int() - then(given).int()).abs()
    assert difference.max() <= 1
    assert (difference > 0).float().mean() < 0.02
    narrow = Int8Linear(weight.T.contiguous(), bias[:16], ranges_of_given, dtype=torch.float32)
    assert torch.equal(narrow(then(given)), narrow(given))
