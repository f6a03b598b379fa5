"""Training objectives, and what a loss of your own is made of: LossLayer, and check_gradient to test it."""

from typing import Any

from ._common import LossLayer

__all__ = ["LossLayer", "check_gradient"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (of any module attribute)
    if name != "check_gradient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._gradient_check import check_gradient  # noqa: PLC0415 (only needed while a loss is developed)

    return check_gradient
