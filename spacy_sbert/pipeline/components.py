"""The pipeline that a component is in, and the components of a class in a pipeline."""

from dataclasses import dataclass
from typing import TypeVar

from spacy.language import Language

PipeT = TypeVar("PipeT")


@dataclass
class InPipeline:
    """The pipeline that a component is in. A copy, or a pickled one, is in none."""

    nlp: Language | None = None

    def __reduce__(self) -> tuple[type, tuple]:
        return InPipeline, ()


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
        in_pipeline = getattr(pipe, "_in_pipeline", None)
        if isinstance(in_pipeline, InPipeline):
            in_pipeline.nlp = nlp
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
