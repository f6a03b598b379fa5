"""What `encode` of sentence-transformers takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy
from thinc.util import to_numpy

from ..errors.checks import Positive
from ..errors.habits import Habits
from ..layers.unit_length import unit_length


@dataclass(frozen=True)
class EncodeHabits(Habits):
    """What was given to `encode`; see Habits.

    normalize_embeddings (bool): whether vectors are brought to length 1, but for zeros.
    batch_size (int): the most texts that are encoded together, as window; None for no other limit.
    """

    FUNCTION = "encode"
    OUR_WAY: ClassVar[Mapping[str, str]] = {
        "chunk_size": "texts are encoded window by window; set window",
        "device": "call spacy.require_gpu() before the pipeline is loaded, or give gpu_ids = [0]; without it, or with "
        "require_cpu(), the pipeline is on the CPU",
        "output_value": "the vectors of tokens and spans are token.vector and span.vector of a Doc",
        "pool": "give n_process = 2, or gpu_ids = [0, 1]",
        "precision": "in the config it is that of the arithmetic; for vectors of fewer bits see Int8Vectors and "
        "BinaryVectors of spacy_sbert.search",
    }

    DONE: ClassVar[Mapping[str, Sequence[object]]] = {
        "output_value": ("sentence_embedding",),
        "precision": ("float32",),
    }

    normalize_embeddings: bool = False
    batch_size: Positive | None = None

    def window(self, ours: int) -> int:
        """How many texts are encoded together, where so many would be."""
        return ours if self.batch_size is None else min(ours, self.batch_size)

    def form(self, numbers: numpy.ndarray) -> Any:
        """float32 (n, width) -> the same, or a tensor on the CPU."""
        if self.normalize_embeddings:
            numbers = to_numpy(unit_length().predict(cast(Any, numbers)))
        return super().form(numbers)
