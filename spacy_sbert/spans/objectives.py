"""Of which objective an example is, and how many examples of each a reader has."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol, cast, runtime_checkable

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

OBJECTIVE = "objective"  # in the attrs of members: which data set an example comes from
Reader = Callable[[Language], Iterable[Example]]
Counts = Counter[str | None]  # examples of each objective, by kind_of


@runtime_checkable
class Counting(Protocol):
    """A reader that can count its examples without making all of their Docs."""

    def counts(self, spans_key: str) -> Counts:
        """How many examples of each objective, see count_objectives."""


def kind_of(doc: Doc, spans_key: str) -> str | None:
    """The objective of an example, "" where it is the only one; None for a Doc without members."""
    group = doc.spans.get(spans_key)
    return None if group is None else cast(str, group.attrs.get(OBJECTIVE, ""))


def count_objectives(corpus: Reader, spans_key: str, nlp: Language | None = None) -> Counts:
    """How many examples of each objective a reader has.

    corpus (Callable): the reader; one that cannot count is read.
    spans_key (str): where the members stand.
    nlp (Language): the pipeline to read in, None for reading_pipeline().
    RETURNS (Counter): how many, by kind_of.
    RAISES (ValueError): what the reader raises.
    """
    if isinstance(corpus, Counting):
        return corpus.counts(spans_key)
    return Counter(kind_of(example.reference, spans_key) for example in corpus(nlp or reading_pipeline()))


def reading_pipeline() -> Language:
    """A pipeline to count examples in: spaCy's own readers have as many in any language."""
    return spacy.blank("xx")
