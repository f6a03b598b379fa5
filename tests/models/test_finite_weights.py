"""A saved pipeline whose training diverged says so when it is loaded, whatever its encoder."""

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import EVERY_ENCODER, HOLDER, one_pipe, scored_pairs
from thinc.api import Linear

from spacy_sbert.errors import DivergedError
from spacy_sbert.meta.methods import estimator_from_bytes, make_estimator
from spacy_sbert.models.finite_weights import tensors_not_finite, weights_not_finite

DIVERGED = "Training had diverged before this was saved: .* is not finite"


def spoil(model, value=numpy.nan):
    """Set one number of a model."""
    for node in model.walk():
        for shim in node.shims:
            with torch.no_grad():
                next(shim._model.parameters()).view(-1)[3] = value
            return
    for node in model.walk():
        for name in node.param_names:
            if node.has_param(name) and node.get_param(name).size:
                node.get_param(name).flat[0] = value
                return


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf])
@pytest.mark.parametrize("encoder", EVERY_ENCODER)
def test_encoders(make_nlp, tmp_path, encoder, value):
    nlp = make_nlp(encoder)
    nlp.initialize(lambda: scored_pairs(nlp))
    model = nlp.get_pipe(HOLDER.get(encoder, "sbert")).model
    assert weights_not_finite(model) is None
    spoil(model, value)
    assert weights_not_finite(model) is not None
    # A component of another package
    if encoder in ("listening", "curated"):
        return
    with pytest.warns(UserWarning, match=r"\[sbert-diverged\]"):
        nlp.to_disk(tmp_path / "out")
    with pytest.raises(DivergedError, match=DIVERGED):
        spacy.load(tmp_path / "out")
    with pytest.raises(DivergedError, match=DIVERGED):
        make_nlp(encoder).from_bytes(nlp.to_bytes())


def test_states_that_overflow(make_nlp, tmp_path):
    """Weights may be finite, and so large that nothing else is."""
    nlp = make_nlp("own")
    nlp.initialize(lambda: scored_pairs(nlp))
    with torch.no_grad():
        for node in nlp.get_pipe("sbert").model.walk():
            for parameter in (p for shim in node.shims for p in shim._model.parameters()):
                parameter *= 1e30
    nlp.to_disk(tmp_path / "out")
    with pytest.raises(DivergedError, match="Training had diverged"):
        spacy.load(tmp_path / "out")


def test_reranker(tiny_bert, tmp_path):
    nlp = one_pipe(tiny_bert, "sbert_reranker", n_outputs=1)
    nlp.initialize(lambda: scored_pairs(nlp))
    spoil(nlp.get_pipe("sbert_reranker").model)
    nlp.to_disk(tmp_path / "out")
    with pytest.raises(DivergedError, match=DIVERGED):
        spacy.load(tmp_path / "out")


def test_meta():
    views = [numpy.random.default_rng(i).normal(size=(30, 4)) for i in range(2)]
    estimator = make_estimator("svd", size=3).fit(views)
    assert estimator_from_bytes(estimator.to_bytes()).is_fitted
    next(iter(estimator.arrays.values())).flat[0] = numpy.nan
    with pytest.raises(DivergedError, match=DIVERGED):
        estimator_from_bytes(estimator.to_bytes())


def test_sums_that_overflow_are_no_sign():
    large = torch.full((8,), 3e38)
    assert tensors_not_finite([("a", large), ("b", torch.arange(3))]) is None
    assert (
        tensors_not_finite([("a", large), ("b", torch.tensor([1.0, -numpy.inf, numpy.inf]))]) == "b"
    )
    layer = Linear(2, 2).initialize()
    assert weights_not_finite(layer) is None
