"""The encoders that made stored vectors, and a warning if those of two are compared."""

from collections.abc import Iterable
from typing import Any

from ..errors.notices import warn
from .errors import Warnings

SPACY = "spaCy's own vectors"
_warned: set[frozenset[str]] = set()  # pairs of encoders, in this process


class Encoder(str):
    """The fingerprint of an encoder, or SPACY; name (str): of the pipe that used it."""

    name = ""

    @classmethod
    def of(cls, record: Any) -> "Encoder":
        """Return the encoder of a PlacedRecord."""
        found = cls(record.data.get("fingerprint", ""))
        found.name = record.name
        return found

    def __repr__(self) -> str:
        return f"'{self.name}' {self}" if self.name else str(self)


def encoders_of(records: Iterable[Any]) -> set[Encoder]:
    """Return the encoders that made the vectors of records, those that are known."""
    return {Encoder.of(record) for record in records if record.data.get("fingerprint")}


def check_one_encoder(*sides: Iterable[Encoder]) -> None:
    """Warn, once for each pair, if vectors that are compared or averaged are of several encoders."""
    found = sorted(set().union(*sides))
    for theirs in found[1:]:
        pair = frozenset((found[0], theirs))
        if pair not in _warned:
            _warned.add(pair)
            warn(Warnings.OTHER_ENCODER.format(ours=repr(found[0]), theirs=repr(theirs)))
