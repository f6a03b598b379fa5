"""What int8 goes by: the numbers that the linear layers of an encoder are given, and how much each bears of it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from ..errors import Errors
from ..hugging_face import Network
from .families import layers_of
from .packed_bert import LINEARS, is_packable

CALIBRATION_FILE = "int8_calibration.safetensors"
COUNT, ROUNDED, COSINE = "n_wordpieces", "is_rounded", "lowest_cosine"


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
        numbers = {COUNT: torch.tensor(self.n_wordpieces), COSINE: torch.tensor(self.lowest_cosine)}
        return save({**self.ranges, ROUNDED: self.is_rounded, **numbers})

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
    given = {name: tuple(value.shape) for name, value in found.items()}
    if given != expected or not all(value.isfinite().all() for value in found.values()):
        raise ValueError(Errors.BAD_STATE.format(reason=f"{path.name} is not of this encoder"))
    n_wordpieces, cosine = int(found.pop(COUNT)), float(found.pop(COSINE))
    is_rounded = found.pop(ROUNDED).bool()
    return Calibration(n_wordpieces, {name: value.float() for name, value in found.items()}, is_rounded, cosine)


def _shapes(model: Network) -> dict[str, tuple[int, ...]]:
    layers = layers_of(model)
    widths = [layers[0].query, layers[0].mix, layers[0].widen, layers[0].narrow]
    ranges = {name: (len(layers), 2, part.in_features) for name, part in zip(LINEARS, widths, strict=True)}
    return {**ranges, ROUNDED: (len(layers), len(LINEARS)), COUNT: (), COSINE: ()}
