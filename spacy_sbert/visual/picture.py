"""A picture as HTML: a fragment that any page can hold, or a page of its own."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from ..render.markup import safe
from .script import run
from .style import STYLE

# Neither may end the script element or begin a comment in it.
ESCAPES = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})


@dataclass(frozen=True)
class Picture:
    """What is drawn.

    title (str), note (str): above it. body (str): HTML. data (JSON): what the script shows on demand.
    script (str): JavaScript, a function of the figure and the data. lang (str): of the texts.
    """

    title: str
    note: str
    body: str
    data: Any
    script: str
    lang: str

    def fragment(self) -> str:
        """A figure with its own style and script, and an id that no other has."""
        return self._figure(f"<style>{STYLE}</style>")

    def page(self) -> str:
        """A whole page."""
        return (
            f'<!doctype html>\n<html lang="{safe(self.lang)}">\n<head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta name="color-scheme" content="light dark"><title>{safe(self.title)}</title>'
            f"<style>{STYLE}</style></head>\n"
            f'<body class="spacy-sbert-page">\n{self._figure()}</body>\n</html>\n'
        )

    def _figure(self, style: str = "") -> str:
        name = f"spacy-sbert-{uuid4().hex}"
        data = json.dumps(self.data, allow_nan=False, separators=(",", ":")).translate(ESCAPES)
        return (
            f'<figure id="{name}" class="spacy-sbert tex2jax_ignore mathjax_ignore" lang="{safe(self.lang)}">{style}\n'
            f'<figcaption lang="en"><strong dir="auto">{safe(self.title)}</strong><span>{safe(self.note)}</span>'
            f"</figcaption>\n{self.body}\n"
            f'<script type="application/json">{data}</script>\n<script>{run(self.script, name)}</script>\n</figure>\n'
        )
