"""Readers of training data: an example is one Doc, its members stand in doc.spans, gold on the reference alone."""

from ..training.gold import MEASURES, GoldFacts, listed_labels
from .corpora import MultiCorpus, PairCorpus, TeacherCorpus, convert
from .datasets import read_sts
from .examples import example_doc, pair_doc

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
