"""A cross-encoder: scores a pair of texts by reading both at once, to rank again what a search found."""

from .component import SentenceReranker
from .find import find_reranker
from .texts import Ranked

__all__ = ["Ranked", "SentenceReranker", "find_reranker"]
