"""Texts of others, made fit for any file."""

import unicodedata

JOINERS = "\u200c\u200d"  # format characters without which Persian, Hindi and emoji are written wrongly


def clean(text: object) -> str:
    """A text that any file can hold: control, format and half characters as spaces, except zero-width joiners."""
    return "".join(
        " " if unicodedata.category(character)[0] == "C" and character not in JOINERS else character
        for character in str(text)
    )
