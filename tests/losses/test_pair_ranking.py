import numpy
import pytest

from spacy_sbert.losses.angle import AnglELoss, paired_angle
from spacy_sbert.losses.cosent import CoSENTLoss

RNG = numpy.random.default_rng(5)
MEMBERS = [RNG.normal(size=(8, 6)) for _ in range(2)]
GOLD = numpy.array([0.1, 0.9, 0.5, 0.5, 0.0, 1.0, 0.3, 0.9])  # two ties
LOSSES = [CoSENTLoss, AnglELoss]


def test_value_by_hand():
    u, v = numpy.array([[1.0, 0.0], [1.0, 0.0]]), numpy.array([[1.0, 0.0], [0.0, 1.0]])  # cosines 1 and 0
    right, _ = CoSENTLoss(scale=2.0)(([u, v], numpy.array([1.0, 0.0])), True)
    wrong, _ = CoSENTLoss(scale=2.0)(([u, v], numpy.array([0.0, 1.0])), True)
    assert right == pytest.approx(numpy.log1p(numpy.exp(-2)))
    assert wrong == pytest.approx(numpy.log1p(numpy.exp(2)))


def test_angle_by_hand():
    u, v = numpy.array([[1.0, 2.0]]), numpy.array([[3.0, -1.0]])  # (1 + 2i) (3 + i) = 1 + 7i
    similarity, _ = paired_angle(u, v)
    assert similarity == pytest.approx(8 / 50**0.5)


@pytest.mark.parametrize("build", LOSSES)
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_gradients(judge, build, scale):
    judge.gradients(build(scale), MEMBERS, GOLD)


@pytest.mark.parametrize("build", LOSSES)
def test_agrees_with_sentence_transformers(judge, embedder, st_losses, build):
    torch = pytest.importorskip("torch")
    theirs = getattr(st_losses, build.__name__)(embedder(6), scale=20.0)
    reference = lambda tensors: theirs.compute_loss_from_embeddings(tensors, torch.tensor(GOLD))  # noqa: E731
    judge.parity(build(), MEMBERS, GOLD, reference, 1e-9)


@pytest.mark.parametrize("build", LOSSES)
def test_without_order_there_is_nothing_to_learn(build):
    value, backprop = build()((MEMBERS, numpy.ones(8)), True)
    assert value == 0.0
    assert not any(d.any() for d in backprop())


@pytest.mark.parametrize("build", LOSSES)
def test_large_scale_does_not_overflow(build):
    value, backprop = build(1e6)((MEMBERS, GOLD), True)
    assert numpy.isfinite(value) and all(numpy.isfinite(d).all() for d in backprop())


@pytest.mark.parametrize("build", LOSSES)
def test_zero_vectors(build):
    value, backprop = build()(([numpy.zeros((3, 4)), numpy.ones((3, 4))], numpy.arange(3.0)), True)
    assert value == pytest.approx(numpy.log(4))  # three pairs of pairs
    assert not any(d.any() for d in backprop())


@pytest.mark.parametrize("build", LOSSES)
def test_rest(judge, build):
    judge.float32(build(), MEMBERS, GOLD)
    loss = build()
    assert (loss.n_members, loss.gold, loss.whole_batch, loss.is_sum) == ((2,), "score", True, False)
    with pytest.raises(ValueError, match="got 8, 8 and 7"):
        build()((MEMBERS, GOLD[:7]), True)


def test_odd_width_is_refused():
    with pytest.raises(ValueError, match="expected an even width, got 5"):
        AnglELoss()(([member[:, :5] for member in MEMBERS], GOLD), True)
