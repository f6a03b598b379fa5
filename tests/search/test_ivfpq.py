"""An index on disk of stored vectors: recall, exact scores, an interrupted build, and what is refused."""

from functools import partial

import faiss
import numpy
import pytest
from made_stored import BLOCK, Stored

from spacy_sbert.search import EncoderIdentity, VectorIndex, build_ivfpq, ivfpq, nearest, nearest_stored, recall

N, WIDTH = 12_000, 16
RNG = numpy.random.default_rng(0)
CENTRES = RNG.standard_normal((200, WIDTH))
VECTORS = (CENTRES[RNG.integers(200, size=N)] + 0.8 * RNG.standard_normal((N, WIDTH))).astype("float32")
QUERIES = VECTORS[:50] + numpy.float32(0.1)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "deep" / "index"
    return folder, build_ivfpq(Stored(VECTORS), folder, n_lists=20, code_bytes=8)


def test_recall_and_scores(built):
    folder, index = built
    exact_scores, exact = nearest(QUERIES, VECTORS, k=10)
    assert (index.kind, len(index), index.width) == ("ivfpq", N, WIDTH)
    assert index.encoder == EncoderIdentity("model-a", WIDTH, "a" * 64)
    scores, found = index.search(QUERIES, k=10)
    assert recall(found, exact) > 0.6 and (numpy.diff(scores, axis=1) <= 0).all()
    again = VectorIndex.load(folder, encoder=index.encoder)
    scores, found = again.search(QUERIES, k=10, vectors=Stored(VECTORS))
    assert recall(found, exact) > 0.95
    same = found == exact
    assert numpy.allclose(scores[same], exact_scores[same], atol=1e-6), "by the vectors themselves"
    assert recall(again.search(QUERIES, k=10, vectors=Stored(VECTORS), rescore=1)[1], exact) < recall(found, exact)


def test_files_are_named_in_the_folder_alone(built, tmp_path):
    """It may be moved, and its lists are read where it is."""
    folder, index = built
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in folder.iterdir():
        (moved / path.name).write_bytes(path.read_bytes())
    assert sorted(path.suffix for path in moved.iterdir()) == [".faiss", ".json", ".lists"]
    hidden = folder.rename(folder.with_name("hidden"))
    try:
        found = VectorIndex.load(moved).search(QUERIES, k=5)
    finally:
        hidden.rename(folder)
    for ours, theirs in zip(found, index.search(QUERIES, k=5), strict=True):
        assert numpy.array_equal(ours, theirs)


@pytest.mark.parametrize("suffix", [".lists", ".faiss"])
def test_a_damaged_file(built, tmp_path, suffix):
    for path in built[0].iterdir():
        data = bytearray(path.read_bytes())
        if path.suffix == suffix:
            data[len(data) // 2] ^= 1
        (tmp_path / path.name).write_bytes(data)
    with pytest.raises(ValueError, match=r"The index is damaged: .*SHA-256"):
        VectorIndex.load(tmp_path)


def test_an_interrupted_build_goes_on(built, tmp_path, monkeypatch):
    monkeypatch.setattr(ivfpq, "_BLOCK", 3000)
    build = partial(build_ivfpq, folder=tmp_path, n_lists=20, code_bytes=8)
    for fails_after, begins in ((7, 0), (1, 6000)):
        stored = Stored(VECTORS, fails_after=fails_after)
        with pytest.raises(OSError, match="the disk is gone"):
            build(stored)
        assert stored.read[0] == begins and not (tmp_path / "index.json").exists()
    stored = Stored(VECTORS)
    monkeypatch.setattr(faiss.IndexIVFPQ, "train", None)  # nothing is trained again
    index = build(stored)
    assert stored.read == list(range(6000, N, BLOCK))
    for ours, theirs in zip(index.search(QUERIES, k=10), built[1].search(QUERIES, k=10), strict=True):
        assert numpy.array_equal(ours, theirs)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".faiss", ".json", ".lists"]


def test_all_that_there_are(built):
    """Lists that are not searched would leave -1."""
    _, found = built[1].search(QUERIES[:2], k=N)
    assert (numpy.sort(found, axis=1) == numpy.arange(N)).all()


def test_exact_search_by_blocks():
    for ours, theirs in zip(
        nearest_stored(QUERIES, Stored(VECTORS), k=1500), nearest(QUERIES, VECTORS, k=1500), strict=True
    ):
        assert numpy.array_equal(ours, theirs)


def test_what_is_refused(built, tmp_path):
    with pytest.raises(ValueError, match="of 9983 vectors: expected 9984 at least"):
        build_ivfpq(Stored(VECTORS[:9983]), tmp_path)
    with pytest.raises(ValueError, match="of width 16 in code_bytes = 5 bytes: expected a divisor"):
        build_ivfpq(Stored(VECTORS), tmp_path, code_bytes=5)
    with pytest.raises(ValueError, match="n_lists = 301 of 12000 vectors: expected 300 at most"):
        build_ivfpq(Stored(VECTORS), tmp_path, n_lists=301)
    with pytest.raises(ValueError, match="is in a folder already"):
        built[1].save(tmp_path)
    other = Stored(VECTORS)
    other.digest = "e" * 64
    with pytest.raises(ValueError, match="are not those that the index was built of, in there"):
        built[1].search(QUERIES, k=3, vectors=other)
    with pytest.raises(ValueError, match="was built with another encoder"):
        VectorIndex.load(built[0], encoder=EncoderIdentity("model-b", 16, "b" * 64))
    assert list(tmp_path.iterdir()) == []
