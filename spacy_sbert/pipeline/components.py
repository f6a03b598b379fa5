"""The pipeline that a component is in, and the components of a class in a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from spacy.language import Language

from ..errors import Warnings, warn

PipeT = TypeVar("PipeT")


@dataclass
class InPipeline:
    """The pipeline that a component is in. A copy, or a pickled one, is in none."""

    nlp: Language | None = None

    def __reduce__(self) -> tuple[type, tuple]:
        return InPipeline, ()


def pipeline_of(component: Any) -> Language | None:
    """Return the pipeline that a component is in; None for a copy."""
    in_pipeline: InPipeline = component._in_pipeline  # noqa: SLF001 (the components of this package have it)
    return in_pipeline.nlp


def find_in(nlp: Language, kind: type[PipeT], factory: str, name: str | None = None) -> PipeT:
    """Return the component of a class: the one of this name, or the last.

    It works in this pipeline from now on: one that was sourced is in two.

    RAISES (ValueError): if there is none.
    """
    pipes = {pipe_name: pipe for pipe_name, pipe in nlp.components if isinstance(pipe, kind)}
    enabled = [pipe_name for pipe_name in pipes if pipe_name in nlp.pipe_names]
    chosen = name
    if chosen is None:
        # The last, of those that are enabled if there is one
        chosen = next(reversed(enabled or list(pipes)), None)
    if chosen in enabled:
        pipe = pipes[chosen]
        _bind(pipe, nlp, chosen)
        return pipe
    if chosen in pipes:
        raise ValueError(
            f"The '{factory}' pipe '{chosen}' of the pipeline is disabled: enable it with "
            f'nlp.enable_pipe("{chosen}").'
        )
    named = "" if name is None else f" named '{name}'"
    raise ValueError(
        f"The pipeline has no '{factory}' pipe{named}: those it has are "
        f"{', '.join(enabled) or 'none'}. Name one of them, or add one with "
        f'nlp.add_pipe("{factory}").'
    )


def _bind(pipe: Any, nlp: Language, name: str) -> None:
    """Let a component work in this pipeline; warn if it works in another one that it is in, too."""
    in_pipeline = getattr(pipe, "_in_pipeline", None)
    if not isinstance(in_pipeline, InPipeline) or in_pipeline.nlp is nlp:
        return
    before = in_pipeline.nlp
    in_pipeline.nlp = nlp
    is_in_both = before is not None and any(other is pipe for _, other in before.components)
    if is_in_both and getattr(pipe, "depends_on_pipeline", False):
        warn(Warnings.IN_TWO_PIPELINES.format(name=name))


def find_encoding_pipe(nlp: Language | None, component: Any, upstream: str = "*") -> Any:
    """Return the pipe before a component whose vectors it reads, and which encodes texts.

    nlp (Language): the pipeline that the component is in, None if it is in none.
    upstream (str): the name of the pipe; "*" for the nearest.
    RAISES (ValueError): if there is none.
    """
    if nlp is None:
        raise ValueError(
            f"The pipe '{component.name}' is in no pipeline, as a pipe of a copied one, and reads "
            f"the vectors of a pipe before it. Take it with find_textcat(nlp, '{component.name}')."
        )
    before: dict[str, Any] = {}
    for name, pipe in nlp.components:
        if pipe is component:
            break
        if hasattr(pipe, "fingerprint") and hasattr(pipe, "encode"):
            before[name] = pipe
    chosen = upstream
    if chosen == "*":
        chosen = next(reversed(before), "sbert")
    if chosen in before:
        return before[chosen]
    raise ValueError(
        f"The pipe '{component.name}' reads the vectors of a pipe before it, and there is no "
        f"'{chosen}' there. Add one ('sbert' or 'sbert_meta') before it, or correct upstream."
    )
