"""Parts of losses: the base layer, distances, cross-entropy, and a check of gradients."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from numbers import Real
from types import ModuleType
from typing import Any, Literal, TypeVar

import numpy
from thinc.api import Model
from thinc.types import Floats1d, Floats2d, Ints1d, Ints2d
from thinc.util import get_array_module

from ..models.heads import unit_length
from ..similarity import cosine, euclidean, manhattan
from ..validation import ConfiguredModel

Members = list[Floats2d]
Backprop = Callable[..., Members]  # takes d_loss, a factor on the loss, 1.0 if left out
Gold = Literal["score", "label", "vector", "text"]
InT = TypeVar("InT")
OutT = TypeVar("OutT")
ChoiceT = TypeVar("ChoiceT")


class LossLayer(ConfiguredModel[InT, OutT]):
    """A Thinc Model for a training objective, with the kind of examples that it takes.

    name (str): the name of the loss.
    forward (Callable): takes the Model, (members, gold) and is_train; returns the loss, a float, and its backprop.
        members: a list of arrays, float (n, width), one a member. gold: n gold values. backprop takes d_loss, a factor,
        and returns the gradient of the loss by each member, times d_loss.
    n_members (Sequence[int]): how many members an example may have.
    gold (str): the kind of gold value, None | "score" | "label" | "vector" | "text".
    whole_batch (bool): whether the loss of a batch is more than the mean over its examples, so that a batch that is
        split has another loss.
    is_sum (bool): whether the loss is a sum over its examples, not a mean.
    score_range (tuple): the least and the greatest gold score that the loss can learn from, None for any.
    learn_rate_factor (float): how many times faster than the encoder its own parameters learn.
    mini_batch_size (int): how many rows the encoder is to run at once, None for all.
    init, layers, dims, params, attrs: as in Model.
    """

    def __init__(
        self,
        name: str,
        forward: Callable,
        *,
        n_members: Sequence[int],
        gold: Gold | None,
        whole_batch: bool = False,
        is_sum: bool = False,
        score_range: tuple[float, float] | None = None,
        learn_rate_factor: float = 1.0,
        mini_batch_size: int | None = None,
        init: Callable | None = None,
        layers: Sequence[Model] = (),
        dims: dict[str, int | None] | None = None,
        params: dict[str, None] | None = None,
        attrs: dict[str, object] | None = None,
    ):
        super().__init__(
            name, forward, init=init, layers=layers, dims=dims or {}, params=dict(params or {}), attrs=attrs or {}
        )
        self.n_members = tuple(n_members)
        self.gold = gold
        self.whole_batch = whole_batch
        self.is_sum = is_sum
        self.score_range = score_range
        self.learn_rate_factor = learn_rate_factor
        self.mini_batch_size = mini_batch_size


def check_outputs(model: LossLayer, members: Sequence[Any], value: object, gradients: Any) -> None:
    """Refuse a loss that is no number, and gradients that do not have the shapes of the members.

    RAISES (ValueError): as said.
    """
    if not isinstance(value, Real):
        given = f"{type(value).__name__}{tuple(getattr(value, 'shape', ()))}"
        raise ValueError(
            f"The forward function of the loss '{model.name}' returned {given} as the loss of a batch. "
            "Expected a float, such as float(losses.mean())."
        )
    given_shapes = [getattr(gradient, "shape", None) for gradient in gradients] if gradients is not None else []
    shapes = [member.shape for member in members]
    if given_shapes != shapes:
        raise ValueError(
            f"The backprop of the loss '{model.name}' returned gradients of the shapes {given_shapes}. "
            f"Expected a list with one array a member, of the shape of the member: {shapes}."
        )


def check_inputs(model: LossLayer, members: Sequence[Sized], *gold_lengths: int) -> None:
    """Refuse a number of members that the loss does not take, and members or gold values that are not paired.

    RAISES (ValueError): if there are too few or too many members, or they differ in rows.
    """
    if len(members) not in model.n_members:
        known = " or ".join(map(str, model.n_members))
        raise ValueError(f"The loss '{model.name}' takes examples of {known} members, got {len(members)}.")
    lengths = [*map(len, members), *gold_lengths]
    if len(set(lengths)) > 1:
        *first, last = map(str, lengths)
        raise ValueError(
            "The loss '{loss}' expects as many rows of every member as of gold values, got {given}.".format(
                loss=model.name, given=f"{', '.join(first)} and {last}"
            )
        )


def as_inner(layer: object, *, loss: str, setting: str) -> LossLayer:
    """A layer that is to stand inside another loss.

    RAISES (ValueError): if it is not a loss layer, or takes a dict of inputs.
    """
    if not isinstance(layer, LossLayer):
        given = f"the Thinc model '{layer.name}'" if isinstance(layer, Model) else repr(layer)
        raise ValueError(
            f"The loss '{loss}' is built of loss layers, such as spacy-sbert.CosineSimilarityLoss.v1, got "
            f"{given}. Set @layers to one of them in {setting}, or to a function of yours that returns a "
            "spacy_sbert.losses.LossLayer."
        )
    if not layer.n_members:
        raise ValueError(
            f"The loss '{loss}' cannot hold '{layer.name}', which has objectives of its own. Make "
            f"'{layer.name}' the outermost loss."
        )
    return layer


def choose(choices: Mapping[str, ChoiceT], given: str, *, loss: str, setting: str) -> ChoiceT:
    """What a name in the config stands for.

    RAISES (ValueError): if it stands for nothing.
    """
    if not isinstance(given, str) or given not in choices:
        expected = ", ".join(choices)
        raise ValueError(f"Unknown {setting} '{given}' of the loss '{loss}': expected one of {expected}.")
    return choices[given]


def log_sum_exp(scores: Floats2d) -> Floats2d:
    """log sum_j exp(s_ij), (n, 1), without overflow."""
    xp = get_array_module(scores)
    highest = xp.max(scores, axis=1, keepdims=True)
    return highest + xp.log(xp.exp(scores - highest).sum(axis=1, keepdims=True))


def softmax(scores: Floats2d) -> Floats2d:
    """exp(s_ij) / sum_k exp(s_ik), (n, k)."""
    return get_array_module(scores).exp(scores - log_sum_exp(scores))


def cross_entropy(scores: Floats2d, targets: Ints1d) -> tuple[Floats1d, Floats2d]:
    """-log softmax(s_i)[t_i] of each row, and its derivative by the scores.

    scores (float (n, k)), targets (int (n,)): the index of the right column of each row.
    RETURNS (float (n,), float (n, k)): the loss of each row, and softmax(s_i) less 1 at the target.
    """
    xp = get_array_module(scores)
    rows, norm = xp.arange(len(scores)), log_sum_exp(scores)
    d_scores = xp.exp(scores - norm)
    d_scores[rows, targets] -= 1
    return norm[:, 0] - xp.asarray(scores)[rows, targets], d_scores


Derivative = Callable[[Floats1d], list[Floats2d]]
Paired = Callable[[Floats2d, Floats2d], tuple[Floats1d, Derivative]]

unit_rows = unit_length()  # has neither parameters nor state


def paired_cosine(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """cos(u_i, v_i), and du, dv: the cosine is the dot product of the rows at unit length."""
    (unit_u, back_u), (unit_v, back_v) = (unit_rows(x, True) for x in (u, v))

    def backprop(d_similarity: Floats1d) -> list[Floats2d]:
        d = _column(d_similarity)
        return [back_u(d * unit_v), back_v(d * unit_u)]

    return cosine(u, v), backprop


def cosine_distance(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """1 - cos(u_i, v_i), and du, dv."""
    similarity, backprop = paired_cosine(u, v)
    return 1 - similarity, lambda d_distance: backprop(-d_distance)


def euclidean_distance(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """||u_i - v_i||, and du = (u - v) / ||u - v|| = -dv."""

    def backprop(d_distance: Floats1d) -> list[Floats2d]:
        direction, _ = unit_rows(u - v, True)
        du = _column(d_distance) * direction
        return [du, -du]

    return euclidean(u, v), backprop


def manhattan_distance(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """sum_k |u_ik - v_ik|, and du = sign(u - v) = -dv."""

    def backprop(d_distance: Floats1d) -> list[Floats2d]:
        du = _column(d_distance) * get_array_module(u).sign(u - v)
        return [du, -du]

    return manhattan(u, v), backprop


DISTANCES: dict[str, Paired] = {
    "euclidean": euclidean_distance,
    "cosine": cosine_distance,
    "manhattan": manhattan_distance,
}


def pairwise_distances(X: Floats2d, distance: str) -> Floats2d:
    """How far each row is from each, to find the nearest and the farthest.

    X (float (n, width)): the rows.
    distance (str): one of DISTANCES.
    RETURNS (float (n, n)): grows with the distance, and need not be the distance itself.
    """
    return _FARNESS[distance](X)


def _euclidean_farness(X: Floats2d) -> Floats2d:
    xp = get_array_module(X)
    x = xp.asarray(X, dtype="float64")  # of long vectors that are near each other float32 would leave rounding alone
    longest = abs(x).max()
    x = x / xp.where(longest == 0, 1.0, longest)
    squares = (x * x).sum(axis=1)
    return squares[:, None] + squares[None, :] - 2 * x @ x.T  # grows with the square of the distance


def _cosine_farness(X: Floats2d) -> Floats2d:
    unit, _ = unit_rows(X, True)
    return -unit @ unit.T


def _manhattan_farness(X: Floats2d) -> Floats2d:
    xp = get_array_module(X)
    far = xp.zeros((len(X), len(X)), dtype=X.dtype)
    for column in xp.asarray(X.T):  # (n, n) in memory, not (n, n, width)
        far += abs(column[:, None] - column[None, :])
    return far


def _column(d: Floats1d) -> Floats2d:
    """(n,) as (n, 1)."""
    return get_array_module(d).expand_dims(d, 1)


_FARNESS: dict[str, Callable[[Floats2d], Floats2d]] = {
    "euclidean": _euclidean_farness,
    "cosine": _cosine_farness,
    "manhattan": _manhattan_farness,
}


def mean_square(errors: Floats1d | Floats2d, reduce: Literal["mean", "sum"] = "mean") -> float:
    """1/n sum_i e_i^2, or the sum: in the dtype of the errors, or in float64 where it is too large for that.

    errors (float array, NumPy or CuPy): e, n numbers.
    """
    square = get_array_module(errors).square
    with numpy.errstate(over="ignore"):  # it is looked at
        found = float(getattr(square(errors), reduce)())
    return found if numpy.isfinite(found) else float(getattr(square(errors.astype("float64")), reduce)())


def label_encode(rows: Iterable[Iterable[str]], xp: ModuleType) -> Ints2d:
    """Give equal strings equal numbers.

    rows (Iterable[Iterable[str]]): strings, the same number in each row.
    xp (module): numpy or cupy, where the numbers go.
    RETURNS (int (n_rows, n)): a number for each string.
    """
    known: dict[str, int] = {}
    return xp.asarray(numpy.array([[known.setdefault(text, len(known)) for text in row] for row in rows], dtype="i"))


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
        raise ValueError(f"Expected a loss layer (spacy_sbert.losses.LossLayer), got {given}.")
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
    raise ValueError(
        (
            "The gradient of the loss '{loss}' is wrong for {what} at [{place}]: backprop returns {given}, finite "
            "differences give {expected}. Correct the backprop. If the loss has a kink near this point, try other "
            "members."
        ).format(loss=loss.name, what=what, place=where, **numbers)
    )


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


def rank_pairs(similarity: Floats1d, gold: Floats1d, scale: float) -> tuple[float, Floats1d]:
    """The loss of pairs that stand in the wrong order, or in the right one too narrowly.

    loss = log(1 + sum_{i, j: gold_i > gold_j} exp(scale (s_j - s_i)))

    similarity (float (n,)), gold (float (n,)): the similarity that each pair has, and the one it is to have.
    RETURNS (float, float (n,)): the loss, 0 if no two gold values differ, and its derivative by the similarities.
    """
    xp = get_array_module(similarity)
    s, y = xp.asarray(similarity)[None, :], xp.asarray(gold)[None, :]
    excess = xp.where(y < y.T, scale * (s - s.T), -xp.inf)  # (n, n), of j over i
    terms = xp.concatenate([xp.zeros((1,), dtype=s.dtype), excess.ravel()])  # e^0 is the 1
    value = xp.asarray(log_sum_exp(terms[None, :]))  # (1, 1)
    share = xp.exp(excess - value)
    return float(value[0, 0]), scale * (share.sum(axis=0) - share.sum(axis=1))
