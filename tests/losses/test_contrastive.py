import numpy
import pytest

from spacy_sbert.losses.contrastive import ContrastiveLoss
from spacy_sbert.losses.online_contrastive import OnlineContrastiveLoss

RNG = numpy.random.default_rng(4)
U = RNG.normal(size=(10, 4))
V = U + RNG.normal(size=(10, 4)) * RNG.uniform(0.2, 2, size=(10, 1))
GOLD = numpy.array([1.0, 0, 1, 1, 0, 0, 1, 0, 1, 0])
DISTANCES = {"euclidean": 3.0, "cosine": 0.5, "manhattan": 6.0}  # with a margin that some keep and others do not
METRICS = {"euclidean": "EUCLIDEAN", "cosine": "COSINE_DISTANCE", "manhattan": "MANHATTAN"}
LOSSES = [ContrastiveLoss, OnlineContrastiveLoss]


def test_value_by_hand():
    u, v = numpy.zeros((4, 2)), numpy.array([[0.0, 3.0], [0.0, 1.0], [0.0, 2.0], [0.0, 9.0]])
    gold = numpy.array([1.0, 1, 0, 0])
    value, _ = ContrastiveLoss("euclidean", margin=4.0)(([u, v], gold), True)
    assert value == pytest.approx((9 + 1 + 4 + 0) / 8)
    value, _ = OnlineContrastiveLoss("euclidean", margin=4.0)(([u, v], gold), True)
    assert value == pytest.approx(9 + 4)  # 3 is farther than the nearest unlike, 2 nearer than the farthest alike


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("build", LOSSES)
def test_gradients(judge, build, distance):
    judge.gradients(build(distance, DISTANCES[distance]), [U, V], GOLD)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("build", LOSSES)
def test_agrees_with_sentence_transformers(judge, embedder, st_losses, build, distance):
    torch = pytest.importorskip("torch")
    metric = getattr(st_losses.SiameseDistanceMetric, METRICS[distance])
    theirs = getattr(st_losses, build.__name__)(embedder(4), metric, margin=DISTANCES[distance])
    gold = torch.tensor(GOLD)
    tolerance = 1e-12 if distance == "cosine" else 1e-4  # torch adds 1e-6 to each difference
    reference = lambda tensors: theirs.compute_loss_from_embeddings(tensors, gold)  # noqa: E731
    judge.parity(build(distance, DISTANCES[distance]), [U, V], GOLD, reference, tolerance)


@pytest.mark.parametrize("gold", [[0.0, 0, 0, 0], [1.0, 1, 1, 1], [1.0, 0, 0, 0], [0.0, 1, 1, 1], [1.0, 1, 0, 0]])
def test_online_with_few_of_a_kind(judge, embedder, st_losses, gold):
    torch = pytest.importorskip("torch")
    theirs = st_losses.OnlineContrastiveLoss(embedder(4), margin=1.5)
    reference = lambda tensors: theirs.compute_loss_from_embeddings(tensors, torch.tensor(gold))  # noqa: E731
    judge.parity(OnlineContrastiveLoss(margin=1.5), [U[:4], V[:4]], numpy.array(gold), reference)


def test_online_leaves_easy_pairs_out():
    u, v = numpy.zeros((4, 1)), numpy.array([[1.0], [2.0], [3.0], [4.0]])
    value, backprop = OnlineContrastiveLoss("euclidean", 9.0)(([u, v], numpy.array([1.0, 1, 0, 0])), True)
    assert value == 0.0
    assert not any(d.any() for d in backprop())


@pytest.mark.parametrize("build", LOSSES)
def test_rest(judge, build):
    judge.float32(build(), [U, V], GOLD)
    assert build().whole_batch is (build is OnlineContrastiveLoss)
    with pytest.raises(ValueError, match=r"expects gold scores of 0 \(unlike\) or 1 \(alike\), got 0.5"):
        build()(([U, V], GOLD / 2), True)
    with pytest.raises(ValueError, match="got 10, 9 and 10"):
        build()(([U, V[:9]], GOLD), True)
    with pytest.raises(ValueError, match="Unknown distance 'l7'"):
        build("l7")
