"""Fusion by ranks, against a definition over dicts."""

import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from spacy_sbert.search import reciprocal_rank_fusion
from spacy_sbert.search.exact import Best


def random_results(seed: int, n: int = 20, widths: tuple[int, ...] = (7, 12, 5)) -> list[Best]:
    """Results of searches in 15 texts, with equal scores among them, and scores of 0."""
    random = numpy.random.default_rng(seed)
    results = []
    for width in widths:
        scores = random.integers(0, 8, size=(n, width)).astype("float32") / 4
        rows = numpy.array([random.permutation(15)[:width] for _ in range(n)])
        results.append((-numpy.sort(-scores, axis=1), rows))
    return results


def best_of(sums: dict[int, float], k: int) -> list[tuple[int, float]]:
    rounded = {row: float(numpy.float32(total)) for row, total in sums.items()}
    return sorted(rounded.items(), key=lambda item: (-item[1], item[0]))[:k]


def assert_same(found: Best, expected: list[list[tuple[int, float]]]) -> None:
    scores, rows = found
    assert (scores.dtype, rows.dtype) == (numpy.float32, numpy.int64)
    assert rows.tolist() == [[row for row, _ in own] for own in expected]
    assert_allclose(scores, [[score for _, score in own] for own in expected], rtol=1e-6)


@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 2.0], [0, 1, 0]])
@pytest.mark.parametrize("constant", [60, 1.5])
def test_reciprocal_ranks_are_summed(weights: list[float] | None, constant: float) -> None:
    results = random_results(0)
    expected = []
    for query in range(20):
        sums: dict[int, float] = {}
        for weight, (scores, rows) in zip(weights or [1, 1, 1], results, strict=True):
            for rank, (score, row) in enumerate(zip(scores[query], rows[query], strict=True), 1):
                share = 0 if score == 0 else weight / (constant + rank)
                sums[int(row)] = sums.get(int(row), 0) + share
        expected.append(best_of(sums, 9))
    assert_same(reciprocal_rank_fusion(results, k=9, constant=constant, weights=weights), expected)


def test_one_result_keeps_its_order() -> None:
    scores = numpy.array([[0.9, 0.5, -0.2]])
    rows = numpy.array([[4, 0, 7]])
    assert_array_equal(reciprocal_rank_fusion([(scores, rows)], k=3)[1], rows)


def test_text_without_a_word_of_the_query_gets_nothing() -> None:
    vectors = (numpy.array([[0.9, 0.8]]), numpy.array([[7, 3]]))
    words = (numpy.array([[2.5, 0.0]]), numpy.array([[3, 0]]))
    scores, rows = reciprocal_rank_fusion([vectors, words], k=2)
    assert rows.tolist() == [[3, 7]]
    assert_allclose(scores, [[1 / 62 + 1 / 61, 1 / 61]], rtol=1e-6)


def test_equal_sums_are_ordered_by_row() -> None:
    first = (numpy.array([[3.0, 2, 1]]), numpy.array([[9, 4, 2]]))
    second = (numpy.array([[3.0, 2, 1]]), numpy.array([[4, 2, 9]]))
    third = (numpy.array([[3.0, 2, 1]]), numpy.array([[2, 9, 4]]))
    assert reciprocal_rank_fusion([first, second, third], k=3)[1].tolist() == [[2, 4, 9]]


RESULT = (numpy.array([[2.0, 1.0]]), numpy.array([[3, 1]]))


@pytest.mark.parametrize(
    ("results", "settings", "match"),
    [
        ([], {}, r"shapes \[\]"),
        ([RESULT], {"k": 3}, "Cannot find 3 rows of results of 2"),
        ([RESULT, (numpy.ones((2, 2)), numpy.array([[0, 1]] * 2))], {}, "the same queries"),
        ([RESULT], {"weights": [1, 2]}, r"weights \[1, 2\]"),
        ([RESULT], {"weights": [-1]}, "Cannot use weights"),
        ([RESULT], {"constant": 0}, "Cannot use constant = 0"),
    ],
)
def test_what_cannot_be_joined_is_refused(results, settings, match: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=match):
        reciprocal_rank_fusion(results, **{"k": 1, **settings})
