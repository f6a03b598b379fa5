import pickle
import shutil
from types import SimpleNamespace

import numpy
import pytest
import spacy
import torch
from helpers.loss_checks import Embedder, check_float32, check_gradients, check_parity
from helpers.objectives import make_examples
from sentence_transformers.sentence_transformer import losses as st_losses
from thinc.api import Adam

from spacy_sbert.losses import check_gradient, ranking
from spacy_sbert.losses.ranking import (
    CachedMultipleNegativesRankingLoss,
    GISTEmbedLoss,
    MegaBatchMarginLoss,
    MultipleNegativesRankingLoss,
)
from spacy_sbert.losses.wrappers import MatryoshkaLoss
from spacy_sbert.models import load_pipeline

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
# Vectors of these by another encoder, of another width
GUIDE = numpy.random.default_rng(9).normal(size=(5, N, 3)).astype("float32")


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


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    """The folder of a pipeline that knows each text of DISTINCT by a vector of GUIDE."""
    texts = {
        text: vector
        for kind, rows in zip(DISTINCT, GUIDE, strict=True)
        for text, vector in zip(kind, rows, strict=True)
    }
    return str(saved_vectors(tmp_path_factory.mktemp("guide"), texts))


def saved_vectors(folder, vectors):
    nlp = spacy.blank("en")
    for text, vector in vectors.items():
        nlp.vocab.set_vector(text, numpy.array(vector, dtype="float32"))
    nlp.to_disk(folder)
    return folder


def guided_by_sentence_transformers(n_members, **settings):
    """GISTEmbedLoss of sentence-transformers, without its tokenizers."""
    theirs = st_losses.GISTEmbedLoss.__new__(st_losses.GISTEmbedLoss)
    torch.nn.Module.__init__(theirs)
    theirs.model = Embedder(4)
    theirs.guide = Embedder(3)
    theirs.similarity_fct = torch.nn.CosineSimilarity(dim=-1)
    theirs.cross_entropy_loss = torch.nn.CrossEntropyLoss()
    theirs.must_retokenize = False
    theirs.gather_across_devices = False
    for name, value in settings.items():
        setattr(theirs, name, value)

    def reference(tensors):
        # The features of both encoders are those of one text
        guided = iter(torch.tensor(vectors) for vectors in GUIDE[:n_members])
        theirs.guide.forward = lambda _: {"sentence_embedding": next(guided)}
        return theirs([{"vectors": tensor} for tensor in tensors], None)

    return reference


GUIDED = {
    "temperature": 0.3,
    "margin_strategy": "absolute",
    "margin": 0.0,
    "contrast_anchors": True,
    "contrast_positives": True,
}
guided_settings = pytest.mark.parametrize(
    "changed",
    [
        {},
        {"margin": 0.3},
        {"margin": 0.2, "margin_strategy": "relative"},
        {"contrast_anchors": False},
        {"contrast_positives": False, "contrast_anchors": False},
    ],
    ids=str,
)


@guided_settings
@pytest.mark.parametrize("n_members", [2, 3])
def test_guided_as_in_sentence_transformers(guide, changed, n_members):
    settings = GUIDED | changed
    reference = guided_by_sentence_transformers(n_members, **settings)
    loss = GISTEmbedLoss(guide, **settings)
    check_parity(loss, MEMBERS[:n_members], DISTINCT[:n_members], reference, 1e-10)
    members = [member.astype("float32") for member in MEMBERS[:n_members]]
    check_parity(loss, members, DISTINCT[:n_members], reference, 1e-5)


def guided_by_definition(members, temperature, margin):
    """The definition, element by element."""

    def cosine(x, y):
        return x @ y / numpy.linalg.norm(x) / numpy.linalg.norm(y)

    losses = []
    for i in range(N):
        limit = cosine(GUIDE[0][i], GUIDE[1][i]) - margin
        pairs = [(0, i, 1, j) for j in range(N) if j != i]
        pairs += [(own, i, own, j) for own in (0, 1) for j in range(N) if j != i]
        pairs += [(0, i, m, j) for m in range(2, len(members)) for j in range(N)]
        scores = [cosine(members[0][i], members[1][i]) / temperature]
        for own, row, other, j in pairs:
            if cosine(GUIDE[own][row], GUIDE[other][j]) <= limit:
                scores.append(cosine(members[own][row], members[other][j]) / temperature)
        losses.append(numpy.log(numpy.exp(scores).sum()) - scores[0])
    return numpy.mean(losses)


@guided_settings
@pytest.mark.parametrize("n_members", [2, 5])
def test_gradients_of_guided(guide, changed, n_members):
    inputs = (MEMBERS[:n_members], DISTINCT[:n_members])
    loss = GISTEmbedLoss(guide, **GUIDED | changed)
    check_gradients(loss, *inputs)
    check_gradient(loss, *inputs)
    if changed in ({}, {"margin": 0.3}):
        expected = guided_by_definition(inputs[0], 0.3, changed.get("margin", 0.0))
        assert loss(inputs, True)[0] == pytest.approx(expected, abs=1e-12)


BY_HAND = {"a": (1, 0), "b": (0, 1), "c": (5, 12), "d": (4, 3), "e": (0, 1), "f": (24, 7)}


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ({}, (5, 7, 3)),
        ({"margin": 0.5}, (3, 4, 1)),
        ({"margin": 0.5, "margin_strategy": "relative"}, (4, 4, 2)),
        ({"contrast_anchors": False}, (3, 5, 2)),
        ({"contrast_positives": False}, (4, 5, 2)),
    ],
    ids=str,
)
def test_negatives_of_a_guide_by_hand(tmp_path, changed, counts):
    """Anchors a, b, c and positives d, e, f; all scores are 0, so that each anchor adds the log of
    how many texts are compared. The guide's cosines are a d 0.8, b e 1, c f 0.63; a e 0, a f 0.96,
    b d 0.6, b f 0.28, c d 0.86, c e 0.92; a b 0, a c 0.38, b c 0.92; d e 0.6, d f 0.94, e f 0.28.
    """
    loss = GISTEmbedLoss(str(saved_vectors(tmp_path, BY_HAND)), **changed)
    value, _ = loss(([numpy.zeros((3, 4))] * 2, [list("abc"), list("def")]), True)
    assert value == pytest.approx(numpy.log(counts).mean())


def test_guide_takes_equal_texts_as_right(guide):
    """With a margin; the only other pair of the batch is an equal one."""
    pairs = [member[[0, 0]] for member in MEMBERS[:2]]
    value, backprop = GISTEmbedLoss(guide, margin=0.01)((pairs, [["a0"] * 2, ["p0"] * 2]), True)
    assert value == 0.0
    assert not any(gradient.any() for gradient in backprop())


def test_guide_is_loaded_with_the_first_batch(guide, monkeypatch):
    loaded = []
    load = load_pipeline.load_pipeline
    monkeypatch.setattr(
        load_pipeline, "load_pipeline", lambda name: loaded.append(name) or load(name)
    )
    loss = GISTEmbedLoss(guide)
    assert loss.to_bytes() == GISTEmbedLoss("another").to_bytes()
    assert loaded == []
    for copied in (loss, loss.copy(), loss):
        copied((MEMBERS[:2], DISTINCT[:2]), True)
    assert loaded == [guide]
    # Without the guide
    assert len(pickle.dumps(loss)) < 10_000


def test_guide_reads_a_batch_once(guide, monkeypatch):
    read = []
    nlp = spacy.load(guide)
    stand_in = SimpleNamespace(pipe=lambda texts, batch_size: read.append(texts) or nlp.pipe(texts))
    monkeypatch.setattr(load_pipeline, "load_pipeline", lambda name: stand_in)
    inner = GISTEmbedLoss(guide, **GUIDED)
    value, _ = MatryoshkaLoss(inner, [4, 2])((MEMBERS[:2], DISTINCT[:2]), True)
    assert len(read) == 1
    narrow = [member[:, :2] for member in MEMBERS[:2]]
    expected = [inner((members, DISTINCT[:2]), True)[0] for members in (MEMBERS[:2], narrow)]
    assert value == pytest.approx(sum(expected))
    inner((MEMBERS[:2], [DISTINCT[1], DISTINCT[0]]), True)
    assert len(read) == 2


def test_guide_may_be_an_encoder():
    """Of other wordpieces than the one that is trained."""
    loss = GISTEmbedLoss("sentence-transformers/all-MiniLM-L6-v2")
    value, _ = loss((MEMBERS[:2], DISTINCT[:2]), True)
    assert value > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"guide": ""}, "guide"),
        ({"temperature": 0.0}, "temperature"),
        ({"margin": -0.1}, "margin"),
        ({"margin_strategy": "percentage"}, "margin_strategy"),
        ({"contrast_anchors": "yes"}, "contrast_anchors"),
    ],
)
def test_wrong_settings_of_guided(settings, message):
    with pytest.raises(ValueError, match=message):
        GISTEmbedLoss(**{"guide": "any", **settings})


@pytest.mark.parametrize(
    ("members", "texts", "message"),
    [
        ([member[:1] for member in MEMBERS[:2]], [["a0"], ["p0"]], "batch of one pair"),
        (MEMBERS[:2], [DISTINCT[0], DISTINCT[1][:4]], "got 7, 7, 7 and 4"),
        (MEMBERS[:1], DISTINCT[:1], "2 or more members, got 1"),
        (MEMBERS[:2], [DISTINCT[0], ["unknown"] * N], "has no vector for 'unknown'"),
    ],
)
def test_guided_refused(guide, members, texts, message):
    with pytest.raises(ValueError, match=message):
        GISTEmbedLoss(guide)((members, texts), True)


def test_a_trained_pipeline_needs_no_guide(make_nlp, tmp_path):
    guide = tmp_path / "guide"
    make_nlp(model={"pooling": "max"}).to_disk(guide)
    nlp = make_nlp(loss={"@layers": "spacy-sbert.GISTEmbedLoss.v1", "guide": str(guide)})
    batch = make_examples(nlp, 3)
    nlp.initialize(lambda: batch)
    assert nlp.update(batch, sgd=Adam(0.001))["sbert"] > 0
    nlp.to_disk(tmp_path / "trained")
    shutil.rmtree(guide)
    loaded = spacy.load(tmp_path / "trained")
    assert numpy.array_equal(loaded("a man is eating").vector, nlp("a man is eating").vector)
    with pytest.raises(OSError, match="Cannot load"):
        loaded.update(batch)


def test_unknown_guide():
    with pytest.raises(OSError, match=r"Cannot load 'no_such_guide'"):
        GISTEmbedLoss("no_such_guide")((MEMBERS[:2], DISTINCT[:2]), True)
