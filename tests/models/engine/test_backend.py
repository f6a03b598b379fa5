"""The table of backends: what a config may name, and one of somebody's own."""

import sys

import numpy
import pytest
import torch
from helpers.pipelines import one_pipe

from spacy_sbert.models.engine.backend import BACKENDS, BackendCache
from spacy_sbert.models.engine.huggingface import HFBackend
from spacy_sbert.models.private_attributes import versions_of


class Doubled(HFBackend):
    def encode(self, wordpieces, batch):
        return 2 * super().encode(wordpieces, batch)


class DoubledCache(BackendCache):
    trains = False

    def needs_network(self, precision):
        return True

    def make(self, weights, precision):
        return Doubled(weights)


def test_a_backend_of_ones_own(tiny_bert, monkeypatch):
    monkeypatch.setitem(BACKENDS, "doubled", DoubledCache)
    texts = ["the cat sat", "a man"]
    vectors, others = (
        one_pipe(tiny_bert, backend=backend, normalize=False).get_pipe("sbert").encode(texts)
        for backend in ("doubled", "torch")
    )
    assert numpy.allclose(vectors, 2 * others, atol=1e-5)


def test_unknown_backends(tiny_bert):
    with pytest.raises(ValueError, match=r"backend = 'onyx': expected one of torch, onnx"):
        one_pipe(tiny_bert, backend="onyx")


def test_unknown_settings_of_a_backend(tiny_bert):
    with pytest.raises(ValueError, match=r"backend_config = 'file'"):
        one_pipe(tiny_bert, backend_config={"file": "model.onnx"})


def test_a_missing_package_is_named(tiny_bert, monkeypatch):
    nlp = one_pipe(tiny_bert, backend="onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"spacy-sbert\[onnx\]"):
        nlp.get_pipe("sbert").load()


def test_changes_of_tensors_are_counted_where_pytorch_counts_them():
    weights = [torch.zeros(2), torch.ones(3)]
    before = versions_of(weights)
    weights[1] += 1
    after = versions_of(weights)
    assert [new - old for old, new in zip(before, after, strict=True)] == [0, 1]
    with torch.inference_mode():
        weights.append(torch.zeros(1))
    assert versions_of(weights) == [*after, 0]
