"""Keyword arguments of sentence-transformers' `encode` and `predict`, once for all pipes."""

from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

import numpy
import torch
from thinc.api import Ops
from thinc.util import to_numpy

from ..models.heads import normalization
from ..validation import Positive


class PredictOptions(TypedDict, total=False):
    """Options of encoding Docs.

    They reach the pipe by `nlp(text, component_cfg={"sbert": {...}})`.

    prompt_name (str): which of the encoder's prompts is put before each row; by default the one of
        the config.
    prompt (str): the prompt itself, in place of a name.
    truncate_dim (int): how many dimensions of the vectors are kept; by default as many as the
        config says.
    """

    prompt_name: str | None
    prompt: str | None
    truncate_dim: int | None


# For type checkers, which do not see the signatures that with_fields_of makes


class ScoreOptions(TypedDict, total=False):
    """Keyword arguments of calls that return arrays or tensors."""

    progress: bool
    show_progress_bar: bool | None
    batch_size: int | None
    device: str | torch.device | None
    convert_to_numpy: bool


class EncodeOptions(ScoreOptions, total=False):
    """Keyword arguments of every `encode`."""

    window: int
    normalize_embeddings: bool
    output_value: Literal["sentence_embedding"]
    precision: Literal["float32"]


@dataclass(frozen=True, kw_only=True)
class ScoreCall:
    """How a call works through its texts, and what it returns.

    progress, show_progress_bar (bool): whether to show a progress bar.
    batch_size (int): the most texts that are worked on together; None for a whole window.
    convert_to_tensor, convert_to_numpy (bool): whether to return a tensor, or an array.
    device (str or torch.device): must be the device of the pipeline; None for that.
    """

    progress: bool = False
    show_progress_bar: bool | None = None
    batch_size: Positive | None = None
    convert_to_tensor: bool = False
    convert_to_numpy: bool = True
    device: str | torch.device | None = None

    @property
    def shows_progress(self) -> bool:
        return self.progress or bool(self.show_progress_bar)

    def check(self, ops: Ops) -> None:
        """Check that the call can be followed on the device of the ops.

        RAISES (ValueError): if not.
        """
        check_device(self.device, ops)
        if not (self.convert_to_numpy or self.convert_to_tensor):
            raise ValueError(
                "Cannot use convert_to_numpy = False without a tensor. Set convert_to_tensor = "
                "True."
            )

    def n_together(self, window: int) -> int:
        """Return how many texts are worked on together."""
        return min(window, self.batch_size or window)

    def returned(self, results: numpy.ndarray, *, is_single: bool) -> Any:
        """Return results, float32 (n, ...), as they were asked for; of a single text its own."""
        given: Any = results
        if self.convert_to_tensor:
            given = torch.from_numpy(results)
        return given[0] if is_single else given


@dataclass(frozen=True, kw_only=True)
class EncodeCall(ScoreCall):
    """How a call of `encode` works through its texts, and what it returns.

    normalize_embeddings (bool): whether vectors get unit length.
    output_value, precision (str): the only values that sentence-transformers' code may pass.
    The others: see ScoreCall.
    """

    normalize_embeddings: bool = False
    output_value: Literal["sentence_embedding"] = "sentence_embedding"
    precision: Literal["float32"] = "float32"

    def returned(self, results: numpy.ndarray, *, is_single: bool) -> Any:
        if self.normalize_embeddings:
            # Zeros stay zeros
            results = to_numpy(normalization().predict(cast(Any, results)))
        return super().returned(results, is_single=is_single)


def check_device(device: str | torch.device | None, ops: Ops) -> None:
    """Check that a device is the one that a model with these ops is on; None is any.

    RAISES (ValueError): if not.
    """
    own = "cpu" if ops.device_type == "cpu" else f"cuda:{ops.device_id}"
    # "cuda" is the current one
    if device is not None and str(device) not in (own, own.partition(":")[0]):
        raise ValueError(
            f"Cannot use device = {str(device)!r}: the pipeline is on {own}. Call "
            "spacy.require_gpu() or spacy.require_cpu() before it is loaded, or give gpu_ids to "
            "encode."
        )
