"""What `encode` of sentence-transformers, or of an `sbert` pipe, takes, for meta-embeddings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..vectors.habits import EncodeHabits

IN_PROCESSES = (
    "the members encode in this process; nlp.pipe(texts, n_process = 2) works in several, and doc._.sbert_meta_vector, "
    "by the name of the pipe, is the vector"
)
OF_MEMBERS = "set default_prompt_name in the configs of the members"


@dataclass(frozen=True)
class MetaHabits(EncodeHabits):
    """What was given to `encode` of a meta-embedding, whose members have their own settings; see EncodeHabits."""

    OUR_WAY: ClassVar[Mapping[str, str]] = {
        **EncodeHabits.OUR_WAY,
        "device": "call spacy.require_gpu() before the pipeline is loaded",
        "gpu_ids": "call spacy.require_gpu() before the pipeline is loaded",
        "n_process": IN_PROCESSES,
        "pool": IN_PROCESSES,
        "prompt": OF_MEMBERS,
        "prompt_name": OF_MEMBERS,
        "truncate_dim": "set truncate_dim in the configs of the members, or size where the method has one",
    }
