"""Static encoders, made from a teacher without training."""

from .static import distill_static

__all__ = ["distill_static"]
