"""A picture as HTML: a fragment that any page can hold, or a page of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from ..render.templates import render
from .colours import DARK, DARK_LABELS, LIGHT, LIGHT_LABELS, STEPS, variables


@dataclass(frozen=True)
class Picture:
    """What is drawn.

    template: its path in the package; it extends visual/figure.html. title, note: above it. lang: of the texts.
    drawn: what the template speaks of. data (JSON): what the script shows on demand.
    """

    template: str
    title: str
    note: str
    lang: str
    drawn: Mapping[str, object]
    data: object

    def __repr__(self) -> str:
        return f"Picture({self.title!r}, {self.template})"

    def _repr_html_(self) -> str:
        return self.fragment()

    def fragment(self) -> str:
        """A figure with its own style and script, and an id that no other has."""
        return self._render(self.template, in_page=False)

    def page(self) -> str:
        """A whole page."""
        return self._render("visual/page.html", in_page=True)

    def _render(self, template: str, *, in_page: bool) -> str:
        themes = {"light": variables(LIGHT, LIGHT_LABELS), "dark": variables(DARK, DARK_LABELS)}
        name = f"spacy-sbert-{uuid4().hex}"
        return render(template, **vars(self), **self.drawn, **themes, steps=STEPS, id=name, in_page=in_page)
