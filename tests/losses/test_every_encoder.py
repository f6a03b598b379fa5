"""Steps of training: losses over encoders without a transformer of this package, with their own and an upstream one.

The gradient is that of the loss that is reported.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import numpy
import pytest
import spacy
import torch
from objectives import MULTI, OBJECTIVES, TEXTS, layer, make_examples, several
from pipelines import add_curated
from spacy.language import Language
from spacy.vectors import Vectors
from thinc.api import NumpyOps, Ops, fix_random_seed

WIDTH, ROWS = 16, 60
SHARED = "spacy-sbert.SharedSentenceEncoder.v1"
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": WIDTH}
TOKENS = {"@architectures": "spacy-sbert.Tok2VecSentenceEncoder.v1"}
STATIC = {"@architectures": "spacy-sbert.StaticSentenceEncoder.v1", "width": WIDTH}


def bilstm(name, **settings):
    embed = {"@architectures": "spacy.MultiHashEmbed.v2", "width": WIDTH, "attrs": ["NORM", "SUFFIX"]}
    embed |= {"rows": [ROWS, ROWS], "include_static_vectors": False}
    encode = {"@architectures": name, "width": WIDTH, "depth": 1, **settings}
    return {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}


CNN = {"@architectures": "spacy.HashEmbedCNN.v2", "width": WIDTH, "depth": 1, "embed_size": ROWS, "window_size": 1}
CNN |= {"maxout_pieces": 2, "subword_features": True, "pretrained_vectors": None}


@dataclass(frozen=True)
class Kind:
    """A kind of encoder. ways: its model, own, and listening to an upstream component. add_upstream: adds that."""

    ways: dict[str, dict]
    add_upstream: Callable[[Language, Path], object] = lambda nlp, bert: None


def tokens(tok2vec, pooling="mean"):
    ways = {"own": tok2vec, "listening": LISTENER}
    models = {way: {**TOKENS, "tok2vec": source, "pooling": pooling} for way, source in ways.items()}
    return Kind(models, lambda nlp, bert: nlp.add_pipe("tok2vec", config={"model": tok2vec}))


KINDS = {
    "BiLSTM, maximum": tokens(bilstm("spacy-sbert.BiLSTMEncoder.v1"), pooling="max"),
    "spaCy's BiLSTM, maximum": tokens(bilstm("spacy.TorchBiLSTMEncoder.v1", dropout=0.0), pooling="max"),
    "convolution": tokens(CNN),
    "static vectors": tokens({"@architectures": "spacy-sbert.WordVectors.v1", "trainable": True}),
    "words and n-grams": tokens({"@architectures": "spacy-sbert.NgramHashEmbed.v1", "width": WIDTH, "rows": ROWS}),
    "wordpieces": Kind({"own": STATIC}),
    "curated": Kind({"listening": {"@architectures": SHARED}}, add_curated),
}
WAYS = [(kind, way) for kind in KINDS for way in KINDS[kind].ways]
LOSSES = [*OBJECTIVES, "MultiTaskLoss"]
# Every encoder with two losses, and every loss: a loss knows nothing of an encoder.
CASES = [(*WAYS[i], LOSSES[(2 * i + j) % len(LOSSES)]) for i in range(len(WAYS)) for j in range(2)]


def test_every_registered_loss_is_tried():
    named = {ep.name.split(".")[1] for ep in distribution("spacy-sbert").entry_points if ep.group == "thinc_layers"}
    assert {name.split()[0] for name in LOSSES} == {name for name in named if name.endswith("Loss")}
    assert {loss for _, _, loss in CASES} == set(LOSSES)


@pytest.fixture(scope="module")
def blank():
    """A pipeline to build in, with static vectors of all words."""
    nlp = spacy.blank("en")
    words = sorted({token.text for doc in nlp.pipe(TEXTS) for token in doc})
    table = numpy.random.default_rng(0).normal(size=(len(words), WIDTH)).astype("float32") / 2
    nlp.vocab.vectors = Vectors(data=table, keys=words, strings=nlp.vocab.strings)
    return nlp


def build(nlp, bert, kind, way, loss):
    """The pipeline of one case, initialized, and three examples, of which no two texts are the same."""
    for name in nlp.pipe_names:
        nlp.remove_pipe(name)
    fix_random_seed(0)
    if way == "listening":
        kind.add_upstream(nlp, bert)
    source = {"name": str(bert)} if kind.ways[way] is STATIC else {}
    n_members, gold, settings = OBJECTIVES.get(loss, (0, {}, {}))
    config = MULTI if loss == "MultiTaskLoss" else layer(loss, **settings)
    nlp.add_pipe("sbert", config={"model": {**kind.ways[way], **source}, "loss": config})
    batch = several(nlp) if loss == "MultiTaskLoss" else make_examples(nlp, n_members, 3, **gold)
    nlp.initialize(lambda: batch)
    return batch


class Parameters:
    """All that learns in a pipeline, in encoder and loss, of Thinc and of PyTorch: an array each."""

    def __init__(self, nlp):
        nodes = [node for _, pipe in nlp.pipeline for node in pipe.model.walk()]
        self.of_thinc = [(node, name) for node in nodes for name in node.param_names]
        self.of_torch = [p for node in nodes for shim in node.shims for p in shim._model.parameters()]

    def values(self):
        return [
            *(node.get_param(name).copy() for node, name in self.of_thinc),
            *(parameter.detach().numpy().copy() for parameter in self.of_torch),
        ]

    def gradients(self):
        return [
            *(node.get_grad(name).copy() for node, name in self.of_thinc),
            *(parameter.grad.numpy().copy() for parameter in self.of_torch),
        ]

    def set(self, values):
        """Put others in their place, in float64."""
        values = [value.astype("float64") for value in values]
        for (node, name), value in zip(self.of_thinc, values, strict=False):
            node.set_param(name, value)
        for parameter, value in zip(self.of_torch, values[len(self.of_thinc) :], strict=True):
            parameter.grad = None
            parameter.data = torch.from_numpy(value)


def norm(arrays):
    return sum(float(numpy.square(array, dtype="float64").sum()) for array in arrays) ** 0.5


def check_gradient(nlp, batch, parameters):
    """By central differences along the gradient, and along random directions, which see a part that is left out.

    With weights in float64 all of the way forward is; gradients are summed up in float32, whose rounding is 6e-8. Per
    step of 1e-5 the differences round by 1e-11. 1e-4 of what a direction has of the gradient is far above both.
    """
    start = [value.astype("float64") for value in parameters.values()]
    parameters.set(start)
    reported = nlp.update(batch, sgd=False)["sbert"]
    gradient = parameters.gradients()
    assert reported > 0

    def moved(direction, step):
        parameters.set([value + step * d for value, d in zip(start, direction, strict=True)])
        return nlp.update(batch, sgd=False)["sbert"]

    rng, size = numpy.random.default_rng(1), norm(gradient)
    randoms = [[rng.normal(size=value.shape) for value in start] for _ in range(2)]
    for direction, share in ((gradient, 1.0), *((random, sum(v.size for v in start) ** -0.5) for random in randoms)):
        unit = [d / norm(direction) for d in direction]
        slope = sum(float((g * d).sum()) for g, d in zip(gradient, unit, strict=True))
        assert (moved(unit, 1e-5) - moved(unit, -1e-5)) / 2e-5 == pytest.approx(slope, abs=1e-4 * share * size)


@pytest.mark.parametrize(("kind", "way", "loss"), CASES)
def test_the_gradient_is_that_of_the_reported_loss(blank, tiny_bert, monkeypatch, kind, way, loss):
    monkeypatch.setattr(NumpyOps, "gemm", Ops.gemm)  # the one step of Thinc's that refuses float64
    batch = build(blank, tiny_bert, KINDS[kind], way, loss)
    check_gradient(blank, batch, Parameters(blank))
