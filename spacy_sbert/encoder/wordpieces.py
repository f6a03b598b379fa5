"""From rows of text to wordpieces: tokenised whole batches at a time, cut or windowed at the encoder's true limit."""

from dataclasses import dataclass
from typing import Any, cast

import numpy
from spacy.tokens import Span
from spacy_transformers.align import get_alignment
from thinc.types import Ragged

from ..types import EncoderSettings
from .align import align_offsets
from .rows import RowBatch

OVERFLOWS = ("truncate", "windows")


@dataclass
class Windows:
    """Tokenised windows, n of them, w wordpieces wide with padding.

    span_of: int64 (n,), the Span each window is of; a Span's windows follow one another.
    input_ids, attention_mask, special_mask: int64 (n, w); token_type_ids too, None if the encoder has none.
    offsets: int64 (n, w, 2), the characters of each wordpiece in its Span; None for a slow tokenizer.
    strings: the wordpieces.
    """

    span_of: numpy.ndarray
    input_ids: numpy.ndarray
    attention_mask: numpy.ndarray
    special_mask: numpy.ndarray
    token_type_ids: numpy.ndarray | None
    offsets: numpy.ndarray | None
    strings: list[list[str]]

    @property
    def n_text(self) -> numpy.ndarray:
        """int64 (n,): wordpieces of each window without special tokens and padding."""
        return (self.attention_mask * (1 - self.special_mask)).sum(axis=1)

    def take(self, kept: numpy.ndarray) -> "Windows":
        """Some of the windows."""
        return Windows(
            span_of=self.span_of[kept],
            input_ids=self.input_ids[kept],
            attention_mask=self.attention_mask[kept],
            special_mask=self.special_mask[kept],
            token_type_ids=None if self.token_type_ids is None else self.token_type_ids[kept],
            offsets=None if self.offsets is None else self.offsets[kept],
            strings=[self.strings[i] for i in kept],
        )


def encode_spans(
    tokenizer: Any, spans: list[list[Span]], settings: EncoderSettings, overflow: str
) -> tuple[list[list[Span]], RowBatch, Ragged]:
    """Tokenise the rows of a batch of Docs.

    tokenizer: of Hugging Face.
    spans (list[list[Span]]): the rows of each Doc, in the order of the text.
    settings (EncoderSettings): of the encoder; max_length limits a row.
    overflow (str): what happens to a row that is longer: "truncate" cuts its end, "windows" makes several windows of
        it. Every window begins and ends with the special tokens.
    RETURNS (list[list[Span]], RowBatch, Ragged): the rows once for each of their windows, the wordpieces, and for each
        token of the Docs the indices of its wordpieces in the flattened batch.
    """
    flat = [span for doc_spans in spans for span in doc_spans]
    texts = [span.text.lower() if settings.lowercase else span.text for span in flat]
    windows = _tokenize(tokenizer, texts, settings.max_length)
    first = numpy.flatnonzero(numpy.append(True, windows.span_of[1:] != windows.span_of[:-1]))
    n_text = windows.n_text
    n_cut = numpy.zeros(len(windows.span_of), dtype="int64")
    if overflow == "truncate" and len(first) < len(n_text):
        n_cut = (numpy.add.reduceat(n_text, first) - n_text[first]).astype("int64")
        windows, n_text = windows.take(first), n_text[first]
    window_spans = [flat[i] for i in windows.span_of]
    batch = RowBatch(
        strings=windows.strings,
        input_ids=cast(Any, windows.input_ids),
        attention_mask=cast(Any, windows.attention_mask.astype("float32")),
        lengths=windows.attention_mask.sum(axis=1).tolist(),
        token_type_ids=cast(Any, windows.token_type_ids),
        spans=numpy.array([(i, flat[i].start, flat[i].end) for i in windows.span_of]),
        n_text=n_text,
        n_cut=n_cut,
        settings=settings,
    )
    if windows.offsets is None:
        align = get_alignment(window_spans, windows.strings, tokenizer.all_special_tokens)
    else:
        align = align_offsets(window_spans, windows.offsets)
    counts = numpy.bincount(windows.span_of, minlength=len(flat))
    numbers = iter(range(len(flat)))
    nested = [[span for span in doc_spans for _ in range(counts[next(numbers)])] for doc_spans in spans]
    return nested, batch, align


def _tokenize(tokenizer: Any, texts: list[str], max_length: int | None) -> Windows:
    if not tokenizer.is_fast:
        return _tokenize_slowly(tokenizer, texts, max_length)
    data = tokenizer(
        texts,
        padding="longest",
        truncation=max_length is not None,
        max_length=max_length,
        return_overflowing_tokens=max_length is not None,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_attention_mask=True,
        return_tensors="np",
    )
    return Windows(
        span_of=data.get("overflow_to_sample_mapping", numpy.arange(len(texts))),
        input_ids=data["input_ids"],
        attention_mask=data["attention_mask"],
        special_mask=data["special_tokens_mask"],
        token_type_ids=data.get("token_type_ids"),
        offsets=data["offset_mapping"],
        strings=[encoding.tokens for encoding in data.encodings],
    )


def _tokenize_slowly(tokenizer: Any, texts: list[str], max_length: int | None) -> Windows:
    pieces = [tokenizer.encode(text, add_special_tokens=False, verbose=False) for text in texts]
    body = max(map(len, pieces)) if max_length is None else max_length - tokenizer.num_special_tokens_to_add()
    starts = [(i, at) for i, ids in enumerate(pieces) for at in range(0, max(len(ids), 1), max(body, 1))]
    data = tokenizer.pad(
        [tokenizer.prepare_for_model(pieces[i][at : at + body], return_special_tokens_mask=True) for i, at in starts],
        padding="longest",
        return_attention_mask=True,
        return_tensors="np",
    )
    return Windows(
        span_of=numpy.array([i for i, _ in starts]),
        input_ids=data["input_ids"],
        attention_mask=data["attention_mask"],
        special_mask=data["special_tokens_mask"],
        token_type_ids=data.get("token_type_ids"),
        offsets=None,
        strings=[tokenizer.convert_ids_to_tokens(ids) for ids in data["input_ids"].tolist()],
    )
