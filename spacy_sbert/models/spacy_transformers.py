"""Access to spacy-transformers, which is optional.

It is imported only where a pipeline shares a `transformer` component.
"""

import sys
from importlib.util import find_spec


def is_installed() -> bool:
    """Return whether spacy-transformers is installed."""
    return find_spec("spacy_transformers") is not None


def check_installed(needed_by: str) -> None:
    """Check that spacy-transformers is installed.

    RAISES (ImportError): if it is not.
    """
    if not is_installed():
        raise ImportError(
            f"{needed_by} needs the package spacy-transformers, which is not installed. Install it with pip "
            'install "spacy-sbert[transformers]", or use spacy-sbert.SentenceEncoder.v1, whose transformer is '
            "its own."
        )


def is_a(given: object, name: str) -> bool:
    """Return whether an object is of a class of spacy-transformers; there is none before the package is imported.

    name (str): "Transformer", "TransformerModel" or "TransformerData".
    """
    kind = getattr(sys.modules.get("spacy_transformers"), name, None)
    return kind is not None and isinstance(given, kind)
