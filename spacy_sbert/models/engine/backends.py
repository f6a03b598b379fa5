"""The encoder as it is when nobody trains: packed or in half precision, and made anew when its weights change."""

import warnings
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
import torch

from ...errors import Warnings
from ..options import INT8, REFERENCE
from ..private import has_bfloat16_arithmetic, has_int8_product, lacks_bfloat16_arithmetic, uses_amx, version_of
from ..tokenization import TokenizedBatch
from ..versions import Network
from .concurrency import LOADING
from .packed_bert import PackedBert, is_packable
from .packing import Batch, padded_batches, padded_inputs, reference_batches
from .runner import Backend

if TYPE_CHECKING:
    from .int8 import Calibration

ENOUGH = 2048  # wordpieces that a calibration by itself wants


def resolve_precision(precision: str, device: str) -> str:
    """Resolve the precision "auto" or "int8" for a device.

    "auto" is half precision if the device has its own arithmetic for it. "int8" stays on CPUs where it is the fastest:
    with AVX-512 VNNI but without AMX, whose products take less time than rounding. Elsewhere it is "auto".

    precision (str): what was asked for.
    device (str): "cpu" or "cuda".
    RETURNS (str): bfloat16 on a CPU with AVX-512 BF16 or AMX and on GPUs since Ampere, float16 on other GPUs, else
        float32; int8 as said; what was given, if it is neither.
    """
    if precision == INT8 and device == "cpu" and has_int8_product() and not uses_amx():
        return INT8
    if precision not in ("auto", INT8):
        return precision
    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    return "bfloat16" if device == "cpu" and has_bfloat16_arithmetic() else "float32"


def warn_of_slow(precision: str, device: str) -> None:
    """Warn if a precision takes longer than float32 on this device."""
    if precision == "bfloat16" and device == "cpu" and lacks_bfloat16_arithmetic():
        warnings.warn(Warnings.SLOW_BFLOAT16, stacklevel=2)


@dataclass(frozen=True)
class HFBackend:
    """A Hugging Face model, of whatever kind, on rows of similar length.

    model: in evaluation mode where it is used.
    """

    model: Network
    merges_equal = True
    in_parallel = False  # some models keep things of a pass that another thread would change

    @property
    def device(self) -> torch.device:
        return self.model.device

    def passes(self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int) -> list[Batch]:
        return padded_batches(wordpieces.lengths, windows, budget)

    @torch.no_grad()  # what some models keep of a pass would be of no use to training in inference mode
    def encode(self, wordpieces: TokenizedBatch, rows: Batch) -> torch.Tensor:
        inputs = padded_inputs(self.model, wordpieces, self.device, rows)
        return self.model(**inputs).last_hidden_state.flatten(0, 1)


class _Reference(HFBackend):
    """A Hugging Face model in the batches of sentence-transformers: to the last bit as it encodes."""

    merges_equal = False

    def passes(self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int) -> list[Batch]:
        return reference_batches(wordpieces)


class BackendCache:
    """Keeps what was made of a model's weights for encoding, for as long as they stay the same.

    Updates and loading drop it; changes of the weights behind its back are noticed where PyTorch counts them.
    """

    def __init__(self, calibration: "Calibration | None" = None) -> None:
        self._made: tuple[Any, Backend] | None = None
        self._generation = object()
        self._seen: list[int] | None = None
        self._calibrated: tuple[list[int] | None, Calibration | None] = None, calibration

    def engine_of(self, model: Network, precision: str, wordpieces: TokenizedBatch | None = None) -> Backend:
        """Return what encodes in a precision.

        model: of Hugging Face.
        precision (str): "float32", "bfloat16", "float16", "int8" or "reference".
        wordpieces (TokenizedBatch): the first windows, on which "int8" is calibrated, if it is not, and they
            are ENOUGH; until then, and for a model that is not packable, it is "auto".
        RETURNS (Engine): a _Reference if that is asked for, a PackedBert if it can stand for the model, else the model
            itself, Padded; a copy of it for half precision.
        """
        calibration = self._of_int8(model, wordpieces) if precision == INT8 else None
        if precision == INT8 and calibration is None:
            precision = resolve_precision("auto", model.device.type)
        weights = [(weight.data_ptr(), version_of(weight)) for weight in model.parameters()]
        key = (id(model), precision, id(calibration), weights)
        made = self._made  # another thread may drop it
        if made is None or made[0] != key:
            with LOADING:
                made = self._made
                if made is None or made[0] != key:
                    made = self._made = key, _make(model, precision, calibration)
                    self._generation = object()
        return made[1]

    def generation(self, model: Network) -> object:
        """Return an object that is replaced when the weights change: `is` tells whether they are still the same."""
        if self._made is None:  # what encodes did not look at them
            versions = _versions(model)
            if versions != self._seen:
                self._seen, self._generation = versions, object()
        return self._generation

    def _of_int8(self, model: Network, wordpieces: TokenizedBatch | None) -> "Calibration | None":
        if not is_packable(model) or model.device.type != "cpu":
            return None
        with LOADING:
            found = self.calibration(model)
            if found is None and wordpieces is not None and len(wordpieces.ids) >= ENOUGH:
                found = self.calibrate(model, wordpieces, enough=ENOUGH)
            return found

    def calibration(self, model: Network) -> "Calibration | None":
        """Return the ranges that were found with a model's weights as they are; None if there are none."""
        versions, found = self._calibrated
        if versions is None and found is not None:  # loaded or copied with them
            self._calibrated = _versions(model), found
        elif versions != _versions(model):
            return None
        return found

    def calibrate(self, model: Network, wordpieces: TokenizedBatch, *, enough: int = 0) -> "Calibration":
        """Find and keep the ranges; for the arguments see calibrate.calibrate.

        RAISES (ValueError): for a model that is not packable.
        """
        if not is_packable(model):
            raise ValueError(
                f"An encoder of class {type(model).__name__} is not calibrated: int8 is for the linear layers "
                "of BERT, RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA, DistilBERT and MPNet, without adapters. "
                "Others encode as with precision = 'auto'."
            )
        from .int8 import calibrate  # noqa: PLC0415 (only int8 needs it)

        found = calibrate(model, wordpieces, enough=enough)
        self._calibrated = _versions(model), found
        return found

    def drop(self, calibration: "Calibration | None" = None) -> None:
        """Forget what was made: the weights are about to change, or did; calibration (Calibration): of the new ones."""
        self._made, self._calibrated, self._generation = None, (None, calibration), object()

    def __reduce__(self) -> "tuple[type, tuple[Calibration | None]]":
        """Nothing else of it is pickled or copied."""
        return BackendCache, (self._calibrated[1],)


def _versions(model: Network) -> list[int]:
    return [version_of(weight) for weight in model.parameters()]


@torch.no_grad()
def _make(model: Network, precision: str, calibration: "Calibration | None") -> Backend:
    if precision == REFERENCE:
        return _Reference(model)
    if calibration is not None:
        from .int8 import int8_bert  # noqa: PLC0415 (only int8 needs it)

        return int8_bert(model, calibration, getattr(torch, resolve_precision("auto", model.device.type)))
    dtype = getattr(torch, precision)
    if is_packable(model):
        return PackedBert(model, dtype)
    return HFBackend(model if dtype == torch.float32 else deepcopy(model).to(dtype))
