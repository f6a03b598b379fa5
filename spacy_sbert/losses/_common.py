"""Shared parts of losses: the base layer, checks, cross-entropy and distances."""

from collections.abc import Callable, Mapping, Sequence, Sized
from functools import partial
from typing import Any, Literal, TypeVar, cast

import numpy
from thinc.api import Model, Ops
from thinc.types import Floats1d, Floats2d, Ints1d
from thinc.util import get_array_module

from ..models.heads import normalization
from ..similarity import cosine, euclidean, manhattan
from ..validation import ConfiguredModel

Members = list[Floats2d]
# The backprop takes d_loss, a factor on the loss, 1.0 by default
LossAndBackprop = tuple[float, Callable[..., Members]]
Derivative = Callable[[Floats1d], Members]
# A loss, and a function to its derivative by what was measured
Paired = tuple[float, Callable[[float], Floats1d]]
PairedFunction = Callable[[Floats2d, Floats2d], tuple[Floats1d, Derivative]]
Distance = Literal["euclidean", "cosine", "manhattan"]
Similarity = Literal["cosine", "dot"]
_InT = TypeVar("_InT")
_OutT = TypeVar("_OutT")


class LossLayer(ConfiguredModel[_InT, _OutT]):
    """A Thinc Model for a training objective, with the kind of examples that it takes.

    name (str): the name of the loss.
    forward (Callable): takes the Model, (members, gold) and is_train; returns the loss, a float,
        and its backprop. members: a list of arrays, float (n, width), one a member. gold: n gold
        values. backprop takes d_loss, a factor, and returns the gradient of the loss by each
        member, times d_loss.
    n_members (Sequence[int]): how many members an example may have; range(2, sys.maxsize) for 2 or
        more.
    gold (str): the kind of gold value, None | "score" | "label" | "vector" | "text" | "scores", a
        teacher's of the members after the first, float (n, k).
    whole_batch (bool): whether the loss of a batch is more than the mean over its examples, so that
        a batch that is split has another loss.
    is_sum (bool): whether the loss is a sum over its examples, not a mean.
    score_range (tuple): the lowest and highest gold score that the loss can learn from, None for
        any.
    learn_rate_factor (float): how many times faster than the encoder its own parameters learn.
    mini_batch_size (int): how many spans the encoder runs at once, None for all.
    model: other arguments (params, init, layers, dims, attrs), as in Model.

    Example:
        LossLayer("my_loss", forward, n_members=[2], gold="score")

    """

    def __init__(
        self,
        name: str,
        forward: Callable,
        *,
        n_members: Sequence[int],
        gold: Literal["score", "label", "vector", "text", "scores"] | None,
        whole_batch: bool = False,
        is_sum: bool = False,
        score_range: tuple[float, float] | None = None,
        learn_rate_factor: float = 1.0,
        mini_batch_size: int | None = None,
        **model: Any,
    ):
        super().__init__(name, forward, **model)
        self.n_members = n_members
        self.gold = gold
        self.whole_batch = whole_batch
        self.is_sum = is_sum
        self.score_range = score_range
        self.learn_rate_factor = learn_rate_factor
        self.mini_batch_size = mini_batch_size

    @property
    def expected_members(self) -> str:
        """How many members an example may have, as messages list it."""
        if isinstance(self.n_members, range):
            return f"{self.n_members.start} or more"
        return " or ".join(map(str, self.n_members))

    def check_inputs(self, members: Sequence[Sized], *gold_lengths: int) -> None:
        """Raise ValueError for a wrong number of members, or if members and gold differ in rows."""
        if len(members) not in self.n_members:
            raise ValueError(
                f"The loss '{self.name}' takes examples of {self.expected_members} members, got "
                f"{len(members)}."
            )
        lengths = [*map(len, members), *gold_lengths]
        if len(set(lengths)) > 1:
            counts = f"{', '.join(map(str, lengths[:-1]))} and {lengths[-1]}"
            raise ValueError(
                f"The loss '{self.name}' takes as many rows of every member as gold values, got "
                f"{counts}."
            )

    def check_outputs(
        self, members: Sequence[Any], value: object, gradients: Sequence[Any] | None
    ) -> None:
        """Raise ValueError if a loss is no number, or gradients have other shapes than members."""
        if not isinstance(value, int | float | numpy.floating):
            kind = f"{type(value).__name__}{tuple(getattr(value, 'shape', ()))}"
            raise ValueError(
                f"The forward function of the loss '{self.name}' returned {kind} as the loss of a "
                "batch. Expected a float, such as float(losses.mean())."
            )
        shapes = [getattr(gradient, "shape", None) for gradient in gradients or ()]
        expected = [member.shape for member in members]
        if shapes != expected:
            raise ValueError(
                f"The backprop of the loss '{self.name}' returned gradients of the shapes "
                f"{shapes}. Expected a list with one array a member, of the shape of the member: "
                f"{expected}."
            )


def objectives_of(loss: Model) -> dict[str, LossLayer]:
    """Return the objectives of a loss layer by name; the name of a single one is empty."""
    objectives = {"": loss}
    if "objectives" in loss.attrs:
        objectives = dict(zip(loss.attrs["objectives"], loss.layers, strict=True))
    return cast(dict[str, LossLayer], objectives)


def pair_loss(name: str, measure: PairedFunction, loss: Callable, **settings: Any) -> LossLayer:
    """Return a loss of two members.

    loss (Callable): takes the layer, what was measured, and the gold; see Paired.
    """
    forward = partial(_forward_pairs, measure=measure, loss=loss)
    return LossLayer(name, forward, n_members=[2], gold="score", **settings)


def _forward_pairs(
    model: LossLayer,
    inputs: tuple[Members, Floats1d],
    is_train: bool,
    *,
    measure: PairedFunction,
    loss: Callable,
) -> LossAndBackprop:
    members, gold = inputs
    model.check_inputs(members, len(gold))
    measured, back_to_members = measure(*members)
    value, derivative = loss(model, measured, gold)

    def backprop(d_loss: float = 1.0) -> Members:
        return back_to_members(derivative(d_loss))

    return value, backprop


def log_sum_exp(scores: Floats2d) -> Floats2d:
    """Return log sum_j exp(s_ij), (n, 1), without overflow."""
    xp = get_array_module(scores)
    highest = xp.max(scores, axis=1, keepdims=True)
    return highest + xp.log(xp.exp(scores - highest).sum(axis=1, keepdims=True))


def softmax(scores: Floats2d) -> Floats2d:
    """Return exp(s_ij) / sum_k exp(s_ik), (n, k)."""
    return get_array_module(scores).exp(scores - log_sum_exp(scores))


def cross_entropy(scores: Floats2d, targets: Ints1d) -> tuple[Floats1d, Floats2d]:
    """Return -log softmax(s_i)[t_i] of each row, (n,), and its derivative by the scores.

    The derivative is softmax(s_i), less 1 at t_i.

    scores (float (n, k)), targets (int (n,)): t, the index of the right column of each row.
    """
    xp = get_array_module(scores)
    rows = xp.arange(len(scores))
    norm = log_sum_exp(scores)
    d_scores = xp.exp(scores - norm)
    d_scores[rows, targets] -= 1
    return norm[:, 0] - xp.asarray(scores)[rows, targets], d_scores


def label_indices(ops: Ops, gold: Sequence[str], labels: Sequence[str], owner: str) -> Ints1d:
    """Return the place of each gold label among the labels of an owner.

    RAISES (ValueError): if it is none of them.
    """
    index = {label: i for i, label in enumerate(labels)}
    if unknown := [label for label in gold if label not in index]:
        raise ValueError(
            f"The label '{unknown[0]}' is unknown to {owner}, which has {', '.join(index)}. "
            "Correct the example, or initialize a new pipe with all labels."
        )
    return ops.asarray1i([index[label] for label in gold])


def mean_square(errors: Floats1d | Floats2d, reduce: Literal["mean", "sum"] = "mean") -> float:
    """Return 1/n sum_i e_i^2, or the sum.

    It is computed in the dtype of the errors, or in float64 if that overflows.
    """
    with numpy.errstate(over="ignore"):
        value = _reduced_square(errors, reduce)
    if not numpy.isfinite(value):
        value = _reduced_square(errors.astype("float64"), reduce)
    return value


def _reduced_square(errors: Any, reduce: Literal["mean", "sum"]) -> float:
    squares = get_array_module(errors).square(errors)
    return float(getattr(squares, reduce)())


# Has neither parameters nor state
normalize = normalization()


def paired_cosine(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """Return cos(u_i, v_i), the dot product of the rows at unit length, and du, dv."""
    unit_u, back_u = normalize(u, True)
    unit_v, back_v = normalize(v, True)

    def backprop(d_similarity: Floats1d) -> Members:
        d = _column(d_similarity)
        return [back_u(d * unit_v), back_v(d * unit_u)]

    return cosine(u, v), backprop


def _cosine_distance(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """Return 1 - cos(u_i, v_i), and du, dv."""
    similarity, backprop = paired_cosine(u, v)
    return 1 - similarity, lambda d: backprop(-d)


def _euclidean_distance(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """Return ||u_i - v_i||, and du = (u - v) / ||u - v|| = -dv."""

    def backprop(d_distance: Floats1d) -> Members:
        directions, _ = normalize(u - v, True)
        return _opposite(_column(d_distance) * directions)

    return euclidean(u, v), backprop


def _manhattan_distance(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """Return sum_k |u_ik - v_ik|, and du = sign(u - v) = -dv."""

    def backprop(d_distance: Floats1d) -> Members:
        signs = get_array_module(u).sign(u - v)
        return _opposite(_column(d_distance) * signs)

    return manhattan(u, v), backprop


def compared(
    members: Members, similarity: Similarity
) -> tuple[Members, Callable[[Members], Members]]:
    """Return rows whose products are the similarities, and their backprop to the members."""
    if similarity == "dot":
        return members, list
    normalized = [normalize(member, True) for member in members]

    def backprop(gradients: Members) -> Members:
        return [back(d) for (_, back), d in zip(normalized, gradients, strict=True)]

    return [unit for unit, _ in normalized], backprop


def _column(d: Floats1d) -> Floats2d:
    return get_array_module(d).expand_dims(d, 1)


def _opposite(du: Floats2d) -> Members:
    return [du, -du]


DISTANCES: Mapping[str, PairedFunction] = {
    "euclidean": _euclidean_distance,
    "cosine": _cosine_distance,
    "manhattan": _manhattan_distance,
}
