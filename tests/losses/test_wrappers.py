"""Losses that are made of others: their values and gradients are those of the parts, and saving
keeps the heads.
"""

import numpy
import pytest
import torch
from helpers.loss_checks import Embedder, check_gradients, check_parity
from sentence_transformers.sentence_transformer import losses as st_losses

from spacy_sbert.losses.distillation import DistillationLoss
from spacy_sbert.losses.ranking import CachedMultipleNegativesRankingLoss
from spacy_sbert.losses.similarity import CoSENTLoss, CosineSimilarityLoss
from spacy_sbert.losses.softmax import SoftmaxLoss
from spacy_sbert.losses.wrappers import MatryoshkaLoss, MultiTaskLoss
from spacy_sbert.models.heads import normalization

RNG = numpy.random.default_rng(10)
MEMBERS = [RNG.normal(size=(5, 6)) for _ in range(2)]
SCORES = RNG.uniform(size=5)
LABELS = list("abcab")
DIMS = [6, 4, 2]
WEIGHTS = [1.0, 0.5, 2.0]
NLI = (MEMBERS, LABELS)
STS = ([RNG.normal(size=(3, 4)) for _ in range(2)], RNG.uniform(size=3))


def test_value_is_the_weighted_sum():
    parts = [
        CosineSimilarityLoss()(([m[:, :dim] for m in MEMBERS], SCORES), True)[0] for dim in DIMS
    ]
    for weights, expected in (
        (WEIGHTS, parts[0] + 0.5 * parts[1] + 2 * parts[2]),
        (None, sum(parts)),
    ):
        value, _ = MatryoshkaLoss(CosineSimilarityLoss(), DIMS, weights)((MEMBERS, SCORES), True)
        assert value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("inner", "gold"),
    [
        (CosineSimilarityLoss, SCORES),
        (SoftmaxLoss, LABELS),
        (DistillationLoss, RNG.normal(size=(5, 6))),
        (CachedMultipleNegativesRankingLoss, [list("abcde"), list("fghij")]),
    ],
)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_gradients_of_widths(inner, gold, weights):
    loss = MatryoshkaLoss(inner(), DIMS, weights).initialize(X=(MEMBERS, gold))
    check_gradients(loss, MEMBERS, gold)


def test_agrees_with_sentence_transformers():
    model = Embedder(6)
    theirs = st_losses.MatryoshkaLoss(model, st_losses.CoSENTLoss(model), DIMS, WEIGHTS)
    reference = lambda tensors: theirs([{"vectors": x} for x in tensors], torch.tensor(SCORES))  # noqa: E731
    check_parity(MatryoshkaLoss(CoSENTLoss(), DIMS, WEIGHTS), MEMBERS, SCORES, reference, 1e-9)


def test_each_width_has_its_head_and_they_survive_saving():
    loss = MatryoshkaLoss(SoftmaxLoss(learn_rate_factor=4.0), DIMS).initialize(X=NLI)
    assert [layer.get_dim("nI") for layer in loss.layers] == [18, 12, 6]
    assert all(
        layer.learn_rate_factor == 4.0 and layer.attrs["labels"] == ["a", "b", "c"]
        for layer in loss.layers
    )
    loaded = MatryoshkaLoss(SoftmaxLoss(), DIMS).from_bytes(loss.to_bytes())
    assert loaded(NLI, True)[0] == loss(NLI, True)[0] == loaded.initialize()(NLI, True)[0]
    weightless = MatryoshkaLoss(SoftmaxLoss(), DIMS, [0.0, 0.0, 0.0]).from_bytes(loss.to_bytes())
    # Weights are the config's
    assert weightless(NLI, True)[0] == 0.0


def build(weights=None, **objectives):
    return MultiTaskLoss(
        {"sts": CosineSimilarityLoss(), "nli": SoftmaxLoss(), **objectives}, weights
    )


def test_values_and_gradients_are_weighted():
    loss = build({"sts": 0.5}).initialize(X={"nli": NLI, "sts": STS})
    values, backprop = loss({"nli": NLI, "sts": STS}, True)
    gradients = backprop(2.0)
    layers = dict(zip(loss.attrs["objectives"], loss.layers, strict=True))
    assert list(values) == list(gradients) == ["nli", "sts"]
    assert layers["nli"].has_grad("W")
    for name, inputs, weight in (("nli", NLI, 1.0), ("sts", STS, 0.5)):
        value, back = layers[name](inputs, True)
        assert values[name] == weight * value
        assert list(loss({name: inputs}, True)[1]()) == [name]
        for given, expected in zip(gradients[name], back(2 * weight), strict=True):
            assert numpy.allclose(given, expected)


def test_saved_objectives():
    loss = build(wide=MatryoshkaLoss(SoftmaxLoss(), [4, 2])).initialize(X={"nli": NLI, "wide": NLI})
    fresh = build({"nli": 2.0}, wide=MatryoshkaLoss(SoftmaxLoss(), [4, 2]))
    loaded = fresh.from_bytes(loss.to_bytes())
    inputs = {"nli": NLI, "wide": NLI, "sts": STS}
    values = loaded(inputs, True)[0]
    expected = loss(inputs, True)[0]
    # The weights are the config's
    assert values == {**expected, "nli": 2 * expected["nli"]}
    other = MultiTaskLoss({"sts": CosineSimilarityLoss(), "snli": SoftmaxLoss()})
    other.from_bytes(build().to_bytes())
    with pytest.raises(ValueError, match=r"objectives nli, sts, .* snli, sts"):
        other({"sts": STS}, True)


def test_attributes_of_several_objectives():
    loss = build()
    assert loss.attrs == {"objectives": ["nli", "sts"]}
    assert (loss.n_members, loss.gold, loss.whole_batch, loss.is_sum) == ((), None, False, False)
    assert loss.mini_batch_size is None
    cached = build(a=CachedMultipleNegativesRankingLoss(8), b=CachedMultipleNegativesRankingLoss(4))
    assert cached.mini_batch_size == 4
    assert cached.whole_batch
    copied = build({"sts": 3.0}).copy()
    assert copied({"sts": STS}, True)[0]["sts"] > 0


COSINE = CosineSimilarityLoss()
REFUSED = [
    *(
        (lambda dims=dims: MatryoshkaLoss(COSINE, dims), "Cannot use dims = ")
        for dims in ([0], [-1, 3], [2**16 + 1])
    ),
    *(
        (lambda dims=dims: MatryoshkaLoss(COSINE, dims), "positive numbers, each once")
        for dims in ([], [4, 4])
    ),
    (
        lambda: MatryoshkaLoss(COSINE, DIMS, [1.0]),
        r"cannot work with weights = \[1.0\]: expected 3 numbers",
    ),
    (
        lambda: MatryoshkaLoss(COSINE, [8, 4])((MEMBERS, SCORES), True),
        "to 8 dimensions: they are 6 wide",
    ),
    (
        lambda: MatryoshkaLoss(SoftmaxLoss(), [8, 4]).initialize(X=NLI),
        "to 8 dimensions: they are 6 wide",
    ),
    (
        lambda: MatryoshkaLoss(normalization(), DIMS),
        "is built of loss layers, got the Thinc model 'unit_length'",
    ),
    (
        lambda: MatryoshkaLoss(MultiTaskLoss({"one": COSINE}), DIMS),
        "cannot contain 'MultiTaskLoss'",
    ),
    (lambda: MultiTaskLoss({}), "has no objectives: expected at least one"),
    (
        lambda: build({"qqp": 1.0}),
        r"has weights for \['qqp'\], expected some of the objectives \['nli', 'sts'\]",
    ),
    (lambda: MultiTaskLoss({"one": "two"}), "is built of loss layers"),
    (lambda: MultiTaskLoss({"all": build()}), "cannot contain 'MultiTaskLoss'"),
    (lambda: build()({"nli": NLI}, True), "was not initialized"),
]


@pytest.mark.parametrize(("use", "message"), REFUSED)
def test_refused(use, message):
    with pytest.raises(ValueError, match=message):
        use()
