"""Test the backward pass of a loss against finite differences."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy
from thinc.api import Model

from ..errors import Errors
from .layer import LossLayer, check_outputs

SMALL = 1e-4  # a gradient of this size or less is compared by the absolute difference


def check_gradient(
    loss: LossLayer,
    members: Sequence[Any] | numpy.ndarray,
    gold: Any = None,
    *,
    step: float = 1e-6,
    tolerance: float = 1e-4,
) -> None:
    """Compare what the backprop of a loss returns with central finite differences of its value, in float64.

    (L(x + h) - L(x - h)) / 2h for each number x of the members, and of the loss's own parameters.

    loss (LossLayer): initialized, if it has parameters. members (Sequence[float (n, width)]): a few random vectors.
    gold: n scores, labels, vectors or texts, as the loss takes them. step (float): h.
    tolerance (float): the largest difference that passes, as a fraction of the largest number of the gradient.
    RAISES (ValueError): if a gradient differs, does not have the shape of its member, or does not grow with the factor
        that backprop takes; if the value is not a float.
    """
    if not isinstance(loss, LossLayer):
        given = loss.name if isinstance(loss, Model) else repr(loss)
        raise ValueError(Errors.NOT_A_LOSS_LAYER.format(given=given))
    loss = loss.copy()
    members = [numpy.array(member, dtype="float64") for member in members]
    if loss.gold in ("score", "vector"):
        gold = numpy.array(gold, dtype="float64")
    parameters = _float64_parameters(loss)

    def value() -> float:
        return loss((members, gold), True)[0]

    found, backprop = loss((members, gold), True)
    gradients = backprop(1.0)
    check_outputs(loss, members, found, gradients)
    named: list[tuple[str, Any, Any]] = []
    for number, (member, gradient) in enumerate(zip(members, gradients, strict=True)):
        named.append((f"member {number}", member, gradient))
    for node, name in parameters:
        gradient = node.get_grad(name).copy() if node.has_grad(name) else 0.0
        named.append((f"the parameter '{name}'", node.get_param(name), gradient))
    for what, array, given in named:
        expected = _differences(value, array, step)
        _compare(loss, what, numpy.broadcast_to(given, expected.shape), expected, tolerance)
    for number, given in enumerate(loss((members, gold), True)[1](2.0)):
        expected = 2 * numpy.asarray(gradients[number])
        _compare(loss, f"member {number}, with the factor 2", given, expected, tolerance)


def _float64_parameters(loss: Model) -> list[tuple[Model, str]]:
    """The parameters of a loss, which are made float64, without a gradient."""
    parameters = [(node, name) for node in loss.walk() for name in node.param_names if node.has_param(name)]
    for node, name in parameters:
        parameter: Any = node.get_param(name).astype("float64")
        node.set_param(name, parameter)
        if node.has_grad(name):
            node.set_grad(name, 0 * parameter)
    return parameters


def _compare(loss: Model, what: str, given: Any, expected: numpy.ndarray, tolerance: float) -> None:
    """RAISES (ValueError): if a gradient is another one, or not finite."""
    largest = max(float(numpy.abs(expected).max(initial=0)), SMALL)
    error = numpy.abs(given - expected)
    if (error <= tolerance * largest).all():  # False for NaN
        return
    place = numpy.unravel_index(numpy.where(numpy.isnan(error), numpy.inf, error).argmax(), error.shape)
    numbers = {"given": f"{given[place]:.6g}", "expected": f"{expected[place]:.6g}"}
    where = ", ".join(str(int(index)) for index in place)
    raise ValueError(Errors.WRONG_GRADIENT.format(loss=loss.name, what=what, place=where, **numbers))


def _differences(value: Callable[[], float], array: numpy.ndarray, step: float) -> numpy.ndarray:
    """The gradient of a value by an array that it is computed from, one number after the other."""
    gradient = numpy.zeros_like(array)
    for place in numpy.ndindex(*array.shape):
        kept = array[place]
        array[place] = kept + step
        above = value()
        array[place] = kept - step
        gradient[place] = (above - value()) / (2 * step)
        array[place] = kept
    return gradient
