"""Pipelines that commands load, and the pipes that they use."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from spacy.language import Language

from ..models.load_pipeline import blank_pipeline, load_pipeline
from ..models.sbert_config import Precision
from ..pipeline.sbert import SentenceBert, find_sbert
from ..reranker.component import find_reranker
from ..validation import NonNegative, check

# Factories of pipes whose vectors Docs can answer with, and of those that only score
_VECTORS = ("sbert", "sbert_meta")
_RERANKER = "sbert_reranker"


def load_pipe(
    pipeline: str | Path | None = None,
    *,
    name: str | None = None,
    precision: Precision | None = None,
    gpu_ids: Sequence[NonNegative] = (),
) -> SentenceBert:
    """Load a pipeline, and find its pipe.

    pipeline (str): a folder or an installed package; or the name or folder of an encoder on this
        machine, for a blank pipeline with it; None for one with the default encoder.
    name (str): of the pipe; by default the last.
    precision (str): "float32", "bfloat16", "float16", "int8", "auto" or "reference"; None as its
        config says.
    gpu_ids (Sequence[int]): GPUs it will work on, for "auto".
    RAISES (ValueError): if there is no such pipe, or no such precision, or no name where vectors
        are combined from several pipes. (OSError): if there is neither such a pipeline nor such an
        encoder. (TypeError): if it is neither a name nor a folder.
    """
    check("precision", precision, Precision | None)
    nlp = blank_pipeline(name) if pipeline is None else load_pipeline(pipeline, name)
    pipe = find_pipe(nlp, name)
    if precision is not None:
        pipe.text_encoder().set_precision(precision, gpu_ids)
    return pipe


def find_pipe(nlp: Language, name: str | None = None) -> SentenceBert:
    """Return the `sbert` pipe that encodes texts: the one of this name, or the last.

    See load_pipe for errors.
    """
    combined = _of_factories(nlp, "sbert_meta")
    if name is None and combined:
        members = ", ".join(_of_factories(nlp, "sbert")) or "none"
        raise ValueError(
            f"The vectors of this pipeline are combined by '{combined[-1]}' from those of: "
            f"{members}. Give the name of one of them (--pipe, name=), or call "
            "spacy_sbert.find_meta(nlp).encode(texts) for the combined vectors."
        )
    return find_sbert(nlp, name)


def _of_factories(nlp: Language, *factories: str) -> list[str]:
    return [name for name in nlp.pipe_names if nlp.get_pipe_meta(name).factory in factories]


def answer_with(nlp: Language, name: str, *, also_scores: bool = False) -> None:
    """Make `doc.vector`, `similarity` and scores those of one pipe of a loaded pipeline.

    name (str): an `sbert` or `sbert_meta` pipe. also_scores (bool): whether it may be an
        `sbert_reranker`.
    RAISES (ValueError): if there is no such pipe.
    """
    kinds: tuple[str, ...] = _VECTORS
    if also_scores:
        kinds = (*_VECTORS, _RERANKER)
    known = _of_factories(nlp, *kinds)
    if name not in known:
        expected = ", ".join(known) or "none"
        raise ValueError(
            f"The pipeline has no {' or '.join(kinds)} pipe named '{name}'. Pipes of this kind: "
            f"{expected}."
        )
    for other in _of_factories(nlp, *_VECTORS):
        cast(Any, nlp.get_pipe(other)).set_hooks = other == name
        nlp.get_pipe_config(other)["set_hooks"] = other == name
    # Scores of rerankers have the same names
    for other in _of_factories(nlp, _RERANKER):
        if other != name:
            nlp.disable_pipe(other)


def load_reranker(reranker: str | Path) -> Language:
    """Load a pipeline with an `sbert_reranker`, or make one with a cross-encoder.

    reranker (str or Path): a folder or an installed package, or the name or folder of a
        cross-encoder on this machine.
    RAISES (ValueError): if the pipeline has no `sbert_reranker`. For other errors see load_pipe.
    """
    nlp = load_pipeline(reranker, factory=_RERANKER)
    find_reranker(nlp)
    return nlp
