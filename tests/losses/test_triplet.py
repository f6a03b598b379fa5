import numpy
import pytest

from spacy_sbert.losses.triplet import TripletLoss

RNG = numpy.random.default_rng(3)
MEMBERS = [RNG.normal(size=(7, 5)) for _ in range(3)]
METRICS = {"euclidean": "EUCLIDEAN", "cosine": "COSINE", "manhattan": "MANHATTAN"}


def test_value_by_hand():
    anchor = numpy.zeros((3, 2))
    positive = numpy.array([[3.0, 4.0], [0.0, 1.0], [0.0, 1.0]])
    negative = numpy.array([[0.0, 2.0], [0.0, 1.5], [6.0, 8.0]])
    for distance, expected in {"euclidean": [4, 0.5, 0], "manhattan": [6, 0.5, 0]}.items():
        value, _ = TripletLoss(distance, margin=1.0)(([anchor, positive, negative], None), True)
        assert value == pytest.approx(sum(expected) / 3)
    ones, opposite = numpy.ones((3, 2)), -numpy.ones((3, 2))
    value, _ = TripletLoss("cosine", margin=0.5)(([ones, opposite, ones], None), True)
    assert value == pytest.approx(2.5)


@pytest.mark.parametrize("distance", METRICS)
@pytest.mark.parametrize("margin", [0.0, 0.3, 1.0, 5.0])
def test_gradients(judge, distance, margin):
    judge.gradients(TripletLoss(distance, margin), MEMBERS, None)


@pytest.mark.parametrize("distance", METRICS)
def test_margin_met_has_no_gradient(distance):
    anchor, near, far = MEMBERS[0], MEMBERS[0] * 1.01, -MEMBERS[0]
    value, backprop = TripletLoss(distance, margin=0.1)(([anchor, near, far], None), True)
    assert value == 0.0
    assert not any(d.any() for d in backprop())
    mixed = [MEMBERS[0], MEMBERS[1], numpy.vstack([far[:3] * 9, MEMBERS[2][3:]])]
    _, backprop = TripletLoss(distance, margin=0.1)((mixed, None), True)
    active = [bool(d.any()) for d in backprop()[0]]
    assert not any(active[:3]) and any(active[3:])


@pytest.mark.parametrize("distance", METRICS)
def test_agrees_with_sentence_transformers(judge, embedder, st_losses, distance):
    metric = getattr(st_losses.TripletDistanceMetric, METRICS[distance])
    theirs = st_losses.TripletLoss(embedder(5), metric, triplet_margin=0.7)
    loss = TripletLoss(distance, margin=0.7)
    judge.parity(loss, MEMBERS, None, lambda tensors: theirs.compute_loss_from_embeddings(tensors, None), 1e-9)


@pytest.mark.parametrize("distance", METRICS)
def test_equal_and_zero_vectors(distance):
    zeros = numpy.zeros((2, 3))
    value, backprop = TripletLoss(distance)(([zeros, zeros, zeros], None), True)
    assert value == 1.0
    assert not any(d.any() for d in backprop())


def test_float32(judge):
    for distance in METRICS:
        judge.float32(TripletLoss(distance), MEMBERS, None)


def test_errors():
    with pytest.raises(ValueError, match="Unknown distance 'hamming' of the loss 'TripletLoss': expected one of eucl"):
        TripletLoss("hamming")
    with pytest.raises(ValueError, match="as many rows of every member as of gold values, got 7, 7 and 6"):
        TripletLoss()(([*MEMBERS[:2], MEMBERS[2][:6]], None), True)
    with pytest.raises(ValueError, match="'TripletLoss' takes examples of 3 members, got 2"):
        TripletLoss()((MEMBERS[:2], None), True)
