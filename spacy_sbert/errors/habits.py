"""What users try, such as what sentence-transformers takes: if it means the same it is done, else our way is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy
import torch
from thinc.api import Ops

from . import Errors
from .checks import check_fields


@dataclass(frozen=True)
class Habits:
    """What was given to a function that sentence-transformers has, too.

    show_progress_bar (bool): as progress. convert_to_tensor, convert_to_numpy (bool): the form of the result.
    """

    FUNCTION: ClassVar[str]  # ours
    OUR_WAY: ClassVar[Mapping[str, str]]  # in place of arguments that mean something else, or nothing, here
    DONE: ClassVar[Mapping[str, Sequence[object]]] = {}  # values of these that ask for what is done anyway

    show_progress_bar: bool | None = None
    convert_to_tensor: bool = False
    convert_to_numpy: bool = True

    @classmethod
    def of(cls, given: Mapping[str, Any], ops: Ops) -> Self:
        """What was given, to a model with these ops.

        RAISES (TypeError): for another argument, see refuse. (ValueError): if a value is not what is expected.
        """
        known = {field.name for field in fields(cls)}
        others = {name: value for name, value in given.items() if name not in known}
        refuse(cls.FUNCTION, others, cls.OUR_WAY, {**cls.DONE, "device": devices(ops)})
        found = cls(**{name: value for name, value in given.items() if name in known})
        check_fields(found)
        if not (found.convert_to_numpy or found.convert_to_tensor):
            remedy = "set convert_to_tensor = True, which gives one tensor"
            raise not_ours(cls.FUNCTION, "convert_to_numpy = False", remedy)
        return found

    def form(self, numbers: numpy.ndarray) -> Any:
        """An array -> the same, or a tensor on the CPU."""
        return torch.from_numpy(numbers) if self.convert_to_tensor else numbers


def refuse(
    function: str,
    given: Mapping[str, Any],
    our_way: Mapping[str, str],
    done: Mapping[str, Sequence[object]] = MappingProxyType({}),
) -> None:
    """Let arguments pass that ask for what is done anyway: None, and the values in done.

    RAISES (TypeError): if there is any other; the message says what to do in its place.
    """
    for name, value in given.items():
        if name not in our_way:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
        asked = str(value) if isinstance(value, torch.device) else value
        if asked is not None and not any(type(asked) is type(one) and asked == one for one in done.get(name, ())):
            raise not_ours(function, name, our_way[name])


def devices(ops: Ops) -> tuple[str, ...]:
    """What PyTorch calls the device of a model."""
    return ("cpu",) if ops.device_type == "cpu" else ("cuda", f"cuda:{ops.device_id}")


def not_ours(function: str, name: str, remedy: str) -> TypeError:
    """What says that a function does not take an argument, and what to do in its place."""
    return TypeError(Errors.NOT_OURS.format(function=function, name=name, remedy=remedy))
