"""Any objective, over the first dimensions of the vectors as well as over all."""

from collections.abc import Sequence
from functools import partial
from typing import cast

from spacy.util import registry
from thinc.types import Floats2d
from thinc.util import get_array_module

from ..validation import NonNegativeFloat, Width, validated
from ._common import Backprop, LossLayer, Members, check_inner

_Inputs = tuple[Members, object]


@registry.layers("spacy-sbert.MatryoshkaLoss.v1")
@validated
def MatryoshkaLoss(loss: object, dims: Sequence[Width], weights: Sequence[NonNegativeFloat] | None = None) -> LossLayer:
    """Weighted sum of a loss over vectors cut to several widths, so that cut vectors are useful, too.

    loss = sum_k w_k loss_k(x[:, :d_k])

    loss (Model): a loss layer; each width gets a copy, because a classifier depends on the width.
    dims (list[int]): d, the widths; the encoder's own should be among them.
    weights (list[float]): w, 1 each by default.
    Input: the members, each float (n, width), and the gold values, as the inner loss takes them; gold vectors are cut
        with the members.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns one derivative a member.
    RAISES (ValueError): if loss is not a loss layer or has several objectives; if dims are empty, repeated or not
        positive, or weights not as many; if the members are narrower than one of dims, or loss refuses its input.
    SOURCE: Kusupati et al. 2022, section 3.
    """
    name = "MatryoshkaLoss"
    inner = check_inner(loss, loss=name, setting="loss")
    if not dims or len(set(dims)) < len(dims):
        raise ValueError(f"The loss '{name}' cannot work with dims = {dims}: expected positive numbers, each once.")
    if weights is not None and len(weights) != len(dims):
        raise ValueError(
            f"The loss '{name}' cannot work with weights = {weights}: expected {len(dims)} numbers, one for each of "
            "dims."
        )
    factors = list(weights) if weights is not None else [1.0] * len(dims)
    return LossLayer(
        name,
        partial(_forward, dims=dims, weights=factors),
        init=partial(_init, dims=dims),
        layers=[inner.copy() for _ in dims],
        n_members=inner.n_members,
        gold=inner.gold,
        whole_batch=inner.whole_batch,
        is_sum=inner.is_sum,
        score_range=inner.score_range,
        mini_batch_size=inner.mini_batch_size,
    )


def _init(model: LossLayer, X: _Inputs | None = None, Y: None = None, *, dims: Sequence[int]) -> None:
    for layer, dim in zip(model.layers, dims, strict=True):
        layer.initialize(X=None if X is None else _cut(model, X, dim))


def _forward(
    model: LossLayer, inputs: _Inputs, is_train: bool, *, dims: Sequence[int], weights: list[float]
) -> tuple[float, Backprop]:
    losses = [layer(_cut(model, inputs, dim), is_train) for layer, dim in zip(model.layers, dims, strict=True)]

    def backprop(d_loss: float = 1.0) -> Members:
        d_members = [get_array_module(member).zeros_like(member) for member in inputs[0]]
        for dim, weight, (_, back) in zip(dims, weights, losses, strict=True):
            for d_member, d_cut in zip(d_members, back(weight * d_loss), strict=True):
                d_member[:, :dim] += d_cut
        return d_members

    return sum(weight * value for weight, (value, _) in zip(weights, losses, strict=True)), backprop


def _cut(model: LossLayer, inputs: _Inputs, dim: int) -> _Inputs:
    """Return the first dim dimensions of the members, and of gold vectors.

    RAISES (ValueError): if a member is narrower.
    """
    members, gold = inputs
    narrowest = min(member.shape[1] for member in members)
    if narrowest < dim:
        raise ValueError(
            f"The loss '{model.name}' cannot cut vectors to {dim} dimensions: they are {narrowest} wide. Lower its "
            f"dims to at most {narrowest}."
        )
    return [member[:, :dim] for member in members], cast(Floats2d, gold)[:, :dim] if model.gold == "vector" else gold
