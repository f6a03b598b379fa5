"""What is read of a file: a text a row, and what the row is called."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Errors

Id = str | int
INT64 = range(-(2**63), 2**63)


class Row(NamedTuple):
    """A row of a file: its text, and its id if a column is named for it."""

    text: str
    id: Id | None


@dataclass(frozen=True)
class Columns:
    """Which columns are read.

    text: that of the text. id: that of the row's name, None for none. header: whether the first line of .csv and .tsv
    names the columns; without one they are named "0", "1", ...
    """

    text: str = "text"
    id: str | None = None
    header: bool = True

    @property
    def names(self) -> list[str]:
        """All columns that are read: text, id."""
        return [self.text] if self.id is None else [self.text, self.id]

    def row(self, values: list[Any], path: Path, line: int) -> Row:
        """The row that has these values in the columns `names`.

        RAISES (ValueError): if the text is no str or cannot be encoded, or the id is no str or int.
        """
        text = values[0]
        if not isinstance(text, str):
            raise ValueError(Errors.NOT_A_TEXT.format(path=path, line=line, column=self.text, given=text))
        try:
            text.encode("utf8")
        except UnicodeEncodeError as error:  # JSON can spell half a character: \ud83d
            raise ValueError(Errors.BAD_ENCODING.format(path=path, line=line, reason=error.reason)) from error
        if self.id is None:
            return Row(text, None)
        name = values[1]
        if not isinstance(name, str) and (isinstance(name, bool) or not isinstance(name, int) or name not in INT64):
            raise ValueError(Errors.BULK_BAD_ID.format(path=path, line=line, column=self.id, given=name))
        return Row(text, name)
