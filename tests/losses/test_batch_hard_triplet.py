import numpy
import pytest

from spacy_sbert.losses.batch_hard_triplet import BatchHardTripletLoss

RNG = numpy.random.default_rng(6)
X = RNG.normal(size=(9, 4))
LABELS = ["a", "b", "a", "c", "b", "a", "c", "b", "a"]
DISTANCES = ["euclidean", "cosine", "manhattan"]


def test_value_by_hand():
    x = numpy.array([[0.0], [1.0], [4.0], [6.0], [20.0]])
    labels = ["a", "a", "a", "b", "c"]  # b and c stand alone and are no anchors
    value, _ = BatchHardTripletLoss("euclidean", margin=2.5)(([x], labels), True)
    assert value == pytest.approx((max(4 - 6 + 2.5, 0) + max(3 - 5 + 2.5, 0) + (4 - 2 + 2.5)) / 3)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("margin", [0.2, 5.0])
def test_gradients(judge, distance, margin):
    judge.gradients(BatchHardTripletLoss(distance, margin), [X], LABELS)


def test_gradient_where_an_anchor_is_left_out(judge):
    judge.gradients(BatchHardTripletLoss(), [X], ["z", *LABELS[1:]])


@pytest.mark.parametrize("margin", [0.4, 5.0])
@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_agrees_with_sentence_transformers(judge, embedder, st_losses, distance, margin):
    torch = pytest.importorskip("torch")
    functions = st_losses.BatchHardTripletLossDistanceFunction
    metric = {"euclidean": functions.eucledian_distance, "cosine": functions.cosine_distance}[distance]
    theirs = st_losses.BatchHardTripletLoss(embedder(4), metric, margin)
    labels = torch.tensor([ord(label) for label in LABELS])
    reference = lambda tensors: theirs([{"vectors": tensors[0]}], labels)  # noqa: E731
    judge.parity(BatchHardTripletLoss(distance, margin), [X], LABELS, reference, 1e-9)


@pytest.mark.parametrize("labels", [["a"] * 9, list("abcdefghi")])
def test_without_triplets_there_is_nothing_to_learn(labels):
    value, backprop = BatchHardTripletLoss()(([X], labels), True)
    assert value == 0.0
    (dX,) = backprop()
    assert dX.shape == X.shape and not dX.any()


def test_rest(judge):
    for distance in DISTANCES:
        judge.float32(BatchHardTripletLoss(distance), [X], LABELS)
    loss = BatchHardTripletLoss()
    assert (loss.n_members, loss.gold, loss.whole_batch, loss.is_sum) == ((1,), "label", True, False)
    with pytest.raises(ValueError, match="Unknown distance 'dot'"):
        BatchHardTripletLoss("dot")
    with pytest.raises(ValueError, match="got 9 and 8"):
        BatchHardTripletLoss()(([X], LABELS[:8]), True)
