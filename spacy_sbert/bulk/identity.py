"""What the bits of a vector depend on, beside its text and those it is encoded with."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict

import torch

from ..files.environment import versions
from ..vectors.computing import device_name
from ..vectors.identity import encoder_digest, pooling_state, tokenizer_state
from ..vectors.texts import TextEncoder

PACKAGES = ("spacy-sbert", "thinc", "torch", "transformers", "tokenizers", "numpy")
WEIGHTS = "weights (SHA-256)"


def describe(encoder: TextEncoder, budget: int, gpu_ids: Sequence[int]) -> dict[str, str | int]:
    """Name, weights and settings of an encoder, the device, and the versions of what computes.

    encoder (TextEncoder): it is loaded. budget (int): wordpieces in a forward pass, see budget_of.
    gpu_ids (Sequence[int]): GPUs it will work on.
    RETURNS (dict): strings and numbers, by what messages call them.
    """
    transformer, pooling = encoder.transformer, encoder.pooling
    shim = transformer.shim
    settings = shim.load()
    return {
        "encoder": shim.name,
        WEIGHTS: encoder_digest(transformer, pooling),
        "pooling": pooling.pooling_name,
        "normalize": pooling.normalizes(settings),
        "prompt": transformer.prompt(encoder.call.prompt),
        "include_prompt": transformer.prompts.include,
        "width": encoder.width,
        "overflow": transformer.overflow,
        "precision": shim.precision,
        "max_batch_items": budget,
        "device": device_name(transformer, gpu_ids),
        **{package: version for package, version in versions().items() if package in PACKAGES},
    }


def former_digest(encoder: TextEncoder) -> str:
    """What runs that were begun before there was encoder_digest have in its place."""
    shim, pooling = encoder.transformer.shim, encoder.pooling
    settings = shim.load()
    found = hashlib.sha256()
    for name, weight in shim.network.state_dict().items():
        found.update(f"{name} {weight.dtype} {tuple(weight.shape)} ".encode())
        found.update(weight.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    for layer in pooling.layers:
        found.update(layer.to_bytes())
    described = [shim.network.config.to_json_string(), asdict(settings)]
    described += [tokenizer_state(shim.tokenizer), pooling_state(pooling)]
    found.update(json.dumps(described, sort_keys=True).encode("utf8"))
    return found.hexdigest()
