"""Which pipeline a pipe is in."""

from dataclasses import dataclass

from spacy.language import Language


@dataclass
class InPipeline:
    """The pipeline that a pipe is in; a copy is in none."""

    nlp: Language | None = None

    def __reduce__(self) -> tuple[type, tuple]:
        return InPipeline, ()
