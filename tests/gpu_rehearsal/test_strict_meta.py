"""`sbert_meta` over members on strict arrays: with each method the vectors of Docs are those of NumPy."""

import numpy
import pytest
from gpu_rehearsal.both_ways import both_ways, check_same, looks_of
from made_views import SENTENCES

from spacy_sbert.meta import METHODS
from spacy_sbert.meta.component import fit_meta

SIZES = {"svd": {"size": 6}, "gcca": {"size": 6}, "ae": {"size": 6, "options": {"epochs": 3}}}
TEXTS = ["A man is eating food.", "", "The cat sat on the mat. He can go.", "dog"]


def build(make_nlp, tiny_bert, method):
    nlp = make_nlp("own", model={"normalize": False})
    spans = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc"}
    model = {"name": str(tiny_bert), "get_spans": spans, "pooling": "max", "normalize": False}
    nlp.add_pipe("sbert", name="sbert_max", config={"model": model})
    nlp.add_pipe("sbert_meta", config={"method": method, **SIZES.get(method, {})})
    if method in SIZES:
        fit_meta(nlp, "sbert_meta", lambda: SENTENCES[:40])
    return nlp


@pytest.mark.parametrize("method", ["svd", *(pytest.param(m, marks=pytest.mark.slow) for m in METHODS if m != "svd")])
def test_methods(make_nlp, tiny_bert, method):
    """They combine vectors on the host: nothing waits for the device."""

    def work():
        nlp = build(make_nlp, tiny_bert, method)
        found = [doc.vector for doc in nlp.pipe(TEXTS)]
        doc = nlp.get_pipe("sbert_max")(nlp.get_pipe("sbert")(nlp.make_doc(TEXTS[0])))
        assert looks_of(lambda: nlp.get_pipe("sbert_meta")(doc)) == []
        assert type(doc.vector) is numpy.ndarray and doc.vector.any()
        return found, nlp.get_pipe("sbert_meta").encode(TEXTS)

    expected, found = both_ways(work)
    # the signs of directions are not given, and members differ by rounding
    signs = numpy.sign((expected[1] * found[1]).sum(axis=0)) if method in ("svd", "gcca") else 1
    check_same(expected, [[vector * signs for vector in found[0]], found[1] * signs], rtol=5e-3, atol=5e-4)
