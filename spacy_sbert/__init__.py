"""Sentence-BERT for spaCy: `nlp.add_pipe("sbert")` sets the vectors of Docs, Spans and Tokens."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import catalogue
from spacy.util import registry

from .pipeline.extensions import install_extensions

if TYPE_CHECKING:
    from .bulk import encode_file, load_pipe
    from .evaluation import evaluate
    from .hub import distill_static, export_folder, import_folder
    from .meta.component import SentenceMeta, find_meta
    from .pipeline.restore import restore
    from .pipeline.sbert import SentenceBert, find_sbert
    from .reranker import SentenceReranker, find_reranker

try:
    __version__ = version("spacy-sbert")
except PackageNotFoundError as error:
    raise ImportError(
        "The metadata of spacy-sbert are not there, by which spaCy finds its components. Install "
        "the package; with PyInstaller, add --copy-metadata spacy-sbert."
    ) from error
# Imported when they are asked for: every spaCy command imports this package
LAZY = {
    "SentenceBert": "pipeline.sbert",
    "SentenceMeta": "meta.component",
    "SentenceReranker": "reranker",
    "distill_static": "hub",
    "encode_file": "bulk",
    "evaluate": "evaluation",
    "export_folder": "hub",
    "find_meta": "meta.component",
    "find_reranker": "reranker",
    "find_sbert": "pipeline.sbert",
    "import_folder": "hub",
    "load_pipe": "bulk",
    "restore": "pipeline.restore",
}
# Spelled out: type checkers do not run Python
__all__ = [
    "SentenceBert",
    "SentenceMeta",
    "SentenceReranker",
    "__version__",
    "distill_static",
    "encode_file",
    "evaluate",
    "export_folder",
    "find_meta",
    "find_reranker",
    "find_sbert",
    "import_folder",
    "load_pipe",
    "restore",
]

install_extensions()
# spacy-transformers creates it, too, before or after
if not hasattr(registry, "span_getters"):
    registry.span_getters = catalogue.create("spacy", "span_getters", entry_points=True)  # type: ignore[attr-defined]


# It would give any name a type, one that is misspelt as well
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in LAZY:
            raise AttributeError(f"module 'spacy_sbert' has no attribute '{name}'")
        return getattr(import_module(f".{LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})
