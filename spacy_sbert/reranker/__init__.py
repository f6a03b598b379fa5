"""A cross-encoder scores a pair of texts by reading both at once."""

from .component import SentenceReranker, find_reranker
from .pair_scoring import Ranked

__all__ = ["Ranked", "SentenceReranker", "find_reranker"]
