"""Which pipeline a pipe is in, and which pipe is in a pipeline."""

from dataclasses import dataclass
from typing import TypeVar

from spacy.language import Language

from .errors import Errors

PipeT = TypeVar("PipeT")


@dataclass
class InPipeline:
    """The pipeline that a pipe is in; a copy is in none."""

    nlp: Language | None = None

    def __reduce__(self) -> tuple[type, tuple]:
        return InPipeline, ()


def find_in(nlp: Language, kind: type[PipeT], factory: str, name: str | None = None) -> PipeT:
    """The pipe of a class in a pipeline: the one of this name, or the last.

    kind (type): the class. factory (str): what makes such pipes, for the message.
    RAISES (ValueError): if there is none.
    """
    pipes = {given: pipe for given, pipe in nlp.pipeline if isinstance(pipe, kind)}
    found = pipes.get(name) if name is not None else next(reversed(pipes.values()), None)
    if found is None:
        disabled = [given for given, pipe in nlp.components if isinstance(pipe, kind) and given in nlp.disabled]
        if name in disabled or (name is None and disabled):
            raise ValueError(Errors.SBERT_PIPE_DISABLED.format(factory=factory, name=name or disabled[-1]))
        expected = ", ".join(pipes) or "none"
        if name in nlp.component_names:
            given = type(nlp.get_pipe(name)).__name__
            raise ValueError(Errors.OTHER_PIPE.format(factory=factory, name=name, given=given, expected=expected))
        named = "" if name is None else f" named '{name}'"
        remedy = "Name one of them, or add one" if pipes else "Add one"
        raise ValueError(Errors.NO_SBERT_PIPE.format(factory=factory, named=named, expected=expected, remedy=remedy))
    return found
