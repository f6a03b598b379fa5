"""A document in HTML."""

from collections.abc import Iterable
from html import escape

from .document import Document
from .plots import Plot
from .templates import render


def html(document: Document, plots: Iterable[Plot] = ()) -> str:
    """A document and its plots as one page that fetches nothing, the same for the same input."""
    return render("render/document.html", title=document.title, lang="en", document=document, plots=list(plots))


def framed(page: str, *, height: int = 40) -> str:
    """A page inside another one, such as a notebook: with its own style, and no scripts. height (int): its rows."""
    return f'<iframe srcdoc="{escape(page)}" sandbox="" style="width: 100%; height: {height}em; border: 0"></iframe>'
