"""Colours can be read: by contrast, in order, and without the sense of colour."""

import pytest

from spacy_sbert.visual.page import (
    DARK,
    DARK_LABELS,
    LIGHT,
    LIGHT_LABELS,
    STEPS,
    _contrast,
    _ink,
    scale,
    step,
)

PAGES = {"light": "#ffffff", "dark": "#14171d"}


@pytest.mark.parametrize("stops", [LIGHT, DARK])
def test_scale_moves_away_from_zero(stops):
    colours = scale(stops)
    assert len(colours) == 2 * STEPS + 1
    assert colours[:: STEPS // 2] == list(stops)
    middle = [_contrast(colour, colours[STEPS]) for colour in colours]
    assert middle[STEPS:] == sorted(middle[STEPS:]) and middle[: STEPS + 1] == sorted(middle[: STEPS + 1], reverse=True)
    for negative, positive in ((colours[0], colours[-1]), (colours[STEPS // 2], colours[-1 - STEPS // 2])):
        red, blue = slice(1, 3), slice(5, 7)
        assert int(negative[red], 16) > int(negative[blue], 16) and int(positive[red], 16) < int(positive[blue], 16)


@pytest.mark.parametrize("stops", [LIGHT, DARK])
def test_numbers_can_be_read(stops):
    for colour in scale(stops):
        assert _contrast(colour, {"#000": "#000000", "#fff": "#ffffff"}[_ink(colour)]) >= 4.58


@pytest.mark.parametrize(("labels", "page"), [(LIGHT_LABELS, "light"), (DARK_LABELS, "dark")])
def test_points_stand_out(labels, page):
    assert min(_contrast(colour, PAGES[page]) for colour in labels) >= 3  # WCAG 1.4.11, of graphics
    assert len(set(labels)) == len(labels) == 8


def test_steps():
    assert [step(value, -1, 1) for value in (-1, -0.5, 0, 0.24, 1)] == [-20, -10, 0, 5, 20]
    assert [step(value, -0.2, 0.8) for value in (-0.2, 0, 0.4, 0.8, 1)] == [-5, 0, 10, 20, 20]
    assert [step(value, 0.6, 1) for value in (-1, 0.6, 0.8, 1)] == [0, 0, 10, 20]
