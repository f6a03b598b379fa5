"""What the tests here share: the same work on NumPy's arrays and on strict ones, and what came of
it.
"""

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from gpu_rehearsal.strict_arrays import LOOKS, Look, StrictArray
from gpu_rehearsal.strict_ops import strict_device
from thinc.util import to_numpy
from torch.utils._pytree import tree_flatten, tree_map_only

# float32, added up in another order
CLOSE = {"rtol": 2e-4, "atol": 2e-5}


def both_ways(work: Callable[[], Any]) -> tuple[Any, Any]:
    """What work returns on NumPy's arrays, and on strict ones, brought to the host."""
    expected = work()
    with strict_device():
        found = tree_map_only(StrictArray, to_numpy, work())
    return expected, found


def check_same(expected: Any, found: Any) -> None:
    """That both are of one form, and close."""
    leaves, form = tree_flatten(expected)
    found_leaves, found_form = tree_flatten(found)
    assert found_form == form
    for one, other in zip(leaves, found_leaves, strict=True):
        assert type(other) is type(one)
        if isinstance(one, numpy.ndarray):
            assert other.shape == one.shape
            assert other.dtype == one.dtype
            numpy.testing.assert_allclose(other, one, **CLOSE)
        else:
            assert other == (
                one if isinstance(one, str | None) else pytest.approx(one, rel=1e-4, abs=1e-6)
            )


def looks_of(work: Callable[[], Any]) -> list[Look]:
    """What the package, on strict arrays, has the host wait for while it works."""
    LOOKS.clear()
    work()
    return LOOKS.of_package
