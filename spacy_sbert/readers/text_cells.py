"""Find the columns of a table that hold texts, by their cells."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

from ..files.tables import read_nameless, read_table

# A text has as many words or more, or one less if it ends as a sentence does
_WORDS = 3
# A column with fewer different texts than this share of its cells holds categories
_MAX_CATEGORIES = 0.3
# How many different texts of a column are counted
_MANY = 1000
_LETTERS = re.compile(r"[^\W\d_]")
# Characters of languages without spaces between words: Lao and Thai, Burmese, Khmer, Japanese,
# Chinese
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_CHARACTERS_OF_WORD = 1.5
_SENTENCE_ENDS = (".", "?", "!", "\u2026", "\u3002", "\uff1f", "\uff01")
_SEPARATED = re.compile(r"[,;|/]")


def find_texts(
    path: Path, names: Sequence[str], *, header: bool = True, limit: int | None = None
) -> list[str]:
    """Return the columns that hold texts: many different ones, of several words.

    names: of the columns to look at. limit (int): how many records to look at, None for all.
    """
    if not names:
        return []
    records = read_table(path, names, header=header, optional=names)
    return _text_columns(names, (cells for _, cells in islice(records, limit)))


def find_nameless_texts(path: Path, limit: int | None = None) -> list[str]:
    """Return the columns without a name in the header that hold texts, as messages call them.

    See find_texts.
    """
    labels, records = read_nameless(path)
    return _text_columns(labels, islice(records, limit))


def _text_columns(names: Sequence[str], records: Iterable[Sequence[object]]) -> list[str]:
    found = {name: _CellKinds() for name in names}
    for cells in records:
        for kinds, cell in zip(found.values(), cells, strict=True):
            kinds.add(cell)
    return [name for name, kinds in found.items() if kinds.are_texts]


class _CellKinds:
    """Counts of the cells of a column, to tell texts from names, categories, dates and the like."""

    def __init__(self) -> None:
        self.n_filled = 0
        self.n_texts = 0
        self.different: set[str] = set()

    def add(self, cell: object) -> None:
        strings = _strings(cell)
        texts = [string for string in strings if _is_text(string)]
        if strings:
            self.n_filled += 1
        if texts:
            self.n_texts += 1
        if len(self.different) <= _MANY:
            self.different.update(texts)

    @property
    def are_texts(self) -> bool:
        is_category = len(self.different) <= min(_MANY, _MAX_CATEGORIES * self.n_filled)
        return 2 * self.n_texts >= self.n_filled > 0 and not is_category


def _strings(cell: object) -> list[str]:
    """Return the strings in a cell that are not blank; of JSON also those in lists and objects."""
    if isinstance(cell, str):
        return [cell] if cell.strip() else []
    if isinstance(cell, Mapping):
        cell = cell.values()
    if not isinstance(cell, Iterable):
        return []
    return list(chain.from_iterable(map(_strings, cell)))


def _is_text(value: str) -> bool:
    """Return whether a cell holds a text: several words, few numbers, and no list or markup."""
    value = value.strip()
    tokens = value.split()
    n_words = len(list(filter(_is_word, tokens)))
    n_words += int(len(_UNSPACED.findall(value)) / _CHARACTERS_OF_WORD)
    needed = _WORDS
    if value.endswith(_SENTENCE_ENDS):
        needed -= 1
    if n_words < needed or value[0] in "[{<" or _is_list(value):
        return False
    n_numbers = len([token for token in tokens if any(map(str.isdigit, token))])
    return 3 * n_numbers < len(tokens) + n_words


def _is_word(token: str) -> bool:
    return len(_LETTERS.findall(token)) > 1 and "://" not in token


def _is_list(value: str) -> bool:
    """Return whether a cell holds names with separators between, such as keywords."""
    names = _SEPARATED.split(value)
    return len(names) > 2 and all(len(name.split()) < _WORDS for name in names)
