"""An index on disk of stored vectors: recall, exact scores, an interrupted build, and what is
refused.
"""

from functools import partial
from pathlib import Path
from shutil import copy, copytree

import faiss
import numpy
import pytest
from helpers.made_stored import BLOCK, Stored

from spacy_sbert.search import (
    EncoderIdentity,
    VectorIndex,
    build_ivfpq,
    ivfpq,
    nearest,
    nearest_stored,
    recall,
)

N = 10_000
WIDTH = 8
RNG = numpy.random.default_rng(0)
CENTRES = RNG.standard_normal((200, WIDTH))
VECTORS = (CENTRES[RNG.integers(200, size=N)] + 0.8 * RNG.standard_normal((N, WIDTH))).astype(
    "float32"
)
QUERIES = VECTORS[:50] + numpy.float32(0.1)
OPTIONS = {"n_lists": 20, "code_bytes": 4}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of an index, the index, and a copy of the trained one, which is gone when all is
    done.
    """
    folder = tmp_path_factory.mktemp("index") / "deep" / "index"
    kept = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ivfpq, "_merge", partial(keep_trained, ivfpq._merge, kept))
        index = build_ivfpq(Stored(VECTORS), folder, **OPTIONS)
    return folder, index, next(kept.iterdir())


def keep_trained(merge, kept, index, paths, path):
    copy(next(Path(path).parent.glob("*-trained.faiss")), kept)
    merge(index, paths, path)


def is_same(index, other):
    pairs = zip(index.search(QUERIES, k=10), other.search(QUERIES, k=10), strict=True)
    return all(numpy.array_equal(ours, theirs) for ours, theirs in pairs)


def test_recall_and_scores(built):
    folder, index, _ = built
    exact_scores, exact = nearest(QUERIES, VECTORS, k=10)
    assert (index.kind, len(index), index.width) == ("ivfpq", N, WIDTH)
    assert index.encoder == EncoderIdentity("model-a", WIDTH, "a" * 64)
    scores, found = index.search(QUERIES, k=10)
    assert recall(found, exact) > 0.6
    assert (numpy.diff(scores, axis=1) <= 0).all()
    again = VectorIndex.load(folder, encoder=index.encoder)
    scores, found = again.search(QUERIES, k=10, vectors=Stored(VECTORS))
    assert recall(found, exact) > 0.95
    same = found == exact
    assert numpy.allclose(scores[same], exact_scores[same], atol=1e-6), "by the vectors themselves"
    assert recall(
        again.search(QUERIES, k=10, vectors=Stored(VECTORS), rescore=1)[1], exact
    ) < recall(found, exact)
    # Lists that are not searched would leave -1
    _, found = index.search(QUERIES[:2], k=N)
    assert (numpy.sort(found, axis=1) == numpy.arange(N)).all()


def test_it_is_not_changed(built):
    for act in (lambda: built[1].add(VECTORS[:1]), lambda: built[1].delete([1])):
        with pytest.raises(ValueError, match=r"kind ivfpq can't be changed.*build_ivfpq"):
            act()
    assert len(built[1]) == N


def test_files_are_named_in_the_folder_alone(built, tmp_path):
    """It may be moved, and its lists are read where it is; a damaged file is refused."""
    folder, index, _ = built
    moved = copytree(folder, tmp_path / "moved")
    assert sorted(path.suffix for path in moved.iterdir()) == [".faiss", ".json", ".lists"]
    hidden = folder.rename(folder.with_name("hidden"))
    try:
        assert is_same(VectorIndex.load(moved), index)
    finally:
        hidden.rename(folder)
    for path in (*moved.glob("*.lists"), *moved.glob("*.faiss")):
        whole = path.read_bytes()
        path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
        with pytest.raises(ValueError, match=r"The index is damaged: .*SHA-256"):
            VectorIndex.load(moved)
        path.write_bytes(whole)


def test_an_interrupted_build_goes_on(built, tmp_path, monkeypatch):
    """Of several blocks, whose lists are merged and freed once; nothing is trained again."""
    monkeypatch.setattr(ivfpq, "_BLOCK", 3000)
    monkeypatch.setattr(faiss.IndexIVFPQ, "train", None)
    copy(built[2], tmp_path)
    build = partial(build_ivfpq, folder=tmp_path, **OPTIONS)
    for fails_after, begins in ((7, 0), (1, 6000)):
        stored = Stored(VECTORS, fails_after=fails_after)
        with pytest.raises(OSError, match="the disk is gone"):
            build(stored)
        assert stored.read[0] == begins
        assert not (tmp_path / "index.json").exists()
    stored = Stored(VECTORS)
    assert is_same(build(stored), built[1])
    assert stored.read == list(range(6000, N, BLOCK))
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".faiss", ".json", ".lists"]


def test_exact_search_by_blocks():
    stored = nearest_stored(QUERIES, Stored(VECTORS), k=1500)
    expected = nearest(QUERIES, VECTORS, k=1500)
    assert all(
        numpy.array_equal(ours, theirs) for ours, theirs in zip(stored, expected, strict=True)
    )


@pytest.mark.parametrize(
    ("n_vectors", "options", "message"),
    [
        pytest.param(9983, {}, "of 9983 vectors: expected 9984 at least", id="few vectors"),
        pytest.param(N, {"code_bytes": 5}, "code_bytes = 5 bytes: no divisor", id="code_bytes"),
        pytest.param(N, {"n_lists": 251}, "n_lists = 251 of 10000", id="many lists"),
    ],
)
def test_a_build_that_is_refused(tmp_path, n_vectors, options, message):
    with pytest.raises(ValueError, match=message):
        build_ivfpq(Stored(VECTORS[:n_vectors]), tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_an_index_stays_in_its_folder(built, tmp_path):
    _, index, _ = built
    with pytest.raises(ValueError, match="is in a folder already"):
        index.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_other_vectors_and_another_encoder(built):
    folder, index, _ = built
    other = Stored(VECTORS)
    other.digest = "e" * 64
    with pytest.raises(ValueError, match="are not those that the index was built of"):
        index.search(QUERIES, k=3, vectors=other)
    with pytest.raises(ValueError, match="was built with another encoder"):
        VectorIndex.load(folder, encoder=EncoderIdentity("b", 8, "b" * 64))
