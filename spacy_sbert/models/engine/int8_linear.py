"""Linear layers on inputs and weights that are rounded to 8 bits."""

import torch

from ..private_attributes import Int8Product, Linear, int8_product, linear

_SMOOTHING = 0.5
# Of channels that are zero on all texts
_SMALLEST = 1e-5


class Quantizer:
    """From numbers to 8 bits, and how to read these.

    q = min(max(round(x / (scale f)) + zero, 0), 255),    x = scale f (q - zero)

    ranges: float32 (2, width), the least and the greatest number of each channel, see Calibration.
    factors: float32 (width,), f of each channel; None for 1.
    SOURCE: Jacob et al. 2018, Quantization and Training of Neural Networks for Efficient
        Integer-Arithmetic-Only Inference, section 2.1.
    """

    def __init__(self, ranges: torch.Tensor, factors: torch.Tensor | None = None):
        if factors is None:
            factors = torch.ones_like(ranges[0])
        least, greatest = ranges / factors
        low = min(0.0, float(least.min()))
        high = max(_SMALLEST, float(greatest.max()))
        self.scale = (high - low) / 255
        self.zero = round(-low / self.scale)
        self._steps = factors * self.scale
        self._inverse = 1 / self._steps
        # Conversion to integers cuts off: a half more rounds
        self._shift = torch.tensor(self.zero + 0.5, device=ranges.device)

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        """Return q, uint8 (n, width)."""
        shifted = torch.addcmul(self._shift, states.float(), self._inverse)
        return shifted.clamp_(0, 255).to(torch.uint8)

    def read(self, rounded: torch.Tensor) -> torch.Tensor:
        """Return x, float32 (n, width), of what this gave."""
        return (rounded.float() - self.zero) * self._steps


def _round_weight(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return V, int8 (out, in), and d, float32 (out,), of W = d V: d_i = max_j |W_ij| / 127."""
    weight = weight.detach().float()
    scales = weight.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / 127
    return (weight / scales[:, None]).round().to(torch.int8), scales


class Int8Linear:
    """x W' + b, and the activation of it, from 8 bits of x and W.

    weight: (out, in); bias: (out,); ranges: see Quantizer; activation: see ACTIVATIONS, None for
        none.
    smooth (bool): see _smoothed; what is rounded by the layer before has no factors.
    dtype (torch.dtype): of what it returns.
    then (Quantizer): of the layer that takes what this one gives, which is then given in 8 bits;
        None for a number.
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
        then: Quantizer | None = None,
    ):
        weight, self.rounding, _ = _smoothed(weight, ranges, smooth=smooth)
        output: tuple[torch.dtype, float, int] = (dtype, 1.0, 0)
        if then is not None:
            output = (torch.uint8, then.scale, then.zero)
        rounding = (self.rounding.scale, self.rounding.zero)
        self._product: Int8Product = int8_product(
            *_round_weight(weight), bias, rounding, activation, output
        )

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        if states.dtype != torch.uint8:
            states = self.rounding(states)
        return self._product(states)


def fake_quantized(
    weight: torch.Tensor,
    bias: torch.Tensor,
    ranges: torch.Tensor,
    activation: str | None = None,
    *,
    smooth: bool,
) -> Linear:
    """Return the same as Int8Linear by products in float32, which every device has."""
    shared, rounding, factors = _smoothed(weight, ranges, smooth=smooth)
    rounded, scales = _round_weight(shared)
    product = linear(rounded * scales[:, None] / factors, bias, torch.float32, activation)
    return lambda states: product(rounding.read(rounding(states)))


def _smoothed(
    weight: torch.Tensor, ranges: torch.Tensor, *, smooth: bool
) -> tuple[torch.Tensor, Quantizer, torch.Tensor]:
    """Let weights take over a part of the differences between the channels of inputs.

    x W' = (x / f) (W f)',    f_j = max |x_j|^a / max_i |W_ij|^(1 - a),    a = 1/2

    smooth (bool): whether it should; else f = 1.

    RETURNS (tuple): W f, float32 (out, in), how x / f is rounded, and f, float32 (in,).
    SOURCE: Xiao et al. 2023, SmoothQuant, section 4.
    """
    weight = weight.detach().float()
    ranges = ranges.to(weight.device)
    factors = torch.ones_like(ranges[0])
    if smooth:
        of_states = ranges.abs().amax(0).clamp(min=_SMALLEST) ** _SMOOTHING
        of_weight = weight.abs().amax(0).clamp(min=_SMALLEST) ** (1 - _SMOOTHING)
        factors = (of_states / of_weight).clamp(min=_SMALLEST)
    return weight * factors, Quantizer(ranges, factors), factors
