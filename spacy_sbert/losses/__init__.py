"""Training objectives, and what a loss of one's own is made of: LossLayer, and check_gradient to test it."""

from .parts.gradients import check_gradient
from .parts.layer import LossLayer

__all__ = ["LossLayer", "check_gradient"]
