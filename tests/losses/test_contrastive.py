from dataclasses import dataclass
from typing import Any

import numpy
import pytest
import torch
from helpers.loss_checks import Embedder, check_gradients, check_parity
from sentence_transformers.sentence_transformer import losses as st_losses

from spacy_sbert.losses._common import DISTANCES
from spacy_sbert.losses.contrastive import (
    BatchHardTripletLoss,
    ContrastiveLoss,
    OnlineContrastiveLoss,
    TripletLoss,
)

RNG = numpy.random.default_rng(4)
U = RNG.normal(size=(10, 4))
V = U + RNG.normal(size=(10, 4)) * RNG.uniform(0.2, 2, size=(10, 1))
TRIPLETS = [RNG.normal(size=(10, 4)) for _ in range(3)]
TEXTS = TRIPLETS[:1]
ALIKE = numpy.array([1.0, 0, 1, 1, 0, 0, 1, 0, 1, 0])
CLASSES = ["a", "b", "a", "c", "b", "a", "c", "b", "a", "c"]
# Margins that some pairs keep and others do not
MARGINS = {"euclidean": 3.0, "cosine": 0.5, "manhattan": 6.0}
SIAMESE = {
    "euclidean": st_losses.SiameseDistanceMetric.EUCLIDEAN,
    "cosine": st_losses.SiameseDistanceMetric.COSINE_DISTANCE,
    "manhattan": st_losses.SiameseDistanceMetric.MANHATTAN,
}
# PyTorch adds 1e-6 to each difference
TOLERANCES = {"euclidean": 1e-4, "cosine": 1e-12, "manhattan": 1e-4}
BATCH_HARD = st_losses.BatchHardTripletLossDistanceFunction
BATCH_HARD_METRICS = {
    "euclidean": BATCH_HARD.eucledian_distance,
    "cosine": BATCH_HARD.cosine_distance,
}

every_distance = pytest.mark.parametrize("distance", MARGINS)
every_factor = pytest.mark.parametrize("factor", [0.0, 0.1, 1.0])
both_contrastive = pytest.mark.parametrize("build", [ContrastiveLoss, OnlineContrastiveLoss])


@every_distance
@every_factor
def test_gradients_of_triplets(distance, factor):
    check_gradients(TripletLoss(distance, factor * MARGINS[distance]), TRIPLETS, None)


@every_distance
@every_factor
def test_gradients_of_batch_hard_triplets(distance, factor):
    check_gradients(BatchHardTripletLoss(distance, factor * MARGINS[distance]), TEXTS, CLASSES)


def test_gradients_with_an_anchor_alone():
    check_gradients(BatchHardTripletLoss(), TEXTS, ["z", *CLASSES[1:]])


@both_contrastive
@every_distance
def test_gradients_of_pairs(build, distance):
    check_gradients(build(distance, MARGINS[distance]), [U, V], ALIKE)


@every_distance
@every_factor
def test_triplets_as_in_sentence_transformers(distance, factor):
    margin = factor * MARGINS[distance]
    metric = getattr(st_losses.TripletDistanceMetric, distance.upper())
    theirs = st_losses.TripletLoss(Embedder(4), metric, triplet_margin=margin)

    def reference(tensors):
        return theirs.compute_loss_from_embeddings(tensors, None)

    check_parity(TripletLoss(distance, margin), TRIPLETS, None, reference, 1e-9)


@pytest.mark.parametrize("margin", [0.4, 5.0])
@pytest.mark.parametrize("distance", BATCH_HARD_METRICS)
def test_batch_hard_triplets_as_in_sentence_transformers(distance, margin):
    theirs = st_losses.BatchHardTripletLoss(Embedder(4), BATCH_HARD_METRICS[distance], margin)
    labels = torch.tensor([ord(label) for label in CLASSES])

    def reference(tensors):
        return theirs([{"vectors": tensors[0]}], labels)

    check_parity(BatchHardTripletLoss(distance, margin), TEXTS, CLASSES, reference, 1e-9)


@both_contrastive
@every_distance
def test_pairs_as_in_sentence_transformers(build, distance):
    margin = MARGINS[distance]
    theirs = getattr(st_losses, build.__name__)(Embedder(4), SIAMESE[distance], margin=margin)

    def reference(tensors):
        return theirs.compute_loss_from_embeddings(tensors, torch.tensor(ALIKE))

    check_parity(build(distance, margin), [U, V], ALIKE, reference, TOLERANCES[distance])


@pytest.mark.parametrize(
    "gold", [[0.0, 0, 0, 0], [1.0, 1, 1, 1], [1.0, 0, 0, 0], [0.0, 1, 1, 1], [1.0, 1, 0, 0]]
)
def test_online_contrastive_with_few_of_a_kind(gold):
    theirs = st_losses.OnlineContrastiveLoss(Embedder(4), margin=1.5)

    def reference(tensors):
        return theirs.compute_loss_from_embeddings(tensors, torch.tensor(gold))

    check_parity(OnlineContrastiveLoss(margin=1.5), [U[:4], V[:4]], numpy.array(gold), reference)


@every_distance
def test_batch_hard_triplets_by_their_definition(distance):
    """For each anchor: its farthest text of the same label, and its nearest of another."""
    (rows,) = TEXTS
    margin = MARGINS[distance]
    losses = []
    for anchor, label in enumerate(CLASSES):
        distances, _ = DISTANCES[distance](rows[[anchor] * 10], rows)
        others = [i for i in range(10) if i != anchor]
        farthest = max(distances[i] for i in others if CLASSES[i] == label)
        nearest = min(distances[i] for i in others if CLASSES[i] != label)
        losses.append(max(farthest - nearest + margin, 0.0))
    value, _ = BatchHardTripletLoss(distance, margin)((TEXTS, CLASSES), True)
    assert value == pytest.approx(numpy.mean(losses))


@dataclass
class ByHand:
    """A loss of a few rows, and its value."""

    loss: Any
    members: list
    gold: Any
    expected: float


COLUMN = numpy.array([[0.0], [1.0], [4.0], [6.0], [20.0]])
ONES = numpy.ones((3, 2))
ZEROS = numpy.zeros((3, 2))
POSITIVE = numpy.array([[3.0, 4.0], [0, 1], [0, 1]])
NEGATIVE = numpy.array([[0.0, 2.0], [0, 1.5], [6, 8]])
FAR = numpy.array([[0.0, 3.0], [0.0, 1.0], [0.0, 2.0], [0.0, 9.0]])
TWO_ALIKE = numpy.array([1.0, 1, 0, 0])
VALUES = {
    # The labels b and c stand alone and are no anchors
    "batch hard triplets": ByHand(
        BatchHardTripletLoss("euclidean", 2.5), [COLUMN], list("aaabc"), (0.5 + 0.5 + 4.5) / 3
    ),
    "euclidean triplets": ByHand(
        TripletLoss("euclidean", 1.0), [ZEROS, POSITIVE, NEGATIVE], None, 4.5 / 3
    ),
    "Manhattan triplets": ByHand(
        TripletLoss("manhattan", 1.0), [ZEROS, POSITIVE, NEGATIVE], None, 6.5 / 3
    ),
    "cosine triplets": ByHand(TripletLoss("cosine", 0.5), [ONES, -ONES, ONES], None, 2.5),
    "contrastive": ByHand(
        ContrastiveLoss("euclidean", 4.0), [0 * FAR, FAR], TWO_ALIKE, (9 + 1 + 4 + 0) / 8
    ),
    # 3 is farther than the nearest unlike pair, 2 nearer than the farthest pair alike
    "online contrastive": ByHand(
        OnlineContrastiveLoss("euclidean", 4.0), [0 * FAR, FAR], TWO_ALIKE, 9 + 4
    ),
}


@pytest.mark.parametrize("case", VALUES.values(), ids=VALUES)
def test_values_by_hand(case):
    value, _ = case.loss((case.members, case.gold), True)
    assert value == pytest.approx(case.expected)


FLAT = {
    "one label": ByHand(BatchHardTripletLoss(), TEXTS, ["a"] * 10, 0.0),
    "each label once": ByHand(BatchHardTripletLoss(), TEXTS, list("abcdefghij"), 0.0),
    "online, all pairs easy": ByHand(
        OnlineContrastiveLoss("euclidean", 9.0), [0 * COLUMN[:4], COLUMN[:4]], TWO_ALIKE, 0.0
    ),
    **{
        f"triplets beyond the margin, {distance}": ByHand(
            TripletLoss(distance, 0.1), [U, U * 1.01, -U], None, 0.0
        )
        for distance in MARGINS
    },
    **{
        f"triplets of zeros, {distance}": ByHand(TripletLoss(distance), [ZEROS] * 3, None, 1.0)
        for distance in MARGINS
    },
}


@pytest.mark.parametrize("case", FLAT.values(), ids=FLAT)
def test_no_gradient(case):
    value, backprop = case.loss((case.members, case.gold), True)
    assert value == pytest.approx(case.expected, abs=1e-15)
    gradients = backprop()
    assert [d.shape for d in gradients] == [member.shape for member in case.members]
    assert not any(d.any() for d in gradients)


@both_contrastive
def test_gold_is_0_or_1(build):
    with pytest.raises(ValueError, match=r"got 0\.5"):
        build()(([U, V], ALIKE / 2), True)


def test_a_triplet_has_three_members():
    with pytest.raises(ValueError, match="3 members, got 2"):
        TripletLoss()((TRIPLETS[:2], None), True)


@pytest.mark.parametrize(
    ("loss", "members", "gold", "message"),
    [
        pytest.param(
            TripletLoss(), [*TRIPLETS[:2], U[:6]], None, "got 10, 10 and 6", id="triplets"
        ),
        pytest.param(
            BatchHardTripletLoss(), [U], CLASSES[:8], "got 10 and 8", id="batch hard triplets"
        ),
        pytest.param(ContrastiveLoss(), [U, V[:9]], ALIKE, "got 10, 9 and 10", id="pairs"),
    ],
)
def test_unequal_numbers_of_rows(loss, members, gold, message):
    with pytest.raises(ValueError, match=message):
        loss((members, gold), True)
