"""Pipelines that commands load, and the pipes that they use."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import spacy
from spacy.language import Language
from spacy.util import get_installed_models

from ..errors import Errors, missing_packages
from ..models.resolve import find_local, suggestion
from ..models.sbert_config import Precision
from ..pipeline.sbert import SentenceBert, find_sbert
from ..reranker.component import find_reranker
from ..validation import NonNegative, check, short_repr

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
    nlp = _blank(name) if pipeline is None else load_pipeline(pipeline, name)
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


def _blank(name: str | None, encoder: str | None = None, factory: str = "sbert") -> Language:
    """Return a blank pipeline with a pipe, with the default encoder if none is named."""
    nlp = spacy.blank("en")
    config = {}
    if encoder is not None:
        config["model"] = {"name": encoder}
    nlp.add_pipe(factory, name=name or factory, config=config)
    return nlp


def load_reranker(reranker: str | Path) -> Language:
    """Load a pipeline with an `sbert_reranker`, or make one with a cross-encoder.

    reranker (str or Path): a folder or an installed package, or the name or folder of a
        cross-encoder on this machine.
    RAISES (ValueError): if the pipeline has no `sbert_reranker`. For other errors see load_pipe.
    """
    nlp = load_pipeline(reranker, factory=_RERANKER)
    find_reranker(nlp)
    return nlp


def load_pipeline(
    pipeline: str | Path, name: str | None = None, *, factory: str = "sbert"
) -> Language:
    """Load a folder or an installed package, or make a blank pipeline with an encoder.

    See load_pipe. factory (str): of the pipe of a blank pipeline.
    """
    if not isinstance(pipeline, str | Path):
        raise TypeError(
            f"Cannot load {short_repr(pipeline)}: expected the name of an encoder or package, or "
            "the folder of a pipeline. Of a pipeline that is loaded, find_sbert(nlp) is the pipe; "
            "or save it: nlp.to_disk(folder)."
        )
    pipeline = str(pipeline)
    try:
        with missing_packages():
            return spacy.load(pipeline)
    except OSError as error:
        if not _is_encoder(pipeline):
            near = suggestion(pipeline, get_installed_models())
            raise OSError(
                Errors.BULK_NO_PIPELINE.format(given=pipeline, near=near, reason=error)
            ) from error
    return _blank(name, pipeline, factory)


def _is_encoder(name: str) -> bool:
    """Return whether there is an encoder of this name, or in this folder, on this machine."""
    try:
        return find_local(name) is not None
    except OSError:
        # A folder of something else
        return False
