"""The numbers that the linear layers of an encoder are given, from which int8 takes its scales."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from ..errors import Errors
from ..hugging_face import Network
from ..wordpieces import Wordpieces
from .families import layers_of
from .packed_bert import LINEARS, PackedBert, is_packable
from .private_torch import Linear
from .runner import CPU_BUDGET
from .windows import spread

CALIBRATION_FILE = "int8_calibration.safetensors"
COUNT = "n_wordpieces"


@dataclass(frozen=True)
class Calibration:
    """The least and the greatest number of each channel, in float32, over some texts.

    n_wordpieces (int): of the texts, special ones included.
    ranges (dict): for each of LINEARS float32 (layers, 2, width of its input), least and greatest.
    """

    n_wordpieces: int
    ranges: dict[str, torch.Tensor]

    def to_bytes(self) -> bytes:
        """As safetensors."""
        return save({**self.ranges, COUNT: torch.tensor(self.n_wordpieces)})

    def digest(self) -> str:
        """The SHA-256 of it."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def read_calibration(folder: Path, model: Network) -> Calibration | None:
    """What to_bytes gave for a model, from the file of it in a folder; None if there is none.

    RAISES (ValueError): if the file is damaged, or of another model.
    """
    path = folder / CALIBRATION_FILE
    if not path.is_file():
        return None
    try:
        found = load_file(path)
    except SafetensorError as error:
        raise ValueError(Errors.BAD_STATE.format(reason=f"{path.name}: {error}")) from error
    expected = _shapes(model) if is_packable(model) else {}
    given = {name: tuple(value.shape) for name, value in found.items() if name != COUNT}
    finite = all(value.isfinite().all() for value in found.values())
    if given != expected or COUNT not in found or found[COUNT].dim() or not finite:
        raise ValueError(Errors.BAD_STATE.format(reason=f"{path.name} is not of this encoder"))
    return Calibration(int(found.pop(COUNT)), {name: value.float() for name, value in found.items()})


@torch.no_grad()
def calibrate(model: Network, wordpieces: Wordpieces) -> Calibration:
    """Encode windows in float32, and note what the linear layers are given.

    model: of Hugging Face, see is_packable.
    wordpieces (Wordpieces): of n windows.
    """
    engine = PackedBert(model, torch.float32)
    watched = [{name: _Watched(linear) for name, linear in layer.linears.items()} for layer in engine.layers]
    for layer, linears in zip(engine.layers, watched, strict=True):
        layer.linears = linears
    for rows in engine.passes(wordpieces, numpy.arange(len(wordpieces.lengths)), CPU_BUDGET):
        of_text = torch.zeros(rows.shape[0] * rows.shape[1], dtype=torch.bool)
        of_text[torch.from_numpy(spread(rows.starts, wordpieces.lengths[rows.windows]))] = True
        for linears in watched:
            for linear in linears.values():
                linear.of_text = of_text.to(engine.device)
        engine.encode(wordpieces, rows)
    ranges = {name: torch.stack([linears[name].range().cpu() for linears in watched]) for name in LINEARS}
    return Calibration(len(wordpieces.ids), ranges)


class _Watched:
    """A linear layer, and the range of what it is given; padding, whose states mean nothing, is left out."""

    of_text: torch.Tensor  # bool (places,)

    def __init__(self, linear: Linear):
        self._linear = linear
        self._seen: list[torch.Tensor] = []

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        seen = torch.cat([*self._seen, states[self.of_text]])
        self._seen = [torch.stack([seen.amin(0), seen.amax(0)])]
        return self._linear(states)

    def range(self) -> torch.Tensor:
        return self._seen[0]


def _shapes(model: Network) -> dict[str, tuple[int, ...]]:
    layers = layers_of(model)
    widths = [layers[0].query, layers[0].mix, layers[0].widen, layers[0].narrow]
    return {name: (len(layers), 2, part.in_features) for name, part in zip(LINEARS, widths, strict=True)}
