"""What all loss layers are: a Thinc Model of members and gold values, with a float as output."""

from collections.abc import Callable, Mapping, Sequence, Sized
from numbers import Real
from typing import Any, Literal, TypeVar

from thinc.api import Model
from thinc.types import Floats2d

from ...errors.configured import Configured
from ..errors import Errors

Members = list[Floats2d]
Backprop = Callable[..., Members]  # takes d_loss, a factor on the loss, 1.0 if left out
Gold = Literal["score", "label", "vector", "text"]
InT = TypeVar("InT")
OutT = TypeVar("OutT")
ChoiceT = TypeVar("ChoiceT")


class LossLayer(Configured[InT, OutT]):
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
        raise ValueError(Errors.LOSS_NOT_A_NUMBER.format(loss=model.name, given=given))
    given_shapes = [getattr(gradient, "shape", None) for gradient in gradients] if gradients is not None else []
    shapes = [member.shape for member in members]
    if given_shapes != shapes:
        raise ValueError(Errors.GRADIENT_SHAPES.format(loss=model.name, given=given_shapes, expected=shapes))


def check_inputs(model: LossLayer, members: Sequence[Sized], *gold_lengths: int) -> None:
    """Refuse a number of members that the loss does not take, and members or gold values that are not paired.

    RAISES (ValueError): if there are too few or too many members, or they differ in rows.
    """
    if len(members) not in model.n_members:
        known = " or ".join(map(str, model.n_members))
        raise ValueError(Errors.LOSS_MEMBER_COUNT.format(loss=model.name, given=len(members), expected=known))
    lengths = [*map(len, members), *gold_lengths]
    if len(set(lengths)) > 1:
        *first, last = map(str, lengths)
        raise ValueError(Errors.UNEQUAL_ROWS.format(loss=model.name, given=f"{', '.join(first)} and {last}"))


def as_inner(layer: object, *, loss: str, setting: str) -> LossLayer:
    """A layer that is to stand inside another loss.

    RAISES (ValueError): if it is not a loss layer, or takes a dict of inputs.
    """
    if not isinstance(layer, LossLayer):
        given = f"the Thinc model '{layer.name}'" if isinstance(layer, Model) else repr(layer)
        raise ValueError(Errors.NOT_A_LOSS.format(loss=loss, given=given, setting=setting))
    if not layer.n_members:
        raise ValueError(Errors.NESTED_OBJECTIVES.format(loss=loss, given=layer.name))
    return layer


def choose(choices: Mapping[str, ChoiceT], given: str, *, loss: str, setting: str) -> ChoiceT:
    """What a name in the config stands for.

    RAISES (ValueError): if it stands for nothing.
    """
    if not isinstance(given, str) or given not in choices:
        expected = ", ".join(choices)
        raise ValueError(Errors.UNKNOWN_LOSS_SETTING.format(loss=loss, setting=setting, given=given, expected=expected))
    return choices[given]
