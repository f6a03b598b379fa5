"""Losses that an earlier version saved, with its constants among the attrs, load and train on."""

import base64
import zlib

import numpy
import pytest
import srsly

from spacy_sbert.losses.cosent import CoSENTLoss
from spacy_sbert.losses.multi_task import MultiTaskLoss
from spacy_sbert.losses.softmax import SoftmaxLoss

U = numpy.arange(6, dtype="float32").reshape(2, 3)
MEMBERS = [U, U[::-1]]
INPUTS = {"nli": (MEMBERS, ["no", "yes"]), "sts": (MEMBERS, numpy.array([0.0, 1.0], dtype="float32"))}
# MultiTaskLoss({"sts": CoSENTLoss(), "nli": SoftmaxLoss()}), initialized, as it was saved when constants were attrs
OLD = zlib.decompress(
    base64.b85decode(
        b"c-n=Lze@sP7=XRQez*j+M~gJL1ucPhOGrg!K|!N@clTXh-hH3l`)LXd5*iH-"
        b">Mb=?=y}o)f`*m`CG>+f|A~gCM)$&^GK%K+;dx%(H}4UuVQ})EK{TB4)d{lj&1%YI#wLQq3I(WZh6TC0jdjR<U_u|e-"
        b"k>_OQ05alsF5|XMwS8tu-"
        b"J#M=IKTxy7^P+A;xTQ3YR2iVN1a_aG_M+rl!V)hwHsKHE~QqOpSA)(=Z?gDT@p3E2`{Zl^JOaJWz3oX}G}P@S8*|i|>|U&qN9~2UYDaRii%!"
        b"K3b^}>Si(AsFbLPVS<=J2_JK+scQNHDG<{PUC;mC0F~PK&vhF~WFrfl+(C7#z(t~UxSwT{*bVEm+@E;668G^Th@&K~hym``5JP-"
        b"%a(PG^f1Z%HqeV%Y>V-qu_2%u&qjYD5nvMH{oS8q9gTeErH@zT_bWg)4-"
        b"8pGCQkHiUmDbElvDNFit)p>Ot}6dD%i>3JbmvKu*N*q)oCoo@A33E`=@mV_?-T"
    )
)
CONSTANTS = ("n_members", "gold", "whole_batch", "is_sum")


def build():
    return MultiTaskLoss({"sts": CoSENTLoss(), "nli": SoftmaxLoss()})


def constants(loss):
    return [[getattr(node, name) for name in CONSTANTS] for node in loss.walk()]


def assert_as_it_was(loss):
    values, backprop = loss(INPUTS, True)
    assert values == pytest.approx({"nli": 1.7599502801895142, "sts": 0.6931471824645996}, abs=1e-6)
    assert all(numpy.isfinite(d).all() for of_members in backprop().values() for d in of_members)
    assert loss.layers[0].attrs["labels"] == ["no", "yes"]


def test_loads_and_trains_on():
    loss = build().from_bytes(OLD)
    assert constants(loss) == constants(build())
    assert_as_it_was(loss)
    assert_as_it_was(build().from_bytes(loss.to_bytes()))
    loss.initialize(X=INPUTS)


def test_what_was_saved_replaces_no_constant():
    state = srsly.msgpack_loads(OLD)
    for attrs in state["attrs"]:
        attrs.update(
            {name: srsly.msgpack_dumps(wrong) for name, wrong in zip(CONSTANTS, ([7], "text", 1, 1), strict=True)}
        )
    loss = build().from_bytes(srsly.msgpack_dumps(state))
    assert constants(loss) == constants(build())
    assert_as_it_was(loss)


def test_constants_are_not_saved():
    for attrs in srsly.msgpack_loads(build().initialize(X=INPUTS).to_bytes())["attrs"]:
        assert not set(attrs) & set(CONSTANTS)
