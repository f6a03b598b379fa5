"""What the bits of a vector depend on, beside its text and those it is encoded with."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

import torch

from ..encoder.engine.runner import CPU_BUDGET, GPU_BUDGET
from ..encoder.options import REFERENCE
from ..encoder.shim import EncoderShim
from ..encoder.transformer import EncoderModel, load
from ..files.environment import versions
from ..vectors.identity import pooling_state, tokenizer_state
from ..vectors.sentence_pooling import SentencePooling
from ..vectors.texts import TextEncoder
from .errors import Errors

PACKAGES = ("spacy-sbert", "thinc", "torch", "transformers", "tokenizers", "numpy")


def describe(encoder: TextEncoder, budget: int, gpu_ids: Sequence[int]) -> dict[str, Any]:
    """Name, weights and settings of an encoder, the device, and the versions of what computes.

    encoder (TextEncoder): it is loaded. budget (int): wordpieces in a forward pass, see budget_of.
    gpu_ids (Sequence[int]): GPUs it will work on.
    RETURNS (dict): strings and numbers, by what messages call them.
    """
    transformer, pooling = encoder.transformer, encoder.pooling
    shim = load(transformer)
    found = {package: version for package, version in versions().items() if package in PACKAGES}
    return {
        "encoder": shim.name,
        "weights (SHA-256)": _digest(shim, pooling),
        "pooling": pooling.pooling_name,
        "normalize": pooling.normalizes(shim.settings),
        "prompt": transformer.prompt(encoder.call.prompt),
        "include_prompt": transformer.prompts.include,
        "width": encoder.width,
        "overflow": transformer.overflow,
        "precision": shim.precision,
        "max_batch_items": budget,
        "device": _device(transformer, gpu_ids),
        **found,
    }


def budget_of(transformer: EncoderModel, given: int, gpu_ids: Sequence[int]) -> int:
    """The most wordpieces in a forward pass, whatever the number of threads: passes must hold the same texts.

    given (int): what was asked for; 0 for what the encoder was made with, or what suits the device.
    RAISES (ValueError): for a number beside precision = "reference", whose batches are counted in texts.
    """
    asked = given or transformer.max_batch_items
    if asked and load(transformer).precision == REFERENCE:
        raise ValueError(Errors.REFERENCE_BATCH.format(given=asked))
    on_gpu = bool(gpu_ids) or load(transformer).device.type != "cpu"
    return asked or (GPU_BUDGET if on_gpu else CPU_BUDGET)


def _digest(shim: EncoderShim, pooling: SentencePooling) -> str:
    """Of weights, configuration and tokenizer. Nothing is saved for it: the disk may be full."""
    found = hashlib.sha256()
    for name, weight in shim._model.state_dict().items():
        found.update(f"{name} {weight.dtype} {tuple(weight.shape)} ".encode())
        found.update(weight.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    for layer in pooling.layers:  # the attrs of the pooling itself change with use
        found.update(layer.to_bytes())
    described = [shim._model.config.to_json_string(), asdict(cast(Any, shim.settings))]
    described += [tokenizer_state(shim._hfmodel.tokenizer), pooling_state(pooling)]
    found.update(json.dumps(described, sort_keys=True).encode("utf8"))
    return found.hexdigest()


def _device(transformer: EncoderModel, gpu_ids: Sequence[int]) -> str:
    device = load(transformer).device
    if not gpu_ids and device.type == "cpu":
        return f"CPU, {torch.backends.cpu.get_cpu_capability()}"
    return torch.cuda.get_device_name(gpu_ids[0] if gpu_ids else device)
