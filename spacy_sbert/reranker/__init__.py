"""A cross-encoder scores a pair of texts by reading both at once."""

from .component import Ranked, SentenceReranker, find_reranker

__all__ = ["Ranked", "SentenceReranker", "find_reranker"]
