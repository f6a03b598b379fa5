"""What all pictures share: escaping, a page by itself, ids, notebooks, and colours that can be
read.
"""

import re

import pytest
from helpers.made_pages import data_of, made, read

from spacy_sbert import visual
from spacy_sbert.visual.page import DARK, DARK_LABELS, LIGHT, LIGHT_LABELS, STEPS, _ink, _scale

EVIL = (
    "</script><script>alert(1)</script><!-- \"quoted\" 'x' & <img src=x onerror=alert(2)> "
    "\u202e\u2028 ]]> $x$"
)
STYLES = ("heatmap", "map")


def docs(text=EVIL):
    return [made(text, [1, 0]), made("Plain.", [0, 1]), made("Third.", [1, 1])]


def draw(style, text=EVIL, **settings):
    options = {"title": text} if style == "heatmap" else {"title": text, "labels": [text, "b", "b"]}
    return visual.render(docs(text), style, options=options, **settings)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("page", [True, False])
def test_texts_are_never_markup(style, page):
    """The same elements and attributes whatever the text says, and the text itself where it is
    shown.
    """
    evil, plain = (read(draw(style, text, page=page)) for text in (EVIL, "Plain as well."))
    names = [[(tag, sorted(values)) for tag, values in found.elements] for found in (evil, plain)]
    assert names[0] == names[1]
    assert not any(name.startswith("on") for _, values in evil.elements for name in values)
    assert [tag for tag, _ in evil.elements].count("script") == 2
    shown = " ".join(EVIL.replace("\u202e", " ").split())
    assert shown in [" ".join(text.split()) for text in evil.texts]


@pytest.mark.parametrize("style", STYLES)
def test_ids_are_unique(style):
    pages = [draw(style) for _ in range(2)]
    ids = [[values["id"] for _, values in read(page).elements if "id" in values] for page in pages]
    assert len(ids[0]) == len(ids[1]) == 1
    assert ids[0] != ids[1]
    for page, (name,) in zip(pages, ids, strict=True):
        assert page.count(name) == 2
        assert f'document.getElementById("{name}")' in page
    assert pages[0].replace(*ids[0], *ids[1]) == pages[1]


def test_shown_in_a_notebook(monkeypatch):
    shown = []
    ipython = pytest.importorskip("IPython.display")
    monkeypatch.setattr(ipython, "display", shown.append)
    assert visual.render(docs(), jupyter=True, page=True) is None
    (html,) = shown
    assert isinstance(html, ipython.HTML)
    assert html.data.startswith("<figure ")
    assert "mathjax_ignore" in html.data
    monkeypatch.setattr(visual, "is_in_jupyter", lambda: True)
    assert visual.render(docs()) is None
    assert len(shown) == 2
    assert visual.render(docs(), jupyter=False).startswith("<figure ")
    assert len(shown) == 2


def _contrast(*colours):
    """Contrast ratio of WCAG 2.2, from 1 to 21."""
    luminances = []
    for colour in colours:
        parts = [part / 255 for part in bytes.fromhex(colour[1:])]
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        luminances.append(
            sum(
                weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
            )
        )
    return (max(luminances) + 0.05) / (min(luminances) + 0.05)


@pytest.mark.parametrize("style", STYLES)
def test_data_survive_escaping_and_nothing_is_fetched(style):
    page = draw(style)
    found = (
        "".join(data_of(page)["rows"][0]["tokens"])
        if style == "heatmap"
        else data_of(page)["texts"][0]
    )
    assert (
        found.replace("\u2028", " ").split()
        == EVIL.replace("\u202e", " ").replace("\u2028", " ").split()
    )
    raw = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)[1]
    assert not set("<>&\u2028") & set(raw)
    page = draw(style, "A plain text.", page=True)
    assert not re.search(
        r"https?:|//[a-z]|src=|@import|url\(|<link|<iframe|<object|fetch\(|import\(", page
    )
    tags = {tag for tag, _ in read(page).elements}
    assert not tags & {
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "audio",
        "video",
        "base",
        "form",
        "a",
    }


@pytest.mark.parametrize(
    ("stops", "labels", "page"), [(LIGHT, LIGHT_LABELS, "#ffffff"), (DARK, DARK_LABELS, "#14171d")]
)
def test_colours_can_be_told_apart(stops, labels, page):
    colours = _scale(stops)
    assert len(colours) == 2 * STEPS + 1
    assert colours[:: STEPS // 2] == list(stops)
    middle = [_contrast(colour, colours[STEPS]) for colour in colours]
    assert middle[STEPS:] == sorted(middle[STEPS:])
    assert middle[: STEPS + 1] == sorted(middle[: STEPS + 1], reverse=True)
    red = slice(1, 3)
    blue = slice(5, 7)
    for negative, positive in (
        (colours[0], colours[-1]),
        (colours[STEPS // 2], colours[-1 - STEPS // 2]),
    ):
        assert int(negative[red], 16) > int(negative[blue], 16)
        assert int(positive[red], 16) < int(positive[blue], 16)
    for colour in colours:
        assert _contrast(colour, {"#000": "#000000", "#fff": "#ffffff"}[_ink(colour)]) >= 4.58
    # WCAG 1.4.11, of graphics
    assert min(_contrast(colour, page) for colour in labels) >= 3
    assert len(set(labels)) == len(labels) == 8
