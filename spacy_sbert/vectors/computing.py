"""What computes vectors, where that changes their bits: the precision, the device, and how many texts go together."""

from collections.abc import Sequence

import torch
from thinc.api import CupyOps

from ..encoder.engine.inference import resolve_precision, warn_of_slow
from ..encoder.engine.runner import CPU_BUDGET, GPU_BUDGET
from ..encoder.options import REFERENCE, Precision
from ..encoder.transformer import RowTransformer, load
from .errors import Errors
from .texts import TextEncoder
from .texts_encoder import TextsEncoder

__all__ = ["Precision", "budget_of", "device_name", "set_precision", "texts_budget"]


def set_precision(encoder: TextsEncoder, precision: str, gpu_ids: Sequence[int]) -> None:
    """Have an encoder work in a precision; gpu_ids (Sequence[int]): GPUs it will work on, for "auto".

    RAISES (ValueError): for a tok2vec and another precision than its own.
    """
    if not isinstance(encoder, TextEncoder):
        if precision not in ("float32", "auto"):
            raise ValueError(Errors.TOKEN_PRECISION.format(given=precision))
        return
    shim = load(encoder.transformer)
    device = "cuda" if gpu_ids else shim.device.type
    resolved = resolve_precision(precision, device)
    if resolved != shim.precision:
        warn_of_slow(resolved, device)
    shim.precision = resolved


def budget_of(transformer: RowTransformer, given: int, gpu_ids: Sequence[int]) -> int:
    """The most wordpieces in a forward pass, whatever the number of threads: passes must hold the same texts.

    given (int): what was asked for; 0 for what the encoder was made with, or what suits the device.
    RAISES (ValueError): for a number beside precision = "reference", whose batches are counted in texts.
    """
    asked = given or transformer.max_batch_items
    if asked and load(transformer).precision == REFERENCE:
        raise ValueError(Errors.REFERENCE_BATCH.format(given=asked))
    on_gpu = bool(gpu_ids) or load(transformer).device.type != "cpu"
    return asked or (GPU_BUDGET if on_gpu else CPU_BUDGET)


def texts_budget(encoder: TextsEncoder, given: int, gpu_ids: Sequence[int]) -> int:
    """The same of any encoder; 0 for a tok2vec, which takes a window of texts at once.

    RAISES (ValueError): as budget_of, and for a number beside a tok2vec.
    """
    if isinstance(encoder, TextEncoder):
        return budget_of(encoder.transformer, given, gpu_ids)
    if given:
        raise ValueError(Errors.TOKEN_BUDGET.format(given=given))
    return 0


def device_name(encoder: TextsEncoder, gpu_ids: Sequence[int]) -> str:
    """The processor that computes: the GPU by its name, the CPU by what it can do."""
    if isinstance(encoder, TextEncoder):
        device = load(encoder.transformer).device
    else:
        device = torch.device("cuda" if isinstance(encoder.pooling.ops, CupyOps) else "cpu")
    if not gpu_ids and device.type == "cpu":
        return f"CPU, {torch.backends.cpu.get_cpu_capability()}"
    return torch.cuda.get_device_name(gpu_ids[0] if gpu_ids else device)
