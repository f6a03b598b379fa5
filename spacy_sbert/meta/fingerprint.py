"""The fingerprint of a meta-embedding: of its estimator, and of what made its members' vectors."""

from collections.abc import Mapping, Sequence
from typing import Any

import srsly

from ..vectors.fingerprint import combined
from .estimator import MetaEmbedding
from .members import FunctionMember, Member


class MetaFingerprint:
    """The fingerprint of one meta-embedding; a fitted estimator is read again. A copy starts without it."""

    def __init__(self) -> None:
        self._read: tuple[list[object], str] | None = None
        self._found: dict[tuple[str, ...], str] = {}

    def __reduce__(self) -> tuple[type, tuple]:
        return MetaFingerprint, ()

    def of(self, estimator: MetaEmbedding, members: Sequence[Member], encoders: Mapping[str, str]) -> str:
        """Return the fingerprint; encoders (dict): that of each member that is a pipe, "" if it is not known."""
        if not all(encoders.values()):
            return ""
        learned: list[Any] = [estimator, *(getattr(estimator, name, None) for name in estimator.learned)]
        learned.append(estimator.widths_)
        if self._read is None or not _are_same(self._read[0], learned):
            own = [part for member in members if isinstance(member, FunctionMember) for part in member.identity()]
            state = {"method": estimator.method, "settings": estimator.settings, "arrays": estimator.state()["arrays"]}
            self._read = learned, combined(srsly.msgpack_dumps(state), *own)
            self._found.clear()
        key = self._read[1], *encoders.values()
        if key not in self._found:
            self._found[key] = combined(*key)
        return self._found[key]


def _are_same(ours: Sequence[object], theirs: Sequence[object]) -> bool:
    return len(ours) == len(theirs) and all(a is b for a, b in zip(ours, theirs, strict=True))
