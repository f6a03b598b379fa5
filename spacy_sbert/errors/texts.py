"""Texts as callers hold them: a list, an iterator, a column of pandas, polars, pyarrow or NumPy, Docs and Spans."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy
from spacy.tokens import Doc, Span

from . import Errors
from .checks import check_text, shown

Text = str | Doc | Span
NOT_SEVERAL = (str, bytes, bytearray, Mapping, set, frozenset, Doc, Span)  # or in no order
MISSING = {"NAType", "NaTType", "MaskedConstant"}  # of pandas and NumPy, which need not be imported


def checked_texts(texts: Iterable[Text]) -> Iterable[str]:
    """Return the texts as strings; the text of a Doc or Span is encoded without its context.

    texts (Iterable): str, Docs or Spans; a column or a table of one column. Lists and columns are checked at once,
        other iterables item by item as they are read.
    RAISES (TypeError): if this is no collection of texts, or one of them is missing or no text. (ValueError): if a text
        has half a character.
    """
    given = one_column(texts)
    found = _checked(given, _label_of(texts))
    return list(found) if isinstance(given, list | tuple) else found


def one_column(texts: Iterable[Any]) -> Iterable[Any]:
    """Return the items of a column as a list, and other iterables as they are.

    RAISES (TypeError): for a single text, a table of several columns, and what has no order or no items.
    """
    if isinstance(texts, NOT_SEVERAL):
        raise TypeError(Errors.NOT_TEXTS.format(given=shown(texts)))
    names = column_names(texts)
    if names is not None:
        if len(names) != 1:
            raise TypeError(Errors.SEVERAL_COLUMNS.format(given=_listed(names)))
        return one_column(texts[names[0]])  # type: ignore[index]
    shape = getattr(texts, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1:
        if len(shape) != 2 or shape[1] != 1:
            raise TypeError(Errors.SEVERAL_DIMENSIONS.format(given=shape))
        return list(texts[:, 0])  # type: ignore[index]
    if hasattr(texts, "to_pylist"):  # of pyarrow, whose items are no str
        return texts.to_pylist()
    if not isinstance(texts, Iterable) and not hasattr(texts, "__getitem__"):
        raise TypeError(Errors.NOT_TEXTS.format(given=shown(texts)))
    return list(texts) if shape is not None else texts


def text_of(item: Text) -> str:
    """Return the text of a str, Doc or Span."""
    return item if isinstance(item, str) else item.text


def _checked(texts: Iterable[Any], label: Callable[[int], str]) -> Iterator[str]:
    for i, item in enumerate(texts):
        if not isinstance(item, Text):
            if is_missing(item):
                raise TypeError(Errors.MISSING_TEXT.format(number=i + 1, label=label(i), given=item))
            raise TypeError(Errors.NOT_STR.format(number=i + 1, given=repr(item)[:50], kind=type(item).__name__))
        text = text_of(item)
        check_text(text, f"text number {i + 1}")
        yield text


def is_missing(item: object) -> bool:
    """True for None, NaN and the missing values of pandas and NumPy."""
    if item is None or type(item).__name__ in MISSING:
        return True
    return isinstance(item, float | numpy.floating) and bool(numpy.isnan(item))


def column_names(texts: Any) -> Sequence[Any] | None:
    """Return the names of a table's columns; None if this is no table."""
    for attribute in ("column_names", "columns"):
        names = getattr(texts, attribute, None)
        if names is not None and not callable(names) and isinstance(names, Iterable):
            return list(names)
    return None


def _listed(names: Sequence[Any]) -> str:
    given = ", ".join(map(shown, islice(names, 5)))
    return f"{len(names)} columns" + (f" ({given}{', ...' if len(names) > 5 else ''})" if given else "")


def _label_of(texts: Any) -> Callable[[int], str]:
    """Return what names a row of a pandas object by its index."""
    index: Any = getattr(texts, "index", None)
    if callable(index) or not hasattr(index, "__getitem__"):
        return lambda i: ""

    def label(i: int) -> str:
        key = index[i]
        return f" (index {shown(key.item() if hasattr(key, 'item') else key)})"  # a number of NumPy's

    return label
