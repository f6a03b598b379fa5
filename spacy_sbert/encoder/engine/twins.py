"""The modules of a model once more, on the same weights: one copy trains, others are used meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any


class Twins:
    """Lends copies of a Hugging Face model that share its weights, and are in evaluation mode for ever.

    Whether dropout is on is noted on the modules, and some models keep things of a pass on theirs: two threads do not
    share modules. Copies are made when all that there are have been lent, and when the model has got other modules.
    """

    def __init__(self) -> None:
        self._free: list[tuple[list[Any], list[int], Any]] = []

    def __reduce__(self) -> tuple[type, tuple]:
        return Twins, ()

    @contextmanager
    def lend(self, model: Any) -> Iterator[Any]:
        """A copy for one thread.

        model: of Hugging Face, in whatever mode, which stays as it is.
        """
        modules = list(model.modules())
        tensors = [id(tensor) for tensor in (*model.parameters(), *model.buffers())]  # the copy keeps them alive
        found = self._free.pop() if self._free else None
        if found is None or found[:2] != (modules, tensors):
            self._free.clear()
            found = modules, tensors, _twin(model)
        yield found[2]
        self._free.append(found)  # not after an error: what the pass was to reset may not be


def _twin(model: Any) -> Any:
    shared = [*model.parameters(), *model.buffers(), model.config]
    return deepcopy(model, {id(part): part for part in shared}).eval()
