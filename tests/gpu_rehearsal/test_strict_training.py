"""Every registered loss on strict arrays: results are those of NumPy, and a step waits only for its
loss.
"""

import numpy
import pytest
from gpu_rehearsal.both_ways import both_ways, check_same, looks_of
from helpers.objectives import OBJECTIVES, make
from helpers.pipelines import (
    LISTENER,
    OTHERS,
    TOK2VEC_LISTENER,
    TRAINED,
    add_tagger,
    finish_update,
    parameters_of,
    scored_pairs,
)
from spacy.training import Example
from spacy.util import registry
from thinc.api import SGD, Adam, RAdam, get_current_ops

from spacy_sbert.training.batchers import batch_by_objective

# losses, where it is more than one
REPORTED = {"MatryoshkaLoss": 2, "MultiTaskLoss": 3}
# all, see tests/behaviour/test_loss_gradients.py
LOSSES = [*OBJECTIVES, "MultiTaskLoss"]


def learn(nlp, batch, optimizer, n_steps=2):
    """The losses of some steps."""
    found = []
    for _ in range(n_steps):
        found.append(nlp.update(batch, sgd=False))
        finish_update(nlp, optimizer)
    return found


AGAIN = {
    "MultipleNegativesRankingLoss with negatives",
    "CachedMultipleNegativesRankingLoss",
    "ContrastiveLoss",
}
# Arrays as of the loss that stands for them
AGAIN |= {"DistillationLoss of translations"}
CASES = [("own", name) for name in LOSSES if name not in AGAIN]
# Of others the own weights are Thinc's
CASES += [(encoder, "CosineSimilarityLoss") for encoder in ("shared", *OTHERS)]
SLOW = [("own", name) for name in AGAIN] + [
    ("shared", name) for name in LOSSES if name != "CosineSimilarityLoss"
]
CASES += [pytest.param(*case, marks=pytest.mark.slow) for case in sorted(SLOW)]


@pytest.mark.parametrize(("encoder", "name"), CASES)
def test_steps_as_on_numpy(make_nlp, encoder, name):
    """A step waits for the device only for the loss that it reports."""
    looks = []

    def steps():
        nlp, batch = make(make_nlp, encoder, name)
        # A large eps: what has no gradient but for rounding shall not move
        optimizer = Adam(0.01, eps=0.1)
        losses = learn(nlp, batch, optimizer, 1)
        looks[:] = looks_of(lambda: losses.extend(learn(nlp, batch, optimizer, 1)))
        return losses, parameters_of(nlp)

    check_same(*both_ways(steps))
    expected = ["float"] * REPORTED.get(name.split()[0], 1)
    # Which reports one of its own, as a Tok2Vec does
    if encoder == "shared":
        expected.append("float")
    # Whose package leaves lengths on the device, and reports a loss of its own
    if encoder == "curated":
        expected = ["get", *expected]
    assert [how for how, *_ in looks] == expected, looks


def test_steps_of_several_components(make_nlp):
    """That listen to tokens by spaCy's listener and by ours with another pooling, and to rows."""

    def steps():
        nlp = make_nlp("shared")
        add_tagger(nlp, tok2vec=TOK2VEC_LISTENER, before="sbert")
        add_tagger(nlp, "maxima", tok2vec={**LISTENER, "pooling": {"@layers": "reduce_max.v1"}})
        for name in ("tagger", "maxima"):
            nlp.get_pipe(name).add_label("Y")
        texts = ["A man is eating. He cannot go.", "", "the cat sat"]
        tagged = [Example.from_dict(nlp.make_doc(text), {}) for text in texts]
        for example in tagged:
            for token in example.reference:
                token.tag_ = "X" if len(token) > 2 else "Y"
        batch = [*scored_pairs(nlp), *tagged]
        numpy.random.seed(0)
        nlp.initialize(lambda: batch)
        losses = learn(nlp, batch, Adam(0.01, eps=0.1))
        docs = list(nlp.pipe(texts))
        tensors = [doc.tensor for doc in docs]
        return losses, parameters_of(nlp), tensors, [[token.tag_ for token in doc] for doc in docs]

    check_same(*both_ways(steps))


OPTIMIZERS = {
    "clipped and decaying": lambda: Adam(0.01, eps=0.1, grad_clip=0.05, L2=0.1),
    "regularised": lambda: Adam(
        0.01, eps=0.1, L2=0.1, L2_is_weight_decay=False, use_averages=False
    ),
    "rectified": lambda: RAdam(0.01, eps=0.1),
    "descent": lambda: SGD(0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(make_nlp, name):
    """The last with accumulated gradients: of parts of a batch, and the update that follows."""

    def steps():
        nlp, batch = make(make_nlp, TRAINED if name == "descent" else "own", "SoftmaxLoss")
        optimizer = OPTIMIZERS[name]()
        if name == "descent":
            noted = next(batch_by_objective(6)(batch))
            nlp.update(noted[:2], sgd=False)
            batch = noted[2:]
        losses = learn(nlp, batch, optimizer)
        with nlp.use_params(optimizer.averages or {}):
            averaged = parameters_of(nlp)
        return losses, parameters_of(nlp), averaged

    check_same(*both_ways(steps))


def test_head_without_examples(make_nlp):
    """Momentum would move it, were zeros taken for a gradient."""

    def steps():
        nlp, batch = make(make_nlp, "own", "MultiTaskLoss")
        optimizer = Adam(0.01, eps=0.1)
        learn(nlp, batch, optimizer)
        before = parameters_of(nlp)
        learn(nlp, batch[3:], optimizer)
        return before, parameters_of(nlp)

    (before, after), found = both_ways(steps)
    still = {key for key in before if (before[key] == after[key]).all()}
    assert {key for key in before if key[0] == "sbert" and key[2] in ("W", "b")} <= still
    check_same((before, after), found)


@pytest.mark.parametrize(
    ("name", "expected"), [("ContrastiveLoss", 0.5**2 / 6), ("OnlineContrastiveLoss", 0.0)]
)
def test_scores_that_are_neither_0_nor_1(strict, name, expected):
    """They are looked at once the loss is no number."""
    loss = registry.layers.get(f"spacy-sbert.{name}.v1")()
    ops = get_current_ops()
    members = [ops.asarray2f(numpy.eye(3, 4, dtype="float32")) for _ in range(2)]
    with pytest.raises(ValueError, match=r"0\.5"):
        loss((members, ops.asarray1f([1.0, 0.5, 0.0])), True)
    value, _ = loss((members, ops.asarray1f([1.0, 1.0, 0.0])), True)
    assert value == pytest.approx(expected)
