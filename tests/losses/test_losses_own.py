"""A loss of the user's own: its gradient is checked, what it returns is checked, and only training
needs its code.
"""

from functools import partial

import catalogue
import numpy
import pytest
import spacy
from helpers.pipelines import reloaded, scored_pairs
from spacy.util import registry
from thinc.api import Config, Linear, Model

from spacy_sbert.hub.cards import describe
from spacy_sbert.losses import LossLayer, check_gradient
from spacy_sbert.losses.softmax import SoftmaxLoss
from spacy_sbert.losses.wrappers import saved_by_name

MEMBERS = numpy.random.default_rng(0).normal(size=(2, 4, 6))
GOLD = [0.0, 0.3, 0.6, 1.0]
OWN = {"@layers": "own.v1", "weight": 0.5}
TEXT = "A man is eating."


def squared(model, inputs, is_train, *, weight, wrong=""):
    """weight * mean((u . v - y)^2)"""
    (u, v), gold = inputs
    error = (u * v).sum(axis=1) - gold

    def backprop(d_loss=1.0):
        if wrong == "no factor":
            d_loss = 1.0
        d = (2 * weight * d_loss / len(gold)) * error[:, None]
        du = d * v
        dv = d * (v if wrong == "gradient" else u)
        return {"one": [du], "row": [du, dv[:1]], "none": None}.get(wrong, [du, dv])

    value = weight * (error**2)
    return (value if wrong == "value" else float(value.mean())), backprop


def own_loss(weight: float = 1.0, wrong: str = "") -> Model:
    return LossLayer(
        "own", partial(squared, weight=weight, wrong=wrong), n_members=[2], gold="score"
    )


def inner(model, inputs, is_train):
    return model.layers[0](inputs, is_train)


def wrapping(loss: Model) -> Model:
    return LossLayer("wrapping", inner, layers=[loss], n_members=[2], gold="score")


def scaled(model, inputs, is_train, *, learns=True):
    """The loss of s (u . v), where s is learned."""
    (u, v), gold = inputs
    scale = model.get_param("s")
    value, back = squared(model, ([u * scale[0], v], gold), is_train, weight=1.0)

    def backprop(d_loss=1.0):
        du, dv = back(d_loss)
        if learns:
            model.inc_grad("s", (du * u).sum()[None])
        return [du * scale[0], dv]

    return value, backprop


def init_scaled(model, X=None, Y=None):
    model.set_param("s", model.ops.asarray1f([2.0]))


def with_weight(learns: bool = True) -> Model:
    return LossLayer(
        "scaled",
        partial(scaled, learns=learns),
        init=init_scaled,
        params={"s": None},
        n_members=[2],
        gold="score",
    )


FUNCTIONS = {"own.v1": own_loss, "wrapping.v1": wrapping, "weight.v1": with_weight}
FUNCTIONS |= {"linear.v1": lambda: Linear(2, 2), "function.v1": lambda: squared}


@pytest.fixture
def registered():
    """Registers functions, and forgets them when it is called."""
    for name, function in FUNCTIONS.items():
        registry.layers(name, func=function)

    def forget():
        for name in FUNCTIONS:
            catalogue.REGISTRY.pop((*registry.layers.namespace, name), None)

    yield forget
    forget()


def test_a_right_gradient_passes():
    check_gradient(own_loss(0.5), MEMBERS, GOLD)
    check_gradient(wrapping(own_loss()), MEMBERS.astype("float32"), numpy.array(GOLD))
    layer = SoftmaxLoss()
    layer.initialize(X=([numpy.zeros((1, 6), dtype="float32")] * 2, ["no", "yes"]))
    kept = layer.get_param("W").copy()
    check_gradient(layer, MEMBERS, ["no", "yes", "yes", "no"])
    assert numpy.array_equal(layer.get_param("W"), kept)
    assert layer.get_param("W").dtype == "float32"
    assert not layer.has_grad("W")
    check_gradient(with_weight().initialize(), MEMBERS, GOLD)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("gradient", r"is wrong for member 1 at \[\d, \d\]: backprop returns -?\d"),
        ("no factor", r"is wrong for member 0, with the factor 2 at"),
        ("value", r"returned ndarray\(4,\) as the loss of a batch. Expected a float"),
        ("one", r"gradients of the shapes \[\(4, 6\)\]. Expected .*: \[\(4, 6\), \(4, 6\)\]"),
        ("row", r"gradients of the shapes \[\(4, 6\), \(1, 6\)\]"),
        ("none", r"gradients of the shapes \[\]"),
    ],
)
def test_a_wrong_gradient_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        check_gradient(own_loss(wrong=wrong), MEMBERS, GOLD)


def test_a_wrong_gradient_of_a_parameter_and_what_is_no_loss_are_named():
    with pytest.raises(ValueError, match=r"the parameter 's' at \[0\]: backprop returns 0, finite"):
        check_gradient(with_weight(learns=False).initialize(), MEMBERS, GOLD)
    with pytest.raises(ValueError, match="LossLayer"):
        check_gradient(Linear(2, 2), MEMBERS, GOLD)


@pytest.mark.parametrize("name", ["linear.v1", "function.v1"])
def test_what_is_no_loss_layer_is_told_what_to_be(make_nlp, registered, name):
    inside = {"@layers": "spacy-sbert.MatryoshkaLoss.v1", "dims": [4], "loss": {"@layers": name}}
    for loss in (inside["loss"], inside):
        with pytest.raises(ValueError, match=r"returns a spacy_sbert\.losses\.LossLayer"):
            make_nlp(loss=loss)


@pytest.mark.parametrize(("wrong", "message"), [("row", "of the shapes"), ("value", "a float")])
def test_what_a_loss_returns_is_checked_in_training(make_nlp, registered, wrong, message):
    """One row would be broadcast to all."""
    nlp = make_nlp(loss={**OWN, "wrong": wrong})
    with pytest.raises(ValueError, match=message):
        nlp.update(scored_pairs(nlp), sgd=False)


LOSSES = {
    "wrapping": {"@layers": "wrapping.v1", "loss": OWN},
    "inside": {"@layers": "spacy-sbert.MatryoshkaLoss.v1", "dims": [16, 8], "loss": OWN},
}


@pytest.mark.parametrize("kind", LOSSES)
def test_a_trained_pipeline_is_used_without_the_code_of_its_loss(
    make_nlp, registered, tmp_path, kind
):
    nlp = make_nlp(loss=LOSSES[kind])
    examples = scored_pairs(nlp)
    optimizer = nlp.initialize(lambda: examples)
    losses = nlp.update(examples, sgd=optimizer)
    nlp.to_disk(tmp_path / "first")
    expected = nlp(TEXT).vector
    again = spacy.load(tmp_path / "first")
    kept = again.update(examples, sgd=False), nlp.update(examples, sgd=False)
    assert kept[0] == pytest.approx(kept[1])
    assert kept[0]["sbert"] != losses["sbert"]

    registered()
    found = spacy.load(tmp_path / "first")
    assert numpy.array_equal(found(TEXT).vector, expected)
    assert found.evaluate(examples)["sts_spearman"] == pytest.approx(
        nlp.evaluate(examples)["sts_spearman"]
    )
    with pytest.raises(ValueError, match=r"'(own|wrapping)\.v1'.*--code"):
        found.update(examples, sgd=False)
    assert numpy.array_equal(reloaded(found, tmp_path / "second")(TEXT).vector, expected)
    # With its code it is trained again
    for name, function in FUNCTIONS.items():
        registry.layers(name, func=function)
    found = spacy.load(tmp_path / "second")
    assert found.update(examples, sgd=False) == pytest.approx(kept[0])
    if kind == "wrapping":
        found.meta["performance"] = {"sbert_loss": 1.0}
        assert describe(found).encoders[0].objectives == (
            "wrapping.v1",
            "loss: own.v1 (weight = 0.5, wrong = )",
        )


def test_weights_of_a_loss_need_its_code(make_nlp, registered, tmp_path):
    """They could not be kept without it. spaCy's message names the function."""
    nlp = make_nlp(loss={"@layers": "weight.v1"})
    nlp.initialize(lambda: scored_pairs(nlp))
    assert nlp.config["components"]["sbert"]["loss"]["@layers"] == "weight.v1"
    # Initialize has made it
    assert nlp.get_pipe("sbert").model.get_ref("loss").get_param("s") == 2.0
    assert reloaded(nlp, tmp_path).get_pipe("sbert").model.get_ref("loss").get_param("s") == 2.0
    registered()
    with pytest.raises(catalogue.RegistryError, match=r"Could not find function 'weight\.v1'"):
        spacy.load(tmp_path)


def test_variables_of_the_config_stay(registered):
    block = {"@layers": "own.v1", "weight": "${vars.weight}"}
    config = Config({"vars": {"weight": 0.5}, "loss": block})
    saved = saved_by_name(block, Config().from_str(config.to_str())["loss"])
    assert saved["name"] == "own.v1"
    assert saved["settings"] == {"weight": "${vars.weight}"}
    ours = {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"}
    assert saved_by_name(ours, ours) == ours
