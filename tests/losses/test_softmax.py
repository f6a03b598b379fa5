import numpy
import pytest
import torch
from helpers.loss_checks import Embedder, check_gradients, check_parity
from sentence_transformers.sentence_transformer import losses as st_losses
from thinc.api import fix_random_seed

from spacy_sbert.losses.similarity import CoSENTLoss
from spacy_sbert.losses.softmax import SoftmaxLoss, label_probabilities

RNG = numpy.random.default_rng(9)
U = RNG.normal(size=(6, 3))
V = RNG.normal(size=(6, 3))
LABELS = ["neutral", "entailment", "contradiction", "neutral", "entailment", "entailment"]
TABLE_6 = [
    ["u", "v"],
    ["abs_diff"],
    ["product"],
    ["abs_diff", "product"],
    ["u", "v", "product"],
    ["u", "v", "abs_diff"],
    ["u", "v", "abs_diff", "product"],
]


def initialized(*args, gold=LABELS, **kwargs):
    return SoftmaxLoss(*args, **kwargs).initialize(X=([U, V], gold))


def test_value_by_hand():
    loss = SoftmaxLoss(["u"]).initialize(
        X=([numpy.ones((2, 1)), numpy.ones((2, 1))], ["no", "yes"])
    )
    loss.set_param("W", numpy.array([[1.0], [3.0]]))
    loss.set_param("b", numpy.array([0.5, 0.0]))
    value, _ = loss(([numpy.ones((1, 1)), numpy.zeros((1, 1))], ["yes"]), True)
    assert value == pytest.approx(numpy.log1p(numpy.exp(1.5 - 3)))


@pytest.mark.parametrize("concatenation", [*TABLE_6, ["product", "u"]])
def test_gradients(concatenation):
    check_gradients(initialized(concatenation), [U, V], LABELS)


@pytest.mark.parametrize("concatenation", TABLE_6)
def test_agrees_with_sentence_transformers(concatenation):
    theirs = st_losses.SoftmaxLoss(
        Embedder(3),
        3,
        3,
        "u" in concatenation,
        "abs_diff" in concatenation,
        "product" in concatenation,
    ).double()
    loss = initialized(concatenation)
    loss.set_param("W", theirs.classifier.weight.detach().numpy().copy())
    loss.set_param("b", theirs.classifier.bias.detach().numpy().copy())
    targets = torch.tensor([sorted(set(LABELS)).index(label) for label in LABELS])
    reference = lambda tensors: theirs([{"vectors": x} for x in tensors], targets)  # noqa: E731
    check_parity(loss, [U, V], LABELS, reference)
    assert numpy.allclose(loss.get_grad("W"), theirs.classifier.weight.grad.numpy(), atol=1e-12)
    assert numpy.allclose(loss.get_grad("b"), theirs.classifier.bias.grad.numpy(), atol=1e-12)


def test_initialization_is_that_of_torch_linear():
    fix_random_seed(1)
    members = [numpy.ones((2, 300), dtype="float32")] * 2
    loss = SoftmaxLoss().initialize(X=(members, ["b", "a"]))
    assert loss.attrs["labels"] == ["a", "b"]
    W = loss.get_param("W")
    b = loss.get_param("b")
    assert W.shape == (2, 900)
    assert b.shape == (2,)
    assert W.dtype == b.dtype == "float32"
    assert 0.9 / 30 < abs(W).max() <= 1 / 30
    assert abs(b).max() <= 1 / 30
    fix_random_seed(1)
    assert (SoftmaxLoss().initialize(X=(members, ["b", "a"])).get_param("W") == W).all()


def test_probabilities():
    loss = initialized()
    given = label_probabilities(loss, U, V)
    assert given.shape == (6, 3)
    assert numpy.allclose(given.sum(axis=1), 1)
    columns = [loss.attrs["labels"].index(label) for label in LABELS]
    assert -numpy.log(given[range(6), columns]).mean() == pytest.approx(
        loss(([U, V], LABELS), False)[0]
    )


def test_head_survives_saving_and_a_copy_is_independent():
    loss = initialized(learn_rate_factor=5.0)
    loaded = SoftmaxLoss(learn_rate_factor=2.0).from_bytes(loss.to_bytes())
    assert loaded.attrs == loss.attrs
    assert loaded.get_dim("nO") == 3
    assert loaded.get_dim("nI") == 9
    # The config's
    assert loaded.learn_rate_factor == 2.0
    assert loaded(([U, V], LABELS), True)[0] == loss(([U, V], LABELS), True)[0]
    again = SoftmaxLoss().from_bytes(SoftmaxLoss().to_bytes())
    assert again.has_param("W") is None
    again.initialize(X=([U, V], LABELS))
    copied = loss.copy()
    assert copied.learn_rate_factor == 5.0
    assert copied.id != loss.id
    assert copied(([U, V], LABELS), True)[0] == loss(([U, V], LABELS), True)[0]
    copied.get_param("W")[:] = 0
    assert loss.get_param("W").any()


def test_initialized_again():
    loss = initialized()
    # As spaCy does where it has no examples to show
    loss.initialize()
    assert loss(([U, V], LABELS), True)[0] > 0
    loss.initialize(X=([U, V], LABELS))
    with pytest.raises(
        ValueError,
        match=r"contradiction, entailment, neutral, .* no, yes",
    ):
        loss.initialize(X=([U[:2], V[:2]], ["no", "yes"]))
    with pytest.raises(ValueError, match="made for 9 features an example, got 6"):
        loss.initialize(X=([U[:, :2], V[:, :2]], LABELS))


REFUSED = [
    (lambda: SoftmaxLoss(["u", "w"]), r"Cannot use concatenation = "),
    (lambda: SoftmaxLoss([]), r"cannot work with concatenation"),
    (lambda: SoftmaxLoss(["u", "u"]), r"cannot work with concatenation"),
    (lambda: SoftmaxLoss()(([U, V], LABELS), True), "not initialized"),
    (lambda: label_probabilities(SoftmaxLoss(), U, V), "not initialized"),
    (lambda: label_probabilities(CoSENTLoss(), U, V), "CoSENTLoss"),
    (lambda: initialized(gold=["one"] * 6), "at least two labels, got one"),
    (lambda: initialized(gold=[]), "at least two labels, got none"),
    (lambda: initialized()(([U, V], [*LABELS[:5], "maybe"]), True), r"'maybe' is unknown"),
    (lambda: initialized()(([U, V], LABELS[:5]), True), "got 6, 6 and 5"),
    (
        lambda: initialized()(([U[:, :2], V[:, :2]], LABELS), True),
        "made for 9 features an example, got 6",
    ),
    (
        lambda: SoftmaxLoss(["u", "v", "product"]).from_bytes(initialized().to_bytes())(
            ([U, V], LABELS), True
        ),
        "trained with the concatenation u, v, abs_diff",
    ),
]


@pytest.mark.parametrize(("use", "message"), REFUSED)
def test_refused(use, message):
    with pytest.raises(ValueError, match=message):
        use()
