"""The decoder of spacy-sbert among srsly's, which notices records of vectors in msgpack data.

srsly calls it in every process, for every map in all that it reads. So it is not in the package,
whose import takes spaCy's, and imports from it only if there is a record.
"""

from collections.abc import Callable
from typing import Any


def decode_record(obj: dict[Any, Any], chain: Callable[[Any], Any] | None = None) -> Any:
    """Return what was read as other decoders return it.

    Warn if it is a record whose Doc has lost its hooks.

    obj (dict): any map. chain (Callable): the other decoders.
    """
    if obj.get("set_hooks") is True and "vectors" in obj and "has_text" in obj:
        from spacy_sbert.pipeline.lost_hooks import warn_of_lost_hooks  # noqa: PLC0415 (of a record alone)

        warn_of_lost_hooks()
    return obj if chain is None else chain(obj)
