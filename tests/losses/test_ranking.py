import numpy
import pytest
import torch
from helpers.loss_checks import Embedder, check_float32, check_gradients, check_parity
from sentence_transformers.sentence_transformer import losses as st_losses

from spacy_sbert.losses import ranking
from spacy_sbert.losses.ranking import (
    CachedMultipleNegativesRankingLoss,
    MegaBatchMarginLoss,
    MultipleNegativesRankingLoss,
)

RNG = numpy.random.default_rng(8)
N = 7
# Anchors, positives, and three negatives of each
MEMBERS = [RNG.normal(size=(N, 4)) for _ in range(5)]
DISTINCT = [[f"{kind}{i}" for i in range(N)] for kind in "apnmo"]
# Equal anchors, equal positives, a positive that is another's anchor, hard negatives that are
# positives and anchors.
REPEATED = [
    ["a0", "a1", "a0", "a3", "a4", "a5", "a6"],
    ["p0", "p1", "p2", "p1", "a5", "p5", "a6"],
    ["n0", "p1", "a0", "n3", "n3", "p5", "a6"],
    ["p2", "m1", "m1", "n3", "a4", "m5", "a0"],
    ["o0", "o1", "m1", "o3", "a5", "a5", "p0"],
]


def reference_loss(members, texts, scale, similarity, symmetric):
    """The definition, element by element."""

    def sim(x, y):
        return scale * (
            x @ y if similarity == "dot" else x @ y / numpy.linalg.norm(x) / numpy.linalg.norm(y)
        )

    def log_share(right, wrong):
        return -numpy.log(numpy.exp(right) / (numpy.exp(right) + sum(map(numpy.exp, wrong))))

    (a, p, *hard), (A, P, *H) = members, texts
    forward = []
    backward = []
    for i in range(len(a)):
        own = {A[i], P[i]}
        wrong = [
            sim(a[i], p[j]) for j in range(len(a)) if j != i and P[j] not in own and A[j] != A[i]
        ]
        for x, X in zip(hard, H, strict=True):
            wrong += [sim(a[i], x[j]) for j in range(len(a)) if X[j] not in own]
        forward.append(log_share(sim(a[i], p[i]), wrong))
        wrong = [
            sim(p[i], a[j]) for j in range(len(a)) if j != i and A[j] not in own and P[j] != P[i]
        ]
        backward.append(log_share(sim(p[i], a[i]), wrong))
    return (numpy.mean(forward) + numpy.mean(backward)) / 2 if symmetric else numpy.mean(forward)


options = pytest.mark.parametrize(
    ("n_members", "similarity", "symmetric"),
    [
        (m, similarity, symmetric)
        for m in (2, 3, 5)
        for similarity in ("cosine", "dot")
        for symmetric in (False, True)
    ],
)
every_text = pytest.mark.parametrize("texts", [DISTINCT, REPEATED], ids=["distinct", "repeated"])


def test_value_by_hand():
    anchors = numpy.eye(2)
    positives = anchors
    loss = MultipleNegativesRankingLoss(scale=3.0)
    value, _ = loss(([anchors, positives], [["a", "b"], ["c", "d"]]), True)
    assert value == pytest.approx(numpy.log1p(numpy.exp(-3)))
    value, _ = loss(([anchors, positives, positives], [["a", "b"], ["c", "d"], ["e", "f"]]), True)
    assert value == pytest.approx(numpy.log(2 + 2 * numpy.exp(-3)))
    value, backprop = loss(([0 * anchors, anchors], [["a", "b"], ["c", "d"]]), True)
    assert value == pytest.approx(numpy.log(2))
    assert not any(d.any() for d in backprop())


@options
@every_text
def test_value_and_gradients_are_those_of_the_definition(texts, n_members, similarity, symmetric):
    loss = MultipleNegativesRankingLoss(2.0, similarity, symmetric)
    value, _ = loss((MEMBERS[:n_members], texts[:n_members]), True)
    expected = reference_loss(MEMBERS[:n_members], texts[:n_members], 2.0, similarity, symmetric)
    assert value == pytest.approx(expected, abs=1e-12)
    check_gradients(loss, MEMBERS[:n_members], texts[:n_members])


@options
def test_agrees_with_sentence_transformers(n_members, similarity, symmetric):
    from sentence_transformers import util

    function = {"cosine": util.cos_sim, "dot": util.dot_score}[similarity]
    directions = ("query_to_doc", "doc_to_query") if symmetric else ("query_to_doc",)
    theirs = st_losses.MultipleNegativesRankingLoss(
        Embedder(4),
        scale=5.0,
        similarity_fct=function,
        directions=directions,
        partition_mode="per_direction",
    )
    loss = MultipleNegativesRankingLoss(5.0, similarity, symmetric)
    reference = lambda tensors: theirs.compute_loss_from_embeddings(tensors, None)  # noqa: E731
    check_parity(loss, MEMBERS[:n_members], DISTINCT[:n_members], reference, 1e-9)


@options
@every_text
@pytest.mark.parametrize("mini_batch_size", [1, 3, 32])
def test_cached_is_the_same(texts, n_members, similarity, symmetric, mini_batch_size):
    inputs = (MEMBERS[:n_members], texts[:n_members])
    expected, expected_backprop = MultipleNegativesRankingLoss(20.0, similarity, symmetric)(
        inputs, True
    )
    cached = CachedMultipleNegativesRankingLoss(mini_batch_size, 20.0, similarity, symmetric)
    value, backprop = cached(inputs, True)
    assert value == pytest.approx(expected, abs=1e-12)
    for given, d_member in zip(backprop(0.7), expected_backprop(0.7), strict=True):
        assert numpy.allclose(given, d_member, atol=1e-12, rtol=0)
    check_float32(cached, *inputs)


def test_cached_holds_no_more_rows_than_it_says(monkeypatch):
    seen = []
    wrapped = ranking.cross_entropy
    monkeypatch.setattr(
        ranking, "cross_entropy", lambda *given: seen.append(given[0].shape) or wrapped(*given)
    )
    CachedMultipleNegativesRankingLoss(3)((MEMBERS[:3], DISTINCT[:3]), True)
    assert seen == [(3, 14), (3, 14), (1, 14)]


def test_anchor_without_negatives_adds_nothing():
    texts = [["a", "a"], ["p", "q"]]
    value, backprop = MultipleNegativesRankingLoss(symmetric=True)(
        ([m[:2] for m in MEMBERS[:2]], texts), True
    )
    assert value == 0.0
    assert not any(d.any() for d in backprop())
    texts = [["a", "a", "b"], ["p", "q", "r"]]
    one_triplet = [member[:1] for member in MEMBERS[:3]], [["a"], ["p"], ["n"]]
    for given in (([m[:3] for m in MEMBERS[:2]], texts), one_triplet):
        value, _ = MultipleNegativesRankingLoss(2.0)(given, True)
        assert value == pytest.approx(reference_loss(*given, 2.0, "cosine", False))


@pytest.mark.parametrize(
    "build", [MultipleNegativesRankingLoss, CachedMultipleNegativesRankingLoss]
)
def test_errors(build):
    loss = build()
    assert (loss.n_members[:3], loss.gold, loss.whole_batch, loss.is_sum) == (
        range(2, 5),
        "text",
        True,
        False,
    )
    with pytest.raises(ValueError, match=r"Set training.batcher.size to at least 2"):
        build()(([member[:1] for member in MEMBERS[:2]], [["a"], ["p"]]), True)
    with pytest.raises(ValueError, match="got 7, 7, 7 and 6"):
        build()((MEMBERS[:2], [DISTINCT[0], DISTINCT[1][:6]]), True)
    with pytest.raises(ValueError, match="takes examples of 2 or more members, got 1"):
        build()((MEMBERS[:1], DISTINCT[:1]), True)


def mega_batch_margin(margin, tensors):
    """MegaBatchMarginLoss with one negative for each anchor."""
    anchors, positives = (torch.nn.functional.normalize(tensor) for tensor in tensors)
    similar = anchors @ positives.T
    wrong = similar.masked_fill(torch.eye(len(similar), dtype=bool), -torch.inf)
    return torch.relu(margin - similar.diagonal() + wrong.max(dim=1).values).mean()


@every_text
@pytest.mark.parametrize("margin", [0.1, 0.4, 2.0])
def test_gradients_of_margins(margin, texts):
    check_gradients(MegaBatchMarginLoss(margin), MEMBERS[:2], texts[:2])


@pytest.mark.parametrize("margin", [0.1, 0.4, 2.0])
def test_margins_by_their_definition(margin):
    def reference(tensors):
        return mega_batch_margin(margin, tensors)

    check_parity(MegaBatchMarginLoss(margin), MEMBERS[:2], DISTINCT[:2], reference, 1e-12)


def test_margins_by_hand():
    anchors = numpy.array([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]])
    positives = numpy.array([[2.0, 0.0], [1.0, 1.0], [4.0, 3.0]])
    diagonal = 0.5**0.5
    losses = [0.5 - 1 + 0.8, 0.5 - diagonal + 0.6, 0.5 - 0.96 + 1.4 * diagonal]
    value, _ = MegaBatchMarginLoss(0.5)(([anchors, positives], [list("abc"), list("def")]), True)
    assert value == pytest.approx(sum(losses) / 3)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([list("abc"), list("ded")], id="the text of the own positive"),
        pytest.param([list("abc"), list("dea")], id="the text of the anchor"),
        pytest.param([list("aba"), list("def")], id="the positive of an equal anchor"),
    ],
)
def test_what_is_right_too_is_no_negative(texts):
    """The third positive is the nearest other one of the first anchor, but right as well."""
    anchors = numpy.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    positives = numpy.array([[1.0, 0.1], [-1.0, 0.0], [1.0, 0.0]])
    value, _ = MegaBatchMarginLoss(margin=0.0)(([anchors, positives], texts), True)
    assert value == pytest.approx(1.0 / 1.01**0.5 * 0.1 / 3)


def test_anchors_that_are_all_equal_have_no_negative():
    value, backprop = MegaBatchMarginLoss()((MEMBERS[:2], [["a"] * N, DISTINCT[1]]), True)
    assert value == 0.0
    assert not any(d.any() for d in backprop())


def test_margins_need_two_pairs():
    with pytest.raises(ValueError, match="MegaBatchMarginLoss"):
        MegaBatchMarginLoss()(([member[:1] for member in MEMBERS[:2]], [["a"], ["b"]]), True)


def test_margins_of_unequal_numbers_of_texts():
    with pytest.raises(ValueError, match="got 7, 7, 7 and 6"):
        MegaBatchMarginLoss()((MEMBERS[:2], [DISTINCT[0], DISTINCT[1][:6]]), True)
