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
    data = data_of(draw(style))
    found = "".join(data["rows"][0]["tokens"]) if style == "heatmap" else data["texts"][0]
    assert found.replace("\u2028", " ").split() == EVIL.replace("\u202e", " ").replace("\u2028", " ").split()
    raw = re.search(r'<script type="application/json">(.*?)</script>', draw(style), re.DOTALL)[1]
    assert not set("<>&\u2028") & set(raw)


@pytest.mark.parametrize("style", STYLES)
def test_nothing_is_fetched(style):
    page = draw(style, "A plain text.", page=True)
    assert not re.search(r"https?:|//[a-z]|src=|@import|url\(|<link|<iframe|<object|fetch\(|import\(", page)
    tags = {tag for tag, _ in read(page).elements}
    assert not tags & {"link", "img", "iframe", "object", "embed", "audio", "video", "base", "form", "a"}


@pytest.mark.parametrize("style", STYLES)
def test_a_page_and_a_fragment(style):
    page, fragment = (draw(style, "A plain text.", page=page) for page in (True, False))
    assert type(page) is type(fragment) is str  # no Markup, which escapes what is put in
    assert page.startswith('<!doctype html>\n<html lang="en">') and page.endswith("</html>\n")
    tags = [tag for tag, _ in read(page).elements]
    assert [tags.count(tag) for tag in ("html", "head", "title", "body", "figure", "style")] == [1] * 6
    assert fragment.startswith("<figure ") and fragment.endswith("</figure>\n") and "<style>" in fragment
    assert not {"html", "head", "body", "meta"} & {tag for tag, _ in read(fragment).elements}


@pytest.mark.parametrize("style", STYLES)
def test_ids_are_unique(style):
    pages = [draw(style) for _ in range(2)]
    ids = [[values["id"] for _, values in read(page).elements if "id" in values] for page in pages]
    assert len(ids[0]) == len(ids[1]) == 1 and ids[0] != ids[1]
    for page, (name,) in zip(pages, ids, strict=True):
        assert page.count(name) == 2 and f'document.getElementById("{name}")' in page
    assert pages[0].replace(*ids[0], *ids[1]) == pages[1]


def test_rules_are_for_the_figure_alone():
    style = re.search("<style>(.*?)</style>", draw("map"), re.DOTALL)[1]
    rules = re.sub(r"@media [^{]*\{((?:[^{}]*\{[^{}]*\})*)\s*\}", r"\1", style)
    selectors = [one.strip() for rule in re.findall(r"([^{}]+)\{", rules) for one in rule.split(",")]
    assert len(selectors) > 80
    assert [one for one in selectors if ".spacy-sbert" not in one] == []


def test_unknown_style():
    with pytest.raises(ValueError, match="Unknown style 'dep' of a picture: expected one of heatmap, map"):
        visual.render(docs(), "dep")


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


def test_without_ipython(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(ImportError, match=r"needs IPython.*jupyter = False"):
        visual.render(docs(), jupyter=True)
    assert visual.render(docs()).startswith("<figure ")


def test_joined_characters_stay_joined():
    family = "\U0001f469\u200d\U0001f467"
    assert family in visual.render([made(f"{family} at home.", [1, 0]), made("One.", [0, 1])])
