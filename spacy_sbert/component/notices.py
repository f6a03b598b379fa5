"""What an `sbert` pipe says of its work: each thing once."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from spacy.tokens import Doc
from spacy.util import logger

from ..vectors.cuts import CutCounter
from ..vectors.encoded import EncodedDoc
from .errors import Warnings


class Notices:
    """Warnings and log lines of one pipe.

    name (str): the pipe's name.
    """

    def __init__(self, name: str):
        self.name = name
        self._said: set[str] = set()
        self._cuts = CutCounter()

    def once(self, message: str) -> None:
        """Warn, unless that was said before."""
        if message not in self._said:
            self._said.add(message)
            warnings.warn(message, stacklevel=3)

    def of_vectors(self, doc: Doc, encoded: EncodedDoc, *, shared: bool) -> None:
        """Say what is unusual about the rows of a Doc; shared (bool): whether others read the transformer's output."""
        self._cuts.add(doc, encoded)
        if encoded.rows.foreign:
            self.once(Warnings.FOREIGN_ROWS)
        settings = encoded.rows.settings
        if shared and settings and settings.default_prompt_name:
            prompt = settings.prompts.get(settings.default_prompt_name, "")
            if prompt:
                self.once(Warnings.SHARED_DEFAULT_PROMPT.format(name=settings.name, prompt=prompt))
        if settings and settings.pooling not in (None, encoded.pooling) and "pooling" not in self._said:
            self._said.add("pooling")
            logger.warning(
                Warnings.OTHER_POOLING.format(name=settings.name, expected=settings.pooling, given=encoded.pooling)
            )

    def of_training_cuts(self, docs: Sequence[Doc], scores: Sequence[EncodedDoc]) -> None:
        """Say that training examples were cut."""
        cuts = CutCounter()
        for doc, encoded in zip(docs, scores, strict=True):
            cuts.add(doc, encoded)
        if cuts.count and "cuts" not in self._said:
            self._said.add("cuts")
            warnings.warn(Warnings.TRAINING_CUT.format(name=self.name) + cuts.message, stacklevel=4)

    @contextmanager
    def one_for_cuts(self) -> Iterator[None]:
        """Collect the cut rows of many Docs for one warning."""
        try:
            yield
        finally:
            cuts, self._cuts = self._cuts, CutCounter()
            if cuts.count:
                warnings.warn(cuts.message, stacklevel=4)
