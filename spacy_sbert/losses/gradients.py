"""A test of a loss: its gradient beside finite differences."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy
from thinc.api import Model

from ._common import LossLayer


def check_gradient(
    loss: LossLayer,
    members: Sequence[Any] | numpy.ndarray,
    gold: object = None,
    *,
    step: float = 1e-6,
    tolerance: float = 1e-4,
) -> None:
    """Compare the gradients of a loss with central finite differences, in float64.

    (L(x + h) - L(x - h)) / 2h for each number x of the members, and of the parameters of the loss.

    loss (LossLayer): initialized, if it has parameters. members (Sequence[float (n, width)]): a few
        random vectors.
    gold: n scores, labels, vectors or texts, as the loss takes them. step (float): h.
    tolerance (float): the largest difference that passes, as a fraction of the largest number of
        the gradient.
    RAISES (ValueError): if a gradient differs, has another shape, or does not grow with the factor
        that backprop takes.

    Example:
        members = numpy.random.default_rng(0).normal(size=(2, 5, 8))
        check_gradient(make_loss(), members, [0.0, 0.2, 0.5, 0.8, 1.0])

    """
    if not isinstance(loss, LossLayer):
        raise ValueError(f"Expected a loss layer (spacy_sbert.losses.LossLayer), got {loss!r}.")
    loss = loss.copy()
    members = [numpy.array(member, dtype="float64") for member in members]
    if loss.gold in ("score", "vector", "scores"):
        gold = numpy.array(gold, dtype="float64")
    parameters = _parameters_in_float64(loss)
    value, backprop = loss((members, gold), True)
    gradients = backprop(1.0)
    loss.check_outputs(members, value, gradients)
    arrays = {f"member {number}": member for number, member in enumerate(members)}
    of_arrays = list(gradients)
    for node, name in parameters:
        arrays[f"the parameter '{name}'"] = node.get_param(name)
        of_arrays.append(node.get_grad(name).copy())

    def compute() -> float:
        return loss((members, gold), True)[0]

    for (what, array), gradient in zip(arrays.items(), of_arrays, strict=True):
        _compare(loss, what, gradient, _finite_differences(compute, array, step), tolerance)
    _, backprop = loss((members, gold), True)
    for number, doubled in enumerate(backprop(2.0)):
        expected = 2 * numpy.asarray(gradients[number])
        _compare(loss, f"member {number}, with the factor 2", doubled, expected, tolerance)


def _parameters_in_float64(loss: LossLayer) -> list[tuple[Model, str]]:
    """Convert the parameters of a loss, clear their gradients, and return node and name of each."""
    parameters = []
    for node in loss.walk():
        for name in node.param_names:
            if node.has_param(name):
                array: Any = node.get_param(name)
                node.set_param(name, array.astype("float64"))
                node.set_grad(name, 0 * node.get_param(name))
                parameters.append((node, name))
    return parameters


def _compare(
    loss: LossLayer, what: str, gradient: Any, expected: numpy.ndarray, tolerance: float
) -> None:
    """Raise ValueError if a gradient is not the expected one, or not finite."""
    gradient = numpy.asarray(gradient)
    error = numpy.nan_to_num(numpy.abs(gradient - expected), nan=numpy.inf)
    largest = float(numpy.abs(expected).max(initial=0))
    # Very small numbers may differ by as much as small ones
    bound = tolerance * max(largest, 1e-4)
    if (error <= bound).all():
        return
    place = numpy.unravel_index(error.argmax(), error.shape)
    raise ValueError(
        f"The gradient of the loss '{loss.name}' is wrong for {what} at "
        f"{[int(index) for index in place]}: backprop returns {gradient[place]:.6g}, finite "
        f"differences give {expected[place]:.6g}. Correct the backprop. If the loss has a kink "
        "near this point, try other members."
    )


def _finite_differences(
    value: Callable[[], float], array: numpy.ndarray, step: float
) -> numpy.ndarray:
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
