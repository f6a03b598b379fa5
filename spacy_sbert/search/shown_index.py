"""An index as a notebook shows it."""

from collections.abc import Iterable, Sized
from html import escape
from itertools import islice

FIRST = 5  # texts that are shown
LONGEST = 100  # characters of each


def shown_index(index: Sized, texts: Iterable[str]) -> str:
    """What an index says of itself, and the first of its texts: HTML in which texts are escaped.

    index: one of n rows. texts: those of the rows, or none.
    """
    first = list(islice(texts, FIRST))
    rows = [f"<tr><td>{row}</td><td dir=auto>{escape(_shortened(text))}</td></tr>" for row, text in enumerate(first)]
    if not rows:
        return f"<p>{escape(repr(index))}</p>"
    more = f"<p>and {len(index) - len(first):,} more</p>" if len(index) > len(first) else ""
    head = "<thead><tr><th>row</th><th>text</th></tr></thead>"
    return f"<p>{escape(repr(index))}</p><table>{head}<tbody>{''.join(rows)}</tbody></table>{more}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
