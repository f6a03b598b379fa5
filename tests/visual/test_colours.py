"""Colours can be read: by contrast, in order, and without the sense of colour."""

import re

import pytest
from made_pages import made

from spacy_sbert import visual
from spacy_sbert.visual.colours import (
    DARK,
    DARK_LABELS,
    LIGHT,
    LIGHT_LABELS,
    STEPS,
    contrast,
    ink,
    scale,
    step,
)

PAGES = {"light": "#ffffff", "dark": "#14171d"}


def test_contrast_of_known_colours():
    assert contrast("#000000", "#ffffff") == contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # as WCAG's own examples have it


@pytest.mark.parametrize("stops", [LIGHT, DARK])
def test_scale_moves_away_from_zero(stops):
    colours = scale(stops)
    assert len(colours) == 2 * STEPS + 1
    assert colours[:: STEPS // 2] == list(stops)
    middle = [contrast(colour, colours[STEPS]) for colour in colours]
    assert middle[STEPS:] == sorted(middle[STEPS:]) and middle[: STEPS + 1] == sorted(middle[: STEPS + 1], reverse=True)
    for negative, positive in ((colours[0], colours[-1]), (colours[STEPS // 2], colours[-1 - STEPS // 2])):
        red, blue = slice(1, 3), slice(5, 7)
        assert int(negative[red], 16) > int(negative[blue], 16) and int(positive[red], 16) < int(positive[blue], 16)


@pytest.mark.parametrize("stops", [LIGHT, DARK])
def test_numbers_can_be_read(stops):
    for colour in scale(stops):
        assert contrast(colour, {"#000": "#000000", "#fff": "#ffffff"}[ink(colour)]) >= 4.58


@pytest.mark.parametrize(("labels", "page"), [(LIGHT_LABELS, "light"), (DARK_LABELS, "dark")])
def test_points_stand_out(labels, page):
    assert min(contrast(colour, PAGES[page]) for colour in labels) >= 3  # WCAG 1.4.11, of graphics
    assert len(set(labels)) == len(labels) == 8


def test_strength_and_sign_are_told_without_colour():
    """Each colour comes with the length of a bar, and those below zero with stripes."""
    style = re.search("<style>(.*?)</style>", visual.render([made("A", [1, 0]), made("B", [0, 1])]), re.DOTALL)[1]
    for place in range(2 * STEPS + 1):
        (rule,) = re.findall(rf"\.spacy-sbert \.v{place} \{{(.*?)\}}", style, re.DOTALL)
        assert float(re.search(r"--far: ([\d.]+);", rule)[1]) == pytest.approx(abs(place - STEPS) / STEPS)
        assert ("repeating-linear-gradient" in rule) == ("dotted" in rule) == (place < STEPS)
        assert ("font-weight: 600" in rule) == (abs(place - STEPS) >= STEPS / 2)
    assert "print-color-adjust: exact" in style and "forced-color-adjust: none" in style


def test_steps():
    assert [step(value, -1, 1) for value in (-1, -0.5, 0, 0.24, 1)] == [-20, -10, 0, 5, 20]
    assert [step(value, -0.2, 0.8) for value in (-0.2, 0, 0.4, 0.8, 1)] == [-5, 0, 10, 20, 20]
    assert [step(value, 0.6, 1) for value in (-1, 0.6, 0.8, 1)] == [0, 0, 10, 20]
