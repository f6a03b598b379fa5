"""Pairs of texts, in all the forms that users give them in."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

import numpy

from ..validation import NOT_SEVERAL, Text, check_text, dataframe_columns, one_column, short_repr
from .pair_tokenizer import Pair

TextPair = tuple[Text, Text]
TextPairs = Iterable[TextPair] | numpy.ndarray


def is_pair(given: object) -> TypeGuard[Sequence[Text]]:
    """Return whether this is a pair of texts, or an array of two."""
    if isinstance(given, numpy.ndarray):
        given = given.tolist()
    return (
        isinstance(given, tuple | list)
        and len(given) == 2
        and all(isinstance(text, Text) for text in given)
    )


def several_pairs(pairs: Any) -> Iterable[object]:
    """Return the rows of a table of two columns or of an array as a list.

    Other iterables are returned as they are.
    """
    names = dataframe_columns(pairs)
    if names is not None:
        if len(names) != 2:
            raise TypeError(
                f"Cannot score a table of {len(names)} columns {short_repr(tuple(names))}: "
                "expected the two columns of the texts. Choose them by their names, such as "
                'df[["query", "passage"]].'
            )
        first, second = (one_column(pairs[name]) for name in names)
        return list(zip(first, second, strict=True))
    if isinstance(pairs, numpy.ndarray) and pairs.ndim:
        return pairs.tolist()
    if not isinstance(pairs, Iterable) or isinstance(pairs, (numpy.ndarray, *NOT_SEVERAL)):
        raise TypeError(
            f"Cannot score {short_repr(pairs)}: expected pairs in an order, such as [(query, "
            "passage)]."
        )
    return pairs


def texts_of(pair: object, number: int) -> Pair:
    """Return the texts of a pair. RAISES (TypeError): if it is none; number (int): of the pair."""
    if not is_pair(pair):
        raise TypeError(
            f"Cannot score pair number {number}, {repr(pair)[:100]}: expected two texts (str, Doc "
            "or Span), such as (query, passage)."
        )
    texts = []
    for given in pair:
        text = given if isinstance(given, str) else given.text
        check_text(text, f"a text of pair number {number}")
        texts.append(text)
    return texts[0], texts[1]
