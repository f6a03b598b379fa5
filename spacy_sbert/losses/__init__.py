"""Training objectives, LossLayer for a loss of your own, and check_gradient to test it."""

from ._common import LossLayer, check_gradient

__all__ = ["LossLayer", "check_gradient"]
