"""PyTorch's backends: packed rows in float32, half precision or int8, and Hugging Face's models."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ...errors import Warnings, warn
from ..loading import Network
from ..private_attributes import has_bfloat16_arithmetic, has_int8_product, uses_amx
from ..sbert_config import INT8, REFERENCE
from ..tokenization import TokenizedBatch
from .backend import Backend, BackendCache
from .bert_families import family_names, is_packable
from .concurrency import LOADING
from .huggingface import HFBackend, ReferenceBackend
from .packed_bert import PackedBert
from .packed_modernbert import PackedModernBert, is_packable_modernbert

if TYPE_CHECKING:
    from .int8 import Calibration

CALIBRATION_FILE = "int8_calibration.safetensors"
# Wordpieces that a calibration by itself wants
ENOUGH = 2048


def resolve_precision(precision: str, device: str) -> str:
    """Resolve the precision "auto" or "int8" for a device, "cpu" or "cuda".

    Others are returned as they are.

    "auto" is half precision if the device has its own arithmetic for it: bfloat16 on a CPU with
    AVX-512 BF16 or AMX and on GPUs since Ampere, float16 on other GPUs, else float32. "int8" stays
    on CPUs where it is the fastest: with AVX-512 VNNI but without AMX, whose products take less
    time than rounding. Elsewhere it is "auto".
    """
    if precision == INT8 and device == "cpu" and has_int8_product() and not uses_amx():
        return INT8
    if precision not in ("auto", INT8):
        return precision
    if device == "cuda":
        is_native = torch.cuda.is_bf16_supported(including_emulation=False)
        return "bfloat16" if is_native else "float16"
    return "bfloat16" if device == "cpu" and has_bfloat16_arithmetic() else "float32"


class TorchBackendCache(BackendCache):
    """PyTorch: packed rows for BERT-like encoders and ModernBERT, else Hugging Face's model.

    What it finds out about the weights are the ranges of "int8". Until they are found, on the first
    ENOUGH wordpieces or by calibrate, "int8" is "auto".
    """

    _packs: bool | None = None

    def make(self, weights: Network, precision: str) -> Backend:
        if precision == REFERENCE:
            return ReferenceBackend(weights, pads=self.pads)
        if precision == INT8:
            precision = resolve_precision("auto", weights.device.type)
            calibration = self.calibration(weights) if _rounds(weights) else None
            if calibration is not None:
                from .int8 import int8_bert  # noqa: PLC0415 (only int8 needs it)

                return int8_bert(weights, calibration, getattr(torch, precision))
        dtype = getattr(torch, precision)
        if is_packable(weights):
            return PackedBert(weights, dtype)
        if is_packable_modernbert(weights):
            return PackedModernBert(weights, dtype)
        if dtype != torch.float32:
            weights = deepcopy(weights).to(dtype)
        return HFBackend(weights, pads=self.pads)

    def backend_of(
        self, weights: Network, precision: str, wordpieces: TokenizedBatch | None = None
    ) -> Backend:
        """Return the backend of the weights as they are.

        wordpieces (TokenizedBatch): to calibrate "int8" on, if they are ENOUGH.
        """
        if precision == INT8 and wordpieces is not None and len(wordpieces.ids) >= ENOUGH:
            with LOADING:
                if self.calibration(weights) is None and _rounds(weights):
                    self._calibrate(weights, wordpieces, enough=ENOUGH)
        return super().backend_of(weights, precision)

    def settings_of(self, precision: str) -> object:
        if precision != INT8:
            return precision
        _, calibration = self._found
        return precision, id(calibration)

    def drop(self, found: Calibration | None = None) -> None:
        super().drop(found)
        self._packs = None

    def resolve_precision(self, precision: str, device: str) -> str:
        return resolve_precision(precision, device)

    def warn_of_slow(self, precision: str, device: str) -> None:
        if precision == "bfloat16" and device == "cpu" and has_bfloat16_arithmetic() is False:
            warn(Warnings.SLOW_BFLOAT16)

    def describe(self, weights: Network | None, precision: str) -> str:
        if precision != INT8 or weights is None:
            return precision
        ranges = self.calibration(weights)
        if ranges is None:
            return precision
        return f"{precision} by the ranges {ranges.digest()}"

    def needs_network(self, precision: str) -> bool:
        return precision == REFERENCE

    def encodes_alone(self, weights: Network, precision: str) -> bool:
        # Hugging Face's modules may keep things of a forward pass
        if self._packs is None:
            self._packs = is_packable(weights) or is_packable_modernbert(weights)
        return precision == REFERENCE or not self._packs

    def load_files(self, folder: Path, weights: Network, *, is_saved: bool) -> None:
        if is_saved and (folder / CALIBRATION_FILE).is_file():
            from .int8 import read_calibration  # noqa: PLC0415 (only int8 needs it)

            self._found = (None, read_calibration(folder / CALIBRATION_FILE, weights))

    def files(self, weights: Network) -> dict[str, bytes]:
        calibration = self.calibration(weights)
        return {} if calibration is None else {CALIBRATION_FILE: calibration.to_bytes()}

    def needs_calibration(self, weights: Network, precision: str) -> bool:
        return precision == INT8 and self.calibration(weights) is None and is_packable(weights)

    def calibration(self, weights: Network) -> Calibration | None:
        return self.found(weights)

    def calibrate(self, weights: Network, wordpieces: TokenizedBatch) -> None:
        """Find the ranges by which "int8" rounds, and keep them until the weights change.

        RAISES (ValueError): for a model that is not packable.
        """
        if not is_packable(weights):
            raise ValueError(
                f"An encoder of class {type(weights).__name__} is not calibrated: int8 is for "
                f"{', '.join(family_names())}, without adapters. Others encode as with precision = "
                "'auto'."
            )
        self._calibrate(weights, wordpieces, enough=0)

    def _calibrate(self, weights: Network, wordpieces: TokenizedBatch, *, enough: int) -> None:
        from .int8 import calibrate  # noqa: PLC0415 (only int8 needs it)

        self.keep(weights, calibrate(weights, wordpieces, enough=enough))


def _rounds(weights: Network) -> bool:
    """Return whether linear layers of the weights can be rounded to 8 bits where they are."""
    return weights.device.type == "cpu" and is_packable(weights)
