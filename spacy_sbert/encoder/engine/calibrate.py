"""Finding a Calibration: ranges, then what each product makes of them in 8 bits, then what all make of the texts."""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Protocol

import numpy
import torch

from ..hugging_face import Network
from ..wordpieces import Wordpieces
from .calibration import Calibration
from .families import activation_of, layers_of
from .int8_linear import simulated
from .packed_bert import LINEARS, SMOOTHED, PackedBert, weights_of
from .private_torch import Linear
from .runner import CPU_BUDGET
from .windows import spread

Place = tuple[int, str]  # a layer, and one of LINEARS
MOST_NOISE = 0.05  # what is noisier (a ratio of signal to noise of 13 dB) is left out without a trial
LEAST_COSINE = 0.99  # of a window's mean state with 8 bits to that without


class Watch(Protocol):
    """Sees what a linear layer is given, and what it makes of it: (n, in) and (n, out)."""

    def __call__(self, given: torch.Tensor, made: torch.Tensor) -> None: ...


@torch.no_grad()
def calibrate(model: Network, wordpieces: Wordpieces, *, enough: int = 0) -> Calibration:
    """Find ranges, and the products that bear 8 bits.

    Where few channels are far greater than all others, as in the last product of some layers of MPNet, these are all
    that 8 bits tell apart, and the noise of the product is as large as what it says. So the noisiest are left out,
    until the windows stay near to what they were.

    model: of Hugging Face, see is_packable.
    wordpieces (Wordpieces): of n windows.
    enough (int): the first windows that have so many wordpieces are taken; 0 for all.
    SOURCE: Dettmers et al. 2022, LLM.int8(): 8-bit Matrix Multiplication for Transformers at Scale, section 4.
    """
    encoding = _Encoding(model, wordpieces, enough)
    exact = encoding.products
    seen = {place: _Range() for place in exact}
    expected = encoding(exact, seen)
    rounded = _rounded(model, {place: watch.found for place, watch in seen.items()})
    heard = {place: _Noise(rounded[place]) for place in exact}
    encoding(exact, heard)
    noisiest = sorted(exact, key=lambda place: heard[place].found, reverse=True)
    n_too_noisy = sum(watch.found > MOST_NOISE for watch in heard.values())
    for n_more in (0, *(2**k for k in range(1 + len(exact).bit_length()))):  # at the last all of them
        left_out = noisiest[: n_too_noisy + n_more]
        found = encoding({**rounded, **{place: exact[place] for place in left_out}})
        lowest = float(torch.cosine_similarity(found, expected).min())
        if lowest >= LEAST_COSINE:
            break
    layers = range(len(exact) // len(LINEARS))
    return Calibration(
        n_wordpieces=encoding.n_wordpieces,
        ranges={name: torch.stack([seen[i, name].found for i in layers]).cpu() for name in LINEARS},
        is_rounded=torch.tensor([[(i, name) not in left_out for name in LINEARS] for i in layers]),
        lowest_cosine=lowest,
    )


def _rounded(model: Network, ranges: Mapping[Place, torch.Tensor]) -> dict[Place, Linear]:
    """The products as 8 bits give them."""
    weights, activations = [weights_of(parts) for parts in layers_of(model)], {"widen": activation_of(model)}
    return {
        (i, name): simulated(*weights[i][name], found, activations.get(name), smooth=name in SMOOTHED)
        for (i, name), found in ranges.items()
    }


class _Encoding:
    """The first windows that have enough wordpieces, encoded by whatever products; for the arguments see calibrate."""

    def __init__(self, model: Network, wordpieces: Wordpieces, enough: int):
        self._engine, self._wordpieces = PackedBert(model, torch.float32), wordpieces
        ends = numpy.cumsum(wordpieces.lengths)
        self._windows = numpy.arange(1 + numpy.searchsorted(ends[:-1], enough or ends[-1]))
        self.n_wordpieces = int(ends[self._windows[-1]])
        layers = enumerate(self._engine.layers)
        self.products = {(i, name): layer.linears[name] for i, layer in layers for name in LINEARS}

    def __call__(self, products: Mapping[Place, Linear], watches: Mapping[Place, Watch] | None = None) -> torch.Tensor:
        """float32 (n, hidden): the sum of each window's states.

        watches: for each place, who sees what is of windows; padding, whose states mean nothing, is left out.
        """
        engine, of_all = self._engine, self._wordpieces.lengths
        sums = engine.words.new_zeros(len(self._windows), len(engine.layers[0].norm_output.weight))
        for rows in engine.passes(self._wordpieces, self._windows, CPU_BUDGET):
            places = torch.from_numpy(spread(rows.starts, of_all[rows.windows])).to(engine.device)
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


def _watched(product: Linear, watch: Watch, of_text: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
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
