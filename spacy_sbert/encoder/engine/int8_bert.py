"""BERT and its like on packed rows, with linear layers in 8 bits."""

import torch

from ..hugging_face import Network
from .calibration import Calibration
from .families import activation_of, layers_of
from .int8_linear import Int8Linear
from .packed_bert import Layer, PackedBert, weights_of


def int8_bert(model: Network, calibration: Calibration, dtype: torch.dtype) -> PackedBert:
    """A PackedBert whose four products of a layer are those of Int8Linear.

    The widening layer writes 8 bits for the narrowing one, so that activations are never rounded twice nor stored in
    between. Factors of channels are for the two that read what layer norm gives, whose channels differ most.

    model: of Hugging Face, see is_packable; on a CPU, see has_int8_product.
    calibration (Calibration): of its weights.
    dtype (torch.dtype): of the rest of the arithmetic.
    """
    layers = []
    for i, parts in enumerate(layers_of(model)):
        weights, ranges = weights_of(parts), {name: found[i] for name, found in calibration.ranges.items()}
        narrow = Int8Linear(*weights["narrow"], ranges["narrow"], dtype=dtype)
        linears = {
            "heads": Int8Linear(*weights["heads"], ranges["heads"], smooth=True, dtype=dtype),
            "mix": Int8Linear(*weights["mix"], ranges["mix"], dtype=dtype),
            "widen": Int8Linear(
                *weights["widen"],
                ranges["widen"],
                activation_of(model),
                smooth=True,
                dtype=dtype,
                then=narrow.rounding,
            ),
            "narrow": narrow,
        }
        layers.append(Layer(parts, linears))
    return PackedBert(model, dtype, layers)
