"""Several windows in one row: each in one place, none over another, and little left empty."""

import math

import numpy
import pytest

from spacy_sbert.models.engine.packing import PLACES_APART, WIDTHS_APART, pack, packed_batches


def sentence_lengths(n=1000, seed=0):
    """Like those of sentences in STS: most have 10 to 20 wordpieces, few more than 40."""
    return numpy.clip(
        numpy.random.default_rng(seed).gamma(5.0, 3.0, n).round().astype("int64"), 4, 70
    )


def random_lengths(seed):
    rng = numpy.random.default_rng(seed)
    longest = [3, 30, 64, 100, 200, 512][seed % 6]
    return rng.integers(1, longest + 1, rng.integers(1, 200))


CASES = {
    **{f"one_of_{n}": [n] for n in (1, 64, 65, 128, 129, 512)},
    "full_rows": [64, 32, 32, 128, 64],
    "just_too_long": [33, 33, 65, 65],
    "one_of_512_among_sentences": [*sentence_lengths(50), 512, *sentence_lengths(50, seed=1)],
    "sentences": sentence_lengths(),
    **{f"random_{seed}": random_lengths(seed) for seed in range(6)},
}


every_case = pytest.mark.parametrize(
    "lengths", [numpy.asarray(lengths) for lengths in CASES.values()], ids=CASES
)


@every_case
def test_every_window_has_a_place_of_its_own(lengths):
    packing = pack(lengths)
    assert packing.row_of.shape == packing.column_of.shape == lengths.shape
    assert (packing.column_of >= 0).all()
    ends = packing.column_of + lengths
    assert (ends <= packing.widths[packing.row_of]).all(), "none reaches over its row"
    taken = [
        (row, column + offset)
        for row, column, length in zip(packing.row_of, packing.column_of, lengths, strict=True)
        for offset in range(length)
    ]
    assert len(set(taken)) == len(taken) == lengths.sum()


@every_case
def test_rows_are_filled(lengths):
    packing = pack(lengths)
    assert sorted(set(packing.row_of.tolist())) == list(range(len(packing.widths)))
    assert (numpy.diff(packing.widths) >= 0).all()


@every_case
def test_a_long_window_is_alone(lengths):
    packing = pack(lengths)
    for row, width in enumerate(packing.widths.tolist()):
        if width not in (64, 128):
            assert lengths[packing.row_of == row].tolist() == [width]


@every_case
def test_rows_of_one_width(lengths):
    packing = pack(lengths, one_width=True)
    assert set(packing.widths.tolist()) == {max(64, lengths.max())}
    assert (packing.column_of + lengths <= packing.widths[packing.row_of]).all()
    if len(packing.widths) > 1:
        # Half empty rows would be one
        assert lengths.sum() > packing.widths.sum() / 2


@pytest.mark.parametrize("seed", range(5))
def test_sentences_leave_little_empty(seed):
    lengths = sentence_lengths(seed=seed)
    assert 12 < lengths.mean() < 18
    assert lengths.max() > 35
    assert lengths.sum() / pack(lengths).widths.sum() > 0.95


WIDTHS = [
    # 5 of them leave 3 places, 2 in a row of 64 leave 14
    (25, 1000, [128] * 200),
    # But these need no more
    (25, 2, [64]),
    # Both widths are filled: the narrow one attends to less
    (32, 1000, [64] * 500),
    (21, 6, [64] * 2),
    (40, 3, [128]),
]


@pytest.mark.parametrize(("length", "n", "expected"), WIDTHS)
def test_the_cheaper_width(length, n, expected):
    assert pack(numpy.full(n, length)).widths.tolist() == expected


@pytest.mark.parametrize(
    ("n_threads", "expected"),
    [
        (1, [26, 26, 24, 24]),
        (2, [26, 26, 24, 24]),
        (3, [18, 18, 16, 16, 16, 16]),
        (8, [26, 26, 24, 24]),
    ],
)
def test_threads_get_passes_of_one_size(n_threads, expected):
    passes = packed_batches(numpy.full(100, 64), numpy.arange(100), 2048, at_a_time=n_threads)
    assert [one.shape for one in passes] == [(n_rows, 64) for n_rows in expected]
    windows = numpy.concatenate([one.windows for one in passes])
    assert sorted(windows.tolist()) == list(range(100))


def test_passes_of_many_batches_are_of_few_shapes():
    """Each new shape costs memory for good: kernels of oneDNN."""
    draw = numpy.random.default_rng(0)
    lengths = [draw.integers(5, 250, draw.integers(200, 300)) for _ in range(40)]
    shapes = [
        one.shape
        for each in lengths
        for one in packed_batches(each, numpy.arange(len(each)), 2048, at_a_time=2)
    ]
    places = {math.ceil(n_rows * width / PLACES_APART) for n_rows, width in shapes}
    assert {width % WIDTHS_APART for _, width in shapes} == {0}
    assert len(shapes) > 700
    assert len(places) <= 2048 / PLACES_APART
    assert len({width for _, width in shapes}) <= 25
    sentences = [draw.integers(5, 40, draw.integers(950, 1000)) for _ in range(40)]
    rows = {
        one.shape
        for each in sentences
        for one in packed_batches(each, numpy.arange(len(each)), 2048, at_a_time=2)
    }
    assert {width for _, width in rows} == {64}
    assert len(rows) <= 8


@pytest.mark.parametrize(("length", "width"), [(3, 4), (20, 20), (60, 64), (65, 72), (250, 256)])
def test_a_window_by_itself_has_a_row_of_its_width(length, width):
    (batch,) = packed_batches(numpy.array([7, length, 9]), numpy.array([1]), 2048)
    assert batch.shape == (1, width)
    assert batch.windows.tolist() == [1]
    assert batch.starts.tolist() == [0]
