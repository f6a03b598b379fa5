"""Every registered loss on strict arrays: the values, gradients and weights are those of NumPy, and a step waits for
the device but for the loss that it reports."""

from importlib.metadata import distribution

import pytest
from gpu_rehearsal.both_ways import both_ways, check_same, looks_of, parameters_of
from pipelines import TRANSFORMERS
from test_objectives import MULTI, OBJECTIVES, make, several
from thinc.api import Adam, fix_random_seed

REPORTED = {"MatryoshkaLoss": 2, "MultiTaskLoss": 3}  # losses, where it is more than one
LOSSES = [*OBJECTIVES, "MultiTaskLoss"]


def build(make_nlp, encoder, name):
    if name != "MultiTaskLoss":
        return make(make_nlp, encoder, name)
    fix_random_seed(0)
    nlp = make_nlp(encoder, loss=MULTI)
    batch = several(nlp)
    nlp.initialize(lambda: batch)
    return nlp, batch


def learn(nlp, batch, optimizer, n_steps=2):
    """The losses of some steps."""
    found = []
    for _ in range(n_steps):
        found.append(nlp.update(batch, sgd=False))
        for _, pipe in nlp.pipeline:
            pipe.finish_update(optimizer)
    return found


def test_every_registered_loss_is_tried():
    named = {ep.name.split(".")[1] for ep in distribution("spacy-sbert").entry_points if ep.group == "thinc_layers"}
    assert {name.split()[0] for name in LOSSES} == {name for name in named if name.endswith("Loss")}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_steps_as_on_numpy(make_nlp, encoder, name):
    def steps():
        nlp, batch = build(make_nlp, encoder, name)
        # A large eps: what has no gradient but for rounding shall not move.
        return learn(nlp, batch, Adam(0.01, eps=0.1)), parameters_of(nlp)

    check_same(*both_ways(steps))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_a_step_waits_for_the_loss_alone(strict, make_nlp, encoder, name):
    nlp, batch = build(make_nlp, encoder, name)
    optimizer = Adam(0.001)
    learn(nlp, batch, optimizer, 1)
    found = looks_of(lambda: learn(nlp, batch, optimizer, 1))
    assert [how for how, *_ in found] == ["float"] * REPORTED.get(name.split()[0], 1), found
