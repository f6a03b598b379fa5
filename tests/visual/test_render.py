"""What both pictures share: escaping, a page by itself, ids, notebooks."""

import re
import sys
import types

import pytest
from made_pages import data_of, made, read

from spacy_sbert import visual

EVIL = "</script><script>alert(1)</script><!-- \"quoted\" 'x' & <img src=x onerror=alert(2)> \u202e\u2028 ]]> $x$"
STYLES = ("heatmap", "map")


def docs(text=EVIL):
    return [made(text, [1, 0]), made("Plain.", [0, 1]), made("Third.", [1, 1])]


def draw(style, text=EVIL, **settings):
    options = {"title": text} if style == "heatmap" else {"title": text, "labels": [text, "b", "b"]}
    return visual.render(docs(text), style, options=options, **settings)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("page", [True, False])
def test_texts_are_never_markup(style, page):
    """The same elements and attributes whatever the text says, and the text itself where it is shown."""
    evil, plain = (read(draw(style, text, page=page)) for text in (EVIL, "Plain as well."))
    names = [[(tag, sorted(values)) for tag, values in found.elements] for found in (evil, plain)]
    assert names[0] == names[1]
    assert not any(name.startswith("on") for _, values in evil.elements for name in values)
    assert [tag for tag, _ in evil.elements].count("script") == 2
    shown = " ".join(EVIL.replace("\u202e", " ").split())
    assert shown in [" ".join(text.split()) for text in evil.texts]


@pytest.mark.parametrize("style", STYLES)
def test_data_survive_escaping(style):
    page = draw(style)
    found = "".join(data_of(page)["rows"][0]["tokens"]) if style == "heatmap" else data_of(page)["texts"][0]
    assert found.replace("\u2028", " ").split() == EVIL.replace("\u202e", " ").replace("\u2028", " ").split()
    raw = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)[1]
    assert not set("<>&\u2028") & set(raw)


@pytest.mark.parametrize("style", STYLES)
def test_nothing_is_fetched(style):
    page = draw(style, "A plain text.", page=True)
    assert not re.search(r"https?:|//[a-z]|src=|@import|url\(|<link|<iframe|<object|fetch\(|import\(", page)
    tags = {tag for tag, _ in read(page).elements}
    assert not tags & {"link", "img", "iframe", "object", "embed", "audio", "video", "base", "form", "a"}


@pytest.mark.parametrize("style", STYLES)
def test_ids_are_unique(style):
    pages = [draw(style) for _ in range(2)]
    ids = [[values["id"] for _, values in read(page).elements if "id" in values] for page in pages]
    assert len(ids[0]) == len(ids[1]) == 1 and ids[0] != ids[1]
    for page, (name,) in zip(pages, ids, strict=True):
        assert page.count(name) == 2 and f'document.getElementById("{name}")' in page
    assert pages[0].replace(*ids[0], *ids[1]) == pages[1]


def test_shown_in_a_notebook(monkeypatch):
    shown = []
    module = types.ModuleType("IPython.display")
    module.HTML, module.display = lambda html: ("HTML", html), shown.append
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    assert visual.render(docs(), jupyter=True, page=True) is None
    ((kind, html),) = shown
    assert kind == "HTML" and html.startswith("<figure ") and "mathjax_ignore" in html
    monkeypatch.setattr(sys.modules["spacy_sbert.visual.render"], "is_in_jupyter", lambda: True)
    assert visual.render(docs()) is None and len(shown) == 2
    assert visual.render(docs(), jupyter=False).startswith("<figure ") and len(shown) == 2
