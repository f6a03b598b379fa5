"""Find a component of this package in a pipeline, and the pipeline of a component."""

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

    kind (type): the class. factory (str): the name of its factory, for messages.
    RAISES (ValueError): if there is none, or it is disabled.
    """
    enabled = {pipe_name: pipe for pipe_name, pipe in nlp.pipeline if isinstance(pipe, kind)}
    chosen = next(reversed(enabled), None) if name is None else name
    if chosen in enabled:
        return enabled[chosen]
    disabled = [key for key, pipe in nlp.components if isinstance(pipe, kind) and key in nlp.disabled]
    if disabled and (name is None or name in disabled):
        name = name or disabled[-1]
        raise ValueError(
            f"The '{factory}' pipe '{name}' of the pipeline is disabled: enable it with nlp.enable_pipe(\"{name}\")."
        )
    known = ", ".join(enabled) or "none"
    if name in nlp.component_names:
        other = type(nlp.get_pipe(name)).__name__
        raise ValueError(
            f"The pipeline has no '{factory}' pipe named '{name}': those it has are {known}. Its pipe '{name}' is "
            f'a {other}: name one of them, or take that with nlp.get_pipe("{name}").'
        )
    named = "" if name is None else f" named '{name}'"
    remedy = "Name one of them, or add one" if enabled else "Add one"
    raise ValueError(
        f"The pipeline has no '{factory}' pipe{named}: those it has are {known}. {remedy} with "
        f'nlp.add_pipe("{factory}"), before it is saved.'
    )
