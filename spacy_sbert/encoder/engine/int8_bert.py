"""BERT and its like on packed rows, with linear layers in 8 bits."""

import torch

from ..hugging_face import Network
from .calibration import Calibration
from .families import Parts, activation_of, layers_of
from .int8_linear import Int8Linear
from .packed_bert import LINEARS, SMOOTHED, Layer, PackedBert, weights_of
from .private_torch import Linear, linear


def int8_bert(model: Network, calibration: Calibration, dtype: torch.dtype) -> PackedBert:
    """A PackedBert whose products are those of Int8Linear, as far as they bear it.

    model: of Hugging Face, see is_packable; on a CPU, see has_int8_product.
    calibration (Calibration): of its weights.
    dtype (torch.dtype): of the rest of the arithmetic.
    """
    activation = activation_of(model)
    layers = [
        Layer(parts, _products(parts, calibration, i, activation, dtype)) for i, parts in enumerate(layers_of(model))
    ]
    return PackedBert(model, dtype, layers)


def _products(
    parts: Parts, calibration: Calibration, layer: int, activation: str, dtype: torch.dtype
) -> dict[str, Linear]:
    """Those of a layer.

    The widening one writes 8 bits for the narrowing one, where both are rounded, so that activations are never rounded
    twice nor stored in between.
    """
    found: dict[str, Linear] = {}
    weights = weights_of(parts)
    for name in reversed(LINEARS):
        both, own = weights[name], activation if name == "widen" else None
        if not calibration.is_rounded[layer, LINEARS.index(name)]:
            found[name] = linear(*both, dtype, own)
            continue
        narrow = found.get("narrow")
        then = narrow.rounding if name == "widen" and isinstance(narrow, Int8Linear) else None
        ranges = calibration.ranges[name][layer]
        found[name] = Int8Linear(*both, ranges, own, smooth=name in SMOOTHED, dtype=dtype, then=then)
    return found
