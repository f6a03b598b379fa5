"""A saved index: parity with exact search, streams, files that are not what was saved, and a full
disk.
"""

import copy
import json
import pickle

import faiss
import numpy
import pytest

from spacy_sbert import find_sbert
from spacy_sbert.search import (
    BinaryVectors,
    EncoderIdentity,
    Int8Vectors,
    VectorIndex,
    identify,
    nearest,
    recall,
)
from spacy_sbert.search.index_rows import IndexRow

RNG = numpy.random.default_rng(0)
CENTRES = RNG.standard_normal((50, 24))
VECTORS = (CENTRES[RNG.integers(50, size=2000)] + 0.8 * RNG.standard_normal((2000, 24))).astype(
    "float32"
)
UNIT = VECTORS / numpy.linalg.norm(VECTORS, axis=1, keepdims=True)
QUERIES = (3 * VECTORS[:40] + 0.1).astype("float64")
ENCODER = EncoderIdentity("model-a", 24, "a" * 64)
TEXTS = [f"text {i}\n\u2028" for i in range(2000)]
KINDS = pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])


@pytest.fixture(scope="module")
def indexes():
    return {
        kind: VectorIndex.build(VECTORS, kind=kind, encoder=ENCODER, texts=TEXTS, ids=range(2000))
        for kind in ("flat", "hnsw", "ivf")
    }


@KINDS
def test_recall_against_exact_search(indexes, kind):
    scores, indices = indexes[kind].search(QUERIES, k=10)
    exact_scores, exact = nearest(QUERIES, VECTORS, k=10)
    assert (scores.dtype, indices.dtype, scores.shape, indices.shape) == (
        "float32",
        "int64",
        (40, 10),
        (40, 10),
    )
    assert recall(indices, exact) >= (1.0 if kind == "flat" else 0.95)
    assert numpy.allclose(scores[indices == exact], exact_scores[indices == exact], atol=1e-6)
    assert (numpy.diff(scores, axis=1) <= 0).all()
    streamed = VectorIndex.build(
        (VECTORS[start : start + 300] for start in range(0, 2000, 300)), kind=kind
    )
    (theirs, found), scores, indices = streamed.search(QUERIES, k=5), scores[:, :5], indices[:, :5]
    # Lists are trained on vectors in another order
    assert len(streamed) == 2000
    assert recall(found, indices) > 0.97
    assert numpy.allclose(theirs[found == indices], scores[found == indices], atol=1e-6)
    # Lists and graphs alone would not show all
    scores, every = indexes[kind].search(QUERIES[:3], k=2000)
    assert (numpy.sort(every, axis=1) == numpy.arange(2000)).all()
    assert numpy.isfinite(scores).all()


@KINDS
@pytest.mark.parametrize(
    "vectors", [numpy.ones((300, 4)), numpy.zeros((300, 4)), numpy.ones((1, 4))]
)
def test_equal_zero_and_single_vectors(kind, vectors):
    found = VectorIndex.build(vectors, kind=kind).search([[1.0, 1, 1, 1]], k=len(vectors))
    assert numpy.allclose(found[0], float(vectors[0, 0]))
    assert sorted(found[1][0]) == list(range(len(vectors)))


@KINDS
def test_saved_and_loaded(indexes, kind, tmp_path):
    folder = tmp_path / "sub" / "index"
    indexes[kind].save(folder)
    loaded = VectorIndex.load(folder, encoder=ENCODER)
    for ours, theirs in zip(
        loaded.search(QUERIES, k=7), indexes[kind].search(QUERIES, k=7), strict=True
    ):
        assert numpy.array_equal(ours, theirs)
    assert (loaded.kind, loaded.width, loaded.encoder, len(loaded)) == (kind, 24, ENCODER, 2000)
    assert loaded.rows[1999] == ("text 1999\n\u2028", 1999, None, None)
    said = json.loads((folder / "index.json").read_text())
    assert (said["count"], said["width"], said["encoder"]["name"]) == (2000, 24, "model-a")


def test_saved_over_another(indexes, tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no index in"):
        VectorIndex.load(tmp_path)
    VectorIndex.build(VECTORS[:5]).save(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    indexes["flat"].save(tmp_path)
    assert len(VectorIndex.load(tmp_path)) == 2000
    kinds = sorted(path.name.split("-")[0] for path in tmp_path.iterdir())
    assert kinds == ["index", "index.json", "notes.txt", "rows"]


@pytest.mark.parametrize(
    ("n", "size"),
    [(1, 250), (2000, 50_000), (2000, 195_000)],
    # In index.json, index, rows
)
def test_a_full_disk_leaves_what_was_there(tmp_path, n, size):
    VectorIndex.build(VECTORS[:5]).save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    index = VectorIndex.build(VECTORS[:n], texts=["x" * 100] * n if n > 1 else None)
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        # What is written beyond fails
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        with pytest.raises(OSError, match="File too large"):
            index.save(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert len(VectorIndex.load(tmp_path)) == 5


@pytest.mark.parametrize("file", ["index-*.faiss", "rows-*.jsonl"])
@pytest.mark.parametrize("damage", ["a bit", "cut", "empty", "longer"])
def test_damaged_files_never_reach_faiss(indexes, tmp_path, file, damage, monkeypatch):
    indexes["hnsw"].save(tmp_path)
    if file.startswith("index"):
        monkeypatch.setattr(faiss, "read_index", None)
    (path,) = tmp_path.glob(file)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    damaged = {"a bit": bytes(flipped), "cut": whole[:-1], "empty": b"", "longer": whole + b" "}
    path.write_bytes(damaged[damage])
    with pytest.raises(ValueError, match=r"The index is damaged: .*its SHA-256 is"):
        VectorIndex.load(tmp_path)


@pytest.mark.parametrize("file", ["index-*.faiss", "rows-*.jsonl"])
def test_a_missing_file(indexes, tmp_path, file):
    indexes["hnsw"].save(tmp_path)
    (path,) = tmp_path.glob(file)
    path.unlink()
    with pytest.raises(ValueError, match=r"The index is damaged: .*it is missing"):
        VectorIndex.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"format": "spacy-sbert index 4"}, id="format"),
        pytest.param({"kind": "pickle"}, id="kind"),
        pytest.param({"count": 1999}, id="count"),
        pytest.param({"width": 23}, id="width"),
        pytest.param({"files": {}}, id="no files"),
        pytest.param({"files": {"../../secret": "a" * 64}}, id="a file elsewhere"),
        pytest.param({"encoder": {"name": "model-a"}}, id="half an encoder"),
        pytest.param(
            {"encoder": {"name": "model-a", "width": 3, "digest": "a"}}, id="a short digest"
        ),
    ],
)
def test_a_changed_manifest(indexes, tmp_path, change):
    indexes["flat"].save(tmp_path)
    path = tmp_path / "index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match="The index is damaged"):
        VectorIndex.load(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "3", "{}", pytest.param("[" * 200_000, id="deep")])
def test_what_is_no_manifest(indexes, tmp_path, content):
    indexes["flat"].save(tmp_path)
    (tmp_path / "index.json").write_text(content)
    with pytest.raises(ValueError, match="The index is damaged"):
        VectorIndex.load(tmp_path)


def test_an_unnamed_encoder(tmp_path):
    VectorIndex.build(VECTORS[:5]).save(tmp_path)
    with pytest.raises(ValueError, match="does not say which encoder"):
        VectorIndex.load(tmp_path, encoder=ENCODER)


@pytest.mark.parametrize(("width", "message"), [(384, "width 24 and 384"), (24, "weights")])
def test_another_encoder(indexes, tmp_path, monkeypatch, width, message):
    indexes["flat"].save(tmp_path)
    monkeypatch.setattr(faiss, "read_index", None)
    with pytest.raises(ValueError, match=f"'model-a', than 'model-b' .*{message}"):
        VectorIndex.load(tmp_path, encoder=EncoderIdentity("model-b", width, "b" * 64))


@pytest.fixture
def copies(share):
    """Vectors of which a share are equal, and where these stand."""
    rng = numpy.random.default_rng(1)
    vectors = rng.standard_normal((3000, 24), dtype="float32")
    places = rng.permutation(3000)[: int(3000 * share)]
    vectors[places] = vectors[places[0]]
    return vectors, places


every_share = pytest.mark.parametrize("share", [0.01, 0.5, 0.99])


@KINDS
@every_share
@pytest.mark.parametrize("is_streamed", [False, True], ids=["at once", "streamed and saved"])
def test_equal_vectors_are_found(kind, share, copies, is_streamed, tmp_path):
    """In a graph of neighbours copies would lead to one another only."""
    vectors, places = copies
    if is_streamed:
        blocks = iter(numpy.array_split(vectors, 7))
        texts = [str(place) for place in range(3000)]
        VectorIndex.build(blocks, kind=kind, texts=texts).save(tmp_path)
        index = VectorIndex.load(tmp_path)
        assert index.rows[7].text == "7"
    else:
        index = VectorIndex.build(vectors, kind=kind)
    assert len(index) == 3000
    queries = numpy.unique(vectors, axis=0)[:100]
    scores, found = index.search(queries, k=5)
    assert (scores[:, 0] > 0.9999).all()
    assert numpy.array_equal(vectors[found[:, 0]], queries)
    assert all(len(set(own)) == 5 for own in found.tolist())
    if share == 0.01:
        _, exact = nearest(queries, vectors, k=5)
        assert recall(found, exact) >= (1.0 if kind == "flat" else 0.7)
    (score,), (every,) = index.search(queries[:1], k=3000)
    assert sorted(every) == list(range(3000))
    assert (numpy.diff(score) <= 0).all()
    (score,), (own,) = index.search(vectors[places[:1]], k=len(places))
    assert numpy.allclose(score, 1)
    assert set(own) == set(places)


@every_share
def test_equal_vectors_are_found_quantised(copies):
    vectors, _ = copies
    queries = numpy.unique(vectors, axis=0)[:100]
    scores, _ = Int8Vectors.fit(vectors).apply(vectors).search(queries, k=1)
    assert (scores > 0.999).all()
    scores, _ = BinaryVectors.of(vectors).search(queries, k=1, vectors=vectors)
    assert (scores > 0.999).all()


# What FAISS's own object was told to do
CHANGED = {
    "add": lambda index: index.add(UNIT[:1]),
    "remove_ids": lambda index: index.remove_ids(numpy.array([0])),
    "reset": lambda index: index.reset(),
}


@KINDS
@pytest.mark.parametrize("change", CHANGED)
@pytest.mark.parametrize("made", ["texts", "copies", "plain"])
def test_an_index_changed_by_faiss_is_saved_rightly_or_refused(kind, change, made, tmp_path):
    if (kind, change) == ("hnsw", "remove_ids"):
        pytest.skip("FAISS removes nothing from a graph")
    vectors = (
        numpy.concatenate([VECTORS[:300], VECTORS[:30]]) if made == "copies" else VECTORS[:300]
    )
    texts = [str(place) for place in range(300)] if made == "texts" else None
    index = VectorIndex.build(vectors, kind=kind, texts=texts)
    index.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    CHANGED[change](index.index)
    n = int(index.index.ntotal)
    if made == "texts" or change == "reset" or (made == "copies" and kind == "hnsw"):
        for act in (lambda: index.save(tmp_path), lambda: index.search(QUERIES, k=1)):
            with pytest.raises(ValueError, match=f"The FAISS index holds {n} vectors, expected"):
                act()
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    else:
        index.save(tmp_path)
        loaded = VectorIndex.load(tmp_path)
        assert len(loaded) == n != len(vectors)
        assert numpy.array_equal(loaded.search(QUERIES, k=3)[1], index.search(QUERIES, k=3)[1])


# With as many vectors as before
SAME_COUNT = {
    "remove_ids, add": lambda index: (
        index.index.remove_ids(numpy.array([3])),
        index.index.add(VECTORS[500:501]),
    ),
    "reset, add": lambda index: (index.index.reset(), index.index.add(VECTORS[300:600])),
    "replaced": lambda index: setattr(
        index, "index", VectorIndex.build(VECTORS[300:600], kind=index.kind).index
    ),
}


@KINDS
@pytest.mark.parametrize("change", SAME_COUNT)
@pytest.mark.parametrize("is_loaded", [False, True])
def test_as_many_other_vectors_do_not_pass_for_those_of_the_texts(
    kind, change, is_loaded, tmp_path
):
    if (kind, change) == ("hnsw", "remove_ids, add"):
        pytest.skip("FAISS removes nothing from a graph")
    index = VectorIndex.build(VECTORS[:300], kind=kind, texts=[str(place) for place in range(300)])
    index.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    if is_loaded:
        index = VectorIndex.load(tmp_path)
    SAME_COUNT[change](index)
    for act in (
        lambda: index.search(QUERIES, k=1),
        lambda: index.save(tmp_path),
        lambda: index.search(QUERIES, k=1),
    ):
        with pytest.raises(ValueError, match="The FAISS index holds other vectors than before"):
            act()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_faiss_index_that_is_only_read_or_kept(tmp_path):
    index = VectorIndex.build(VECTORS[:300], kind="ivf", texts=[str(place) for place in range(300)])
    kept = index.index
    kept.nprobe = kept.nlist
    assert index.search(QUERIES[:1], k=3)[1].shape == (1, 3)
    index.save(tmp_path)
    kept.remove_ids(numpy.array([3]))
    # After the search that compared them
    kept.add(VECTORS[500:501])
    with pytest.raises(ValueError, match="holds other vectors than before"):
        index.save(tmp_path)
    plain = VectorIndex.build(VECTORS[:300])
    plain.index.add(UNIT[300:301])
    # Of the vectors that it has now
    plain.rows = [IndexRow(str(place), None) for place in range(301)]
    assert plain.search(VECTORS[300:301], k=1)[1] == 300
    plain.save(tmp_path)
    with pytest.raises(ValueError, match="Given 2 texts or ids for 301 vectors"):
        plain.rows = plain.rows[:2]


def test_queries_of_another_encoder_are_refused_by_an_index_in_memory():
    index = VectorIndex.build(VECTORS[:5], encoder=ENCODER)
    assert index.search(QUERIES[:1], k=1, encoder=ENCODER)[1].shape == (1, 1)
    with pytest.raises(
        ValueError,
        match="'model-a', than 'model-a'",
    ):
        index.search(QUERIES[:1], k=1, encoder=EncoderIdentity("model-a", 24, "b" * 64))
    with pytest.raises(ValueError, match="does not say which encoder"):
        VectorIndex.build(VECTORS[:5]).search(QUERIES[:1], k=1, encoder=ENCODER)


@KINDS
@pytest.mark.parametrize("integer", [int, numpy.int64, numpy.int32, numpy.uint8])
def test_counts_of_any_integer(indexes, kind, integer):
    assert numpy.array_equal(
        indexes[kind].search(QUERIES, k=integer(3))[1], indexes[kind].search(QUERIES, k=3)[1]
    )


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "index").write_text("mine")
    with pytest.raises(OSError, match=r"Cannot write .*/index: File exists"):
        VectorIndex.build(VECTORS[:5]).save(tmp_path / "index")
    assert (tmp_path / "index").read_text() == "mine"


@pytest.mark.parametrize(
    "make",
    [
        lambda: faiss.IndexFlatL2(24),
        lambda: faiss.IndexHNSWFlat(24, 8),
        lambda: faiss.IndexIDMap(faiss.IndexFlatIP(24)),
        lambda: None,
    ],
)
def test_another_kind_of_faiss_index_is_refused(make):
    index = VectorIndex.build(VECTORS[:300])
    other = make()
    for take in (lambda: VectorIndex(other, "flat"), lambda: setattr(index, "index", other)):
        with pytest.raises(ValueError, match=r"kind flat: expected a faiss\.IndexFlat"):
            take()
    assert index.search(QUERIES[:1], k=1)[1].shape == (1, 1)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind"):
        VectorIndex(faiss.IndexFlatIP(24), "FLAT")


GAP = "has no vector of the number"


@KINDS
@pytest.mark.parametrize("removed", [(), (0,), (5, 7), (299,)])
def test_texts_are_those_of_the_vectors_that_were_added_and_removed(kind, removed, tmp_path):
    """Or are refused, where FAISS leaves a gap in the numbers."""
    if kind == "hnsw" and removed:
        pytest.skip("FAISS removes nothing from a graph")
    index = VectorIndex.build(VECTORS[:300], kind=kind, texts=[str(i) for i in range(300)])
    kept = [i for i in range(300) if i not in removed]
    if removed:
        index.index.remove_ids(numpy.array(removed))
    index.index.add(UNIT[300:400])
    kept += range(300, 400)
    rows = [(str(i), None) for i in kept]
    # The last number is given again
    if kind == "ivf" and removed not in ((), (299,)):
        with pytest.raises(ValueError, match=GAP):
            index.rows = rows
        with pytest.raises(ValueError, match="The FAISS index holds"):
            index.search(QUERIES, k=1)
        with pytest.raises(ValueError, match=GAP):
            VectorIndex(index.index, "ivf", rows=rows)
        # By the numbers of FAISS
        assert VectorIndex(index.index, "ivf").search(QUERIES, k=1)[1].shape == (40, 1)
        return
    index.rows = rows
    index.save(tmp_path)
    for same in (index, VectorIndex.load(tmp_path)):
        found = same.search(VECTORS[kept], k=1)[1][:, 0]
        assert [same.rows[row].text for row in found] == [str(i) for i in kept]


def own_index(kind):
    """An index of FAISS such as a user makes it, and a VectorIndex of it with texts."""
    own = faiss.clone_index(VectorIndex.build(VECTORS[:300], kind=kind).index)
    return own, VectorIndex(own, kind, rows=[IndexRow(str(place), None) for place in range(300)])


# With as many vectors afterwards
OF_FAISS = {
    "remove_ids, add": lambda index: (index.remove_ids(numpy.array([3])), index.add(UNIT[500:501])),
    "rotated": lambda index: (index.remove_ids(numpy.array([0])), index.add(UNIT[:1])),
    "reset, add": lambda index: (index.reset(), index.add(UNIT[300:600])),
}


@KINDS
@pytest.mark.parametrize("change", OF_FAISS)
def test_an_index_of_the_users_own_is_copied(kind, change, tmp_path):
    if kind == "hnsw" and change != "reset, add":
        pytest.skip("FAISS removes nothing from a graph")
    own, index = own_index(kind)
    expected = index.search(QUERIES, k=5)
    OF_FAISS[change](own)
    index.save(tmp_path)
    for same in (index, VectorIndex.load(tmp_path)):
        for ours, theirs in zip(same.search(QUERIES, k=5), expected, strict=True):
            assert numpy.array_equal(ours, theirs)


@KINDS
@pytest.mark.parametrize("change", OF_FAISS)
@pytest.mark.parametrize("is_copied", [False, True])
def test_an_index_that_is_kept_is_compared_at_each_search(kind, change, is_copied):
    if kind == "hnsw" and change != "reset, add":
        pytest.skip("FAISS removes nothing from a graph")
    _, index = own_index(kind)
    if is_copied:
        index = pickle.loads(pickle.dumps(copy.deepcopy(index)))
    kept = index.index
    assert kept is index.index
    assert index.search(QUERIES, k=5)[1].shape == (40, 5)
    OF_FAISS[change](kept)
    for _ in range(2):
        with pytest.raises(ValueError, match="The FAISS index holds other vectors than before"):
            index.search(QUERIES, k=5)
    # Of the vectors that it has now
    rows = [IndexRow(str(place), None) for place in range(300, 600)]
    if kind == "ivf" and change != "reset, add":
        with pytest.raises(ValueError, match=GAP):
            index.rows = rows
        return
    index.rows = rows
    assert index.search(QUERIES, k=5)[1].shape == (40, 5)
    OF_FAISS["reset, add"](kept)
    kept.reset()
    kept.add(UNIT[600:900])
    with pytest.raises(ValueError, match="The FAISS index holds other vectors than before"):
        index.search(QUERIES, k=5)


def test_nothing_is_compared_once_the_index_is_not_kept(monkeypatch):
    _, index = own_index("flat")
    kept = index.index
    index.search(QUERIES, k=5)
    del kept
    index.search(QUERIES, k=5)
    monkeypatch.setattr("spacy_sbert.search.faiss_index._blocks_of", None)
    index.search(QUERIES, k=5)


def test_vectors_of_other_lengths_are_no_cosines(tmp_path):
    own = faiss.IndexFlatIP(24)
    own.add(numpy.concatenate([numpy.zeros((1, 24), "f"), UNIT[:2], VECTORS[3:5]]))
    with pytest.raises(ValueError, match=r"\(number 3: .*faiss\.normalize_L2"):
        VectorIndex(own, "flat")
    plain = VectorIndex.build(VECTORS[:5])
    with pytest.raises(ValueError, match=r"\(number 3: .*faiss\.normalize_L2"):
        plain.index = own
    # FAISS itself says nothing, so that each use does
    plain.index.add(VECTORS[:1])
    with pytest.raises(ValueError, match=r"other lengths than 1 \(number 5"):
        plain.search(QUERIES, k=1)
    with pytest.raises(ValueError, match=r"other lengths than 1 \(number 5"):
        plain.save(tmp_path)
    with pytest.raises(ValueError, match=r"other lengths than 1 \(number 5"):
        plain.search(QUERIES, k=1)


def test_rows_and_places_are_the_indexes_own():
    rows = [IndexRow(str(place), None) for place in range(300)]
    index = VectorIndex(VectorIndex.build(VECTORS[:300]).index, "flat", rows=rows)
    rows[0], rows[1] = rows[1], rows[0]
    assert index.rows[0].text == "0"
    with pytest.raises(TypeError, match="does not support item assignment"):
        index.rows[0] = rows[0]
    for name in ("kind", "places"):
        with pytest.raises(AttributeError, match=f"property '{name}'"):
            setattr(index, name, None)
    pairs = VectorIndex(VectorIndex.build(VECTORS[:2]).index, "flat", rows=[("a", 1), ("b", 2)])
    assert pairs.rows == (IndexRow("a", 1), IndexRow("b", 2))
    copies = VectorIndex.build(numpy.concatenate([VECTORS[:30], VECTORS[:3]]), kind="hnsw")
    with pytest.raises(ValueError, match="read-only"):
        copies.places[0] = 1


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"ids": [1, None, 3]},
            r"Cannot use ids\[1\] = None: expected a valid string or a valid integer",
        ),
        ({"ids": [1.0, 2.0, 3.0]}, r"ids\[0\] = 1\.0"),
        ({"ids": ["a", float("nan"), "c"]}, r"ids\[1\] = nan"),
        ({"ids": [True, False, True]}, r"ids\[0\] = True"),
        ({"ids": [b"a", b"b", b"c"]}, r"ids\[0\] = b'a'"),
        ({"ids": [(1, 2), (3, 4), (5, 6)]}, r"ids\[0\] = \(1, 2\)"),
        ({"ids": numpy.array(["2020-01-01"] * 3, dtype="datetime64[D]")}, r"ids\[0\] = "),
        ({"ids": [1, 2]}, "Given 2 texts or ids for 3 vectors"),
        ({"texts": ["a", None, "c"]}, r"Cannot use texts\[1\] = None: expected a valid string"),
        ({"texts": ["a", 2, "c"]}, r"texts\[1\] = 2"),
        ({"texts": ["a", "b", "c"], "ids": [1, 2]}, "Given 2 texts or ids for 3"),
    ],
)
def test_ids_and_texts_are_checked_where_they_are_given(columns, message):
    def never():
        raise AssertionError("vectors were read")
        yield

    streamed = "vectors" not in message
    with pytest.raises((TypeError, ValueError), match=message):
        VectorIndex.build(never() if streamed else VECTORS[:3], **columns)


@pytest.mark.parametrize("kind", ["int8", "uint16", "int64", "uint64", "str", "object"])
def test_ids_of_any_whole_type(tmp_path, kind):
    VectorIndex.build(VECTORS[:3], ids=numpy.array([5, 6, 5]).astype(kind)).save(tmp_path)
    expected = ["5", "6", "5"] if kind == "str" else [5, 6, 5]
    assert [row.id for row in VectorIndex.load(tmp_path).rows] == expected


def test_the_pipe_says_its_encoder(make_nlp, tmp_path):
    sbert = find_sbert(make_nlp("own"))
    VectorIndex.build(sbert.encode(["the dog", "a cat"]), encoder=sbert).save(tmp_path / "index")
    assert VectorIndex.load(tmp_path / "index", encoder=sbert).encoder == identify(sbert)
    with pytest.raises(TypeError, match="Cannot identify the encoder of 'sbert'"):
        VectorIndex.load(tmp_path / "index", encoder="sbert")
