"""What all Thinc models of this package that have settings are: Models whose settings are not saved."""

from typing import TypeVar

from thinc.api import Model
from thinc.shims import Shim

InT = TypeVar("InT")
OutT = TypeVar("OutT")
ModelT = TypeVar("ModelT", bound="Configured")


class Configured(Model[InT, OutT]):
    """A Model whose settings and constants are plain attributes, which its copies have, too.

    Model.attrs are saved, and replace those of the config when they are loaded. So they are for what was learned.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def copy(self: ModelT) -> ModelT:
        return self._copy()  # whatever another base, such as the stock transformer, does

    def _copy(self: ModelT, seen: dict[int, Model | Shim] | None = None) -> ModelT:
        plain = super()._copy(seen)  # Thinc builds a Model, whatever the class
        copied = type(self).__new__(type(self))
        for slot in Model.__slots__:
            setattr(copied, slot, getattr(plain, slot))
        vars(copied).update(vars(self))
        return copied
