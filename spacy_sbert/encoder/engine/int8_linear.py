"""A linear layer whose weight and input are rounded to 8 bits."""

import torch

from .private_torch import Int8Product, Linear, int8_product, linear

SMOOTHING = 0.5
SMALLEST = 1e-5  # of channels that are zero on all texts


class Rounding:
    """From numbers to 8 bits, and how to read these.

    q = min(max(round(x / (scale f)) + zero, 0), 255),    x = scale f (q - zero)

    ranges: float32 (2, width), the least and the greatest number of each channel, see Calibration.
    factors: float32 (width,), f of each channel; None for 1.
    SOURCE: Jacob et al. 2018, Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
        Inference, section 2.1.
    """

    def __init__(self, ranges: torch.Tensor, factors: torch.Tensor | None = None):
        least, greatest = ranges if factors is None else ranges / factors
        low, high = min(0.0, float(least.min())), max(SMALLEST, float(greatest.max()))
        self.scale = (high - low) / 255
        self.zero = round(-low / self.scale)
        self._steps = torch.full_like(least, self.scale) if factors is None else factors * self.scale
        self._inverse = 1 / self._steps
        self._shift = torch.tensor(self.zero + 0.5, device=ranges.device)  # what is left over is cut off

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(self._shift, states.float(), self._inverse).clamp_(0, 255).to(torch.uint8)

    def read(self, rounded: torch.Tensor) -> torch.Tensor:
        """float32 (n, width): x, of what this gave."""
        return (rounded.float() - self.zero) * self._steps


def round_weight(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """V and d of W = d V, by output: d_i = max_j |W_ij| / 127.

    weight: (out, in).
    RETURNS (int8 (out, in), float32 (out,)).
    """
    weight = weight.detach().float()
    scales = weight.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / 127
    return (weight / scales[:, None]).round().to(torch.int8), scales


class Int8Linear:
    """x W' + b, and the activation of it, from 8 bits of x and W.

    Weights are rounded by output, inputs by the range that was found on some texts, so that a vector does not depend on
    what is encoded beside it. Where inputs of some channels are much greater than those of others, the weights take
    over a part of it:

    x W' = (x / f) (W f)',    f_j = max |x_j|^a / max_i |W_ij|^(1 - a),    a = 1/2

    weight: (out, in); bias: (out,); ranges: see Rounding; activation: see ACTIVATIONS, None for none.
    smooth (bool): whether it does; what is rounded by the layer before has no factors.
    dtype (torch.dtype): of what it returns.
    then (Rounding): of the layer that takes what this one gives, which is then given in 8 bits; None for a number.
    SOURCE: Xiao et al. 2023, SmoothQuant, section 4.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        bias: torch.Tensor,
        ranges: torch.Tensor,
        activation: str | None = None,
        *,
        smooth: bool = False,
        dtype: torch.dtype,
        then: Rounding | None = None,
    ):
        weight, self.rounding, _ = _shared_out(weight, ranges, smooth=smooth)
        output = (dtype, 1.0, 0) if then is None else (torch.uint8, then.scale, then.zero)
        self._product: Int8Product = int8_product(
            *round_weight(weight), bias, (self.rounding.scale, self.rounding.zero), activation, output
        )

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return self._product(states if states.dtype == torch.uint8 else self.rounding(states))


def simulated(
    weight: torch.Tensor, bias: torch.Tensor, ranges: torch.Tensor, activation: str | None = None, *, smooth: bool
) -> Linear:
    """What Int8Linear gives, by products in float32, which every device has; for the arguments see there."""
    shared, rounding, factors = _shared_out(weight, ranges, smooth=smooth)
    rounded, scales = round_weight(shared)
    product = linear(rounded * scales[:, None] / factors, bias, torch.float32, activation)
    return lambda states: product(rounding.read(rounding(states)))


def _shared_out(
    weight: torch.Tensor, ranges: torch.Tensor, *, smooth: bool
) -> tuple[torch.Tensor, Rounding, torch.Tensor]:
    """float32 (out, in), W f; how x / f is rounded; float32 (in,), f."""
    weight, ranges = weight.detach().float(), ranges.to(weight.device)
    factors = _factors(weight, ranges) if smooth else torch.ones_like(ranges[0])
    return weight * factors, Rounding(ranges, factors), factors


def _factors(weight: torch.Tensor, ranges: torch.Tensor) -> torch.Tensor:
    """float32 (in,): f."""
    of_states = ranges.abs().amax(0).clamp(min=SMALLEST) ** SMOOTHING
    of_weight = weight.abs().amax(0).clamp(min=SMALLEST) ** (1 - SMOOTHING)
    return (of_states / of_weight).clamp(min=SMALLEST)
