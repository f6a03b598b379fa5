"""One line about the encoder of a pipe: for its repr, and for model cards."""

from typing import cast

from thinc.api import Model

from ..models.pooling import SentencePooling
from ..models.private import upstream_name
from ..models.sbert_config import INT8
from ..models.transformer import SpanTransformer
from .listeners import find_listeners, find_static_embedding, find_token_encoder


def describe_encoder(model: Model) -> str:
    """Return encoder, pooling, width, precision and device, as far as they are known.

    Such as "all-MiniLM-L6-v2, mean pooling, 384 numbers, float32 on cpu".
    """
    pooling = cast(SentencePooling, model.get_ref("pooling"))
    upstream = [listener.transformer for listener in find_listeners(model)]
    transformer = next((node for node in upstream or model.walk() if isinstance(node, SpanTransformer)), None)
    parts = [_source(model, transformer), f"{pooling.pooling_name} pooling"]
    if transformer is None:
        return ", ".join(parts)
    shim = transformer.shim
    if not shim.is_loaded:
        return ", ".join([*parts, shim.precision, "not loaded yet"])
    width = pooling.width(shim.network.config.hidden_size, shim.settings)
    return ", ".join([*parts, f"{width} numbers", f"{shim.precision} on {shim.device}"])


def _source(model: Model, transformer: SpanTransformer | None) -> str:
    upstream = next((name for node in model.walk() if (name := upstream_name(node)) is not None), None)
    if transformer is not None:
        return transformer.shim.name if upstream is None else f"{transformer.shim.name} (shared)"
    if upstream is not None:
        return f"listens to {'any component' if upstream == '*' else upstream}"
    table = find_static_embedding(model)
    if table is not None:
        return f"table of wordpieces of {table.source}"
    encoder = find_token_encoder(model)
    return "no encoder" if encoder is None else f"tokens, {encoder.name}"


def describe_int8(transformer: SpanTransformer) -> str:
    """Return what `precision = "int8"` rounds by, of a loaded encoder; empty for other precisions."""
    if transformer.options.precision != INT8:
        return ""
    calibration = transformer.shim.calibration
    text = "int8 where a CPU is quicker with it, calibrated on"
    if calibration is None:
        return f"{text} the first texts encoded"
    n_rounded, n_products = int(calibration.is_rounded.sum()), calibration.is_rounded.numel()
    return (
        f"{text} {calibration.n_wordpieces:,} wordpieces: {n_rounded} of {n_products} products in 8 bits, lowest "
        f"cosine of a text {calibration.lowest_cosine:.3f}"
    )
