"""Similarities by hand, correlations as SciPy's, principal components as NumPy's and
scikit-learn's.
"""

import numpy
import pytest
import torch
from scipy import stats
from sklearn.decomposition import PCA

from spacy_sbert import similarity
from spacy_sbert.search import communities, most_similar_pairs, nearest
from spacy_sbert.similarity import (
    components_of_covariance,
    cos_sim,
    cosine,
    euclidean,
    flip_signs,
    manhattan,
    max_sim,
    pairwise_cos_sim,
    pearson,
    principal_components,
    spearman,
)

RNG = numpy.random.default_rng(0)
CASES = [
    (RNG.normal(size=500), RNG.normal(size=500)),
    # Many ties
    (RNG.integers(6, size=500) / 5, RNG.integers(6, size=500) / 5),
    (numpy.array([1.0, 2.0]), numpy.array([4.0, 3.0])),
]
SHAPES = [(50, 8), (5, 40), (3, 3), (1, 4), (7, 1)]
both = pytest.mark.parametrize("correlation", [spearman, pearson])


def test_cosine_and_distances():
    u = numpy.array([[1.0, 0.0], [1.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    v = numpy.array([[1.0, 1.0], [2.0, 2.0], [-1.0, 0.0], [1.0, 0.0]])
    assert numpy.allclose(cosine(u, v), [2**-0.5, 1.0, -1.0, 0.0])
    assert numpy.isnan(cosine(numpy.array([[numpy.nan, 1.0]]), numpy.ones((1, 2)))).all()
    u = numpy.array([[0.0, 0.0], [1.0, 1.0]])
    v = numpy.array([[3.0, -4.0], [1.0, 1.0]])
    assert numpy.allclose(euclidean(u, v), [5.0, 0.0])
    assert numpy.allclose(manhattan(u, v), [7.0, 0.0])
    u = numpy.full((1, 3), 0.1, dtype="float32")
    v = numpy.zeros((1, 3), dtype="float32")
    assert numpy.allclose(cosine(u, 3 * u), 1.0, atol=1e-7)
    assert cosine(u, v).dtype == euclidean(u, v).dtype == manhattan(u, v).dtype == "float32"


@pytest.mark.parametrize(("predicted", "gold"), CASES)
def test_correlations_equal_scipy(predicted, gold):
    assert spearman(predicted, gold) == pytest.approx(
        stats.spearmanr(predicted, gold).statistic, abs=1e-12
    )
    assert pearson(predicted, gold) == pytest.approx(
        stats.pearsonr(predicted, gold).statistic, abs=1e-12
    )


@both
def test_undefined_correlations(correlation):
    for predicted, gold in (
        ([0.5] * 3, [1, 2, 3]),
        ([1, 2, 3], [4, 4, 4]),
        ([1.0], [1.0]),
        ([], []),
    ):
        assert correlation(predicted, gold) is None
    assert correlation([1.0, 1.0 + 4e-16, 1.0 - 2e-16], [1, 2, 3]) is None
    assert correlation([0.0, 0.0, 0.0], [1, 2, 3]) is None
    assert correlation([1.0, 1.0 + 1e-9, 1.0 + 2e-9], [1, 2, 3]) == pytest.approx(1.0, abs=1e-6)
    single = numpy.array([1.0, 1.0 + 1.2e-7, 1.0 - 6e-8], dtype="float32")
    for noise in (
        single,
        single.tolist(),
        tuple(single),
        single.astype("float64"),
        torch.from_numpy(single),
    ):
        assert correlation(noise, [1, 2, 3]) is None
        assert correlation([1, 2, 3], noise) is None
    # Which float32 holds, but did not round
    whole = [2.0**24, 2.0**24 + 2, 2.0**24 + 4]
    assert correlation(whole, [1, 2, 3]) == pytest.approx(1.0)
    assert correlation([1e300, 2.0, 1.0], [3, 2, 1]) is not None


@both
@pytest.mark.parametrize(
    ("predicted", "gold", "message"),
    [
        pytest.param([0.0, numpy.nan, 1.0], [1, 2, 3], "predicted value 1 is nan", id="NaN"),
        pytest.param([0.0, 1.0, 2.0], [1, 2, numpy.inf], "gold value 2 is inf", id="infinite"),
        pytest.param([0.0, 1.0], [1, 2, 3], r"shapes \(2,\) and \(3,\)", id="shapes"),
    ],
)
def test_values_without_a_correlation(correlation, predicted, gold, message):
    with pytest.raises(ValueError, match=message):
        correlation(predicted, gold)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_principal_components(shape, dtype):
    rows = (RNG.normal(size=shape) * numpy.arange(1, shape[1] + 1) + 3).astype(dtype)
    mean, (axes, variances, rank) = principal_components(rows)
    numpy.testing.assert_allclose(mean, rows.astype("float64").mean(axis=0), atol=1e-12)
    assert rank == min(shape[0] - 1, shape[1])
    assert (numpy.diff(variances) <= 0).all()
    numpy.testing.assert_allclose(axes @ axes.T, numpy.eye(min(shape)), atol=1e-12)
    points = (rows - mean) @ axes.T
    scatter = numpy.diag(variances) * max(shape[0] - 1, 1)
    numpy.testing.assert_allclose(points.T @ points, scatter, atol=1e-9)
    assert principal_components(numpy.full((4, 3), 0.1))[1].rank == 0


@pytest.mark.parametrize("shape", [(50, 8), (6, 9), (3, 3)])
def test_components_as_scikit_learn_and_as_of_the_covariance(shape):
    rows = RNG.normal(size=shape)
    rank = min(shape[0] - 1, shape[1])
    _, ours = principal_components(rows)
    theirs = PCA(2, svd_solver="full").fit(rows)
    of_covariance = components_of_covariance(numpy.cov(rows.T))
    numpy.testing.assert_allclose(
        flip_signs(ours.axes[:2]), flip_signs(theirs.components_), atol=1e-10
    )
    numpy.testing.assert_allclose(ours.variances[:2], theirs.explained_variance_, atol=1e-12)
    assert ours.rank == of_covariance.rank == rank
    numpy.testing.assert_allclose(of_covariance.variances[:rank], ours.variances[:rank], atol=1e-10)
    numpy.testing.assert_allclose(
        flip_signs(of_covariance.axes[:rank]), flip_signs(ours.axes[:rank]), atol=1e-7
    )


def test_signs():
    axes = numpy.array([[0.0, -2.0, 1.0], [3.0, -3.0, 0.0], [0.0, 0.0, 0.0]])
    assert flip_signs(axes).tolist() == [[0.0, 2.0, -1.0], [3.0, -3.0, 0.0], [0.0, 0.0, 0.0]]


FORMS = {
    "array": lambda rows: rows,
    "list": lambda rows: rows.tolist(),
    "list of arrays": list,
    "float64": lambda rows: rows.astype("float64"),
    "tensor": torch.from_numpy,
    "bfloat16": lambda rows: torch.from_numpy(rows).bfloat16(),
    "with gradient": lambda rows: torch.from_numpy(rows.copy()).requires_grad_(),
    "list of tensors": lambda rows: list(torch.from_numpy(rows)),
}


@pytest.mark.parametrize("form", FORMS)
def test_functions_of_vectors_give_what_sentence_transformers_gives(form):
    util = pytest.importorskip("sentence_transformers.util")
    # Exact in bfloat16, too
    rows = RNG.integers(-8, 9, size=(40, 12)).astype("float32") / 8
    rows[10:20] = rows[0] + RNG.integers(-1, 2, size=(10, 12)) / 8
    plain = torch.from_numpy(rows)
    given = FORMS[form](rows)
    assert numpy.allclose(cos_sim(given, given), util.cos_sim(plain, plain), atol=1e-6)
    assert numpy.allclose(cos_sim(given[3], given), util.cos_sim(plain[3], plain), atol=1e-6)
    paired = util.pairwise_cos_sim(plain[:20], plain[20:])
    assert numpy.allclose(pairwise_cos_sim(given[:20], given[20:]), paired, atol=1e-6)
    scores, found = nearest(given, given, k=3)
    hits = util.semantic_search(plain, plain, top_k=3)
    assert numpy.allclose(scores, [[hit["score"] for hit in one] for one in hits], atol=1e-6)
    # Of equal ones the order is free
    assert (found[:, 0] == [one[0]["corpus_id"] for one in hits]).mean() > 0.8
    scores, _ = most_similar_pairs(given, k=20)
    mined = util.paraphrase_mining_embeddings(plain, top_k=40, max_pairs=1000)
    assert numpy.allclose(scores, [score for score, *_ in mined[:20]], atol=1e-6)
    ours = communities(given, threshold=0.9, min_size=5)
    theirs = util.community_detection(plain, threshold=0.9, min_community_size=5)
    assert [sorted(group.tolist()) for group in ours] == [sorted(group) for group in theirs]
    assert len(ours) > 0


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool", "int64", "float16"])
@pytest.mark.parametrize(
    "function", [similarity.cosine, similarity.euclidean, similarity.manhattan]
)
def test_whole_numbers_do_not_wrap_around(function, dtype):
    u = numpy.array([[0, 100, 1]], dtype=dtype)
    v = numpy.array([[1, 0, 100]], dtype=dtype)
    expected = function(u.astype("float64"), v.astype("float64"))
    assert numpy.allclose(function(u, v), expected, rtol=1e-3)
    assert numpy.allclose(function(u.tolist(), v.tolist()), expected)


@pytest.mark.parametrize("dtype", ["complex64", "U8", "S8", "datetime64[s]"])
@pytest.mark.parametrize("function", [similarity.lengths, similarity.unit_length])
def test_what_is_no_number_is_not_scaled(dtype, function):
    with pytest.raises(TypeError, match="Cannot scale an array of dtype"):
        function(numpy.ones((2, 3), dtype="int64").astype(dtype))


def test_numbers_too_large_for_a_float():
    with pytest.raises(TypeError, match="int too large to convert to float"):
        similarity.cos_sim([[10**400, 1]], [[1, 2]])


def colbert_scores(queries, documents, masks):
    """MaxSim as in PyLate: padded tokens of length 1, (n, tokens, width), and which are real."""
    products = numpy.einsum("ash,bth->abst", queries, documents)
    products = numpy.where(masks[None, :, None, :], products, -numpy.inf)
    return products.max(axis=-1).sum(axis=-1)


def test_max_sim_is_that_of_padded_batches():
    query = RNG.normal(size=(5, 8))
    lengths = [1, 7, 3, 4]
    docs = [RNG.normal(size=(length, 8)) * 3 for length in lengths]
    padded = numpy.zeros((4, 7, 8))
    masks = numpy.zeros((4, 7), dtype=bool)
    for i, doc in enumerate(docs):
        padded[i, : len(doc)] = doc / numpy.linalg.norm(doc, axis=1, keepdims=True)
        masks[i, : len(doc)] = True
    unit = query / numpy.linalg.norm(query, axis=1, keepdims=True)
    found = max_sim(query, docs)
    assert found.dtype == "float32"
    assert numpy.allclose(found, colbert_scores(unit[None], padded, masks)[0], atol=1e-6)
    assert max_sim(query, [query])[0] == pytest.approx(5)


def test_max_sim_leaves_out_vectors_of_zeros():
    """Their cosine, 0, is more than that of opposite vectors."""
    doc = [[-1.0, 0.0], [0.0, 0.0]]
    assert max_sim([[1.0, 0.0], [0.0, 0.0]], [doc, doc[:1], doc[1:]]).tolist() == [-1, -1, 0]
    assert max_sim([[1.0, 0.0]], []).shape == (0,)


@pytest.mark.parametrize(
    ("query", "docs", "message"),
    [
        (numpy.zeros((0, 2)), [[[1.0, 2.0]]], r"query of shape \(0, 2\)"),
        ([[1.0, 2.0]], [[[1.0, 2.0]], numpy.zeros((0, 2))], r"docs\[1\] of shape \(0, 2\)"),
        # One text in place of several
        ([[1.0, 2.0]], numpy.ones((3, 2)), r"docs\[0\] of shape \(2,\)"),
        ([[1.0, 2.0]], [[[1.0, 2.0, 3.0]]], "width"),
        ([[1.0, 2.0]], [[[1.0, numpy.nan]]], r"Row 0 of the docs\[0\] is not finite"),
    ],
)
def test_max_sim_refuses(query, docs, message):
    with pytest.raises(ValueError, match=message):
        max_sim(query, docs)
