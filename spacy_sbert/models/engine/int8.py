"""int8 inference: calibration and quantized linear layers."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from ...errors import Errors
from ..loading import Network
from ..private_attributes import Int8Product, Linear, int8_product, linear
from ..tokenization import TokenizedBatch
from .packed_bert import (
    LINEARS,
    SMOOTHED,
    Layer,
    LayerModules,
    PackedBert,
    activation_of,
    is_packable,
    layers_of,
    weights_of,
)
from .packing import CPU_BUDGET, ragged_arange

_COUNT, _ROUNDED, _COSINE = "n_wordpieces", "is_rounded", "lowest_cosine"


@dataclass(frozen=True)
class Calibration:
    """The least and the greatest number of each channel, over some texts, and which products bear 8 bits.

    n_wordpieces (int): of the texts, special ones included.
    ranges (dict): for each of LINEARS float32 (layers, 2, width of its input), least and greatest.
    is_rounded: bool (layers, products as LINEARS), which are in 8 bits.
    lowest_cosine (float): of the mean states of one of the texts, with these products in 8 bits and without.
    """

    n_wordpieces: int
    ranges: dict[str, torch.Tensor]
    is_rounded: torch.Tensor
    lowest_cosine: float

    def to_bytes(self) -> bytes:
        """As safetensors."""
        numbers = {_COUNT: torch.tensor(self.n_wordpieces), _COSINE: torch.tensor(self.lowest_cosine)}
        return save({**self.ranges, _ROUNDED: self.is_rounded, **numbers})

    def digest(self) -> str:
        """Return the SHA-256 of it."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def read_calibration(path: Path, model: Network) -> Calibration:
    """Read a file with what Calibration.to_bytes returned for a model.

    RAISES (ValueError): if the file is damaged, or of another model.
    """
    try:
        found = load_file(path)
    except SafetensorError as error:
        raise ValueError(Errors.BAD_STATE.format(reason=f"{path.name}: {error}")) from error
    expected: dict[str, tuple[int, ...]] = {}
    if is_packable(model):
        layers = layers_of(model)
        inputs = zip(LINEARS, (layers[0].query, layers[0].mix, layers[0].widen, layers[0].narrow), strict=True)
        expected = {name: (len(layers), 2, part.in_features) for name, part in inputs}
        expected |= {_ROUNDED: (len(layers), len(LINEARS)), _COUNT: (), _COSINE: ()}
    given = {name: tuple(value.shape) for name, value in found.items()}
    if given != expected or not all(value.isfinite().all() for value in found.values()):
        raise ValueError(Errors.BAD_STATE.format(reason=f"{path.name} is not of this encoder"))
    n_wordpieces, cosine = int(found.pop(_COUNT)), float(found.pop(_COSINE))
    is_rounded = found.pop(_ROUNDED).bool()
    return Calibration(n_wordpieces, {name: value.float() for name, value in found.items()}, is_rounded, cosine)


_SMOOTHING = 0.5
_SMALLEST = 1e-5  # of channels that are zero on all texts


class _Quantizer:
    """From numbers to 8 bits, and how to read these.

    q = min(max(round(x / (scale f)) + zero, 0), 255),    x = scale f (q - zero)

    ranges: float32 (2, width), the least and the greatest number of each channel, see Calibration.
    factors: float32 (width,), f of each channel; None for 1.
    SOURCE: Jacob et al. 2018, Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
        Inference, section 2.1.
    """

    def __init__(self, ranges: torch.Tensor, factors: torch.Tensor | None = None):
        least, greatest = ranges if factors is None else ranges / factors
        low, high = min(0.0, float(least.min())), max(_SMALLEST, float(greatest.max()))
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


def _round_weight(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """V and d of W = d V, by output: d_i = max_j |W_ij| / 127.

    weight: (out, in).
    RETURNS (int8 (out, in), float32 (out,)).
    """
    weight = weight.detach().float()
    scales = weight.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / 127
    return (weight / scales[:, None]).round().to(torch.int8), scales


class _Int8Linear:
    """x W' + b, and the activation of it, from 8 bits of x and W.

    Weights are rounded by output, inputs by the range that was found on some texts, so that a vector does not depend on
    what is encoded beside it. Where inputs of some channels are much greater than those of others, the weights take
    over a part of it:

    x W' = (x / f) (W f)',    f_j = max |x_j|^a / max_i |W_ij|^(1 - a),    a = 1/2

    weight: (out, in); bias: (out,); ranges: see _Quantizer; activation: see ACTIVATIONS, None for none.
    smooth (bool): whether it does; what is rounded by the layer before has no factors.
    dtype (torch.dtype): of what it returns.
    then (_Quantizer): of the layer that takes what this one gives, which is then given in 8 bits; None for a number.
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
        then: _Quantizer | None = None,
    ):
        weight, self.rounding, _ = _shared_out(weight, ranges, smooth=smooth)
        output = (dtype, 1.0, 0) if then is None else (torch.uint8, then.scale, then.zero)
        self._product: Int8Product = int8_product(
            *_round_weight(weight), bias, (self.rounding.scale, self.rounding.zero), activation, output
        )

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return self._product(states if states.dtype == torch.uint8 else self.rounding(states))


def _fake_quantized(
    weight: torch.Tensor, bias: torch.Tensor, ranges: torch.Tensor, activation: str | None = None, *, smooth: bool
) -> Linear:
    """Return the same as _Int8Linear by products in float32, which every device has."""
    shared, rounding, factors = _shared_out(weight, ranges, smooth=smooth)
    rounded, scales = _round_weight(shared)
    product = linear(rounded * scales[:, None] / factors, bias, torch.float32, activation)
    return lambda states: product(rounding.read(rounding(states)))


def _shared_out(
    weight: torch.Tensor, ranges: torch.Tensor, *, smooth: bool
) -> tuple[torch.Tensor, _Quantizer, torch.Tensor]:
    """Return W f, float32 (out, in), how x / f is rounded, and f, float32 (in,)."""
    weight, ranges = weight.detach().float(), ranges.to(weight.device)
    factors = torch.ones_like(ranges[0])
    if smooth:
        of_states = ranges.abs().amax(0).clamp(min=_SMALLEST) ** _SMOOTHING
        of_weight = weight.abs().amax(0).clamp(min=_SMALLEST) ** (1 - _SMOOTHING)
        factors = (of_states / of_weight).clamp(min=_SMALLEST)
    return weight * factors, _Quantizer(ranges, factors), factors


_Place = tuple[int, str]  # a layer, and one of LINEARS
_Observer = Callable[[torch.Tensor, torch.Tensor], None]  # takes the input (n, in) and output (n, out) of a product
_MAX_NOISE = 0.05  # what is noisier (a ratio of signal to noise of 13 dB) is left out without a trial
MIN_COSINE = 0.99  # of a window's mean state with 8 bits to that without


@torch.no_grad()
def calibrate(model: Network, wordpieces: TokenizedBatch, *, enough: int = 0) -> Calibration:
    """Find ranges, and the products that bear 8 bits.

    Where few channels are far greater than all others, as in the last product of some layers of MPNet, these are all
    that 8 bits tell apart, and the noise of the product is as large as what it says. So the noisiest are left out,
    until the windows stay near to what they were.

    model: of Hugging Face, see is_packable.
    wordpieces (TokenizedBatch): of n windows.
    enough (int): the first windows that have so many wordpieces are taken; 0 for all.
    SOURCE: Dettmers et al. 2022, LLM.int8(): 8-bit Matrix Multiplication for Transformers at Scale, section 4.
    """
    encoding = _Encoding(model, wordpieces, enough)
    exact = encoding.products
    seen = {place: _Range() for place in exact}
    expected = encoding(exact, seen)
    rounded = _rounded(model, {place: watch.found for place, watch in seen.items()})
    noises = {place: _Noise(rounded[place]) for place in exact}
    encoding(exact, noises)
    noisiest = sorted(exact, key=lambda place: noises[place].found, reverse=True)
    n_too_noisy = sum(watch.found > _MAX_NOISE for watch in noises.values())
    for n_more in (0, *(2**k for k in range(1 + len(exact).bit_length()))):  # at the last all of them
        left_out = noisiest[: n_too_noisy + n_more]
        found = encoding({**rounded, **{place: exact[place] for place in left_out}})
        lowest = float(torch.cosine_similarity(found, expected).min())
        if lowest >= MIN_COSINE:
            break
    layers = range(len(exact) // len(LINEARS))
    return Calibration(
        n_wordpieces=encoding.n_wordpieces,
        ranges={name: torch.stack([seen[i, name].found for i in layers]).cpu() for name in LINEARS},
        is_rounded=torch.tensor([[(i, name) not in left_out for name in LINEARS] for i in layers]),
        lowest_cosine=lowest,
    )


def _rounded(model: Network, ranges: Mapping[_Place, torch.Tensor]) -> dict[_Place, Linear]:
    """Return the products as 8 bits give them."""
    weights, activations = [weights_of(parts) for parts in layers_of(model)], {"widen": activation_of(model)}
    return {
        (i, name): _fake_quantized(*weights[i][name], found, activations.get(name), smooth=name in SMOOTHED)
        for (i, name), found in ranges.items()
    }


class _Encoding:
    """The first windows that have enough wordpieces, encoded by whatever products; for the arguments see calibrate."""

    def __init__(self, model: Network, wordpieces: TokenizedBatch, enough: int):
        self._engine, self._wordpieces = PackedBert(model, torch.float32), wordpieces
        ends = numpy.cumsum(wordpieces.lengths)
        self._windows = numpy.arange(1 + numpy.searchsorted(ends[:-1], enough or ends[-1]))
        self.n_wordpieces = int(ends[self._windows[-1]])
        layers = enumerate(self._engine.layers)
        self.products = {(i, name): layer.linears[name] for i, layer in layers for name in LINEARS}

    def __call__(
        self, products: Mapping[_Place, Linear], watches: Mapping[_Place, _Observer] | None = None
    ) -> torch.Tensor:
        """float32 (n, hidden): the sum of each window's states.

        watches: for each place, who sees what is of windows; padding, whose states mean nothing, is left out.
        """
        engine, of_all = self._engine, self._wordpieces.lengths
        sums = engine.words.new_zeros(len(self._windows), len(engine.layers[0].norm_output.weight))
        for rows in engine.passes(self._wordpieces, self._windows, CPU_BUDGET):
            places = torch.from_numpy(ragged_arange(rows.starts, of_all[rows.windows])).to(engine.device)
            for i, layer in enumerate(engine.layers):
                own = {name: products[i, name] for name in LINEARS}
                layer.linears = (
                    own
                    if watches is None
                    else {name: partial(_watched, product, watches[i, name], places) for name, product in own.items()}
                )
            windows = torch.from_numpy(numpy.repeat(rows.windows, of_all[rows.windows])).to(engine.device)
            sums.index_add_(0, windows, engine.encode(self._wordpieces, rows)[places])
        return sums


def _watched(product: Linear, watch: _Observer, of_text: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
    made = product(states)
    watch(states[of_text], made[of_text])
    return made


class _Range:
    """The least and the greatest number of each channel: found, float32 (2, in)."""

    found: torch.Tensor

    def __call__(self, given: torch.Tensor, made: torch.Tensor) -> None:
        seen = given if not hasattr(self, "found") else torch.cat([self.found, given])
        self.found = torch.stack([seen.amin(0), seen.amax(0)])


class _Noise:
    """What 8 bits add to a product; rounded (Linear): that in 8 bits."""

    def __init__(self, rounded: Linear):
        self._rounded = rounded
        self._sums: list[torch.Tensor] = []  # float64 (2, out): squares of the error and of the product

    def __call__(self, given: torch.Tensor, made: torch.Tensor) -> None:
        error = self._rounded(given) - made
        self._sums.append(torch.stack([values.square().sum(0).double() for values in (error, made)]))

    @cached_property
    def found(self) -> float:
        """The median over output channels of sum (y' - y)^2 / sum y^2, the reciprocal of the signal-to-noise ratio."""
        error, signal = torch.stack(self._sums).sum(0)
        return float((error / signal.clamp(min=torch.finfo(signal.dtype).tiny)).median())


def int8_bert(model: Network, calibration: Calibration, dtype: torch.dtype) -> PackedBert:
    """Return a PackedBert whose products are those of _Int8Linear, as far as they bear it.

    model: of Hugging Face, see is_packable; on a CPU, see has_int8_product.
    calibration (Calibration): of its weights.
    dtype (torch.dtype): of the rest of the arithmetic.
    """
    activation = activation_of(model)
    layers = [
        Layer(parts, _products(parts, calibration, i, activation, dtype)) for i, parts in enumerate(layers_of(model))
    ]
    return PackedBert(model, dtype, layers)


def _products(
    parts: LayerModules, calibration: Calibration, layer: int, activation: str, dtype: torch.dtype
) -> dict[str, Linear]:
    """Those of a layer.

    The widening one writes 8 bits for the narrowing one, where both are rounded, so that activations are never rounded
    twice nor stored in between.
    """
    found: dict[str, Linear] = {}
    weights = weights_of(parts)
    for name in reversed(LINEARS):
        both, own = weights[name], activation if name == "widen" else None
        if not calibration.is_rounded[layer, LINEARS.index(name)]:
            found[name] = linear(*both, dtype, own)
            continue
        narrow = found.get("narrow")
        then = narrow.rounding if name == "widen" and isinstance(narrow, _Int8Linear) else None
        ranges = calibration.ranges[name][layer]
        found[name] = _Int8Linear(*both, ranges, own, smooth=name in SMOOTHED, dtype=dtype, then=then)
    return found
