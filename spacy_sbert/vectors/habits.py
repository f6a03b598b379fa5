"""What `encode` of sentence-transformers takes: what means the same here is done, of the rest our way is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy
import torch
from thinc.util import to_numpy

from ..errors.checks import check_fields
from ..layers.unit_length import unit_length
from .errors import Errors

OUR_WAY = {
    "batch_size": "texts are packed by their lengths; max_batch_items in the config limits a forward pass",
    "chunk_size": "texts are encoded window by window; set window",
    "device": "call spacy.require_gpu() before the pipeline is loaded, or give gpu_ids = [0]",
    "output_value": "the vectors of tokens and spans are token.vector and span.vector of a Doc",
    "pool": "give n_process = 2, or gpu_ids = [0, 1]",
    "precision": "in the config it is that of the arithmetic; for vectors of fewer bits see Int8Vectors and "
    "BinaryVectors of spacy_sbert.search",
}


@dataclass(frozen=True)
class Habits:
    """What was given.

    show_progress_bar (bool): as progress. normalize_embeddings (bool): whether vectors are brought to length 1, but for
    zeros. convert_to_tensor, convert_to_numpy (bool): the form of the result.
    """

    show_progress_bar: bool | None = None
    normalize_embeddings: bool = False
    convert_to_tensor: bool = False
    convert_to_numpy: bool = True

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Habits":
        """RAISES (TypeError): for another argument; the message says what to do in its place. (ValueError): if a value
        is no flag."""
        for name in given:
            if name in OUR_WAY:
                raise TypeError(Errors.NOT_OURS.format(name=name, remedy=OUR_WAY[name]))
            if name not in cls.__dataclass_fields__:
                raise TypeError(f"encode() got an unexpected keyword argument '{name}'")
        found = cls(**given)
        check_fields(found)
        if not (found.convert_to_numpy or found.convert_to_tensor):
            remedy = "set convert_to_tensor = True, which gives one tensor"
            raise TypeError(Errors.NOT_OURS.format(name="convert_to_numpy = False", remedy=remedy))
        return found

    def form(self, vectors: numpy.ndarray) -> Any:
        """float32 (n, width) -> the same, or a tensor on the CPU."""
        if self.normalize_embeddings:
            vectors = to_numpy(unit_length().predict(cast(Any, vectors)))
        return torch.from_numpy(vectors) if self.convert_to_tensor else vectors
