"""The `sbert` pipe that encodes files."""

from collections.abc import Sequence
from pathlib import Path

import spacy

from ..component.sbert import SentenceBert, find_sbert
from ..errors.checks import NonNegative, validated
from ..vectors.computing import check_precision, set_precision


@validated
def load_pipe(
    pipeline: str | Path | None = None,
    *,
    name: str | None = None,
    precision: str | None = None,
    gpu_ids: Sequence[NonNegative] = (),
) -> SentenceBert:
    """Load a pipeline, and find its pipe.

    pipeline (str): a folder or an installed package; None for a blank pipeline with the default encoder.
    name (str): of the pipe; by default the last.
    precision (str): "float32", "bfloat16", "float16", "int8", "auto" or "reference"; None as its config says.
    gpu_ids (Sequence[int]): GPUs it will work on, for "auto".
    RAISES (ValueError): if there is no such pipe, or no such precision. RAISES (OSError): if there is no such pipeline.
    """
    if precision is not None:
        check_precision(precision)
    if pipeline is None:
        nlp = spacy.blank("en")
        nlp.add_pipe("sbert", name=name or "sbert")
    else:
        nlp = spacy.load(pipeline)
    pipe = find_sbert(nlp, name)
    if precision is not None:
        set_precision(pipe.text_encoder(), precision, gpu_ids)
    return pipe
