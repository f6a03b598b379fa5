"""int8 inference: calibration and quantized linear layers."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from ...errors import Errors
from ...files.checksum import digest_of_bytes
from ..loading import Network
from ..private_attributes import Int8Product, Linear, int8_product, linear
from ..tokenization import TokenizedBatch
from .bert_families import LINEARS, SMOOTHED, activation_of, is_packable, layers_of, weights_of
from .packed_bert import PackedBert
from .packing import CPU_BUDGET, ragged_arange

_COUNT, _ROUNDED, _COSINE = "n_wordpieces", "is_rounded", "lowest_cosine"


@dataclass(frozen=True)
class Calibration:
    """The least and the greatest number of each channel, over some texts, and which products bear 8 bits."""

    # Of the texts, special ones included
    n_wordpieces: int
    # For each of LINEARS float32 (layers, 2, width of its input), least and greatest
    ranges: dict[str, torch.Tensor]
    # Bool (layers, products as LINEARS), which are in 8 bits
    is_rounded: torch.Tensor
    lowest_cosine: (
        # Of the mean states of one of the texts, with these products in 8 bits and without
        float
    )

    def to_bytes(self) -> bytes:
        """As safetensors."""
        numbers = {
            _COUNT: torch.tensor(self.n_wordpieces),
            _COSINE: torch.tensor(self.lowest_cosine),
        }
        return save({**self.ranges, _ROUNDED: self.is_rounded, **numbers})

    def digest(self) -> str:
        """Return the SHA-256 of it."""
        return digest_of_bytes(self.to_bytes())


def read_calibration(path: Path, model: Network) -> Calibration:
    """Read what Calibration.to_bytes wrote.

    RAISES (ValueError): if the file is damaged, or of another model.
    """
    try:
        found = load_file(path)
    except SafetensorError as error:
        raise ValueError(Errors.BAD_STATE.format(reason=f"{path.name}: {error}")) from error
    expected: dict[str, tuple[int, ...]] = {}
    if is_packable(model):
        layers = layers_of(model)
        inputs = zip(
            LINEARS,
            (layers[0].query, layers[0].mix, layers[0].widen, layers[0].narrow),
            strict=True,
        )
        expected = {name: (len(layers), 2, part.weight.shape[1]) for name, part in inputs}
        expected |= {_ROUNDED: (len(layers), len(LINEARS)), _COUNT: (), _COSINE: ()}
    given = {name: tuple(value.shape) for name, value in found.items()}
    if given != expected or not all(value.isfinite().all() for value in found.values()):
        raise ValueError(Errors.BAD_STATE.format(reason=f"{path.name} is not of this encoder"))
    n_wordpieces, cosine = int(found.pop(_COUNT)), float(found.pop(_COSINE))
    is_rounded = found.pop(_ROUNDED).bool()
    return Calibration(
        n_wordpieces, {name: value.float() for name, value in found.items()}, is_rounded, cosine
    )


_SMOOTHING = 0.5
# Of channels that are zero on all texts
_SMALLEST = 1e-5
_MAX_NOISE = (
    # What is noisier (a ratio of signal to noise of 13 dB) is left out without a trial
    0.05
)
# Of a window's mean state with 8 bits to that without
MIN_COSINE = 0.99


class _Quantizer:
    """From numbers to 8 bits, and how to read these.

    q = min(max(round(x / (scale f)) + zero, 0), 255),    x = scale f (q - zero)

    ranges: float32 (2, width), the least and the greatest number of each channel, see Calibration.
    factors: float32 (width,), f of each channel; None for 1.
    SOURCE: Jacob et al. 2018, Quantization and Training of Neural Networks for Efficient
        Integer-Arithmetic-Only Inference, section 2.1.
    """

    def __init__(self, ranges: torch.Tensor, factors: torch.Tensor | None = None):
        least, greatest = ranges if factors is None else ranges / factors
        low, high = min(0.0, float(least.min())), max(_SMALLEST, float(greatest.max()))
        self.scale = (high - low) / 255
        self.zero = round(-low / self.scale)
        self._steps = (
            torch.full_like(least, self.scale) if factors is None else factors * self.scale
        )
        self._inverse = 1 / self._steps
        # What is left over is cut off
        self._shift = torch.tensor(self.zero + 0.5, device=ranges.device)

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return (
            torch.addcmul(self._shift, states.float(), self._inverse).clamp_(0, 255).to(torch.uint8)
        )

    def read(self, rounded: torch.Tensor) -> torch.Tensor:
        """Return x, float32 (n, width), of what this gave."""
        return (rounded.float() - self.zero) * self._steps


def _round_weight(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return V, int8 (out, in), and d, float32 (out,), of W = d V by output: d_i = max_j |W_ij| / 127."""
    weight = weight.detach().float()
    scales = weight.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / 127
    return (weight / scales[:, None]).round().to(torch.int8), scales


class _Int8Linear:
    """x W' + b, and the activation of it, from 8 bits of x and W.

    weight: (out, in); bias: (out,); ranges: see _Quantizer; activation: see ACTIVATIONS, None for
        none.
    smooth (bool): see _smoothed; what is rounded by the layer before has no factors.
    dtype (torch.dtype): of what it returns.
    then (_Quantizer): of the layer that takes what this one gives, which is then given in 8 bits;
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
        then: _Quantizer | None = None,
    ):
        weight, self.rounding, _ = _smoothed(weight, ranges, smooth=smooth)
        output = (dtype, 1.0, 0) if then is None else (torch.uint8, then.scale, then.zero)
        self._product: Int8Product = int8_product(
            *_round_weight(weight),
            bias,
            (self.rounding.scale, self.rounding.zero),
            activation,
            output,
        )

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return self._product(states if states.dtype == torch.uint8 else self.rounding(states))


def _fake_quantized(
    weight: torch.Tensor,
    bias: torch.Tensor,
    ranges: torch.Tensor,
    activation: str | None = None,
    *,
    smooth: bool,
) -> Linear:
    """Return the same as _Int8Linear by products in float32, which every device has."""
    shared, rounding, factors = _smoothed(weight, ranges, smooth=smooth)
    rounded, scales = _round_weight(shared)
    product = linear(rounded * scales[:, None] / factors, bias, torch.float32, activation)
    return lambda states: product(rounding.read(rounding(states)))


def _smoothed(
    weight: torch.Tensor, ranges: torch.Tensor, *, smooth: bool
) -> tuple[torch.Tensor, _Quantizer, torch.Tensor]:
    """Let weights take over a part of what inputs of some channels are greater than those of others.

    x W' = (x / f) (W f)',    f_j = max |x_j|^a / max_i |W_ij|^(1 - a),    a = 1/2;  f = 1 if it should not

    RETURNS (tuple): W f, float32 (out, in), how x / f is rounded, and f, float32 (in,).
    SOURCE: Xiao et al. 2023, SmoothQuant, section 4.
    """
    weight, ranges = weight.detach().float(), ranges.to(weight.device)
    factors = torch.ones_like(ranges[0])
    if smooth:
        of_states = ranges.abs().amax(0).clamp(min=_SMALLEST) ** _SMOOTHING
        of_weight = weight.abs().amax(0).clamp(min=_SMALLEST) ** (1 - _SMOOTHING)
        factors = (of_states / of_weight).clamp(min=_SMALLEST)
    return weight * factors, _Quantizer(ranges, factors), factors


# A layer, and one of LINEARS
_Place = tuple[int, str]
# Of the input (n, in) and output (n, out)
_Measure = Callable[[_Place, torch.Tensor, torch.Tensor], torch.Tensor]


@torch.no_grad()
def calibrate(model: Network, wordpieces: TokenizedBatch, *, enough: int = 0) -> Calibration:
    """Find ranges, and the products that bear 8 bits: the noisiest are left out until windows stay near what they were.

    Where few channels are far greater than all others, as in the last product of some layers of
    MPNet, these are all that 8 bits tell apart.

    enough (int): the first windows that have so many wordpieces are taken; 0 for all.
    SOURCE: Dettmers et al. 2022, LLM.int8(): 8-bit Matrix Multiplication for Transformers at Scale,
        section 4.
    """
    engine, ends = PackedBert(model, torch.float32), numpy.cumsum(wordpieces.lengths)
    windows = numpy.arange(1 + numpy.searchsorted(ends[:-1], enough or ends[-1]))
    encode = partial(_state_sums, engine, wordpieces, windows)
    exact = {
        (i, name): product
        for i, layer in enumerate(engine.layers)
        for name, product in layer.linears.items()
    }
    expected, seen = encode(
        exact, lambda place, given, made: torch.stack([given.amin(0), given.amax(0)])
    )
    ranges = {
        place: torch.stack([each[:, 0].amin(0), each[:, 1].amax(0)]) for place, each in seen.items()
    }
    weights, activations = (
        [weights_of(parts) for parts in layers_of(model)],
        {"widen": activation_of(model)},
    )
    rounded = {
        (i, name): _fake_quantized(
            *weights[i][name], own, activations.get(name), smooth=name in SMOOTHED
        )
        for (i, name), own in ranges.items()
    }

    def squares(place: _Place, given: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
        """float64 (2, out): sums of the squares of the error and of the product."""
        return torch.stack(
            [each.square().sum(0).double() for each in (rounded[place](given) - made, made)]
        )

    _, measured = encode(exact, squares)
    noises = {place: _noise(*each.sum(0)) for place, each in measured.items()}
    noisiest = sorted(exact, key=lambda place: noises[place], reverse=True)
    n_too_noisy = sum(noise > _MAX_NOISE for noise in noises.values())
    # At the last all of them
    for n_more in (
        0,
        *(2**k for k in range(1 + len(exact).bit_length())),
    ):
        left_out = noisiest[: n_too_noisy + n_more]
        found, _ = encode({**rounded, **{place: exact[place] for place in left_out}})
        lowest = float(torch.cosine_similarity(found, expected).min())
        if lowest >= MIN_COSINE:
            break
    layers = range(len(weights))
    return Calibration(
        n_wordpieces=int(ends[windows[-1]]),
        ranges={name: torch.stack([ranges[i, name] for i in layers]).cpu() for name in LINEARS},
        is_rounded=torch.tensor([[(i, name) not in left_out for name in LINEARS] for i in layers]),
        lowest_cosine=lowest,
    )


def _noise(error: torch.Tensor, signal: torch.Tensor) -> float:
    """Return the median over output channels of sum (y' - y)^2 / sum y^2, the noise-to-signal ratio."""
    return float((error / signal.clamp(min=torch.finfo(signal.dtype).tiny)).median())


def _state_sums(
    engine: PackedBert,
    wordpieces: TokenizedBatch,
    windows: numpy.ndarray,
    products: Mapping[_Place, Linear],
    measure: _Measure | None = None,
) -> tuple[torch.Tensor, dict[_Place, torch.Tensor]]:
    """Return the sum of each window's states, float32 (n, hidden), and what `measure` gives for products of passes."""
    measured = defaultdict(list)

    def observed(place: _Place, of_text: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        made = products[place](states)
        if measure is not None:
            measured[place].append(measure(place, states[of_text], made[of_text]))
        return made

    sums = engine.words.new_zeros(len(windows), len(engine.layers[0].norm_output.weight))
    for rows in engine.passes(wordpieces, windows, CPU_BUDGET):
        lengths = wordpieces.lengths[rows.windows]
        places = torch.from_numpy(ragged_arange(rows.starts, lengths)).to(engine.device)
        for i, layer in enumerate(engine.layers):
            layer.linears = {name: partial(observed, (i, name), places) for name in LINEARS}
        owners = torch.from_numpy(numpy.repeat(rows.windows, lengths)).to(engine.device)
        sums.index_add_(0, owners, engine.encode(wordpieces, rows)[places])
    return sums, {place: torch.stack(each) for place, each in measured.items()}


def int8_bert(model: Network, calibration: Calibration, dtype: torch.dtype) -> PackedBert:
    """Return a PackedBert whose products are those of _Int8Linear, as far as they bear it.

    dtype: of the others.
    """
    products = []
    for i, parts in enumerate(layers_of(model)):
        weights = weights_of(parts)
        found: dict[str, Linear] = {}
        for name, is_rounded in reversed(
            list(zip(LINEARS, calibration.is_rounded[i], strict=True))
        ):
            activation = activation_of(model) if name == "widen" else None
            if not is_rounded:
                found[name] = linear(*weights[name], dtype, activation)
                continue
            # The widening product writes 8 bits for the narrowing one, so that activations are
            # never rounded twice.
            narrow = found.get("narrow") if name == "widen" else None
            then = narrow.rounding if isinstance(narrow, _Int8Linear) else None
            ranges, smooth = calibration.ranges[name][i], name in SMOOTHED
            found[name] = _Int8Linear(
                *weights[name], ranges, activation, smooth=smooth, dtype=dtype, then=then
            )
        products.append(found)
    return PackedBert(model, dtype, products)
