"""Sentence-BERT for spaCy: `nlp.add_pipe("sbert")` gives Doc, Span and Token vectors that mean something."""

from importlib.metadata import version

from . import arrivals
from .hooks import install_extensions, restore
from .most_similar import install

__version__ = version("spacy-sbert")
__all__ = ["__version__", "restore"]

arrivals.install()
install_extensions()
install()
