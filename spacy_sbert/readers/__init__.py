"""Readers of training data: an example is one Doc, its members stand in doc.spans, gold on the reference alone."""

from ..spans.gold import MEASURES, GoldFacts, listed_labels
from .convert import convert
from .corpus import PairCorpus
from .docs import example_doc, pair_doc
from .multi import MultiCorpus
from .sts import read_sts
from .teacher import TeacherCorpus

__all__ = [
    "MEASURES",
    "GoldFacts",
    "MultiCorpus",
    "PairCorpus",
    "TeacherCorpus",
    "convert",
    "example_doc",
    "listed_labels",
    "pair_doc",
    "read_sts",
]
