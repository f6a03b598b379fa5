"""The words of texts, as every baseline that counts them sees them."""

import hashlib

import spacy
from spacy.language import Language


class Words:
    """Splits texts into lower-cased words with a pipeline's tokenizer; white space is left out."""

    def __init__(self, nlp: Language | None = None):
        """nlp (Language): whose tokenizer; by default the English one."""
        self.pipeline = spacy.blank("en") if nlp is None else nlp

    def __call__(self, text: str) -> list[str]:
        """The words of a text, in order."""
        return [token.lower_ for token in self.pipeline.make_doc(text) if not token.is_space]

    @property
    def digest(self) -> str:
        """The SHA-256 of the tokenizer's rules."""
        rules = self.pipeline.tokenizer.to_bytes(exclude=["vocab"])  # type: ignore[union-attr]
        return hashlib.sha256(str(self.pipeline.lang).encode("utf8") + rules).hexdigest()
