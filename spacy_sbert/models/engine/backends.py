"""Inference backends (packed, padded, half precision, int8): batches of a budget, rebuilt when weights change."""

import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy
import torch
from thinc.api import torch2xp
from thinc.types import Floats2d

from ...errors import Warnings, warn
from ..loading import Network
from ..private_attributes import has_bfloat16_arithmetic, has_int8_product, uses_amx, version_of
from ..sbert_config import INT8, REFERENCE
from ..span_batch import TokenEmbeddings
from ..tokenization import TokenizedBatch
from .bert_families import is_packable
from .concurrency import LOADING, parallel_map
from .packed_bert import PackedBert
from .packing import CPU_BUDGET, Batch, padded_batches, padded_inputs, ragged_arange, single_batch

if TYPE_CHECKING:
    from .int8 import Calibration

# Wordpieces that a calibration by itself wants
ENOUGH = 2048
GPU_BUDGET = 32768


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
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    return "bfloat16" if device == "cpu" and has_bfloat16_arithmetic() else "float32"


def warn_of_slow(precision: str, device: str) -> None:
    """Warn if a precision takes longer than float32 on this device."""
    if precision == "bfloat16" and device == "cpu" and has_bfloat16_arithmetic() is False:
        warn(Warnings.SLOW_BFLOAT16)


class HFBackend:
    """A Hugging Face model of any kind, in evaluation mode, on rows of similar length."""

    # Equal windows are encoded once
    merges_equal = True
    # Some models keep things of a pass that another thread would change
    in_parallel = False

    def __init__(self, model: Network, *, pads: bool = True):
        """Make a backend.

        pads (bool): whether rows of a pass may be padded, see loading.ignores_padding.
        """
        self.model, self.pads = model, pads

    @property
    def device(self) -> torch.device:
        return self.model.device

    def passes(
        self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int
    ) -> list[Batch]:
        """Return the passes that encode some windows, int64 (k,), each of at most so many wordpieces."""
        return padded_batches(wordpieces.lengths, windows, budget, of_equal_length=not self.pads)

    # In inference mode training could not use what some models keep of a pass
    @torch.no_grad()
    def encode(self, wordpieces: TokenizedBatch, rows: Batch) -> torch.Tensor:
        """Return the states of a pass, float (rows * width, hidden)."""
        inputs = padded_inputs(self.model, wordpieces, self.device, rows)
        try:
            return self.model(**inputs).last_hidden_state.flatten(0, 1)
        except (IndexError, RuntimeError) as error:
            expected = getattr(self.model.config, "max_position_embeddings", None)
            if isinstance(expected, int) and rows.shape[1] > expected > 0:
                raise ValueError(
                    f"The encoder ({self.model.config.model_type}) cannot encode {rows.shape[1]} "
                    "wordpieces at once: "
                    f"it was made for {expected}. Set tokenizer_config = {{'model_max_length': "
                    f"{expected}}}."
                ) from error
            raise


class _ReferenceBackend(HFBackend):
    """A Hugging Face model in the batches of sentence-transformers: to the last bit as it encodes."""

    merges_equal = False

    def passes(
        self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int
    ) -> list[Batch]:
        """Return the batches of sentence-transformers: texts by their number of characters, 32 together."""
        if not self.pads:
            return super().passes(wordpieces, windows, budget)
        n_characters: Any = wordpieces.n_characters
        # Not stable, as there: texts of one length must come in the same order
        order = numpy.argsort(-n_characters)
        batches = [order[first : first + 32] for first in range(0, len(order), 32)]
        return [
            single_batch(wordpieces.lengths, batch, pads_left=wordpieces.pads_left)
            for batch in batches
        ]


Backend: TypeAlias = HFBackend | PackedBert


def run(
    engine: Backend, wordpieces: TokenizedBatch, *, budget: int = 0
) -> Iterator[TokenEmbeddings]:
    """Encode windows, each once, in whatever order is quick.

    budget (int): the most wordpieces in a forward pass, padding included; 0 for what suits the
        device. It has no effect on "reference", which has batches of its own.
    """
    on_cpu = engine.device.type == "cpu"
    # On a CPU a pass for each thread, as far as it is worth it: passes below 512 take longer
    if not budget:
        share = max(512, math.ceil(len(wordpieces.ids) / torch.get_num_threads()))
        budget = min(CPU_BUDGET, share) if on_cpu else GPU_BUDGET
    equal = (
        _equal_windows(wordpieces)
        if engine.merges_equal
        else {i: [i] for i in range(len(wordpieces.lengths))}
    )
    passes = engine.passes(wordpieces, numpy.fromiter(equal, dtype="int64"), budget)
    map_passes = parallel_map if engine.in_parallel and on_cpu and len(passes) > 1 else map
    for done, states in zip(
        passes, map_passes(partial(engine.encode, wordpieces), passes), strict=True
    ):
        same = [equal[window] for window in done.windows.tolist()]
        windows = numpy.concatenate(same)
        lengths = wordpieces.lengths[windows]
        places = ragged_arange(numpy.repeat(done.starts, [len(each) for each in same]), lengths)
        values = states[torch.from_numpy(places).to(engine.device)].float()
        yield TokenEmbeddings(windows, lengths, cast(Floats2d, torch2xp(values)))


def _equal_windows(wordpieces: TokenizedBatch) -> dict[int, list[int]]:
    """Return for the first of equal windows all that are equal to it."""
    starts, ids = wordpieces.starts.tolist(), wordpieces.ids
    if wordpieces.type_ids is not None:
        ids = numpy.column_stack([ids, wordpieces.type_ids])
    equal: dict[bytes, list[int]] = {}
    for window, (start, length) in enumerate(zip(starts, wordpieces.lengths.tolist(), strict=True)):
        equal.setdefault(ids[start : start + length].tobytes(), []).append(window)
    return {same[0]: same for same in equal.values()}


class BackendCache:
    """What was made of a model's weights for encoding, for as long as they stay the same.

    A copy has the calibration.

    Updates and loading drop it; changes of the weights in place are noticed where PyTorch counts
    them.

    pads (bool): whether rows of a pass may be padded, see loading.ignores_padding.
    """

    def __init__(self, calibration: "Calibration | None" = None, *, pads: bool = True) -> None:
        self.pads = pads
        self._made: tuple[Any, Backend] | None = None
        self._generation = object()
        self._seen: list[int] | None = None
        self._calibrated: tuple[list[int] | None, Calibration | None] = None, calibration

    def __reduce__(self) -> "tuple[Callable, tuple[Calibration | None]]":
        return partial(BackendCache, pads=self.pads), (self._calibrated[1],)

    def engine_of(
        self, model: Network, precision: str, wordpieces: TokenizedBatch | None = None
    ) -> Backend:
        """Return what encodes in a precision.

        wordpieces (TokenizedBatch): to calibrate "int8" on, if they are ENOUGH; until then it is
            "auto".
        """
        calibration = None
        if precision == INT8 and is_packable(model) and model.device.type == "cpu":
            with LOADING:
                calibration = self.calibration(model)
                if calibration is None and wordpieces is not None and len(wordpieces.ids) >= ENOUGH:
                    calibration = self.calibrate(model, wordpieces, enough=ENOUGH)
        if precision == INT8 and calibration is None:
            precision = resolve_precision("auto", model.device.type)
        weights = [(weight.data_ptr(), version_of(weight)) for weight in model.parameters()]
        key = (id(model), precision, id(calibration), weights)
        # Another thread may drop it
        made = self._made
        if made is None or made[0] != key:
            with LOADING:
                made = self._made
                if made is None or made[0] != key:
                    made = self._made = key, _make(model, precision, calibration, pads=self.pads)
                    self._generation = object()
        return made[1]

    def generation(self, model: Network) -> object:
        """Return an object that is replaced when the weights change: `is` tells whether they are still the same."""
        # What encodes did not look at them
        if self._made is None:
            versions = _versions(model)
            if versions != self._seen:
                self._seen, self._generation = versions, object()
        return self._generation

    def calibration(self, model: Network) -> "Calibration | None":
        """Return the ranges that were found with a model's weights as they are.

        None if there are none.
        """
        versions, ranges = self._calibrated
        # Loaded or copied with them
        if versions is None and ranges is not None:
            self._calibrated = _versions(model), ranges
        elif versions != _versions(model):
            return None
        return ranges

    def calibrate(
        self, model: Network, wordpieces: TokenizedBatch, *, enough: int = 0
    ) -> "Calibration":
        """Find and keep the ranges; see int8.calibrate.

        RAISES (ValueError): for a model that is not packable.
        """
        if not is_packable(model):
            raise ValueError(
                f"An encoder of class {type(model).__name__} is not calibrated: int8 is for the "
                "linear layers "
                "of BERT, RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA, DistilBERT and MPNet, without "
                "adapters. "
                "Others encode as with precision = 'auto'."
            )
        from .int8 import calibrate  # noqa: PLC0415 (only int8 needs it)

        ranges = calibrate(model, wordpieces, enough=enough)
        self._calibrated = _versions(model), ranges
        return ranges

    def drop(self, calibration: "Calibration | None" = None) -> None:
        """Drop what was made: the weights are about to change, or did.

        calibration (Calibration): of the new ones.
        """
        self._made, self._calibrated, self._generation = None, (None, calibration), object()


def _versions(model: Network) -> list[int]:
    return [version_of(weight) for weight in model.parameters()]


@torch.no_grad()
def _make(
    model: Network, precision: str, calibration: "Calibration | None", *, pads: bool
) -> Backend:
    if precision == REFERENCE:
        return _ReferenceBackend(model, pads=pads)
    if calibration is not None:
        from .int8 import int8_bert  # noqa: PLC0415 (only int8 needs it)

        return int8_bert(
            model, calibration, getattr(torch, resolve_precision("auto", model.device.type))
        )
    dtype = getattr(torch, precision)
    if is_packable(model):
        return PackedBert(model, dtype)
    return HFBackend(model if dtype == torch.float32 else deepcopy(model).to(dtype), pads=pads)
