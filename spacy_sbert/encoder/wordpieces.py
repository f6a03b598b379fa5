"""From rows of text to wordpieces: tokenised whole batches at a time, cut or windowed at the encoder's true limit."""

from dataclasses import dataclass
from typing import Any, cast

import numpy
from spacy.tokens import Span
from thinc.types import Ragged

from ..types import EncoderSettings
from .align import align_offsets, align_texts
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
    texts = [_lower(span.text) if settings.lowercase else span.text for span in flat]
    windows, n_cut = _cut(_tokenize(tokenizer, texts, settings.max_length), overflow)
    batch = RowBatch(
        strings=windows.strings,
        input_ids=cast(Any, windows.input_ids),
        attention_mask=cast(Any, windows.attention_mask.astype("float32")),
        lengths=windows.attention_mask.sum(axis=1).tolist(),
        token_type_ids=cast(Any, windows.token_type_ids),
        spans=numpy.array([(i, flat[i].start, flat[i].end) for i in windows.span_of]),
        n_text=windows.n_text,
        n_cut=n_cut,
        settings=settings,
    )
    if windows.offsets is not None:
        align = align_offsets(flat, windows.offsets, windows.span_of)
    else:
        align = align_texts(flat, [tokenizer.tokenize(text) for text in texts], _places(windows, len(flat)))
    counts = iter(numpy.bincount(windows.span_of, minlength=len(flat)).tolist())
    nested = [[same for span in doc_spans for same in [span] * next(counts)] for doc_spans in spans]
    return nested, batch, align


def _lower(text: str) -> str:
    """The text in lower case, character by character, so that each stays where it is (some get longer: İ)."""
    return "".join(lower if len(lower := character.lower()) == 1 else character for character in text)


def _cut(windows: Windows, overflow: str) -> tuple[Windows, numpy.ndarray]:
    """What is kept of windows, and how many wordpieces each lost: with "truncate" the first window of each Span."""
    n_text = windows.n_text
    first = numpy.flatnonzero(numpy.append(True, windows.span_of[1:] != windows.span_of[:-1]))
    if overflow == "windows" or len(first) == len(n_text):
        return windows, numpy.zeros(len(n_text), dtype="int64")
    return windows.take(first), (numpy.add.reduceat(n_text, first) - n_text[first]).astype("int64")


def _places(windows: Windows, n_spans: int) -> list[numpy.ndarray]:
    """For each Span, where its wordpieces stand in the flattened windows."""
    kept = numpy.flatnonzero(windows.attention_mask * (1 - windows.special_mask))
    owners = windows.span_of[kept // windows.input_ids.shape[1]]
    return [kept[owners == i] for i in range(n_spans)]


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
