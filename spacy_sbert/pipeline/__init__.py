"""The `sbert` pipe, in use and in training."""

from .sbert import SentenceBert, find_sbert, make_sbert

__all__ = ["SentenceBert", "find_sbert", "make_sbert"]
