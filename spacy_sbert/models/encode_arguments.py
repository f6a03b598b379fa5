"""Arguments of sentence-transformers' `encode` and `predict` that several pipes take."""

from typing import Any, Literal, TypedDict, cast

import numpy
import torch
from thinc.api import Ops
from thinc.util import to_numpy

from .heads import unit_length


class ScoreOptions(TypedDict, total=False):
    """Keyword arguments of calls that give arrays or tensors, for type checkers."""

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
    """Check that a device is the one that a model with these ops is on; None is any. RAISES (ValueError): if not."""
    there = ("cpu",) if ops.device_type == "cpu" else ("cuda", f"cuda:{ops.device_id}")
    if device is not None and str(device) not in there:
        raise ValueError(
            f"Cannot use device = {str(device)!r}: the pipeline is on {there[-1]}. Call "
            "spacy.require_gpu() or spacy.require_cpu() before it is loaded, or give gpu_ids to encode."
        )


def check_form(*, convert_to_numpy: bool, convert_to_tensor: bool) -> None:
    """Check that an array or a tensor is asked for. RAISES (ValueError): if not."""
    if not (convert_to_numpy or convert_to_tensor):
        raise ValueError("Cannot use convert_to_numpy = False without a tensor. Set convert_to_tensor = True.")


def unit_vectors(vectors: numpy.ndarray) -> numpy.ndarray:
    """Return the vectors scaled to length 1; zeros stay zeros."""
    return to_numpy(unit_length().predict(cast(Any, vectors)))
