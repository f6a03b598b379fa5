"""The gradient of losses over encoders without a transformer of this package is that of the loss
that is reported.
"""

from functools import partial
from importlib.metadata import distribution

import numpy
import pytest
import spacy
import torch
from helpers.objectives import OBJECTIVES, TEXTS, examples_of, loss_of
from helpers.pipelines import CNN, TOK2VEC_LISTENER, add_curated
from spacy.vectors import Vectors
from thinc.api import NumpyOps, Ops, fix_random_seed

WIDTH = 16
ROWS = 60
SHARED = "spacy-sbert.SharedSentenceEncoder.v1"
TOKENS = {"@architectures": "spacy-sbert.Tok2VecSentenceEncoder.v1"}
STATIC = {"@architectures": "spacy-sbert.StaticSentenceEncoder.v1", "width": WIDTH}


def bilstm(name, **settings):
    embed = {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": WIDTH,
        "attrs": ["NORM", "SUFFIX"],
    }
    embed |= {"rows": [ROWS, ROWS], "include_static_vectors": False}
    encode = {"@architectures": name, "width": WIDTH, "depth": 1, **settings}
    return {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}


def tokens(tok2vec, pooling="mean"):
    """The models that have the tok2vec as their own or listen to it, and what adds it upstream."""
    ways = {"own": tok2vec, "listening": TOK2VEC_LISTENER}
    models = {
        way: {**TOKENS, "tok2vec": source, "pooling": pooling} for way, source in ways.items()
    }
    return models, lambda nlp, bert: nlp.add_pipe("tok2vec", config={"model": tok2vec})


KINDS = {
    "BiLSTM, maximum": tokens(bilstm("spacy-sbert.BiLSTMEncoder.v1"), pooling="max"),
    "spaCy's BiLSTM, maximum": tokens(
        bilstm("spacy.TorchBiLSTMEncoder.v1", dropout=0.0), pooling="max"
    ),
    "convolution": tokens(CNN),
    "static vectors": tokens({"@architectures": "spacy-sbert.WordVectors.v1", "trainable": True}),
    "words and n-grams": tokens(
        {"@architectures": "spacy-sbert.NgramHashEmbed.v1", "width": WIDTH, "rows": ROWS}
    ),
    "wordpieces": ({"own": STATIC}, None),
    "curated": ({"listening": {"@architectures": SHARED}}, add_curated),
}
WAYS = [(kind, way) for kind in KINDS for way in KINDS[kind][0]]
LOSSES = [*OBJECTIVES, "MultiTaskLoss"]
# Every encoder with two losses, and every loss: a loss knows nothing of an encoder.
CASES = [(*WAYS[i], LOSSES[(2 * i + j) % len(LOSSES)]) for i in range(len(WAYS)) for j in range(2)]


def test_every_registered_loss_is_tried():
    named = {
        ep.name.split(".")[1]
        for ep in distribution("spacy-sbert").entry_points
        if ep.group == "thinc_layers"
    }
    assert {name.split()[0] for name in LOSSES} == {name for name in named if name.endswith("Loss")}
    assert {loss for _, _, loss in CASES} == set(LOSSES)


@pytest.fixture(scope="module")
def blank():
    """A pipeline to build in, with static vectors of all words."""
    nlp = spacy.blank("xx")
    words = sorted({token.text for doc in nlp.pipe(TEXTS) for token in doc})
    table = numpy.random.default_rng(0).normal(size=(len(words), WIDTH)).astype("float32") / 2
    nlp.vocab.vectors = Vectors(data=table, keys=words, strings=nlp.vocab.strings)
    return nlp


def build(nlp, bert, models, add_upstream, way, loss):
    """The pipeline of one case, initialized, and three examples, of which no two texts are the
    same.
    """
    for name in nlp.pipe_names:
        nlp.remove_pipe(name)
    fix_random_seed(0)
    if way == "listening":
        add_upstream(nlp, bert)
    source = {"name": str(bert)} if models[way] is STATIC else {}
    nlp.add_pipe("sbert", config={"model": {**models[way], **source}, "loss": loss_of(loss)})
    batch = examples_of(nlp, loss, 3)
    nlp.initialize(lambda: batch)
    return batch


def parameters(nlp):
    """All that learns in encoder and loss, of Thinc and PyTorch: what reads it, its gradient, what
    replaces it.
    """
    for node in (node for _, pipe in nlp.pipeline for node in pipe.model.walk()):
        for name in node.param_names:
            yield (
                partial(node.get_param, name),
                partial(node.get_grad, name),
                partial(node.set_param, name),
            )
        for parameter in (
            parameter for shim in node.shims for parameter in shim._model.parameters()
        ):
            yield (
                parameter.detach().numpy,
                partial(torch_gradient, parameter),
                partial(set_torch, parameter),
            )


def torch_gradient(parameter):
    return parameter.grad.numpy()


def set_torch(parameter, value):
    parameter.grad, parameter.data = None, torch.from_numpy(value)


def norm(arrays):
    return sum(float(numpy.square(array, dtype="float64").sum()) for array in arrays) ** 0.5


def check_gradient(nlp, batch):
    """By central differences along the gradient, and along random directions, which see a part that
    is left out.

    With weights in float64 all of the way forward is; gradients are summed up in float32, whose
    rounding is 6e-8. Per step of 1e-5 the differences round by 1e-11. 1e-4 of what a direction has
    of the gradient is far above both.
    """
    learned = list(parameters(nlp))
    start = [read().astype("float64") for read, *_ in learned]

    def loss_at(values):
        for (*_, write), value in zip(learned, values, strict=True):
            write(value)
        return nlp.update(batch, sgd=False)["sbert"]

    assert loss_at(start) > 0
    gradient = [derivative().copy() for _, derivative, _ in learned]
    rng = numpy.random.default_rng(1)
    size = norm(gradient)
    # What a random direction has of the gradient
    share = sum(value.size for value in start) ** -0.5
    directions = [(gradient, 1.0)]
    for _ in range(2):
        directions.append(([rng.normal(size=value.shape) for value in start], share))
    for direction, part in directions:
        unit = [values / norm(direction) for values in direction]
        slope = sum(float((g * d).sum()) for g, d in zip(gradient, unit, strict=True))
        above = loss_at([v + 1e-5 * d for v, d in zip(start, unit, strict=True)])
        below = loss_at([v - 1e-5 * d for v, d in zip(start, unit, strict=True)])
        assert (above - below) / 2e-5 == pytest.approx(slope, abs=1e-4 * part * size)


@pytest.mark.parametrize(("kind", "way", "loss"), CASES)
def test_the_gradient_is_that_of_the_reported_loss(blank, tiny_bert, monkeypatch, kind, way, loss):
    # The one step of Thinc's that refuses float64
    monkeypatch.setattr(NumpyOps, "gemm", Ops.gemm)
    check_gradient(blank, build(blank, tiny_bert, *KINDS[kind], way, loss))
