"""The words that tell a group of texts from the others."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

from .rows import Text

TERMS = 3  # in the name of a group


def words_of(text: Text) -> list[str]:
    """The words of a text that can name it, in lower case: letters alone, two or more of them, and no stop words."""
    return [token.lower_ for token in text if token.is_alpha and not token.is_stop and len(token) > 1]


def class_terms(
    words: Iterable[Sequence[str]], group: Sequence[int], groups: int, *, count: int = TERMS
) -> list[list[str]]:
    """The terms of each group with the highest class-based tf-idf, the highest first.

    W(t, c) = tf(t, c) / |c| log(1 + A / tf(t))

    tf(t, c) is how often the term t occurs in group c, |c| how many words the group has, tf(t) how often the term
    occurs in all groups, and A the mean number of words of a group that has any. Of equal terms the first in the
    alphabet comes first.

    words (Iterable of lists of str): those of each text. group (Sequence[int]): of each text, from 0. groups (int): how
        many groups there are. count (int): how many terms of each.
    RETURNS (list of lists of str): fewer of a group with fewer different words.
    SOURCE: Grootendorst 2022, BERTopic: Neural topic modeling with a class-based TF-IDF procedure, section 3.3; tf
        divided by |c| as in its software.
    """
    counts: list[Counter[str]] = [Counter() for _ in range(groups)]
    for text, place in zip(words, group, strict=True):
        counts[place].update(text)
    total = sum(counts, Counter())
    mean = total.total() / max(1, sum(map(bool, counts)))
    found: list[list[str]] = []
    for own in counts:
        # |c| is the same for all terms of a group, which is all that are compared
        weights = {term: tf * log(1 + mean / total[term]) for term, tf in own.items()}
        found.append(sorted(weights, key=lambda term: (-weights[term], term))[:count])
    return found
