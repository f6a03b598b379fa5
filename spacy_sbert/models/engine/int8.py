"""int8 inference: calibration, and a PackedBert whose products are of 8 bits."""

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
from ..private_attributes import Linear
from ..tokenization import TokenizedBatch
from .bert_families import (
    ATTENTION,
    ATTENTION_OUTPUT,
    INTERMEDIATE,
    LINEARS,
    OUTPUT,
    SMOOTHED,
    activation_of,
    is_packable,
    layers_of,
    weights_of,
)
from .int8_linear import Int8Linear, fake_quantized
from .packed_bert import PackedBert
from .packing import CPU_BUDGET

# The names in a file of ranges, of which those of LINEARS are older than Hugging Face's here
_COUNT = "n_wordpieces"
_ROUNDED = "is_rounded"
_COSINE = "lowest_cosine"
_NAMES_IN_FILE = {
    ATTENTION: "heads",
    ATTENTION_OUTPUT: "mix",
    INTERMEDIATE: "widen",
    OUTPUT: "narrow",
}


@dataclass(frozen=True)
class Calibration:
    """The range of each channel over some texts, and which products are rounded to 8 bits.

    n_wordpieces: of the texts, special ones included.
    ranges: for each of LINEARS float32 (layers, 2, width of its input), least and greatest.
    is_rounded: bool (layers, products as LINEARS), which are in 8 bits.
    lowest_cosine: of the mean states of one of the texts, with these products in 8 bits and
        without.
    """

    n_wordpieces: int
    ranges: dict[str, torch.Tensor]
    is_rounded: torch.Tensor
    lowest_cosine: float

    def to_bytes(self) -> bytes:
        """Return the calibration as safetensors."""
        tensors = {_NAMES_IN_FILE[name]: ranges for name, ranges in self.ranges.items()}
        tensors[_ROUNDED] = self.is_rounded
        tensors[_COUNT] = torch.tensor(self.n_wordpieces)
        tensors[_COSINE] = torch.tensor(self.lowest_cosine)
        return save(tensors)

    def digest(self) -> str:
        """Return the SHA-256 of it."""
        return digest_of_bytes(self.to_bytes())


def read_calibration(path: Path, model: Network) -> Calibration:
    """Read what Calibration.to_bytes wrote.

    RAISES (ValueError): if the file is damaged, or of another model.
    """
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise ValueError(Errors.BAD_STATE.format(reason=f"{path.name}: {error}")) from error
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    is_finite = all(tensor.isfinite().all() for tensor in tensors.values())
    if shapes != _shapes_in_file(model) or not is_finite:
        raise ValueError(Errors.BAD_STATE.format(reason=f"{path.name} is not of this encoder"))
    return Calibration(
        n_wordpieces=int(tensors[_COUNT]),
        ranges={name: tensors[_NAMES_IN_FILE[name]].float() for name in LINEARS},
        is_rounded=tensors[_ROUNDED].bool(),
        lowest_cosine=float(tensors[_COSINE]),
    )


def _shapes_in_file(model: Network) -> dict[str, tuple[int, ...]]:
    """Return the shapes of tensors in a file of ranges; none for a model that is not rounded."""
    if not is_packable(model):
        return {}
    layers = layers_of(model)
    shapes: dict[str, tuple[int, ...]] = {
        _NAMES_IN_FILE[name]: (len(layers), 2, weight.shape[1])
        for name, (weight, _) in weights_of(layers[0]).items()
    }
    shapes |= {_ROUNDED: (len(layers), len(LINEARS)), _COUNT: (), _COSINE: ()}
    return shapes


# A product that is noisier, by a ratio of signal to noise of 13 dB, is left out without a trial
_MAX_NOISE = 0.05
# The lowest cosine of a window's mean state with 8 bits and that without
MIN_COSINE = 0.99


# Of a product: the number of its layer, and one of LINEARS
_Key = tuple[int, str]
# Of the input (n, in) and output (n, out) of a product
_Measure = Callable[[_Key, torch.Tensor, torch.Tensor], torch.Tensor]


class _Trial:
    """An encoder in float32 on some windows, whose products are replaced and measured.

    wordpieces (TokenizedBatch), windows (int64 (k,)): what is encoded.
    """

    def __init__(self, model: Network, wordpieces: TokenizedBatch, windows: numpy.ndarray):
        self.backend = PackedBert(model, torch.float32)
        self.wordpieces = wordpieces
        self.windows = windows
        self.exact: dict[_Key, Linear] = {
            (i, name): product
            for i, layer in enumerate(self.backend.layers)
            for name, product in layer.linears.items()
        }

    def encode(
        self, products: Mapping[_Key, Linear], measure: _Measure | None = None
    ) -> tuple[torch.Tensor, dict[_Key, torch.Tensor]]:
        """Return the sums of windows' states, float32 (k, hidden), and measurements of batches."""
        backend = self.backend
        wordpieces = self.wordpieces
        measured = defaultdict(list)

        def observed(key: _Key, of_text: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
            output = products[key](states)
            if measure is not None:
                measured[key].append(measure(key, states[of_text], output[of_text]))
            return output

        sums = backend.words.new_zeros(len(self.windows), backend.hidden_size)
        for batch in backend.batches(wordpieces, self.windows, CPU_BUDGET):
            lengths = wordpieces.lengths[batch.windows]
            places = batch.places(lengths).to(backend.device)
            for i, layer in enumerate(backend.layers):
                layer.linears = {name: partial(observed, (i, name), places) for name in LINEARS}
            owners = torch.from_numpy(numpy.repeat(batch.windows, lengths)).to(backend.device)
            sums.index_add_(0, owners, backend.encode(wordpieces, batch)[places])
        return sums, {key: torch.stack(each) for key, each in measured.items()}


@torch.no_grad()
def calibrate(model: Network, wordpieces: TokenizedBatch, *, enough: int = 0) -> Calibration:
    """Find ranges, and the products that 8 bits are enough for: the noisiest are left out.

    Where few channels are far greater than all others, as in the last product of some layers of
    MPNet, these are all that 8 bits tell apart.

    enough (int): the first windows that have so many wordpieces are taken; 0 for all.
    SOURCE: Dettmers et al. 2022, LLM.int8(): 8-bit Matrix Multiplication for Transformers at Scale,
        section 4.
    """
    ends = numpy.cumsum(wordpieces.lengths)
    windows = numpy.arange(1 + numpy.searchsorted(ends[:-1], enough or ends[-1]))
    trial = _Trial(model, wordpieces, windows)
    ranges, expected = _observe_ranges(trial)
    rounded = _rounded_products(model, ranges)
    noises = _measure_noise(trial, rounded)
    left_out, lowest = _exclude_noisiest(trial, rounded, noises, expected)
    layers = range(len(trial.backend.layers))
    return Calibration(
        n_wordpieces=int(ends[windows[-1]]),
        ranges={name: torch.stack([ranges[i, name] for i in layers]).cpu() for name in LINEARS},
        is_rounded=torch.tensor([[(i, name) not in left_out for name in LINEARS] for i in layers]),
        lowest_cosine=lowest,
    )


def _observe_ranges(trial: _Trial) -> tuple[dict[_Key, torch.Tensor], torch.Tensor]:
    """Return the ranges of inputs, float32 (2, in), and the sums of states without rounding."""

    def extremes(key: _Key, inputs: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        return torch.stack([inputs.amin(0), inputs.amax(0)])

    expected, of_batches = trial.encode(trial.exact, extremes)
    ranges = {
        key: torch.stack([each[:, 0].amin(0), each[:, 1].amax(0)])
        for key, each in of_batches.items()
    }
    return ranges, expected


def _rounded_products(model: Network, ranges: Mapping[_Key, torch.Tensor]) -> dict[_Key, Linear]:
    """Return all products with inputs and weights in 8 bits."""
    weights = [weights_of(layer) for layer in layers_of(model)]
    activations = {INTERMEDIATE: activation_of(model)}
    return {
        (i, name): fake_quantized(
            *weights[i][name], own, activations.get(name), smooth=name in SMOOTHED
        )
        for (i, name), own in ranges.items()
    }


def _measure_noise(trial: _Trial, rounded: Mapping[_Key, Linear]) -> dict[_Key, float]:
    """Return the noise-to-signal ratio that rounding adds to each product.

    The median over output channels of sum (y' - y)^2 / sum y^2.
    """

    def squares(key: _Key, inputs: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        """float64 (2, out): sums of the squares of the error and of the product."""
        error = rounded[key](inputs) - output
        return torch.stack([each.square().sum(0).double() for each in (error, output)])

    _, of_batches = trial.encode(trial.exact, squares)
    noises = {}
    for key, each in of_batches.items():
        error, signal = each.sum(0)
        smallest = torch.finfo(signal.dtype).tiny
        noises[key] = float((error / signal.clamp(min=smallest)).median())
    return noises


def _exclude_noisiest(
    trial: _Trial,
    rounded: Mapping[_Key, Linear],
    noises: Mapping[_Key, float],
    expected: torch.Tensor,
) -> tuple[list[_Key], float]:
    """Return the products to leave out, and the lowest cosine of a window without them.

    Those above _MAX_NOISE, then by powers of two more of them, at the last all, until no window's
    cosine is below MIN_COSINE.
    """
    noisiest = sorted(trial.exact, key=noises.__getitem__, reverse=True)
    n_too_noisy = sum(noise > _MAX_NOISE for noise in noises.values())
    more = [0, *(2**k for k in range(1 + len(noisiest).bit_length()))]
    for n_more in more:
        left_out = noisiest[: n_too_noisy + n_more]
        exact = {key: trial.exact[key] for key in left_out}
        sums, _ = trial.encode({**rounded, **exact})
        lowest = float(torch.cosine_similarity(sums, expected).min())
        if lowest >= MIN_COSINE:
            break
    return left_out, lowest


def int8_bert(model: Network, calibration: Calibration, dtype: torch.dtype) -> PackedBert:
    """Return a PackedBert whose products are those of Int8Linear, as far as they bear it.

    dtype: of the others.
    """
    backend = PackedBert(model, dtype)
    activations = {INTERMEDIATE: activation_of(model)}
    for i, (layer, packed) in enumerate(zip(layers_of(model), backend.layers, strict=True)):
        weights = weights_of(layer)
        is_rounded = dict(zip(LINEARS, calibration.is_rounded[i].tolist(), strict=True))
        # The last comes first, since the one before it writes what it reads
        for name in reversed(LINEARS):
            if not is_rounded[name]:
                continue
            then = None
            reader = packed.linears[OUTPUT]
            # The widening product writes 8 bits for the narrowing one, so that activations are
            # never rounded twice.
            if name == INTERMEDIATE and isinstance(reader, Int8Linear):
                then = reader.rounding
            packed.linears[name] = Int8Linear(
                *weights[name],
                calibration.ranges[name][i],
                activations.get(name),
                smooth=name in SMOOTHED,
                dtype=dtype,
                then=then,
            )
    return backend
