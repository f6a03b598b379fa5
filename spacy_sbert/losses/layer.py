"""What all loss layers are: a Thinc Model of members and gold values, with a float as output."""

from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any, TypeVar

from thinc.api import Model
from thinc.types import Floats2d

from .errors import Errors

Members = list[Floats2d]
Backprop = Callable[..., Members]  # takes d_loss, a factor on the loss, 1.0 if left out
ChoiceT = TypeVar("ChoiceT")


class LossLayer(Model[Any, Any]):
    """A Model that says what it takes, and that keeps what its config sets as plain attributes.

    The difference matters on loading: Model.attrs are saved and replace those of the config, plain attributes stay.

    name (str): the name of the loss.
    forward (Callable): takes the Model, (members, gold) and is_train; returns the loss and its backprop.
    n_members (list[int]): how many members an example may have.
    gold (str): the kind of gold value, None | "score" | "label" | "vector" | "text".
    whole_batch (bool): whether the loss of a batch is more than the mean over its examples, so that a batch that is
        split has another loss.
    score_range (tuple): the least and the greatest gold score that the loss can be learned by, None for any.
    is_sum (bool): whether the loss is a sum over its examples, not a mean.
    attrs (dict): more attrs to save.
    learn_rate_factor (float): how many times faster than the encoder its own parameters learn.
    mini_batch_size (int): how many rows the encoder is to run at once, None for all.
    settings: as in Model.
    """

    learn_rate_factor: float
    mini_batch_size: int | None
    score_range: tuple[float, float] | None

    def __init__(
        self,
        name: str,
        forward: Callable,
        *,
        n_members: list[int],
        gold: str | None,
        whole_batch: bool = False,
        is_sum: bool = False,
        score_range: tuple[float, float] | None = None,
        attrs: dict[str, Any] | None = None,
        learn_rate_factor: float = 1.0,
        mini_batch_size: int | None = None,
        **settings: Any,
    ):
        constants = {"n_members": list(n_members), "gold": gold, "whole_batch": whole_batch, "is_sum": is_sum}
        super().__init__(name, forward, attrs={**constants, **(attrs or {})}, **settings)
        self.learn_rate_factor = learn_rate_factor
        self.mini_batch_size = mini_batch_size
        self.score_range = score_range

    def _copy(self, seen: Any = None) -> "LossLayer":
        plain = super()._copy(seen)  # Thinc builds a Model, whatever the class
        copied = type(self).__new__(type(self))
        for slot in Model.__slots__:
            setattr(copied, slot, getattr(plain, slot))
        vars(copied).update(vars(self))
        return copied


def check_inputs(model: Model, members: Sequence[Sized], *gold_lengths: int) -> None:
    """Refuse a number of members that the loss does not take, and members or gold values that are not paired.

    RAISES (ValueError): if there are too few or too many members, or they differ in rows.
    """
    expected = model.attrs["n_members"]
    if len(members) not in expected:
        known = " or ".join(map(str, expected))
        raise ValueError(Errors.LOSS_MEMBER_COUNT.format(loss=model.name, given=len(members), expected=known))
    lengths = [*map(len, members), *gold_lengths]
    if len(set(lengths)) > 1:
        *first, last = map(str, lengths)
        raise ValueError(Errors.UNEQUAL_ROWS.format(loss=model.name, given=f"{', '.join(first)} and {last}"))


def check_inner(layer: Any, *, loss: str, setting: str) -> None:
    """Refuse what cannot stand inside another loss.

    RAISES (ValueError): if it is no loss layer, or takes a dict of inputs.
    """
    if not isinstance(layer, Model) or "n_members" not in layer.attrs:
        given = f"the Thinc model '{layer.name}'" if isinstance(layer, Model) else repr(layer)
        raise ValueError(Errors.NOT_A_LOSS.format(loss=loss, given=given, setting=setting))
    if not layer.attrs["n_members"]:
        raise ValueError(Errors.NESTED_OBJECTIVES.format(loss=loss, given=layer.name))


def choose(choices: Mapping[str, ChoiceT], given: str, *, loss: str, setting: str) -> ChoiceT:
    """What a name in the config stands for.

    RAISES (ValueError): if it stands for nothing.
    """
    if not isinstance(given, str) or given not in choices:
        expected = ", ".join(choices)
        raise ValueError(Errors.UNKNOWN_LOSS_SETTING.format(loss=loss, setting=setting, given=given, expected=expected))
    return choices[given]
