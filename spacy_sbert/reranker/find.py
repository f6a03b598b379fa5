"""The `sbert_reranker` pipe of a pipeline."""

from spacy.language import Language

from ..hooks.in_pipeline import find_in
from .component import SentenceReranker


def find_reranker(nlp: Language, name: str | None = None) -> SentenceReranker:
    """The `sbert_reranker` pipe of a pipeline: the one of this name, or the last.

    RAISES (ValueError): if there is none.
    """
    return find_in(nlp, SentenceReranker, "sbert_reranker", name)
