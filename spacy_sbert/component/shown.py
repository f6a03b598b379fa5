"""A sentence encoder in a line, as far as it is known without loading it."""

from typing import cast

from thinc.api import Model

from ..encoder.curated import upstream_name
from ..encoder.options import INT8
from ..encoder.transformer import RowTransformer
from ..vectors.sentence_pooling import SentencePooling
from .upstream import find_listeners, find_table, find_token_encoder


def shown(model: Model) -> str:
    """Encoder, pooling, width, precision and device, such as "all-MiniLM-L6-v2, mean pooling, 384 numbers, float32 on
    cpu", or what is known of them."""
    pooling = cast(SentencePooling, model.get_ref("pooling"))
    heard = [listener.transformer for listener in find_listeners(model)]
    transformer = next((node for node in heard or model.walk() if isinstance(node, RowTransformer)), None)
    said = [_source(model, transformer), f"{pooling.pooling_name} pooling"]
    if transformer is None:
        return ", ".join(said)
    shim = transformer.shim
    if not shim.is_loaded:
        return ", ".join([*said, shim.precision, "not loaded yet"])
    width = pooling.width(shim.network.config.hidden_size, shim.settings)
    return ", ".join([*said, f"{width} numbers", f"{shim.precision} on {shim.device}"])


def rounding_of(transformer: RowTransformer) -> str:
    """What `precision = "int8"` rounds by, of a loaded encoder; empty for other precisions."""
    if transformer.options.precision != INT8:
        return ""
    found = transformer.shim.calibration
    said = "int8 where a CPU is quicker with it, calibrated on"
    if found is None:
        return f"{said} the first texts encoded"
    n_rounded, n_products = int(found.is_rounded.sum()), found.is_rounded.numel()
    return (
        f"{said} {found.n_wordpieces:,} wordpieces: {n_rounded} of {n_products} products in 8 bits, lowest cosine of a "
        f"text {found.lowest_cosine:.3f}"
    )


def _source(model: Model, transformer: RowTransformer | None) -> str:
    upstream = next((name for node in model.walk() if (name := upstream_name(node)) is not None), None)
    if transformer is not None:
        shared = "" if upstream is None else " (shared)"
        return f"{transformer.shim.name}{shared}"
    if upstream is not None:
        return f"hears {'any component' if upstream == '*' else upstream}"
    table = find_table(model)
    if table is not None:
        return f"table of wordpieces of {table.source}"
    encoder = find_token_encoder(model)
    return "no encoder" if encoder is None else f"tokens, {encoder.name}"
