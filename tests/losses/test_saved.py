"""Losses that were saved load and train on; their constants are not saved."""

import numpy
import pytest
import srsly

from spacy_sbert.losses.cosent import CoSENTLoss
from spacy_sbert.losses.multi_task import MultiTaskLoss
from spacy_sbert.losses.softmax import SoftmaxLoss

U = numpy.arange(6, dtype="float32").reshape(2, 3)
MEMBERS = [U, U[::-1]]
INPUTS = {"nli": (MEMBERS, ["no", "yes"]), "sts": (MEMBERS, numpy.array([0.0, 1.0], dtype="float32"))}
CONSTANTS = ("n_members", "gold", "whole_batch", "is_sum")


def build():
    return MultiTaskLoss({"sts": CoSENTLoss(), "nli": SoftmaxLoss()})


def constants(loss):
    return [[getattr(node, name) for name in CONSTANTS] for node in loss.walk()]


def test_saved_and_loaded_it_is_the_same():
    saved = build().initialize(X=INPUTS)
    loss = build().from_bytes(saved.to_bytes())
    assert constants(loss) == constants(build())
    values, backprop = loss(INPUTS, True)
    assert values == pytest.approx(saved(INPUTS, True)[0], abs=1e-6)
    assert all(numpy.isfinite(d).all() for of_members in backprop().values() for d in of_members)
    assert loss.layers[0].attrs["labels"] == ["no", "yes"]
    loss.initialize(X=INPUTS)


def test_what_was_saved_replaces_no_constant():
    state = srsly.msgpack_loads(build().initialize(X=INPUTS).to_bytes())
    for attrs in state["attrs"]:
        attrs.update(
            {name: srsly.msgpack_dumps(wrong) for name, wrong in zip(CONSTANTS, ([7], "text", 1, 1), strict=True)}
        )
    assert constants(build().from_bytes(srsly.msgpack_dumps(state))) == constants(build())
