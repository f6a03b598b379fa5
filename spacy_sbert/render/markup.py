"""Texts of others as HTML and SVG hold them."""

import unicodedata
from html import escape
from typing import Any

JOINERS = "\u200c\u200d"  # format characters without which Persian, Hindi and emoji are written wrongly


def clean(text: Any) -> str:
    """A text that any file can hold: control, format and half characters as spaces, but for zero-width joiners."""
    return "".join(
        " " if unicodedata.category(character)[0] == "C" and character not in JOINERS else character
        for character in str(text)
    )


def safe(text: Any) -> str:
    """A text as HTML and SVG hold it, in elements and in quoted attributes."""
    return escape(clean(text))
