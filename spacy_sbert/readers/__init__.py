"""Readers of training data: an example is one Doc, its members stand in doc.spans, gold on the reference alone."""

from .corpora import MultiCorpus, PairCorpus, TeacherCorpus, convert
from .datasets import read_sts
from .examples import example_doc, pair_doc

__all__ = [
    "MultiCorpus",
    "PairCorpus",
    "TeacherCorpus",
    "convert",
    "example_doc",
    "pair_doc",
    "read_sts",
]
