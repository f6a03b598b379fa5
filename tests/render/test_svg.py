"""Axes and elements of plots."""

from xml.etree import ElementTree

import pytest

from spacy_sbert.render.plots import Axis, svg, text

EVIL = "a|b <script>alert(1)</script> \"x\" 'y' & \u202e\ud83d\n"


def test_axis():
    assert Axis(0, 10, 100, 200)(2.5) == 125 and Axis(3, 3, 100, 200)(3) == 100
    assert Axis(1, 100, 0, 50, log=True)(10) == pytest.approx(25)


def test_texts_are_escaped():
    root = ElementTree.fromstring(svg(EVIL, EVIL, 10, text(1, 2.25, EVIL, kind="name")))
    shown = EVIL.replace("\u202e", " ").replace("\ud83d", " ").replace("\n", " ")
    assert [one.text for one in root.iter() if one.text] == [shown] * 3
    assert root.get("aria-label") == f"{shown}. {shown}" and len(list(root.iter())) == 4
    assert root.find("text").attrib == {"x": "1", "y": "2.2", "text-anchor": "start", "class": "name"}
