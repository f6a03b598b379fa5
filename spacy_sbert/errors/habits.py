"""What users try, such as what sentence-transformers takes: if it means the same it is done, else our way is told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy
import torch

from . import Errors
from .checks import check_fields


@dataclass(frozen=True)
class Habits:
    """What was given to a function that sentence-transformers has, too.

    show_progress_bar (bool): as progress. convert_to_tensor, convert_to_numpy (bool): the form of the result.
    """

    FUNCTION: ClassVar[str]  # ours
    OUR_WAY: ClassVar[Mapping[str, str]]  # in place of arguments that mean something else, or nothing, here

    show_progress_bar: bool | None = None
    convert_to_tensor: bool = False
    convert_to_numpy: bool = True

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """RAISES (TypeError): for another argument, see refuse. (ValueError): if a value is not what is expected."""
        known = {field.name for field in fields(cls)}
        refuse(cls.FUNCTION, (name for name in given if name not in known), cls.OUR_WAY)
        found = cls(**given)
        check_fields(found)
        if not (found.convert_to_numpy or found.convert_to_tensor):
            remedy = "set convert_to_tensor = True, which gives one tensor"
            raise not_ours(cls.FUNCTION, "convert_to_numpy = False", remedy)
        return found

    def form(self, numbers: numpy.ndarray) -> Any:
        """An array -> the same, or a tensor on the CPU."""
        return torch.from_numpy(numbers) if self.convert_to_tensor else numbers


def refuse(function: str, given: Iterable[str], our_way: Mapping[str, str]) -> None:
    """RAISES (TypeError): if there is any argument; the message says what to do in its place."""
    for name in given:
        if name in our_way:
            raise not_ours(function, name, our_way[name])
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")


def not_ours(function: str, name: str, remedy: str) -> TypeError:
    """What says that a function does not take an argument, and what to do in its place."""
    return TypeError(Errors.NOT_OURS.format(function=function, name=name, remedy=remedy))
