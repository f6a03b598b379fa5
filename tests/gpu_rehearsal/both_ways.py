"""What the tests here share: the same work on NumPy's arrays and on strict ones, and what came of it."""

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from gpu_rehearsal.strict_arrays import LOOKS, StrictArray
from gpu_rehearsal.strict_ops import strict_device
from spacy.language import Language
from thinc.util import to_numpy

CLOSE = {"rtol": 2e-4, "atol": 2e-5}  # float32, added up in another order


def both_ways(work: Callable[[], Any]) -> tuple[Any, Any]:
    """What work returns on NumPy's arrays, and on strict ones, brought to the host."""
    expected = work()
    with strict_device():
        found = on_host(work())
    return expected, found


def on_host(found: Any) -> Any:
    """The same with NumPy's arrays in place of strict ones."""
    if isinstance(found, StrictArray):
        return to_numpy(found)
    if isinstance(found, dict):
        return {key: on_host(value) for key, value in found.items()}
    return [on_host(each) for each in found] if isinstance(found, list | tuple) else found


def check_same(expected: Any, found: Any, **close: float) -> None:
    """That both are of one form, and close."""
    if isinstance(expected, dict):
        assert expected.keys() == found.keys()
        expected, found = list(expected.values()), list(found.values())
    if isinstance(expected, list | tuple):
        for one, other in zip(expected, found, strict=True):
            check_same(one, other, **close)
    elif isinstance(expected, str | None):
        assert expected == found
    elif isinstance(expected, numpy.ndarray):
        assert type(found) is numpy.ndarray and expected.shape == found.shape and expected.dtype == found.dtype
        numpy.testing.assert_allclose(found, expected, **(close or CLOSE))
    else:
        assert type(found) is type(expected) and found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def looks_of(work: Callable[[], Any]) -> list[tuple[str, str, str]]:
    """What the package, on strict arrays, has the host wait for while it works: how, module, function."""
    LOOKS.clear()
    work()
    return [tuple(look) for look in LOOKS.of_package]


def parameters_of(nlp: Language) -> dict[str, numpy.ndarray]:
    """All that learns in a pipeline, of PyTorch and of Thinc, on the host."""
    found = {}
    for name, pipe in nlp.pipeline:
        for number, node in enumerate(pipe.model.walk() if hasattr(pipe, "model") else ()):
            for shim in node.shims:
                found |= {f"{name} {key}": p.detach().numpy().copy() for key, p in shim._model.named_parameters()}
            for key in filter(node.has_param, node.param_names):
                found[f"{name} {number} {key}"] = to_numpy(node.get_param(key)).copy()
    return found
