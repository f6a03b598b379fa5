"""What the bits of a vector depend on, beside its text and those it is encoded with."""

from collections.abc import Sequence

from ..files.environment import versions
from ..vectors.computing import device_name
from ..vectors.identity import precision_of
from ..vectors.texts import TextEncoder
from ..vectors.texts_encoder import TextsEncoder

PACKAGES = ("spacy-sbert", "thinc", "torch", "transformers", "tokenizers", "numpy")
WEIGHTS = "weights (SHA-256)"


def describe(encoder: TextsEncoder, budget: int, gpu_ids: Sequence[int]) -> dict[str, str | int]:
    """Name, weights and settings of an encoder, the device, and the versions of what computes.

    encoder (TextsEncoder): it is loaded. budget (int): wordpieces in a forward pass, see budget_of.
    gpu_ids (Sequence[int]): GPUs it will work on.
    RETURNS (dict): strings and numbers, by what messages call them.
    RAISES (ValueError): if it is to round by ranges that were not found yet.
    """
    encoder.check_calibrated()
    own = (
        _of_transformer(encoder, budget)
        if isinstance(encoder, TextEncoder)
        else {"normalize": bool(encoder.pooling.normalize)}
    )
    packages = PACKAGES if isinstance(encoder, TextEncoder) else (*PACKAGES, "spacy")
    return {
        "encoder": encoder.name,
        WEIGHTS: encoder.digest(),
        "pooling": encoder.pooling.pooling_name,
        "width": encoder.width,
        **own,
        "device": device_name(encoder, gpu_ids),
        **{package: version for package, version in versions().items() if package in packages},
    }


def _of_transformer(encoder: TextEncoder, budget: int) -> dict[str, str | int]:
    transformer = encoder.transformer
    return {
        "encoder": transformer.shim.name,
        "normalize": encoder.pooling.normalizes(transformer.shim.load()),
        "prompt": transformer.prompt(encoder.call.prompt),
        "include_prompt": transformer.prompts.include,
        "overflow": transformer.overflow,
        "precision": precision_of(transformer.shim),
        "max_batch_items": budget,
    }
