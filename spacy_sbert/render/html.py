"""A document in HTML."""

from collections.abc import Iterable

from .document import Document
from .plots import Plot
from .templates import render


def html(document: Document, plots: Iterable[Plot] = ()) -> str:
    """A document and its plots as one page that fetches nothing, the same for the same input."""
    return render("render/document.html", title=document.title, lang="en", document=document, plots=list(plots))
