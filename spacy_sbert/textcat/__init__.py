"""Classes of texts from a few examples: the component `sbert_textcat`."""

from .component import SentenceTextCategorizer, find_textcat

__all__ = ["SentenceTextCategorizer", "find_textcat"]
