"""The `sbert_meta` pipe of a pipeline."""

from spacy.language import Language

from ..hooks.in_pipeline import find_in
from .component import SentenceMeta


def find_meta(nlp: Language, name: str | None = None) -> SentenceMeta:
    """The `sbert_meta` pipe of a pipeline: the one of this name, or the last.

    RAISES (ValueError): if there is none.
    """
    return find_in(nlp, SentenceMeta, "sbert_meta", name)
