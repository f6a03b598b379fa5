"""The `sbert_chunks` component: passages of whole sentences, as long as an encoder reads well."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from .errors import Warnings, warn
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
# How many wordpieces a Span has
_Size = Callable[[Span], int]


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
        self._has_warned = False

    def __call__(self, doc: Doc) -> Doc:
        """Set the passages of a Doc."""
        sbert = self._find_sbert()
        encoder = sbert.text_encoder()
        self._check(doc, sbert, n_special=count_wordpieces(encoder, ""))

        def size(span: Span) -> int:
            return count_wordpieces(encoder, row_text(span))

        sentences = self._sentences(doc, size)
        breaks: set[int] = set()
        if self.threshold is not None:
            vectors = sbert.encode(sentences)
            differs = cosine(vectors[:-1], vectors[1:]) < self.threshold
            breaks.update(numpy.flatnonzero(differs) + 1)
        passages = self._passages(sentences, size, breaks)
        attrs = {_MADE_BY: self.name}
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, attrs=attrs, spans=passages)
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
            tokens = [doc[token.i : token.i + 1] for token in sentence if not token.is_space]
            if not tokens:
                continue
            whole = doc[tokens[0].start : tokens[-1].end]
            n_wordpieces = size(whole)
            if n_wordpieces <= self.max_length:
                sentences.append(whole)
                continue
            sentences += self._passages(tokens, size)
            if not self._has_warned:
                self._has_warned = True
                warn(Warnings.LONG_SENTENCE.format(size=n_wordpieces, name=self.name, text=whole))
        return sentences

    def _passages(
        self, parts: Sequence[Span], size: _Size, breaks: Collection[int] = ()
    ) -> list[Span]:
        """Return neighbouring parts of a Doc joined, as many as fit, one at least.

        breaks (Collection[int]): the parts before which a passage of min_length ends, not the
            first.
        """
        passages: list[Span] = []
        for number, part in enumerate(parts):
            passages.append(part)
            if number not in breaks or size(passages[-2]) < self.min_length:
                self._join_last(passages, size)
        if passages and size(passages[-1]) < self.min_length:
            self._join_last(passages, size)
        return passages

    def _join_last(self, passages: list[Span], size: _Size) -> None:
        """Join the last two passages, if there are two and they fit together."""
        if len(passages) < 2:
            return
        first, last = passages[-2:]
        both = first.doc[first.start : last.end]
        if size(both) <= self.max_length:
            passages[-2:] = [both]


@dataclass
class _FindSbert:
    """Finds the `sbert` pipe whose wordpieces are counted.

    A pickled one has found it: another process has no pipeline.
    """

    nlp: Language | None
    found: SentenceBert | None = None

    def __call__(self) -> SentenceBert:
        pipe = self.found
        if self.nlp is not None:
            for _, other in self.nlp.components:
                if isinstance(other, SentenceBert):
                    pipe = other
        if pipe is None:
            raise ValueError(
                "'sbert_chunks' counts the wordpieces of an 'sbert' pipe, and there is none in the "
                'pipeline. Add one: nlp.add_pipe("sbert").'
            )
        return pipe

    def __reduce__(self) -> tuple[type, tuple]:
        return _FindSbert, (None, self())


def count_wordpieces(encoder: TextEncoder, text: str) -> int:
    """Return how many wordpieces a text has, also those beyond the limit of the encoder.

    Special tokens and a default prompt count. Of an encoder that reads tokens, these are counted.
    """
    units = encoder.tokenize([text])
    if not isinstance(units, TokenizedBatch):
        return sum(not token.is_space for token in units[0])
    # Each window has its own special tokens: those of the first count
    return int(units.lengths[0] + units.n_text[1:].sum() + units.n_cut.sum())
