"""Encoded spans of a Doc, options of encoding, and the warning about truncated texts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Ops
from thinc.types import Floats2d
from thinc.util import to_numpy

from ..errors import Warnings
from .heads import normalization
from .span_batch import SpanBatch

# float32 (texts, width), and how many texts were cut
Encoded = tuple[numpy.ndarray, int]
# Takes how many more texts are done, such as the update of a bar
ProgressCallback = Callable[[int], object]


@dataclass
class WordpieceStates:
    """The states of a Doc's wordpieces, without special tokens: for Tokens, and Spans that are no rows."""

    # float32 (wordpieces, width), in memory of their own
    states: numpy.ndarray
    # int32 (wordpieces, 2), of each in the Doc
    characters: numpy.ndarray


@dataclass
class EncodedDoc:
    """The rows of one Doc and their vectors."""

    # In the order of the text
    rows: SpanBatch
    vectors: (
        # float32 (rows, width) on the model's device; zero for a row without wordpieces
        Floats2d
    )
    pooling: str
    # Whether the vectors have unit length
    normalize: bool
    # Of other Spans and Tokens; None in training and with token_vectors = false
    wordpieces: WordpieceStates | None
    # Whether a dense layer made the vectors of pooled ones
    dense: bool = False
    # Of the first row; None if it is not known
    text: str | None = None


@dataclass(frozen=True)
class EncodeSettings:
    """Settings of one call of `encode`, `predict` or the pipe; None for those of the config."""

    # Put before each text, "" for nothing
    prompt: str | None = None
    # How many dimensions of the vectors are kept
    truncate_dim: int | None = None
    # Whether to return what other Spans and Tokens need to have vectors
    token_vectors: bool = True


DEFAULT_SETTINGS = EncodeSettings()


class TruncationCounter:
    """Counts the rows that were longer than the encoder's limit, for one warning for many Docs."""

    def __init__(self) -> None:
        self.count = self.total = 0
        self.limit: int | str = "unknown"

    def add(self, doc: Doc, encoded: EncodedDoc) -> None:
        """Count the rows of a Doc."""
        limit = encoded.rows.settings.max_length if encoded.rows.settings else None
        self.add_rows(len(encoded.rows.spans), n_rows_cut(doc, encoded.rows), limit)

    def add_rows(self, n_rows: int, n_cut: int, limit: int | None) -> None:
        """Count rows, and how many of them were cut."""
        self.total += n_rows
        self.count += n_cut
        self.limit = limit or self.limit

    @property
    def message(self) -> str:
        limit = "" if self.limit == "unknown" else f" of {self.limit} wordpieces"
        return Warnings.TRUNCATED.format(count=self.count, total=self.total, limit=limit)


def n_rows_cut(doc: Doc, rows: SpanBatch) -> int:
    """Return how many rows were longer than the limit."""
    if rows.settings is not None:
        return int(numpy.count_nonzero(rows.n_cut))
    tails = [
        doc[end - n : end]
        for n, (_, end) in zip(rows.n_cut.tolist(), rows.spans.tolist(), strict=True)
    ]
    return sum(any(not token.is_space for token in tail) for tail in tails)


# Arguments of sentence-transformers' `encode` and `predict`


class ScoreOptions(TypedDict, total=False):
    """Keyword arguments of calls that return arrays or tensors, for type checkers."""

    progress: bool
    show_progress_bar: bool | None
    batch_size: int | None
    device: str | torch.device | None
    convert_to_numpy: bool


class EncodeOptions(ScoreOptions, total=False):
    """Keyword arguments of every `encode`, for type checkers."""

    window: int
    normalize_embeddings: bool
    output_value: Literal["sentence_embedding"]
    precision: Literal["float32"]


def check_device(device: str | torch.device | None, ops: Ops) -> None:
    """Check that a device is the one that a model with these ops is on; None is any.

    RAISES (ValueError): if not.
    """
    there = ("cpu",) if ops.device_type == "cpu" else ("cuda", f"cuda:{ops.device_id}")
    if device is not None and str(device) not in there:
        raise ValueError(
            f"Cannot use device = {str(device)!r}: the pipeline is on {there[-1]}. Call "
            "spacy.require_gpu() or spacy.require_cpu() before it is loaded, or give gpu_ids to "
            "encode."
        )


def check_form(*, convert_to_numpy: bool, convert_to_tensor: bool) -> None:
    """Check that an array or a tensor is asked for. RAISES (ValueError): if not."""
    if not (convert_to_numpy or convert_to_tensor):
        raise ValueError(
            "Cannot use convert_to_numpy = False without a tensor. Set convert_to_tensor = True."
        )


def unit_vectors(vectors: numpy.ndarray) -> numpy.ndarray:
    """Return the vectors scaled to length 1; zeros stay zeros."""
    return to_numpy(normalization().predict(cast(Any, vectors)))
