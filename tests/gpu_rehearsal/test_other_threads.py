"""Threads that do not know of the GPU: Thinc's ops, and with them its default device, are those of
a thread alone.
"""

import numpy
import pytest
import thinc.util
import torch
from helpers.pipelines import HOLDER, PAIRS, TRANSFORMERS, gradients
from thinc.api import Adam, xp2torch

from spacy_sbert.models.word_layers import bilstm_encoder
from spacy_sbert.reranker.cross_encoder import cross_encoder


@pytest.fixture
def in_another_thread(monkeypatch):
    """From now on the default device is another than that of the weights."""

    def begin():
        monkeypatch.setattr(thinc.util, "get_torch_default_device", lambda: torch.device("meta"))
        assert xp2torch(numpy.ones(2)).is_meta

    return begin


@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_encoders(make_nlp, examples, in_another_thread, encoder):
    nlp = make_nlp(encoder)
    batch = examples(nlp)
    nlp.initialize(lambda: batch)
    before = nlp(PAIRS[0][0]).vector
    first = nlp.update(batch, sgd=False)["sbert"]
    in_another_thread()
    assert numpy.array_equal(nlp(PAIRS[0][0]).vector, before)
    # Which returns its gradient, see test_meta_encoder.py
    if encoder == "spacy-transformers":
        return
    once = gradients(nlp, HOLDER[encoder])
    assert nlp.update(batch, sgd=False)["sbert"] == pytest.approx(first)
    twice = gradients(nlp, HOLDER[encoder])
    assert all(
        numpy.allclose(twice[key], 2 * gradient, atol=1e-6) for key, gradient in once.items()
    )


def test_pairs(tiny_bert, in_another_thread):
    model = cross_encoder(str(tiny_bert), n_outputs=1)
    model.initialize()
    in_another_thread()
    found, backprop = model.begin_update([("a man", "a cat")])
    backprop(numpy.ones_like(found.logits))
    assert model.shim._model.classifier.weight.grad.any()


def test_bilstm(in_another_thread):
    model = bilstm_encoder(4, 1)
    given = [numpy.ones((3, 4), dtype="float32")]
    in_another_thread()
    found, backprop = model.begin_update(given)
    (d_given,) = backprop(found)
    assert d_given.shape == (3, 4)
    assert d_given.any()
    model.finish_update(Adam(0.01))
