"""From texts to Docs: an example is one Doc, its members are Spans, and gold stands on the reference alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy
from spacy.attrs import NORM
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from thinc.types import Ints2d

from ..errors.checks import Name, check, validated
from ..spans import SPANS_KEY
from ..spans.objectives import OBJECTIVE
from .errors import Errors

Gold = float | str | Sequence[float] | numpy.ndarray | None  # score, label, vector


@validated
def example_doc(nlp: Language, members: Sequence[str], *, spans_key: Name = SPANS_KEY, **gold: Gold) -> Doc:
    """One Doc of several texts, with the texts as members and gold values beside them.

    nlp (Language): whose tokenizer makes the Doc. members (Sequence[str]): the texts, none of them empty.
    spans_key (str): where the members stand.
    gold: score (float from 0 to 1), label (str), vector (floats of a teacher); None leaves one out.
    RETURNS (Doc): the texts one after the other; doc.spans[spans_key] holds a Span for each, and gold in its attrs.
    RAISES (ValueError): for a text without tokens, or no text at all.
    """
    check("label", gold.get("label"), Name | None)
    return _build(nlp, _tokenize(nlp, members), spans_key, gold)


@validated
def pair_doc(nlp: Language, first: str, second: str, score: float, *, spans_key: Name = SPANS_KEY) -> Doc:
    """One Doc of two texts, with the texts as members and the score, from 0 to 1, as gold: see example_doc."""
    return example_doc(nlp, (first, second), spans_key=spans_key, score=score)


def text_example(nlp: Language, members: Sequence[str], *, spans_key: str = SPANS_KEY, **gold: Gold) -> Example:
    """An Example of several texts: as make_example of their example_doc, for whose arguments see there, but quicker."""
    tokens = _tokenize(nlp, members)
    return Example(_build(nlp, tokens, spans_key, {}), _build(nlp, tokens, spans_key, gold))


def make_example(reference: Doc, spans_key: str = SPANS_KEY) -> Example:
    """An Example whose predicted Doc has the words and members of the reference, and none of its gold.

    reference (Doc): see example_doc.
    RETURNS (Example): only attrs["objective"], which is not gold, stands on both Docs.
    """
    words = [token.text for token in reference]
    predicted = Doc(reference.vocab, words=words, spaces=[bool(token.whitespace_) for token in reference])
    predicted.from_array([NORM], cast(Ints2d, reference.to_array([NORM])))
    group = reference.spans[spans_key]
    spans = [Span(predicted, span.start, span.end) for span in group]
    attrs = {OBJECTIVE: group.attrs[OBJECTIVE]} if OBJECTIVE in group.attrs else {}
    predicted.spans[spans_key] = SpanGroup(predicted, name=spans_key, attrs=attrs, spans=spans)
    return Example(predicted, reference)


@dataclass(frozen=True)
class Tokens:
    """All members, tokenized, one after another.

    words, spaces: of a Doc. norms: uint64 (tokens,), as the tokenizer has them: "not" for "n't".
    borders: between the members: 0, the end of the first, ... of the last.
    """

    words: list[str]
    spaces: list[bool]
    norms: numpy.ndarray
    borders: list[int]


def _tokenize(nlp: Language, members: Sequence[str]) -> Tokens:
    words: list[str] = []
    spaces: list[bool] = []
    norms: list[int] = []
    borders = [0]
    for number, text in enumerate(members, start=1):
        doc = nlp.make_doc(text)
        words += [token.text for token in doc]
        spaces += [bool(token.whitespace_) for token in doc]
        norms += [token.norm for token in doc]
        if not len(doc):
            raise ValueError(Errors.NO_TOKENS.format(number=number, given=text))
        spaces[-1] = True  # a member ends where the next begins
        borders.append(len(words))
    if not words:
        raise ValueError(Errors.NO_MEMBERS)
    return Tokens(words, spaces, numpy.array(norms, dtype="uint64"), borders)


def _build(nlp: Language, tokens: Tokens, spans_key: str, gold: Mapping[str, Gold]) -> Doc:
    doc = Doc(nlp.vocab, words=tokens.words, spaces=tokens.spaces).from_array([NORM], cast(Ints2d, tokens.norms))
    spans = [Span(doc, start, end) for start, end in pairwise(tokens.borders)]
    attrs = {name: value for name, value in gold.items() if value is not None}
    doc.spans[spans_key] = SpanGroup(doc, name=spans_key, attrs=attrs, spans=spans)
    return doc
