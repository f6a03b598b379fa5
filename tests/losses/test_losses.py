"""Losses of pairs, triplets and labelled texts: values by hand, gradients, parity with
sentence-transformers, edges.
"""

from functools import partial

import numpy
import pytest
import torch
from helpers.loss_checks import Embedder, check_gradients, check_parity
from sentence_transformers.sentence_transformer import losses as st_losses

from spacy_sbert.losses._common import DISTANCES
from spacy_sbert.losses.contrastive import (
    _PAIRWISE,
    BatchHardTripletLoss,
    ContrastiveLoss,
    OnlineContrastiveLoss,
    TripletLoss,
)
from spacy_sbert.losses.distillation import DistillationLoss, ProjectedDistillationLoss
from spacy_sbert.losses.ranking import MegaBatchMarginLoss
from spacy_sbert.losses.similarity import AnglELoss, CoSENTLoss, CosineSimilarityLoss, _paired_angle

RNG = numpy.random.default_rng(4)
U = RNG.normal(size=(10, 4))
V = U + RNG.normal(size=(10, 4)) * RNG.uniform(0.2, 2, size=(10, 1))
MEMBERS = [RNG.normal(size=(10, 4)) for _ in range(3)]
# Two ties
SCORES = numpy.array([0.1, 0.9, 0.5, 0.5, 0.0, 1.0, 0.3, 0.9, 0.2, 0.7])
ALIKE = numpy.array([1.0, 0, 1, 1, 0, 0, 1, 0, 1, 0])
CLASSES = ["a", "b", "a", "c", "b", "a", "c", "b", "a", "c"]
TEACHER = RNG.normal(size=(10, 4))
TEXTS = [list("abcdefghij"), list("klmnopqrst")]
# Equal anchors, equal positives, and a positive that is an anchor
REPEATED = [
    list("abadefghij"),
    list("klkiomqrst"),
]
# Which some pairs keep and others do not
MARGINS = {
    "euclidean": 3.0,
    "cosine": 0.5,
    "manhattan": 6.0,
}


def projected(teacher):
    return ProjectedDistillationLoss().initialize(X=(MEMBERS[:2], teacher))


def cases():
    """Name: loss, members, gold, and the loss of sentence-transformers with its tolerance."""
    for distance, margin in MARGINS.items():
        name = distance.upper()
        for factor in (0.0, 0.1, 1.0):
            metric = getattr(st_losses.TripletDistanceMetric, name)
            theirs = st_losses.TripletLoss(Embedder(4), metric, triplet_margin=factor * margin)
            loss = partial(TripletLoss, distance, factor * margin)
            yield f"Triplet {distance} {factor * margin}", loss, MEMBERS, None, theirs, 1e-9
            loss = partial(BatchHardTripletLoss, distance, factor * margin)
            yield f"BatchHard {distance} {factor}", loss, MEMBERS[:1], CLASSES, None, 0
        metric = getattr(
            st_losses.SiameseDistanceMetric, "COSINE_DISTANCE" if distance == "cosine" else name
        )
        # PyTorch adds 1e-6 to each difference
        tolerance = 1e-12 if distance == "cosine" else 1e-4
        for build in (ContrastiveLoss, OnlineContrastiveLoss):
            theirs = getattr(st_losses, build.__name__)(Embedder(4), metric, margin=margin)
            yield (
                f"{build.__name__} {distance}",
                partial(build, distance, margin),
                [U, V],
                ALIKE,
                theirs,
                tolerance,
            )
    yield (
        "BatchHard, an anchor alone",
        BatchHardTripletLoss,
        MEMBERS[:1],
        ["z", *CLASSES[1:]],
        None,
        0,
    )
    for build in (CoSENTLoss, AnglELoss):
        for scale in (1.0, 20.0):
            theirs = getattr(st_losses, build.__name__)(Embedder(4), scale=scale)
            yield (
                f"{build.__name__} {scale}",
                partial(build, scale),
                MEMBERS[:2],
                SCORES,
                theirs,
                1e-9,
            )
    yield "CosineSimilarity", CosineSimilarityLoss, MEMBERS[:2], SCORES, squared_cosines, 1e-12
    for margin in (0.1, 0.4, 2.0):
        loss = partial(MegaBatchMarginLoss, margin)
        yield (
            f"MegaBatchMargin {margin}",
            loss,
            MEMBERS[:2],
            TEXTS,
            partial(mega_batch_margin, margin),
            1e-12,
        )
        yield f"MegaBatchMargin {margin}, repeated", loss, MEMBERS[:2], REPEATED, None, 0
    for n in (1, 2):
        yield (
            f"Distillation {n}",
            DistillationLoss,
            MEMBERS[:n],
            TEACHER,
            st_losses.MSELoss(Embedder(4)),
            1e-12,
        )
        for width in (3, 7):
            teacher = RNG.normal(size=(10, width))
            yield (
                f"ProjectedDistillation {n} {width}",
                partial(projected, teacher),
                MEMBERS[:n],
                teacher,
                None,
                0,
            )


def squared_cosines(tensors, gold):
    """CosineSimilarityLoss in float64, which that of sentence-transformers is not."""
    return torch.nn.functional.mse_loss(torch.cosine_similarity(*tensors), gold)


def mega_batch_margin(margin, tensors, gold):
    """MegaBatchMarginLoss with one negative for each anchor."""
    unit = [torch.nn.functional.normalize(tensor) for tensor in tensors]
    similar = unit[0] @ unit[1].T
    wrong = similar.masked_fill(torch.eye(len(similar), dtype=bool), -torch.inf)
    return torch.relu(margin - similar.diagonal() + wrong.max(dim=1).values).mean()


CASES = {name: case for name, *case in cases()}
REFERENCES = [name for name, case in CASES.items() if case[3] is not None]


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    build, members, gold, *_ = CASES[name]
    check_gradients(build(), members, gold)


@pytest.mark.parametrize("name", REFERENCES)
def test_parity_with_sentence_transformers(name):
    build, members, gold, theirs, tolerance = CASES[name]
    # Ours are functions
    theirs = getattr(theirs, "compute_loss_from_embeddings", theirs)
    targets = torch.tensor(gold) if isinstance(gold, numpy.ndarray) else gold
    targets = [targets] * len(members) if "Distillation" in name else targets
    check_parity(build(), members, gold, lambda tensors: theirs(tensors, targets), tolerance)


@pytest.mark.parametrize("margin", [0.4, 5.0])
@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_parity_of_batch_hard_triplets(distance, margin):
    functions = st_losses.BatchHardTripletLossDistanceFunction
    metric = {"euclidean": functions.eucledian_distance, "cosine": functions.cosine_distance}[
        distance
    ]
    theirs = st_losses.BatchHardTripletLoss(Embedder(4), metric, margin)
    labels = torch.tensor([ord(label) for label in CLASSES])
    ours = BatchHardTripletLoss(distance, margin)
    check_parity(
        ours, MEMBERS[:1], CLASSES, lambda tensors: theirs([{"vectors": tensors[0]}], labels), 1e-9
    )


@pytest.mark.parametrize(
    "gold", [[0.0, 0, 0, 0], [1.0, 1, 1, 1], [1.0, 0, 0, 0], [0.0, 1, 1, 1], [1.0, 1, 0, 0]]
)
def test_online_contrastive_with_few_of_a_kind(gold):
    theirs = st_losses.OnlineContrastiveLoss(Embedder(4), margin=1.5)
    reference = lambda tensors: theirs.compute_loss_from_embeddings(tensors, torch.tensor(gold))  # noqa: E731
    check_parity(OnlineContrastiveLoss(margin=1.5), [U[:4], V[:4]], numpy.array(gold), reference)


COLUMN = numpy.array([[0.0], [1.0], [4.0], [6.0], [20.0]])
ONES, ZEROS = numpy.ones((3, 2)), numpy.zeros((3, 2))
POSITIVE, NEGATIVE = (
    numpy.array([[3.0, 4.0], [0, 1], [0, 1]]),
    numpy.array([[0.0, 2.0], [0, 1.5], [6, 8]]),
)
FAR = numpy.array([[0.0, 3.0], [0.0, 1.0], [0.0, 2.0], [0.0, 9.0]])
# Cosines 1 and 0
EAST, BOTH = (
    numpy.array([[1.0, 0.0], [1.0, 0.0]]),
    numpy.array([[1.0, 0.0], [0.0, 1.0]]),
)
ROOT = 0.5**0.5
ANCHORS = numpy.array([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]])
ANSWERS = numpy.array([[2.0, 0.0], [1.0, 1.0], [4.0, 3.0]])
BY_HAND = [
    # the labels b and c stand alone and are no anchors
    (
        BatchHardTripletLoss("euclidean", 2.5),
        [COLUMN],
        ["a", "a", "a", "b", "c"],
        (0.5 + 0.5 + 4.5) / 3,
    ),
    (TripletLoss("euclidean", 1.0), [ZEROS, POSITIVE, NEGATIVE], None, 4.5 / 3),
    (TripletLoss("manhattan", 1.0), [ZEROS, POSITIVE, NEGATIVE], None, 6.5 / 3),
    (TripletLoss("cosine", 0.5), [ONES, -ONES, ONES], None, 2.5),
    (
        ContrastiveLoss("euclidean", 4.0),
        [0 * FAR, FAR],
        numpy.array([1.0, 1, 0, 0]),
        (9 + 1 + 4 + 0) / 8,
    ),
    # 3 is farther than the nearest unlike pair, 2 nearer than the farthest pair alike
    (OnlineContrastiveLoss("euclidean", 4.0), [0 * FAR, FAR], numpy.array([1.0, 1, 0, 0]), 9 + 4),
    (CosineSimilarityLoss(), [EAST, BOTH], numpy.array([0.8, 0.5]), (0.04 + 0.25) / 2),
    (CoSENTLoss(2.0), [EAST, BOTH], numpy.array([1.0, 0.0]), numpy.log1p(numpy.exp(-2))),
    (CoSENTLoss(2.0), [EAST, BOTH], numpy.array([0.0, 1.0]), numpy.log1p(numpy.exp(2))),
    (
        DistillationLoss(),
        [numpy.array([[1.0, 3.0]]), numpy.array([[0.0, 2.0]])],
        ZEROS[:1],
        (1 + 9 + 0 + 4) / 4,
    ),
    (
        MegaBatchMarginLoss(0.5),
        [ANCHORS, ANSWERS],
        [list("abc"), list("def")],
        (0.5 - 1 + 0.8 + 0.5 - ROOT + 0.6 + 0.5 - 0.96 + 1.4 * ROOT) / 3,
    ),
]


@pytest.mark.parametrize(("loss", "members", "gold", "expected"), BY_HAND)
def test_values_by_hand(loss, members, gold, expected):
    assert loss((members, gold), True)[0] == pytest.approx(expected)


def test_angle_by_hand():
    # (1 + 2i) (3 + i) = 1 + 7i
    similarity, _ = _paired_angle(numpy.array([[1.0, 2.0]]), numpy.array([[3.0, -1.0]]))
    assert similarity == pytest.approx(8 / 50**0.5)


def test_what_is_right_too_is_no_negative():
    """The nearest other positive has the text of the own one, of the anchor, or belongs to an
    anchor of its text.
    """
    anchors = numpy.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    positives = numpy.array([[1.0, 0.1], [-1.0, 0.0], [1.0, 0.0]])
    for texts in (
        [list("abc"), list("ded")],
        [list("abc"), list("dea")],
        [list("aba"), list("def")],
    ):
        value, _ = MegaBatchMarginLoss(margin=0.0)(([anchors, positives], texts), True)
        assert value == pytest.approx(1.0 / 1.01**0.5 * 0.1 / 3), texts


NOTHING = [
    (BatchHardTripletLoss(), MEMBERS[:1], ["a"] * 10, 0.0),
    (BatchHardTripletLoss(), MEMBERS[:1], list("abcdefghij"), 0.0),
    (
        OnlineContrastiveLoss("euclidean", 9.0),
        [0 * COLUMN[:4], COLUMN[:4]],
        numpy.array([1.0, 1, 0, 0]),
        0.0,
    ),
    (MegaBatchMarginLoss(), MEMBERS[:2], [["a"] * 10, TEXTS[1]], 0.0),
    *((TripletLoss(distance, 0.1), [U, U * 1.01, -U], None, 0.0) for distance in MARGINS),
    *((TripletLoss(distance), [ZEROS] * 3, None, 1.0) for distance in MARGINS),
    (CosineSimilarityLoss(), [ZEROS, ONES], numpy.ones(3), 1.0),
    *((build(), MEMBERS[:2], numpy.ones(10), 0.0) for build in (CoSENTLoss, AnglELoss)),
    # three pairs of pairs
    *(
        (build(), [ZEROS, ONES], numpy.arange(3.0), numpy.log(4))
        for build in (CoSENTLoss, AnglELoss)
    ),
]


@pytest.mark.parametrize(("loss", "members", "gold", "expected"), NOTHING)
def test_no_gradient(loss, members, gold, expected):
    value, backprop = loss((members, gold), True)
    assert value == pytest.approx(expected, abs=1e-15)
    assert [d.shape for d in backprop()] == [member.shape for member in members]
    assert not any(d.any() for d in backprop())


def test_a_projection_is_saved_and_the_identity_projects_nothing():
    loss = projected(RNG.normal(size=(10, 7)))
    loaded = ProjectedDistillationLoss().from_bytes(loss.to_bytes())
    assert numpy.array_equal(loaded.get_param("W"), loss.get_param("W"))
    loss = projected(TEACHER)
    loss.set_param("W", numpy.eye(4))
    expected, _ = DistillationLoss()((MEMBERS[:2], TEACHER), True)
    assert loss((MEMBERS[:2], TEACHER), True)[0] == pytest.approx(expected)


PAIR = MEMBERS[:2]
REFUSED = [
    (lambda: ContrastiveLoss()(([U, V], ALIKE / 2), True), "got 0.5"),
    (lambda: OnlineContrastiveLoss()(([U, V], ALIKE / 2), True), "got 0.5"),
    (lambda: AnglELoss()(([U[:, :3], V[:, :3]], SCORES), True), "expected an even width, got 3"),
    (lambda: TripletLoss()((PAIR, None), True), "takes examples of 3 members, got 2"),
    (
        lambda: DistillationLoss()((MEMBERS, TEACHER), True),
        "takes examples of 1 or 2 members, got 3",
    ),
    (
        lambda: DistillationLoss()((PAIR, TEACHER[:, :3]), True),
        "learn are 4 wide, the teacher's are 3 wide",
    ),
    (
        lambda: ProjectedDistillationLoss()((PAIR, TEACHER), True),
        r"widths none .* the batch \(4, 4\)",
    ),
    (
        lambda: projected(TEACHER)((PAIR, TEACHER[:, :3]), True),
        r"widths \(4, 4\) .* the batch \(3, 4\)",
    ),
    (
        lambda: MegaBatchMarginLoss()(([m[:1] for m in PAIR], [["a"], ["b"]]), True),
        "MegaBatchMarginLoss",
    ),
    # unequal numbers of rows
    (lambda: TripletLoss()(([*PAIR, U[:6]], None), True), "got 10, 10 and 6"),
    (lambda: BatchHardTripletLoss()(([U], CLASSES[:8]), True), "got 10 and 8"),
    (lambda: ContrastiveLoss()(([U, V[:9]], ALIKE), True), "got 10, 9 and 10"),
    (lambda: CosineSimilarityLoss()(([U, V[:9]], SCORES), True), "got 10, 9 and 10"),
    (lambda: CoSENTLoss()((PAIR, SCORES[:7]), True), "got 10, 10 and 7"),
    (lambda: DistillationLoss()((PAIR, TEACHER[:4]), True), "got 10, 10 and 4"),
    (lambda: MegaBatchMarginLoss()((PAIR, [TEXTS[0], TEXTS[1][:6]]), True), "got 10, 10, 10 and 6"),
]


@pytest.mark.parametrize(("use", "message"), REFUSED)
def test_refused(use, message):
    with pytest.raises(ValueError, match=message):
        use()


@pytest.mark.parametrize("distance", DISTANCES)
def test_pairwise_distances_have_the_order_of_the_distance(distance):
    far = _PAIRWISE[distance](U)
    rows, columns = numpy.indices(far.shape)
    distances = DISTANCES[distance](U[rows.ravel()], U[columns.ravel()])[0].reshape(far.shape)
    off_diagonal = ~numpy.eye(10, dtype=bool)
    order = [
        numpy.argsort(matrix[off_diagonal].reshape(10, 9), axis=1) for matrix in (far, distances)
    ]
    assert (order[0] == order[1]).all()
