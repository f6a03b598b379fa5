"""The encoder as it is when nobody trains: packed or in half precision, and made anew when its weights change."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from ..hugging_face import Network
from ..options import REFERENCE
from ..wordpieces import Wordpieces
from .layout import padded_inputs
from .packed_bert import PackedBert, is_packable
from .passes import Pass, padded_passes, reference_passes
from .private_torch import has_bfloat16_arithmetic, version_of
from .runner import Engine


def resolve_precision(precision: str, device: str) -> str:
    """What "auto" stands for: half precision where the device has arithmetic of its own for it.

    precision (str): what was asked for.
    device (str): "cpu" or "cuda".
    RETURNS (str): bfloat16 on a CPU with AVX-512 BF16 or AMX and on GPUs since Ampere, float16 on other GPUs, else
        float32; what was given, if it is not "auto".
    """
    if precision != "auto":
        return precision
    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    return "bfloat16" if device == "cpu" and has_bfloat16_arithmetic() else "float32"


@dataclass(frozen=True)
class Padded:
    """A Hugging Face model, of whatever kind, on rows of similar length.

    model: in evaluation mode where it is used.
    """

    model: Network
    merges_equal = True
    in_parallel = False  # some models keep things of a pass that another thread would change

    @property
    def device(self) -> torch.device:
        return self.model.device

    def passes(self, wordpieces: Wordpieces, windows: numpy.ndarray, budget: int) -> list[Pass]:
        return padded_passes(wordpieces.lengths, windows, budget)

    @torch.no_grad()  # what some models keep of a pass would be of no use to training in inference mode
    def encode(self, wordpieces: Wordpieces, rows: Pass) -> torch.Tensor:
        inputs = padded_inputs(self.model, wordpieces, self.device, rows)
        return self.model(**inputs).last_hidden_state.flatten(0, 1)


class Reference(Padded):
    """A Hugging Face model in the batches of sentence-transformers: to the last bit as it encodes."""

    merges_equal = False

    def passes(self, wordpieces: Wordpieces, windows: numpy.ndarray, budget: int) -> list[Pass]:
        return reference_passes(wordpieces)


class InferenceCache:
    """Keeps what was made of a model's weights for encoding, for as long as they stay the same.

    Updates and loading drop it; changes of the weights behind its back are noticed where PyTorch counts them.
    """

    def __init__(self) -> None:
        self._made: tuple[Any, Engine] | None = None

    def engine_of(self, model: Network, precision: str) -> Engine:
        """What encodes in a precision.

        model: of Hugging Face.
        precision (str): "float32", "bfloat16", "float16" or "reference".
        RETURNS (Engine): a Reference if that is asked for, a PackedBert if it can stand for the model, else the model
            itself, Padded; a copy of it for half precision.
        """
        weights = [(weight.data_ptr(), version_of(weight)) for weight in model.parameters()]
        key = (id(model), precision, weights)
        made = self._made  # another thread may drop it
        if made is None or made[0] != key:
            made = self._made = key, _make(model, precision)
        return made[1]

    def drop(self) -> None:
        """Forget what was made: the weights are about to change, or did."""
        self._made = None

    def __getstate__(self) -> dict:
        """Nothing of it is pickled or copied."""
        return {"_made": None}


@torch.no_grad()
def _make(model: Network, precision: str) -> Engine:
    if precision == REFERENCE:
        return Reference(model)
    dtype = getattr(torch, precision)
    if is_packable(model):
        return PackedBert(model, dtype)
    return Padded(model if dtype == torch.float32 else deepcopy(model).to(dtype))
