"""A dense layer on sentence vectors, as some sentence encoders have it behind their pooling."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from spacy.util import registry
from thinc.api import Model, glorot_uniform_init
from thinc.types import Floats2d
from thinc.util import get_array_module

from ..errors.checks import Width, check_weights, validated
from .errors import Errors
from .sigmoid import sigmoid

Vectors = Floats2d
# From x to a(x), and from a(x) to a'(x).
ACTIVATIONS: dict[str, tuple[Callable, Callable]] = {
    "identity": (lambda x: x, lambda y: get_array_module(y).ones_like(y)),
    "tanh": (lambda x: get_array_module(x).tanh(x), lambda y: 1 - y * y),
    "relu": (lambda x: get_array_module(x).maximum(x, 0), lambda y: (y > 0).astype(y.dtype)),
    "sigmoid": (sigmoid, lambda y: y * (1 - y)),
}


@registry.layers("spacy-sbert.Dense.v1")
@validated
def Dense(nI: Width, nO: Width, activation: str = "tanh", bias: bool = True) -> Model[Vectors, Vectors]:
    """Map pooled vectors to others, of another width or in another space.

    y = a(x W^T + b)

    nI, nO (int): width of x and of y.
    activation (str): a, "tanh", "identity", "relu" or "sigmoid".
    bias (bool): whether there is b.
    Input: x, float (rows, nI). Output: y, float (rows, nO).
    RETURNS (Model): of parameters W (nO, nI), drawn after Glorot unless loaded, and b (nO,), zeros unless loaded.
    RAISES (ValueError): for an unknown activation, a width below 1, or weights that take more than 1 GB; in use, for x
        of another width, and before there are weights.
    SOURCE: the Dense module of sentence-transformers, whose weights it takes.
    """
    if activation not in ACTIVATIONS:
        raise ValueError(Errors.UNKNOWN_ACTIVATION.format(given=activation, expected=", ".join(ACTIVATIONS)))
    check_weights("nO", nO, nI, nO)
    return Model(
        "dense",
        partial(forward, activation=activation),
        init=partial(init, bias=bias),
        dims={"nI": nI, "nO": nO},
        params={"W": None, "b": None} if bias else {"W": None},
    )


def activation_of(layer: Model[Vectors, Vectors]) -> str:
    """The activation of a dense layer."""
    return cast(Any, layer._func).keywords["activation"]  # no attr: those are saved, and would win over the config


def forward(
    model: Model[Vectors, Vectors], X: Vectors, is_train: bool, *, activation: str
) -> tuple[Vectors, Callable[[Vectors], Vectors]]:
    if X.shape[1] != model.get_dim("nI"):
        raise ValueError(Errors.DENSE_WIDTH.format(given=X.shape[1], expected=model.get_dim("nI")))
    if not model.has_param("W"):
        raise ValueError(Errors.DENSE_NOT_INITIALIZED)
    W = model.get_param("W")
    b = model.get_param("b") if model.has_param("b") else None
    activate, derivative = ACTIVATIONS[activation]
    Y = activate(X @ W.T if b is None else X @ W.T + b)

    def backprop(dY: Vectors) -> Vectors:
        d_linear = dY * derivative(Y)
        model.inc_grad("W", d_linear.T @ X)
        if b is not None:
            model.inc_grad("b", d_linear.sum(axis=0))
        return d_linear @ W

    return Y, backprop


def init(model: Model[Vectors, Vectors], X: Vectors | None = None, Y: Vectors | None = None, *, bias: bool) -> None:
    """Draw the weights, unless they are loaded: they belong to a trained encoder."""
    nO, nI = model.get_dim("nO"), model.get_dim("nI")
    if not model.has_param("W"):
        model.set_param("W", glorot_uniform_init(model.ops, (nO, nI)))
    if bias and not model.has_param("b"):
        model.set_param("b", model.ops.alloc1f(nO))
