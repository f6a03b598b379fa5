"""Sentence-BERT for spaCy: `nlp.add_pipe("sbert")` gives Doc, Span and Token vectors that mean something."""

import sys
from importlib import import_module
from importlib.metadata import version

from .hooks import arrivals, extensions
from .hooks.hooks import restore

__version__ = version("spacy-sbert")
LAZY = {  # imported when they are asked for: every spaCy command imports this package
    "SentenceBert": "component",
    "distill_static": "interchange",
    "encode_file": "bulk",
    "evaluate": "evaluation",
    "export_folder": "interchange",
    "find_sbert": "component",
    "import_folder": "interchange",
    "load_pipe": "bulk",
}
__all__ = ["__version__", "restore", *sorted(LAZY)]

sys.modules[f"{__name__}.arrivals"] = arrivals  # as Docs name it that were pickled when it stood here
arrivals.install()
extensions.install()


def __getattr__(name: str) -> object:
    if name not in LAZY:
        raise AttributeError(f"module 'spacy_sbert' has no attribute '{name}'")
    return getattr(import_module(f".{LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})
