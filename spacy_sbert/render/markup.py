"""Texts of others, made fit for any file."""

import unicodedata

JOINERS = "\u200c\u200d"  # format characters without which Persian, Hindi and emoji are written wrongly


def clean(text: object) -> str:
    """A text that any file can hold: control, format and half characters as spaces, except zero-width joiners."""
    text = str(text)
    if text.isprintable():  # most are, and this is fast
        return text
    return "".join(" " if unicodedata.category(one)[0] == "C" and one not in JOINERS else one for one in text)
