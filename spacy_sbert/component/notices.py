"""What an `sbert` pipe says of its work: each thing once."""

import warnings
from collections.abc import Sequence

from spacy.tokens import Doc
from spacy.util import logger

from ..errors import notices
from ..vectors.cuts import CutCounter
from ..vectors.encoded import EncodedDoc
from .errors import Warnings


class Notices(notices.Notices[CutCounter]):
    """Warnings and log lines of one pipe.

    name (str): the pipe's name.
    """

    def __init__(self, name: str):
        super().__init__(CutCounter)
        self.name = name

    def of_vectors(self, doc: Doc, encoded: EncodedDoc, *, shared: bool) -> None:
        """Say what is unusual about the rows of a Doc; shared (bool): whether others read the transformer's output."""
        self.cuts.add(doc, encoded)
        if encoded.rows.foreign:
            self.once(Warnings.FOREIGN_ROWS)
        settings = encoded.rows.settings
        if shared and settings and settings.default_prompt_name:
            prompt = settings.prompts.get(settings.default_prompt_name, "")
            if prompt:
                self.once(Warnings.SHARED_DEFAULT_PROMPT.format(name=settings.name, prompt=prompt))
        if settings and settings.pooling not in (None, encoded.pooling) and self.is_new("pooling"):
            logger.warning(
                Warnings.OTHER_POOLING.format(name=settings.name, expected=settings.pooling, given=encoded.pooling)
            )

    def of_training_cuts(self, docs: Sequence[Doc], scores: Sequence[EncodedDoc]) -> None:
        """Say that training examples were cut."""
        cuts = CutCounter()
        for doc, encoded in zip(docs, scores, strict=True):
            cuts.add(doc, encoded)
        if cuts.count and self.is_new("cuts"):
            warnings.warn(Warnings.TRAINING_CUT.format(name=self.name) + cuts.message, stacklevel=4)
