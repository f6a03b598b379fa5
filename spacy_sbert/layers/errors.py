"""What is said of layers."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    UNKNOWN_POOLING = (
        "Unknown pooling '{given}': expected one of {expected}, or several joined with '+', such as cls+mean."
    )
    UNKNOWN_ACTIVATION = "Unknown activation '{given}' of a dense layer: expected one of {expected}."
    DENSE_WIDTH = (
        "The dense layer takes vectors of width {expected}, but the pooled ones have width {given}. Set nI to that: "
        "the encoder's width, times the number of poolings."
    )
