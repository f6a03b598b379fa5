"""Pictures of sentence vectors in HTML, as displacy draws parses: a heat map of similarity, a map of a collection."""

from .render import render

__all__ = ["render"]
