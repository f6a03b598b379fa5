"""Readers of training data: an example is one Doc with its members in doc.spans.

Gold is on the reference only.
"""

from .conversion import convert
from .corpora import MultiCorpus, PairCorpus, TeacherCorpus
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
