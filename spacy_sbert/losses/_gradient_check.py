"""Compare the gradient of a loss with finite differences."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy
from thinc.api import Model

from ._common import LossLayer, check_outputs

_SMALL = 1e-4  # gradients up to this size are compared by the absolute difference


def check_gradient(
    loss: LossLayer,
    members: Sequence[Any] | numpy.ndarray,
    gold: object = None,
    *,
    step: float = 1e-6,
    tolerance: float = 1e-4,
) -> None:
    """Compare the gradients that the backprop of a loss returns with central finite differences, in float64.

    (L(x + h) - L(x - h)) / 2h for each number x of the members, and of the parameters of the loss.

    loss (LossLayer): initialized, if it has parameters. members (Sequence[float (n, width)]): a few random vectors.
    gold: n scores, labels, vectors or texts, as the loss takes them. step (float): h.
    tolerance (float): the largest difference that passes, as a fraction of the largest number of the gradient.
    RAISES (ValueError): if a gradient differs, does not have the shape of its member, or does not grow with the factor
        that backprop takes; if the value is not a float.
    """
    if not isinstance(loss, LossLayer):
        kind = loss.name if isinstance(loss, Model) else repr(loss)
        raise ValueError(f"Expected a loss layer (spacy_sbert.losses.LossLayer), got {kind}.")
    loss = loss.copy()
    members = [numpy.array(member, dtype="float64") for member in members]
    if loss.gold in ("score", "vector"):
        gold = numpy.array(gold, dtype="float64")
    parameters = [(node, name) for node in loss.walk() for name in node.param_names if node.has_param(name)]
    for node, name in parameters:
        node.set_param(name, cast(Any, node.get_param(name)).astype("float64"))
        if node.has_grad(name):
            node.set_grad(name, 0 * node.get_param(name))
    value, backprop = loss((members, gold), True)
    gradients = backprop(1.0)
    check_outputs(loss, members, value, gradients)
    checked: list[tuple[str, Any, Any]] = [
        (f"member {number}", member, gradient)
        for number, (member, gradient) in enumerate(zip(members, gradients, strict=True))
    ]
    for node, name in parameters:
        gradient = node.get_grad(name).copy() if node.has_grad(name) else 0.0
        checked.append((f"the parameter '{name}'", node.get_param(name), gradient))
    for what, array, gradient in checked:
        expected = _finite_differences(lambda: loss((members, gold), True)[0], array, step)
        _compare(loss, what, numpy.broadcast_to(gradient, expected.shape), expected, tolerance)
    for number, gradient in enumerate(loss((members, gold), True)[1](2.0)):
        expected = 2 * numpy.asarray(gradients[number])
        _compare(loss, f"member {number}, with the factor 2", gradient, expected, tolerance)


def _compare(loss: Model, what: str, gradient: Any, expected: numpy.ndarray, tolerance: float) -> None:  # noqa: ANN401 (an array, or anything that a user's loss returns)
    """Raise ValueError if a gradient is not the expected one, or not finite."""
    largest = max(float(numpy.abs(expected).max(initial=0)), _SMALL)
    error = numpy.abs(gradient - expected)
    if (error <= tolerance * largest).all():  # False for NaN
        return
    place = numpy.unravel_index(numpy.where(numpy.isnan(error), numpy.inf, error).argmax(), error.shape)
    where = ", ".join(str(int(index)) for index in place)
    raise ValueError(
        f"The gradient of the loss '{loss.name}' is wrong for {what} at [{where}]: backprop returns "
        f"{gradient[place]:.6g}, finite differences give {expected[place]:.6g}. Correct the backprop. If the loss has "
        "a kink near this point, try other members."
    )


def _finite_differences(value: Callable[[], float], array: numpy.ndarray, step: float) -> numpy.ndarray:
    """Return the gradient of a value by an array that it is computed from, number by number."""
    gradient = numpy.zeros_like(array)
    for place in numpy.ndindex(*array.shape):
        original = array[place]
        array[place] = original + step
        above = value()
        array[place] = original - step
        gradient[place] = (above - value()) / (2 * step)
        array[place] = original
    return gradient
