"""What the host has waited for: the values of a device that were asked for."""

import sys
from typing import Any, NamedTuple


class Look(NamedTuple):
    """A value of the device that the host waited for: how, and the module and function that asked."""

    how: str
    module: str
    function: str


class Looks(list[Look]):
    """All of a while."""

    @property
    def of_package(self) -> list[Look]:
        """Without those of Thinc, whose kernels check the lengths given, and of other packages: spacy-transformers
        reports a loss of its own."""
        return [look for look in self if look.module.startswith("spacy_sbert.")]


LOOKS = Looks()
HERE = {__name__, "gpu_rehearsal.strict_arrays", "thinc.util", "numpy", "copy"}


def look(how: str) -> None:
    """Count one, under the first caller outside the double that asked for itself, as thinc.util.to_numpy does not."""
    frame: Any = sys._getframe(1)
    while frame.f_globals["__name__"] in HERE:
        frame = frame.f_back
    LOOKS.append(Look(how, frame.f_globals["__name__"], frame.f_code.co_name))
