"""Functions of arrays by forms of arrays: each gives what it does for the same numbers in NumPy, or
names it.

Counted: forms x functions.
"""

import re

import numpy
import pytest
import scipy.sparse
import spacy
import torch

from spacy_sbert import arrays, similarity
from spacy_sbert.meta import GCCA, SVD, Average, Concatenation, CrossViewAutoencoder
from spacy_sbert.search import (
    BinaryVectors,
    Int8Vectors,
    VectorIndex,
    communities,
    hierarchical_clusters,
    kmeans_clusters,
    most_similar_pairs,
    nearest,
    pairs_above,
    recall,
    similar_groups,
)
from spacy_sbert.visual.projection import pca

pandas = pytest.importorskip("pandas")
RNG = numpy.random.default_rng(0)
# Exact in float16, too
X = RNG.integers(-40, 40, size=(24, 8)).astype("float32") / 16
X[0, 0] = 1.0
NLP = spacy.blank("en")
TENSOR = torch.from_numpy(X.copy())


def memmap(path):
    X.tofile(path)
    return numpy.memmap(path, dtype="float32", mode="r", shape=X.shape)


def read_only():
    array = X.copy()
    array.setflags(write=False)
    return array


# The numbers of X
SAME = {
    "float32": lambda path: X,
    "float64": lambda path: X.astype("float64"),
    "float16": lambda path: X.astype("float16"),
    "longdouble": lambda path: X.astype("longdouble"),
    "big-endian": lambda path: X.astype(">f4"),
    "Fortran order": lambda path: numpy.asfortranarray(X),
    "every second row": lambda path: numpy.repeat(X, 2, axis=0)[::2],
    "negative strides": lambda path: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda path: read_only(),
    "memory-mapped": memmap,
    "matrix": lambda path: numpy.asmatrix(X),
    "masked, nothing of it": lambda path: numpy.ma.array(X),
    "lists": lambda path: X.tolist(),
    "tuples": lambda path: tuple(map(tuple, X.tolist())),
    "list of arrays": lambda path: list(X),
    "frame": lambda path: pandas.DataFrame(X),
    "object": lambda path: X.astype(object),
    "frame of Float64": lambda path: pandas.DataFrame(X).astype("Float64"),
    "tensor": lambda path: TENSOR,
    "with gradient": lambda path: TENSOR.clone().requires_grad_(),
    "with history": lambda path: TENSOR.clone().requires_grad_() * 1,
    "parameter": lambda path: torch.nn.Parameter(TENSOR.clone()),
    "bfloat16": lambda path: TENSOR.bfloat16(),
    "half": lambda path: TENSOR.half(),
    "transposed tensor": lambda path: TENSOR.T.contiguous().T,
    "list of tensors with gradient": lambda path: list(TENSOR.clone().requires_grad_()),
    "list of bfloat16": lambda path: list(TENSOR.bfloat16()),
}
# right, or refused
OTHERS = {
    "ints": lambda: (16 * X).astype("int64"),
    "unsigned": lambda: abs(16 * X).astype("uint8"),
    "bool": lambda: X > 0,
}
REFUSED = {
    "0-d": lambda: numpy.array(1.0),
    "number": lambda: 1.5,
    "1-d": lambda: X[0],
    "3-d": lambda: X[None],
    "no rows": lambda: X[:0],
    "no columns": lambda: X[:, :0],
    "empty list": lambda: [],
    "ragged": lambda: [[1.0, 2.0], [3.0]],
    "None": lambda: None,
    "series": lambda: pandas.Series(X[:, 0]),
    "series of vectors": lambda: pandas.Series(list(X)),
    "frame with texts": lambda: pandas.DataFrame({"a": [1.0], "b": ["x"]}),
    "frame with NA": lambda: pandas.DataFrame(X).astype("Float64").mask(X > 2),
    "meta tensor": lambda: TENSOR.to("meta"),
    "sparse tensor": lambda: TENSOR.to_sparse(),
    "compressed tensor": lambda: TENSOR.to_sparse_csr(),
    "sparse matrix": lambda: scipy.sparse.csr_matrix(X),
    "sparse array": lambda: scipy.sparse.coo_array(X),
    "masked": lambda: numpy.ma.array(X, mask=X > 2),
    "list of masked": lambda: list(numpy.ma.array(X, mask=X > 2)),
    "str": lambda: "a text",
    "texts": lambda: ["a text", "another"],
    "array of texts": lambda: numpy.array([["a"], ["b"]]),
    "bytes": lambda: b"abc",
    "complex": lambda: X.astype("complex64"),
    "complex tensor": lambda: TENSOR.to(torch.complex64),
    "dates": lambda: numpy.array([["2020-01-01"]], dtype="datetime64[D]"),
    "records": lambda: numpy.zeros((2, 2), dtype=[("a", "f4")]),
    "NaN": lambda: numpy.where(X > 2, numpy.nan, X),
    "infinity": lambda: numpy.where(X > 2, numpy.inf, X),
    "Docs": lambda: [NLP("One two."), NLP("Three.")],
    "Doc": lambda: NLP("One two."),
    "dict": lambda: {"a": 1.0},
    "set": lambda: {1.0},
}
SMALL = {
    "too large": lambda: X.astype("float64") * 1e300,
    "too small": lambda: X.astype("float64") * 1e-60,
}
INT8 = Int8Vectors.fit(X).apply(X)
BINARY = BinaryVectors.of(X)
INDEX = VectorIndex.build(X)
FITTED = {kind: kind(size=3).fit([X, X[:, ::-1]]) for kind in (SVD, GCCA)}
AE = {"size": 3, "epochs": 2}
# By the word that messages have
FUNCTIONS = {
    "nearest, vectors": ("vectors", lambda x: nearest(X[:3], x, k=2)),
    "nearest, queries": ("queries", lambda x: nearest(x, X, k=2)),
    "most_similar_pairs": ("vectors", lambda x: most_similar_pairs(x, k=3)),
    "pairs_above": ("vectors", lambda x: pairs_above(x, 0.5)),
    "similar_groups": ("vectors", lambda x: similar_groups(x, 0.5)),
    "communities": ("vectors", lambda x: communities(x, threshold=0.4, min_size=2)),
    "hierarchical_clusters": ("vectors", lambda x: hierarchical_clusters(x, n_clusters=3)),
    "kmeans_clusters": ("vectors", lambda x: kmeans_clusters(x, n_clusters=3)),
    "flat": ("vectors", lambda x: VectorIndex.build(x, kind="flat").search(X, k=2)),
    "hnsw": ("vectors", lambda x: VectorIndex.build(x, kind="hnsw").search(X, k=2)),
    "ivf": ("vectors", lambda x: VectorIndex.build(x, kind="ivf").search(X, k=2)),
    "blocks": ("vectors", lambda x: VectorIndex.build(iter([x])).search(X, k=2)),
    "index.search": ("queries", lambda x: INDEX.search(x, k=2)),
    "Int8Vectors.fit": ("sample", lambda x: (Int8Vectors.fit(x).low, Int8Vectors.fit(x).step)),
    "Int8Vectors.apply": ("vectors", lambda x: INT8.apply(x).codes),
    "Int8Vectors.search": ("queries", lambda x: INT8.search(x, k=2)),
    "BinaryVectors.of": ("vectors", lambda x: BinaryVectors.of(x).bits),
    "BinaryVectors.search": ("queries", lambda x: BINARY.search(x, k=2)),
    "BinaryVectors.search, vectors": ("vectors", lambda x: BINARY.search(X[:3], k=2, vectors=x)),
    "pca": ("vectors", pca),
    "cos_sim": ("u", lambda x: similarity.cos_sim(x, X)),
    "pairwise_cos_sim": ("v", lambda x: similarity.pairwise_cos_sim(X, x)),
    "cosine": ("u", lambda x: similarity.cosine(x, X)),
    "euclidean": ("v", lambda x: similarity.euclidean(X, x)),
    "manhattan": ("u", lambda x: similarity.manhattan(x, X)),
    "SVD.fit": ("member", lambda x: SVD(size=3).fit([x, X]).values_),
    "GCCA.fit": ("member", lambda x: GCCA(size=3).fit([X, x]).values_),
    "autoencoder.fit": ("member", lambda x: CrossViewAutoencoder(**AE).fit([x, X]).losses_),
    "SVD.transform": ("member", lambda x: FITTED[SVD].transform([x, X])),
    "GCCA.transform": ("member", lambda x: FITTED[GCCA].transform([X, x])),
    "average": ("member", lambda x: Average().fit([x, X]).transform([x, X])),
    "concatenation": ("member", lambda x: Concatenation().fit([x, X]).transform([X, x])),
}
# Of float arrays as they are: what training computes with
LENIENT = (
    "cosine",
    "euclidean",
    "manhattan",
)
RAW = re.compile(
    r"^(?!.*(expected|finite|Leave it out|meta-embedding|unequal width)).*$", re.DOTALL
)


def arrays_of(result):
    """The arrays in a result."""
    return [
        numpy.asarray(part) for part in (result if isinstance(result, tuple | list) else [result])
    ]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("form", SAME)
def test_the_same_numbers_give_the_same(function, form, tmp_path):
    given = SAME[form](tmp_path / "x")
    call = FUNCTIONS[function][1]
    for ours, theirs in zip(arrays_of(call(given)), arrays_of(call(X)), strict=True):
        # Which keep the dtype
        rounding = 2e-3 if form == "float16" and function in LENIENT else 1e-5
        assert ours.shape == theirs.shape
        assert numpy.allclose(ours, theirs, atol=rounding)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("form", [*OTHERS, *REFUSED, *SMALL])
def test_other_arrays_are_right_or_refused_by_name(function, form):
    name, call = FUNCTIONS[function]
    given = {**OTHERS, **REFUSED, **SMALL}[form]()
    try:
        ours = call(given)
    except (TypeError, ValueError) as error:
        message = str(error)
        # Of bool and unsigned numbers
        assert form not in OTHERS or "zero" in message or "quantised" in message
        assert not RAW.match(message), message
        causes = (
            "no sentence to fit|rows of shapes|as many|vectors of unequal width|vectors of shape"
        )
        assert re.search(rf"\b{name}\b|{causes}", message), message
    else:
        if given is None and function == "BinaryVectors.search, vectors":
            # Its default
            return
        array = arrays.as_array(given, "x", "numbers")
        assert (
            form in OTHERS
            or form in SMALL
            or function in LENIENT
            or function in ("cos_sim", "pairwise_cos_sim")
        )
        if form in OTHERS:
            for one, other in zip(
                arrays_of(ours), arrays_of(call(array.astype("float32"))), strict=True
            ):
                assert numpy.allclose(one, other, atol=1e-5)


SIDES = {
    "texts": ["a", "b"],
    "complex": [1j, 2],
    "meta": torch.zeros(2, device="meta"),
    "sparse": torch.ones(2).to_sparse(),
    "masked": numpy.ma.array([1.0, 2.0], mask=[True, False]),
    "2-d": [[1.0, 2.0]],
    "0-d": 1.0,
    "None": None,
    "NaN": [1.0, numpy.nan],
}


@pytest.mark.parametrize("measure", [similarity.pearson, similarity.spearman])
def test_correlations(measure):
    numbers = [0.5, 0.25, 2.0, 1.0]
    gold = [1, 2, 3, 5]
    expected = measure(numbers, gold)
    tensor = torch.tensor(numbers)
    for same in (
        tuple(numbers),
        numpy.array(numbers, ">f8"),
        pandas.Series(numbers),
        tensor.bfloat16().requires_grad_(),
    ):
        assert measure(same, pandas.Series(gold)) == pytest.approx(expected, abs=1e-9)
    for side in SIDES.values():
        for given in ((side, [1.0, 2.0]), ([1.0, 2.0], side)):
            with pytest.raises((TypeError, ValueError), match=r"predicted|gold|arrays of shapes"):
                measure(*given)


def test_recall():
    found = numpy.array([[1, 2]])
    assert recall([[0, 1]], found) == 0.5
    assert recall(torch.tensor([[0, 1]]), [[2, 1]]) == 0.5


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(["a"], id="texts"),
        pytest.param(X, id="numbers"),
        pytest.param(torch.zeros(1, 2, device="meta"), id="another device"),
        pytest.param(None, id="None"),
    ],
)
def test_recall_of_no_places(wrong):
    with pytest.raises((TypeError, ValueError), match="found"):
        recall(wrong, [[0, 1]])


@pytest.mark.parametrize(
    ("views", "message"),
    [
        pytest.param(None, "views = None", id="None"),
        pytest.param("ab", "views = 'ab'", id="a str"),
        pytest.param({"a": X}, "views = ", id="a dict"),
        pytest.param([X], "at least two members", id="one member"),
        pytest.param([], "at least two members", id="no members"),
        pytest.param([X, X[:5]], "'1' of a meta-embedding has 5 vectors", id="unequal members"),
    ],
)
def test_members_that_cannot_be(views, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SVD(size=1).fit(views)


def test_members_without_names():
    with pytest.raises(ValueError, match="Given 1 names for 2 members"):
        SVD(size=1).fit([X, X], names=["a"])
