"""Quantised vectors: by hand, the bound of the error, parity with search among decoded vectors,
files, what is lost.
"""

import zipfile

import numpy
import pytest
from helpers.pipelines import no_warnings

from spacy_sbert.search import BinaryVectors, Int8Vectors, nearest, recall
from spacy_sbert.similarity import unit_length

RNG = numpy.random.default_rng(0)
CENTRES = RNG.standard_normal((40, 64))
VECTORS = (CENTRES[RNG.integers(40, size=900)] + 0.7 * RNG.standard_normal((900, 64))).astype(
    "float32"
)
QUERIES = (CENTRES + 0.7 * RNG.standard_normal((40, 64))).astype("float32")
INT8 = Int8Vectors.fit(VECTORS).apply(VECTORS)
BINARY = BinaryVectors.of(VECTORS)


def assert_equal(found, expected):
    assert [array.dtype for array in found] == ["float32", "int64"]
    assert all(
        numpy.array_equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True)
    )


def test_int8_by_hand():
    ranges = Int8Vectors.fit([[1.0, 0.0], [-1.0, 0.0]])
    assert ranges.low.tolist() == [-1, 0]
    assert ranges.step.tolist() == [numpy.float32(2 / 255), 1]
    stored = ranges.apply([[3.0, 0.0], [-0.5, 0.0]])
    assert stored.codes.tolist() == [[127, -128], [-128, -128]]
    assert stored.codes.dtype == "int8"
    assert numpy.allclose(stored.decode(), [[1, 0], [-1, 0]])


def test_int8_is_off_by_half_a_step_at_most():
    error = numpy.abs(INT8.decode() - unit_length(VECTORS))
    assert (error <= INT8.step / 2 * (1 + 1e-4)).all()
    assert error.max() > 0
    assert INT8.codes.nbytes * 4 == VECTORS.nbytes
    # Some are outside the range of the sample
    stored = Int8Vectors.fit(VECTORS[:20]).apply(VECTORS)
    low = stored.low
    high = stored.low + 255 * stored.step
    assert numpy.allclose(
        stored.decode(), unit_length(VECTORS).clip(low, high), atol=stored.step.max() / 2
    )


@pytest.mark.parametrize(("n", "block_bytes"), [(30, 4 * 64), (900, 4 * 64 * 37), (900, 2**20)])
def test_int8_search_is_that_among_decoded_vectors(n, block_bytes):
    stored = INT8.apply(VECTORS[:n])
    for k in (1, 10, n):
        found = stored.search(QUERIES[:9], k=k, block_bytes=block_bytes)
        assert_equal(found, nearest(QUERIES[:9], stored.decode(), k=k))


def test_binary_by_hand():
    stored = BinaryVectors.of([[1, -1, 1, 1, 1, 1, 1, 1, -1, 1.0], [-1] * 9 + [1.0]])
    assert stored.bits.tolist() == [[0b10111111, 0b01000000], [0, 0b01000000]]
    assert stored.decode().tolist() == [[1, -1, 1, 1, 1, 1, 1, 1, -1, 1], [-1] * 9 + [1]]
    scores, indices = stored.search([[1.0] * 10], k=2, rescore=0)
    assert indices.tolist() == [[0, 1]]
    assert numpy.allclose(scores, [[1 - 2 * 2 / 10, 1 - 2 * 9 / 10]])


@pytest.mark.parametrize("k", [1, 10, 900])
@pytest.mark.parametrize("width", [64, 61, 3])
def test_hamming_search_is_that_by_the_cosine_of_signs(k, width):
    signs = numpy.where(VECTORS[:, :width] > 0, 1, -1)
    wanted = numpy.where(QUERIES[:, :width] > 0, 1, -1)
    distances = (wanted[:, None] != signs[None]).sum(axis=2)
    indices = numpy.argsort(distances, axis=1, kind="stable")[:, :k]
    scores, found = BinaryVectors.of(VECTORS[:, :width]).search(QUERIES[:, :width], k=k, rescore=0)
    assert numpy.array_equal(found, indices)
    assert scores.dtype == "float32"
    assert found.dtype == "int64"
    assert numpy.allclose(
        scores, 1 - 2 * numpy.take_along_axis(distances, indices, axis=1) / width, atol=1e-6
    )


def test_all_rescored_is_exact():
    every = BINARY.search(QUERIES, k=10, rescore=90)
    assert_equal(every, nearest(QUERIES, BINARY.decode(), k=10))
    assert_equal(
        BINARY.search(QUERIES, k=10, rescore=90, vectors=VECTORS), nearest(QUERIES, VECTORS, k=10)
    )


def test_what_is_lost():
    _, exact = nearest(QUERIES, VECTORS, k=10)
    of_signs, rescored, by_vectors = (
        recall(BINARY.search(QUERIES, k=10, **how)[1], exact)
        for how in ({"rescore": 0}, {"rescore": 8}, {"rescore": 8, "vectors": VECTORS})
    )
    assert recall(INT8.search(QUERIES, k=10)[1], exact) > 0.97
    assert of_signs < rescored < by_vectors
    assert by_vectors > 0.9


@pytest.mark.parametrize("stored", [INT8, BINARY])
def test_files(stored, tmp_path):
    path = tmp_path / "new" / "vectors.npz"
    stored.save(path)
    assert_equal(type(stored).load(path).search(QUERIES, k=5), stored.search(QUERIES, k=5))
    assert [file.name for file in path.parent.iterdir()] == ["vectors.npz"]
    whole = path.read_bytes()
    with pytest.raises(ValueError, match=r"vectors\.npz holds no quantised vectors"):
        (BinaryVectors if stored is INT8 else Int8Vectors).load(path)
    changed = bytearray(whole)
    changed[300] ^= 1
    for damaged in (b"", b"text", whole[:-30], whole[: len(whole) // 2], bytes(changed)):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"vectors\.npz holds no quantised vectors"):
            type(stored).load(path)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"step": INT8.step[1:]}, id="narrow"),
        pytest.param({"codes": INT8.codes[0]}, id="a single vector"),
        pytest.param({"low": INT8.low.astype("f8")}, id="another dtype"),
        pytest.param({"codes": numpy.array([{}])}, id="pickled"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, changed):
    path = tmp_path / "vectors.npz"
    arrays = {"codes": INT8.codes, "low": INT8.low, "step": INT8.step}
    numpy.savez(path, **(arrays | changed))
    with pytest.raises(ValueError, match="holds no quantised vectors"):
        Int8Vectors.load(path)


@pytest.mark.parametrize(
    "shape", ["(1000000000000, 64)", "(899, 64)", "(900, 64", "(900, 64), 'descr': '|O'"]
)
def test_headers_that_promise_terabytes_or_nonsense(tmp_path, shape):
    path = tmp_path / "vectors.npz"
    INT8.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = f"{{'descr': '|i1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    members["codes.npy"] = b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + bytes(900 * 64)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(ValueError, match="holds no quantised vectors"):
        Int8Vectors.load(path)


@pytest.mark.parametrize("change", ["order", "others", "negative"])
def test_vectors_that_were_not_quantised_are_refused(change):
    others = {
        "order": VECTORS[::-1],
        "others": QUERIES[numpy.arange(900) % 40],
        "negative": -VECTORS,
    }[change]
    with pytest.raises(ValueError, match=r"Vector \d+ is not the one that was quantised"):
        BINARY.search(QUERIES, k=3, vectors=others)
    rounded = BINARY.search(QUERIES, k=3, vectors=VECTORS.astype("float16"))[1]
    assert recall(rounded, BINARY.search(QUERIES, k=3, vectors=VECTORS)[1]) > 0.99


@pytest.mark.parametrize("n", [1, 2])
def test_ranges_of_too_few_vectors_are_told_of(n):
    with pytest.warns(UserWarning, match=r"\[sbert-int8-clipped\]"):
        Int8Vectors.fit(VECTORS[:n]).apply(VECTORS)
    with no_warnings():
        Int8Vectors.fit(VECTORS[:n]).apply(VECTORS[:n])
        Int8Vectors.fit(VECTORS).apply(VECTORS)
