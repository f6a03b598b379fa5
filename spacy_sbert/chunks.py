"""The `sbert_chunks` component: passages of whole sentences, as long as an encoder reads well."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from .errors import Warnings, WarnOnce, warn
from .models.encoded_docs import TruncationCounter
from .models.span_batch import row_text
from .models.spans import CHUNKS_KEY, sentences_of
from .models.text_encoders import TextEncoder
from .models.tokenization import TokenizedBatch
from .pipeline.sbert import SentenceBert
from .similarity import cosine
from .validation import (
    Cosine,
    NonNegative,
    Positive,
    SpansKey,
    invalid_value_message,
    validated,
)

# In the attrs of the groups that this component makes
_MADE_BY = "sbert_chunks"
# Sentences or tokens, one after another
_Parts = Sequence[Span]
# How many wordpieces they have as one text
_Size = Callable[[_Parts], int]


class SentenceChunker(Pipe):
    """Passages of whole sentences, a group of Spans in doc.spans[spans_key].

    Each has as many sentences in a row as fit. Lengths are those of the texts in wordpieces,
    special tokens and a default prompt included, by the tokenizer of the last `sbert` pipe, which
    may be before or behind this one, or disabled. A sentence that does not fit is broken between
    tokens, with a warning. Each token but white space is in exactly one passage.

    With a threshold, a passage that has min_length also ends before a sentence v that differs from
    the one before, u: cos(u, v) < threshold. A last passage below min_length joins the one before
    if they fit together; else it stays.

    vocab (Vocab): the pipeline's.
    name (str): the pipe's name.
    max_length (int): the most wordpieces of a passage, up to the encoder's limit.
    min_length (int): the least wordpieces, where sentences allow it.
    threshold (float): the cosine below which sentences differ; None to go by length only.
    spans_key (str): where the passages are stored.
    nlp (Language): the pipeline that the pipe is made for.
    RAISES (ValueError): if min_length is above max_length; with a Doc, if max_length is above the
        encoder's limit or has no room for text, or there are no sentence boundaries, no `sbert`
        pipe, or Spans of another pipe.
    SOURCE: Hearst 1997 (TextTiling), section 4, for breaks at a low cosine of neighbours.

    Example:
        nlp.add_pipe("sentencizer")
        nlp.add_pipe("sbert_chunks", config={"max_length": 64, "min_length": 16})
        nlp.add_pipe("sbert", config={"model": {"get_spans": {"unit": "chunk"}}})
        print(nlp(text).spans["chunks"])

    """

    @validated
    def __init__(
        self,
        vocab: Vocab,
        name: str = "sbert_chunks",
        *,
        max_length: Positive = 128,
        min_length: NonNegative = 32,
        threshold: Cosine | None = None,
        spans_key: SpansKey = CHUNKS_KEY,
        nlp: Language | None = None,
    ):
        if min_length > max_length:
            raise ValueError(
                invalid_value_message(
                    "min_length", min_length, f"at most max_length = {max_length}"
                )
            )
        self.vocab = vocab
        self.name = name
        self.max_length = max_length
        self.min_length = min_length
        self.threshold = threshold
        self.spans_key = spans_key
        self._find_sbert = _FindSbert(nlp)
        self._notices = WarnOnce(TruncationCounter)

    def __call__(self, doc: Doc) -> Doc:
        """Set the passages of a Doc."""
        sbert = self._find_sbert()
        encoder = sbert.text_encoder()
        self._check(doc, sbert, n_special=count_wordpieces(encoder, ""))

        def size(parts: _Parts) -> int:
            return count_wordpieces(encoder, row_text(_joined(parts)))

        sentences = self._sentences(doc, size)
        breaks: list[int] = []
        if self.threshold is not None:
            vectors = sbert.encode(sentences)
            differs = cosine(vectors[:-1], vectors[1:]) < self.threshold
            breaks = list(numpy.flatnonzero(differs) + 1)
        groups = _groups(sentences, size, self.max_length, breaks, self.min_length)
        doc.spans[self.spans_key] = SpanGroup(
            doc,
            name=self.spans_key,
            attrs={_MADE_BY: self.name},
            spans=list(map(_joined, groups)),
        )
        return doc

    def _check(self, doc: Doc, sbert: SentenceBert, n_special: int) -> None:
        """Check that passages of a Doc can be made and stored. RAISES (ValueError): if not."""
        limit = sbert.max_length or self.max_length
        if not n_special < self.max_length <= limit:
            expected = (
                f"more than {n_special}, of special tokens and prompt, and at most {limit}, the "
                f"limit of the encoder of '{sbert.name}'"
            )
            raise ValueError(invalid_value_message("max_length", self.max_length, expected))
        is_taken = self.spans_key in doc.spans and _MADE_BY not in doc.spans[self.spans_key].attrs
        if is_taken or self.spans_key == sbert.spans_key:
            raise ValueError(
                f"Cannot store passages in doc.spans['{self.spans_key}'], which another pipe uses. "
                f"Set another spans_key of '{self.name}'."
            )

    def _sentences(self, doc: Doc, size: _Size) -> list[Span]:
        """Return the sentences of a Doc without white space around them.

        One that does not fit is broken into parts that do.
        """
        sentences: list[Span] = []
        for sentence in sentences_of(doc):
            places = [token.i for token in sentence if not token.is_space]
            if not places:
                continue
            whole = doc[places[0] : places[-1] + 1]
            n_wordpieces = size([whole])
            if n_wordpieces <= self.max_length:
                sentences.append(whole)
                continue
            tokens = [doc[place : place + 1] for place in places]
            sentences += map(_joined, _groups(tokens, size, self.max_length))
            if self._notices.is_new("long sentence"):
                warn(Warnings.LONG_SENTENCE.format(size=n_wordpieces, name=self.name, text=whole))
        return sentences


def _groups(
    parts: _Parts,
    size: _Size,
    max_length: int,
    breaks: Sequence[int] = (),
    min_length: int = 0,
) -> list[list[Span]]:
    """Return neighbouring parts of a Doc in groups of as many as fit; one at least.

    breaks (list[int]): the parts before which a group of min_length ends.
    min_length (int): a last group below it joins the one before if they fit together.
    """
    groups: list[list[Span]] = []
    for number, part in enumerate(parts):
        if groups:
            last = groups[-1]
            is_break = number in breaks and size(last) >= min_length
            if not is_break and size([*last, part]) <= max_length:
                last.append(part)
                continue
        groups.append([part])
    if len(groups) > 1 and size(groups[-1]) < min_length:
        both = groups[-2] + groups[-1]
        if size(both) <= max_length:
            groups[-2:] = [both]
    return groups


def _joined(parts: _Parts) -> Span:
    """Return neighbouring parts of a Doc as one Span."""
    first = parts[0]
    return first.doc[first.start : parts[-1].end]


class _FindSbert:
    """Finds the `sbert` pipe whose wordpieces are counted.

    A pickled one has found it: another process has no pipeline.
    """

    def __init__(self, nlp: Language | None):
        self.nlp = nlp

    def __call__(self) -> SentenceBert:
        components = [] if self.nlp is None else self.nlp.components
        pipes = [pipe for _, pipe in components if isinstance(pipe, SentenceBert)]
        if not pipes:
            raise ValueError(
                "'sbert_chunks' counts the wordpieces of an 'sbert' pipe, and there is none in the "
                'pipeline. Add one: nlp.add_pipe("sbert").'
            )
        return pipes[-1]

    def __reduce__(self) -> tuple[type, tuple]:
        return partial, (_itself, self())


def _itself(pipe: SentenceBert) -> SentenceBert:
    return pipe


def count_wordpieces(encoder: TextEncoder, text: str) -> int:
    """Return how many wordpieces a text has, also those beyond the limit of the encoder.

    Special tokens and a default prompt count. Of an encoder that reads tokens, these are counted.
    """
    units = encoder.tokenize([text])
    if not isinstance(units, TokenizedBatch):
        return sum(not token.is_space for token in units[0])
    # Each window has its own special tokens
    n_special = units.lengths[0] - units.n_text[0]
    return int(n_special + units.n_text.sum() + units.n_cut.sum())
