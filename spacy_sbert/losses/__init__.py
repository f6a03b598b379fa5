"""Training objectives, and what a loss of your own is made of: LossLayer, and check_gradient to test it."""

from ._common import LossLayer, check_gradient

__all__ = ["LossLayer", "check_gradient"]
