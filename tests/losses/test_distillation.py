import numpy
import pytest
import torch
from helpers.loss_checks import Embedder, check_gradients, check_parity
from sentence_transformers.sentence_transformer import losses as st_losses

from spacy_sbert.losses.distillation import (
    DistillationLoss,
    MarginMSELoss,
    ProjectedDistillationLoss,
)

RNG = numpy.random.default_rng(4)
MEMBERS = [RNG.normal(size=(10, 4)) for _ in range(3)]
PAIR = MEMBERS[:2]
TEACHER = RNG.normal(size=(10, 4))

one_or_two = pytest.mark.parametrize("n_members", [1, 2])


def projected(teacher):
    """A loss that projects vectors of width 4 to the teacher's width."""
    return ProjectedDistillationLoss().initialize(X=(PAIR, teacher))


@one_or_two
def test_gradients(n_members):
    check_gradients(DistillationLoss(), MEMBERS[:n_members], TEACHER)


@one_or_two
def test_as_in_sentence_transformers(n_members):
    theirs = st_losses.MSELoss(Embedder(4))
    targets = [torch.tensor(TEACHER)] * n_members

    def reference(tensors):
        return theirs.compute_loss_from_embeddings(tensors, targets)

    check_parity(DistillationLoss(), MEMBERS[:n_members], TEACHER, reference, 1e-12)


@one_or_two
@pytest.mark.parametrize("width", [3, 7])
def test_gradients_through_a_projection(n_members, width):
    teacher = RNG.normal(size=(10, width))
    check_gradients(projected(teacher), MEMBERS[:n_members], teacher)


def test_value_by_hand():
    members = [numpy.array([[1.0, 3.0]]), numpy.array([[0.0, 2.0]])]
    value, _ = DistillationLoss()((members, numpy.zeros((1, 2))), True)
    assert value == pytest.approx((1 + 9 + 0 + 4) / 4)


def test_a_projection_is_saved():
    loss = projected(RNG.normal(size=(10, 7)))
    loaded = ProjectedDistillationLoss().from_bytes(loss.to_bytes())
    assert numpy.array_equal(loaded.get_param("W"), loss.get_param("W"))


def test_the_identity_projects_nothing():
    loss = projected(TEACHER)
    loss.set_param("W", numpy.eye(4))
    expected, _ = DistillationLoss()((PAIR, TEACHER), True)
    value, _ = loss((PAIR, TEACHER), True)
    assert value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("loss", "members", "teacher", "message"),
    [
        pytest.param(DistillationLoss(), MEMBERS, TEACHER, "1 or 2 members, got 3", id="triplets"),
        pytest.param(DistillationLoss(), PAIR, TEACHER[:4], "got 10, 10 and 4", id="few vectors"),
        pytest.param(
            DistillationLoss(), PAIR, TEACHER[:, :3], "4 wide, .* 3 wide", id="narrow teacher"
        ),
        pytest.param(
            ProjectedDistillationLoss(), PAIR, TEACHER, r"none .* \(4, 4\)", id="not initialized"
        ),
        pytest.param(
            projected(TEACHER),
            PAIR,
            TEACHER[:, :3],
            r"\(4, 4\) .* \(3, 4\)",
            id="another teacher than at the start",
        ),
    ],
)
def test_refused(loss, members, teacher, message):
    with pytest.raises(ValueError, match=message):
        loss((members, teacher), True)


# A query, its positive, and three negatives; the scores of all but the query
RANKED = [*MEMBERS, *(RNG.normal(size=(10, 4)) for _ in range(2))]
SCORES = RNG.normal(size=(10, 4))
margins = pytest.mark.parametrize("similarity", ["dot", "cosine"])
one_or_more_negatives = pytest.mark.parametrize("n_members", [3, 5])


@margins
@one_or_more_negatives
def test_margins_as_in_sentence_transformers(n_members, similarity):
    from sentence_transformers import util

    function = {"dot": util.pairwise_dot_score, "cosine": util.pairwise_cos_sim}[similarity]
    theirs = st_losses.MarginMSELoss(Embedder(4), function)
    scores = SCORES[:, : n_members - 1]

    def reference(tensors):
        return theirs.compute_loss_from_embeddings(tensors, torch.tensor(scores))

    check_parity(MarginMSELoss(similarity), RANKED[:n_members], scores, reference, 1e-12)


@margins
@one_or_more_negatives
def test_gradients_of_margins(n_members, similarity):
    check_gradients(MarginMSELoss(similarity), RANKED[:n_members], SCORES[:, : n_members - 1])


def test_margins_by_hand():
    query = numpy.array([[1.0, 0.0], [0.0, 2.0]])
    positive = numpy.array([[3.0, 0.0], [0.0, 1.0]])
    negatives = [numpy.array([[1.0, 5.0], [5.0, 0.0]]), numpy.array([[2.0, 0.0], [0.0, 2.0]])]
    # Of the margins 2, 1 and 2, -2
    scores = numpy.array([[0.0, -2.0, 0.0], [5.0, 2.0, 7.0]])
    value, _ = MarginMSELoss()(([query, positive, *negatives], scores), True)
    assert value == pytest.approx((0 + 1 + 1 + 0) / 4)


@pytest.mark.parametrize(
    ("members", "scores", "message"),
    [
        (PAIR, SCORES[:, :1], "takes examples of 3 or more members, got 2"),
        (RANKED, SCORES[:, :3], "takes 4 scores of each example.*Got 3"),
        (RANKED, SCORES[:6], "10 and 6"),
    ],
)
def test_margins_refused(members, scores, message):
    with pytest.raises(ValueError, match=message):
        MarginMSELoss()((members, scores), True)
