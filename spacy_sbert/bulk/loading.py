"""Pipelines that commands load, and the pipes that they use."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import spacy
from spacy.language import Language
from spacy.util import get_installed_models

from ..errors import Errors
from ..models.resolve import nearest_name
from ..models.sbert_config import Precision
from ..pipeline.listeners import is_encoder
from ..pipeline.sbert import SentenceBert, find_sbert
from ..validation import NonNegative, check

_VECTORS, _RERANKER = ("sbert", "sbert_meta"), "sbert_reranker"  # factories


def load_pipe(
    pipeline: str | Path | None = None,
    *,
    name: str | None = None,
    precision: Precision | None = None,
    gpu_ids: Sequence[NonNegative] = (),
) -> SentenceBert:
    """Load a pipeline, and find its pipe.

    pipeline (str): a folder or an installed package; or the name or folder of an encoder on this machine, for a blank
        pipeline with it; None for one with the default encoder.
    name (str): of the pipe; by default the last.
    precision (str): "float32", "bfloat16", "float16", "int8", "auto" or "reference"; None as its config says.
    gpu_ids (Sequence[int]): GPUs it will work on, for "auto".
    RAISES (ValueError): if there is no such pipe, or no such precision, or no name where vectors are combined from
        several pipes. (OSError): if there is neither such a pipeline nor such an encoder.
    """
    if precision is not None:
        check("precision", precision, Precision)
    nlp = _blank(name) if pipeline is None else load_pipeline(str(pipeline), name)
    pipe = find_pipe(nlp, name)
    if precision is not None:
        pipe.text_encoder().set_precision(precision, gpu_ids)
    return pipe


def find_pipe(nlp: Language, name: str | None = None) -> SentenceBert:
    """Return the `sbert` pipe that encodes texts: the one of this name, or the last.

    RAISES (ValueError): if there is none, or no name is given and an `sbert_meta` combines several.
    """
    factories = {other: nlp.get_pipe_meta(other).factory for other in nlp.pipe_names}
    combined = [other for other, factory in factories.items() if factory == "sbert_meta"]
    if name is None and combined:
        members = [other for other, factory in factories.items() if factory == "sbert"]
        raise ValueError(
            f"The vectors of this pipeline are combined by '{combined[-1]}' from those of: "
            f"{', '.join(members) or 'none'}. Files are encoded by a single encoder: expected the name of one "
            "of them (--pipe, name=). In Python, spacy_sbert.find_meta(nlp).encode(texts) makes an array of "
            "the combined vectors."
        )
    return find_sbert(nlp, name)


def answer_with(nlp: Language, name: str, *, also_scores: bool = False) -> None:
    """Make `doc.vector`, `similarity` and scores those of one pipe, until the pipeline is loaded again.

    name (str): an `sbert` or `sbert_meta` pipe. also_scores (bool): whether it may be an `sbert_reranker`.
    RAISES (ValueError): if there is no such pipe.
    """
    factories = {other: nlp.get_pipe_meta(other).factory for other in nlp.pipe_names}
    kinds = (*_VECTORS, _RERANKER) if also_scores else _VECTORS
    if factories.get(name) not in kinds:
        expected = ", ".join(other for other, factory in factories.items() if factory in kinds) or "none"
        raise ValueError(
            f"The pipeline has no {' or '.join(kinds)} pipe named '{name}'. Pipes of this kind: {expected}."
        )
    for other, factory in factories.items():
        if factory in _VECTORS:
            cast(Any, nlp.get_pipe(other)).set_hooks = other == name
            nlp.get_pipe_config(other)["set_hooks"] = other == name
        elif factory == _RERANKER and other != name:
            nlp.disable_pipe(other)  # its scores go by the same names


def _blank(name: str | None, encoder: str | None = None) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", name=name or "sbert", config={"model": {"name": encoder}} if encoder else {})
    return nlp


def load_pipeline(pipeline: str, name: str | None = None) -> Language:
    """Load a folder or an installed package, or make a blank pipeline with an encoder, as load_pipe does.

    pipeline (str): see load_pipe. name (str): of the pipe in a blank pipeline.
    RAISES (OSError): if there is neither such a pipeline nor such an encoder.
    """
    try:
        return spacy.load(pipeline)
    except OSError as error:
        if not is_encoder(pipeline):
            near = nearest_name(pipeline, get_installed_models())
            hint = f"Did you mean '{near}'? " if near else ""
            raise OSError(Errors.BULK_NO_PIPELINE.format(given=pipeline, near=hint, reason=error)) from error
    return _blank(name, pipeline)
