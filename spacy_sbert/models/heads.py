"""Layers after pooling: average of windows, dense, normalize, truncate_dim."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

import numpy
from spacy.tokens import Doc
from thinc.api import Model, glorot_uniform_init
from thinc.backends import get_array_ops
from thinc.types import Floats2d
from thinc.util import get_array_module

from ..errors import Errors
from ..similarity import scaled_norms
from ..validation import Width, check_weights, validated

# An array of NumPy or CuPy
Array: TypeAlias = Any
VectorLayer = Model[Floats2d, Floats2d]
# From Docs to the vectors of their tokens, as a tok2vec
Tok2VecModel = Model[list[Doc], list[Floats2d]]
# y, and from its gradient to that of x
VectorsAndBackprop = tuple[Floats2d, Callable[[Floats2d], Floats2d]]
# Bits that dy has to spare: a gradient up to 2^8 does not overflow
_GRADIENT_BITS = 8


def window_average(row_of: numpy.ndarray, weights: numpy.ndarray) -> VectorLayer:
    """Average the windows of each row.

    y_r = sum_i w_i x_i / sum_i w_i over the windows i of row r

    row_of (int64 (windows,)): the row of each window, ascending; each row has one.
    weights (int64 (windows,)): w, such as the wordpieces in each window.
    Input: x, float (windows, width). Output: y, float (rows, width); 0 where all w are.
    """
    return Model("window_average", partial(_average, row_of=row_of, weights=weights))


def _average(
    model: VectorLayer,
    X: Floats2d,
    is_train: bool,
    *,
    row_of: numpy.ndarray,
    weights: numpy.ndarray,
) -> VectorsAndBackprop:
    ops = get_array_ops(X)
    totals = numpy.bincount(row_of, weights=weights)
    shares = (weights / numpy.maximum(totals, 1)[row_of])[:, None]
    shares = ops.xp.asarray(shares, dtype=X.dtype)
    weighted = X * shares
    # Most rows have one window
    if len(totals) == len(row_of):
        return weighted, lambda dY: dY * shares
    lengths: Any = ops.asarray1i(cast(Any, numpy.bincount(row_of)))
    return ops.reduce_sum(
        weighted, lengths
    ), lambda dY: ops.backprop_reduce_sum(dY, lengths) * shares


def zero_rows(rows: numpy.ndarray) -> VectorLayer:
    """Set some rows to zero, which get no gradient.

    rows (int64 (k,)): their numbers.
    Input and output: float (rows, width).
    """
    return Model("zero_rows", partial(_set_zero, rows=rows))


def _set_zero(
    model: VectorLayer, X: Floats2d, is_train: bool, *, rows: numpy.ndarray
) -> VectorsAndBackprop:
    Y: Any = X
    if len(rows):
        Y = X.copy()
        Y[rows] = 0

    def backprop(dY: Floats2d) -> Floats2d:
        dX: Any = get_array_module(X).array(dY, dtype=X.dtype)
        dX[rows] = 0
        return dX

    return Y, backprop


def normalization() -> VectorLayer:
    """Scale each row to Euclidean length 1.

    y_r = x_r / ||x_r||,   dx_r = (dy_r - (dy_r . y_r) y_r) / ||x_r||

    A zero row stays zero and gets no gradient, nor does one so short that 1 / ||x_r|| is hardly a
    number of its dtype.

    Input and output: float (rows, width).
    """
    return Model("unit_length", _normalize)


def _normalize(model: VectorLayer, X: Floats2d, is_train: bool) -> tuple[Floats2d, Callable]:
    xp = get_array_module(X)
    scaled, norms, exponents = scaled_norms(X)
    divisors = xp.where(norms > 0, norms, xp.ones_like(norms))
    inverse = xp.where(norms > 0, 1 / divisors, xp.zeros_like(norms))
    Y = scaled * inverse

    def backprop(dY: Floats2d) -> Floats2d:
        has_gradient = exponents > _GRADIENT_BITS - numpy.finfo(inverse.dtype).maxexp
        of_x = xp.ldexp(inverse * has_gradient, -exponents * has_gradient)
        return (dY - (dY * Y).sum(axis=1, keepdims=True) * Y) * of_x

    return Y, backprop


def truncation(width: int) -> VectorLayer:
    """Keep the first dimensions of each vector.

    y_r = x_r[:width]

    Input: x, float (rows, width of x). Output: y, float (rows, width).
    SOURCE: Kusupati et al. 2022, section 3.
    """
    return Model("truncation", partial(_truncate, width=width))


def _truncate(
    model: VectorLayer, X: Floats2d, is_train: bool, *, width: int
) -> tuple[Floats2d, Callable]:
    if X.shape[1] < width:
        raise ValueError(Errors.TRUNCATE_DIM.format(given=width, width=X.shape[1]))
    xp = get_array_module(X)

    def backprop(dY: Floats2d) -> Floats2d:
        dX = xp.zeros(X.shape, dtype=X.dtype)
        dX[:, :width] = dY
        return dX

    return xp.ascontiguousarray(X[:, :width]), backprop


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), and exp(x), which is the same, where exp(-x) is beyond all numbers.

    Of the dtype of x.
    """
    xp = get_array_module(x)
    lowest = 1 - float(numpy.log(numpy.finfo(x.dtype).max))
    ordinary = 1 / (1 + xp.exp(-xp.maximum(x, lowest)))
    return xp.where(x < lowest, xp.exp(xp.minimum(x, lowest)), ordinary)


# The functions from x to a(x), and from a(x) to a'(x)
ACTIVATIONS: dict[str, tuple[Callable, Callable]] = {
    "identity": (lambda x: x, lambda y: get_array_module(y).ones_like(y)),
    "tanh": (lambda x: get_array_module(x).tanh(x), lambda y: 1 - y * y),
    "relu": (lambda x: get_array_module(x).maximum(x, 0), lambda y: (y > 0).astype(y.dtype)),
    "sigmoid": (sigmoid, lambda y: y * (1 - y)),
}


@validated
def Dense(nI: Width, nO: Width, activation: str = "tanh", bias: bool = True) -> VectorLayer:
    """Map pooled vectors to others, of another width or in another space.

    y = a(x W^T + b)

    nI, nO (int): width of x and of y.
    activation (str): a, "tanh", "identity", "relu" or "sigmoid".
    bias (bool): whether there is b.
    Input: x, float (rows, nI). Output: y, float (rows, nO).
    RETURNS (Model): of parameters W (nO, nI), drawn after Glorot unless loaded, and b (nO,), zeros
        unless loaded.
    RAISES (ValueError): for an unknown activation, or weights that take more than 1 GB; in use, for
        x of another width.
    SOURCE: the Dense module of sentence-transformers, whose weights it takes.
    """
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"Unknown activation '{activation}' of a dense layer: expected one of "
            f"{', '.join(ACTIVATIONS)}."
        )
    check_weights("nO", nO, nI, nO)
    params: dict[str, Any] = {"W": None}
    if bias:
        params["b"] = None
    return Model(
        "dense",
        partial(_dense, activation=activation),
        init=partial(_init, bias=bias),
        dims={"nI": nI, "nO": nO},
        params=params,
    )


def _dense(
    model: VectorLayer, X: Floats2d, is_train: bool, *, activation: str
) -> VectorsAndBackprop:
    if X.shape[1] != model.get_dim("nI"):
        raise ValueError(
            f"The dense layer takes vectors of width {model.get_dim('nI')}, but the pooled ones "
            f"have width {X.shape[1]}. Set nI to that: the encoder's width, times the number of "
            "poolings."
        )
    if not model.has_param("W"):
        raise ValueError(Errors.DENSE_NOT_INITIALIZED)
    W = model.get_param("W")
    linear = X @ W.T
    has_bias = bool(model.has_param("b"))
    if has_bias:
        linear = linear + model.get_param("b")
    activate, derivative = ACTIVATIONS[activation]
    Y = activate(linear)

    def backprop(dY: Floats2d) -> Floats2d:
        d_linear = dY * derivative(Y)
        model.inc_grad("W", d_linear.T @ X)
        if has_bias:
            model.inc_grad("b", d_linear.sum(axis=0))
        return d_linear @ W

    return Y, backprop


def _init(
    model: VectorLayer, X: Floats2d | None = None, Y: Floats2d | None = None, *, bias: bool
) -> None:
    """Draw the weights, unless they are loaded: they belong to a trained encoder."""
    nO = model.get_dim("nO")
    if not model.has_param("W"):
        model.set_param("W", glorot_uniform_init(model.ops, (nO, model.get_dim("nI"))))
    if bias and not model.has_param("b"):
        model.set_param("b", model.ops.alloc1f(nO))
