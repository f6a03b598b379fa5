"""What an output is made of."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...files.texts import TextRow
from ..vectors import VectorFile


@dataclass(frozen=True)
class Result:
    """All vectors of a run, and the rows they are of.

    vectors: all windows are done. rows: reads the rows again. id_type: "int64" or "string", None for row numbers.
    with_text: whether the texts are written, too.
    """

    vectors: VectorFile
    rows: Callable[[], Iterator[TextRow]]
    id_type: str | None
    with_text: bool
