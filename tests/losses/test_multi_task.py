import numpy
import pytest
from gradients import finite_differences, relative_error

from spacy_sbert.losses.cosine_similarity import CosineSimilarityLoss
from spacy_sbert.losses.matryoshka import MatryoshkaLoss
from spacy_sbert.losses.multi_task import MultiTaskLoss
from spacy_sbert.losses.multiple_negatives_ranking import CachedMultipleNegativesRankingLoss
from spacy_sbert.losses.softmax import SoftmaxLoss

RNG = numpy.random.default_rng(11)
NLI = ([RNG.normal(size=(5, 4)) for _ in range(2)], list("abcab"))
STS = ([RNG.normal(size=(3, 4)) for _ in range(2)], RNG.uniform(size=3))


def build(weights=None, **objectives):
    return MultiTaskLoss({"sts": CosineSimilarityLoss(), "nli": SoftmaxLoss(), **objectives}, weights)


def test_values_and_gradients_are_weighted():
    loss = build({"sts": 0.5}).initialize(X={"nli": NLI, "sts": STS})
    values, backprop = loss({"nli": NLI, "sts": STS}, True)
    gradients = backprop(2.0)
    assert list(values) == list(gradients) == ["nli", "sts"]
    value, sts_backprop = CosineSimilarityLoss()(STS, True)
    assert values["sts"] == value / 2
    for given, expected in zip(gradients["sts"], sts_backprop(1.0), strict=True):
        assert numpy.allclose(given, expected)
    head = dict(zip(loss.attrs["objectives"], loss.layers, strict=True))["nli"]
    assert values["nli"] == head(NLI, True)[0]
    assert head.has_grad("W")


@pytest.mark.parametrize(("name", "inputs"), [("nli", NLI), ("sts", STS)])
def test_gradients(name, inputs):
    loss = build({"sts": 0.3, "nli": 3.0}).initialize(X={"nli": NLI, "sts": STS})
    members, gold = [member.copy() for member in inputs[0]], inputs[1]
    _, backprop = loss({name: (members, gold)}, True)
    given = backprop()
    assert list(given) == [name]
    for member, d_member in zip(members, given[name], strict=True):
        expected = finite_differences(lambda _: loss({name: (members, gold)}, True)[0][name], member)
        assert relative_error(d_member, expected) < 1e-6


def test_saving():
    loss = build(wide=MatryoshkaLoss(SoftmaxLoss(), [4, 2])).initialize(X={"nli": NLI, "wide": NLI})
    fresh = build({"nli": 2.0}, wide=MatryoshkaLoss(SoftmaxLoss(), [4, 2]))
    loaded = fresh.from_bytes(loss.to_bytes())
    inputs = {"nli": NLI, "wide": NLI, "sts": STS}
    values, expected = loaded(inputs, True)[0], loss(inputs, True)[0]
    assert values == {**expected, "nli": 2 * expected["nli"]}  # the weights are the config's
    other = MultiTaskLoss({"sts": CosineSimilarityLoss(), "snli": SoftmaxLoss()})
    other.from_bytes(build().to_bytes())
    with pytest.raises(ValueError, match="saved with the objectives nli, sts, but the config names snli, sts"):
        other({"sts": STS}, True)


def test_what_others_read():
    loss = build()
    assert loss.attrs == {"objectives": ["nli", "sts"]}
    assert (loss.n_members, loss.gold, loss.whole_batch, loss.is_sum) == ((), None, False, False)
    assert loss.weights == {"nli": 1.0, "sts": 1.0} and loss.mini_batch_size is None
    cached = build(a=CachedMultipleNegativesRankingLoss(8), b=CachedMultipleNegativesRankingLoss(4))
    assert cached.mini_batch_size == 4 and cached.whole_batch
    copied = build({"sts": 3.0}).copy()
    assert copied.weights == {"nli": 1.0, "sts": 3.0} and copied({"sts": STS}, True)[0]["sts"] > 0


def test_errors():
    with pytest.raises(ValueError, match="has no objectives: expected at least one"):
        MultiTaskLoss({})
    with pytest.raises(ValueError, match=r"no objective 'qqp' \(weights\): expected one of nli, sts"):
        build({"qqp": 1.0})
    with pytest.raises(ValueError, match=r"no objective 'qqp' \(named by an example\): expected one of nli, sts"):
        build()({"qqp": STS}, True)
    with pytest.raises(ValueError, match="no objective 'qqp'"):
        build().initialize(X={"qqp": STS})
    with pytest.raises(ValueError, match="is built of loss layers"):
        MultiTaskLoss({"one": "two"})
    with pytest.raises(ValueError, match="cannot contain 'MultiTaskLoss'"):
        MultiTaskLoss({"all": build()})
    with pytest.raises(ValueError, match="has a classifier that was not initialized"):
        build()({"nli": NLI}, True)
