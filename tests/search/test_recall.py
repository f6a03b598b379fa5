"""Recall: by hand, and what is refused."""

import numpy

from spacy_sbert.search import first_found, recall

EXACT = numpy.array([[1, 2, 3, 4], [5, 6, 7, 8]])


def test_by_hand():
    found = numpy.array([[4, 3, 2, 9], [8, 7, 1, 2]])
    assert recall(found, EXACT) == (3 / 4 + 2 / 4) / 2
    assert first_found(found, EXACT) == 0.0
    assert first_found(numpy.array([[9, 9, 9, 1], [6, 7, 8, 9]]), EXACT) == 0.5
    assert recall(EXACT[:, ::-1], EXACT) == first_found(EXACT, EXACT) == 1.0
