"""An index that grows: against a dict of vectors and one built at once, and what is refused."""

import copy
import hashlib
import json

import numpy
import pytest

from spacy_sbert.files.atomic import Lock
from spacy_sbert.search import EncoderIdentity, VectorIndex, nearest, recall
from spacy_sbert.search.index_rows import IndexRow
from spacy_sbert.similarity import unit_length

WIDTH = 16
RNG = numpy.random.default_rng(0)
CENTRES = RNG.standard_normal((40, WIDTH))
ENCODER = EncoderIdentity("model-a", WIDTH, "a" * 64)
OTHER = EncoderIdentity("model-b", WIDTH, "b" * 64)
KINDS = pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])


def drawn(rng, n):
    """Vectors near to some centres, as those of texts are, float32 (n, WIDTH)."""
    near = CENTRES[rng.integers(len(CENTRES), size=n)]
    return (near + 0.5 * rng.standard_normal((n, WIDTH))).astype("float32")


VECTORS = drawn(RNG, 600)
NEW = drawn(RNG, 100)
QUERIES = drawn(RNG, 60)


def columns_of(ids):
    return [{"document": f"d{row_id}", "start_char": 7, "tags": ["x", None]} for row_id in ids]


def built(kind, n=600, vectors=VECTORS):
    ids = list(range(n))
    return VectorIndex.build(
        vectors[:n],
        kind=kind,
        encoder=ENCODER,
        ids=ids,
        texts=[f"text {i}" for i in ids],
        columns=columns_of(ids),
    )


class Model:
    """What an index should hold: a vector and a text by id, in order."""

    def __init__(self, n):
        self.held = {i: (VECTORS[i], f"text {i}") for i in range(n)}

    def put(self, ids, vectors, texts):
        for row_id, vector, text in zip(ids, vectors, texts, strict=True):
            self.held.pop(row_id, None)
            self.held[row_id] = (vector, text)

    def vectors(self):
        return numpy.stack([vector for vector, _ in self.held.values()])

    def rows(self):
        ids = list(self.held)
        texts = [text for _, text in self.held.values()]
        return [
            IndexRow(text, row_id, columns=record)
            for text, row_id, record in zip(texts, ids, columns_of(ids), strict=True)
        ]


def change(rng, index, model, number):
    """Add, replace or delete some at random; sometimes equal vectors, zeros, or nearly all."""
    way = rng.choice(["add", "replace", "delete", "delete most"], p=[0.4, 0.3, 0.25, 0.05])
    held = numpy.array(list(model.held))
    if way.startswith("delete"):
        n = rng.integers(len(held) // 5 + 1)
        if way == "delete most":
            n = max(len(held) - 50, 0)
        ids = rng.choice(held, n, replace=False)
        index.delete(ids)
        for row_id in ids.tolist():
            del model.held[row_id]
        return
    n = int(rng.integers(1, 80))
    vectors = drawn(rng, n)
    vectors[rng.random(n) < 0.1] = model.vectors()[rng.integers(len(held))]
    vectors[rng.random(n) < 0.03] = 0
    if way == "add":
        ids = 1000 * (number + 1) + numpy.arange(n)
    else:
        ids = rng.choice(held, min(n, len(held)), replace=False)
    vectors = vectors[: len(ids)]
    texts = [f"{way} {number}" for _ in ids]
    columns = columns_of(ids.tolist())
    index.add(
        vectors, ids=ids, texts=texts, columns=columns, encoder=ENCODER, replace=way == "replace"
    )
    model.put(ids.tolist(), vectors, texts)


def check_against(index, model, kind):
    vectors = model.vectors()
    assert list(index.rows) == model.rows()
    assert len(index) == len(vectors)
    k = min(10, len(vectors))
    scores, found = index.search(QUERIES, k=k)
    assert all(len(set(own)) == k for own in found.tolist())
    assert (numpy.diff(scores, axis=1) <= 0).all()
    exact_scores, _ = nearest(QUERIES, vectors, k=k)
    if kind == "flat":
        once = VectorIndex.build(vectors)
        for ours, theirs in zip((scores, found), once.search(QUERIES, k=k), strict=True):
            assert numpy.array_equal(ours, theirs)
        assert numpy.allclose(scores, exact_scores, atol=1e-6)
    # The score is that of the vector of the row, and nearly all are found
    own_scores = numpy.einsum("qw,qkw->qk", unit_length(QUERIES), unit_length(vectors)[found])
    assert numpy.allclose(scores, own_scores, atol=1e-6)
    is_found = scores > exact_scores - 1e-6
    assert is_found.mean() > 0.9
    # All that are there, and nothing else
    every = index.search(QUERIES[:2], k=len(vectors))[1]
    assert (numpy.sort(every, axis=1) == numpy.arange(len(vectors))).all()


@KINDS
@pytest.mark.parametrize("seed", range(3))
def test_any_changes_against_a_dict(kind, seed, tmp_path):
    rng = numpy.random.default_rng(seed)
    index = built(kind)
    model = Model(600)
    for number in range(9):
        change(rng, index, model, number)
        if rng.random() < 0.3:
            index.save(tmp_path)
            index = VectorIndex.load(tmp_path, encoder=ENCODER)
        check_against(index, model, kind)


@KINDS
def test_recall_of_one_that_grew_beside_one_built_at_once(kind):
    rng = numpy.random.default_rng(9)
    vectors = drawn(rng, 3000)
    index = built(kind, 2000, vectors)
    index.add(
        vectors[2000:],
        ids=range(2000, 3000),
        texts=["new"] * 1000,
        columns=columns_of(range(2000, 3000)),
    )
    # Deletes less than makes a graph be built again
    index.delete(range(500, 1400))
    kept = numpy.r_[0:500, 1400:3000]
    assert index.index.ntotal == (3000 if kind == "hnsw" else 2100)
    exact = nearest(QUERIES, vectors[kept], k=10)[1]
    once = VectorIndex.build(vectors[kept], kind=kind)
    own = recall(index.search(QUERIES, k=10)[1], exact)
    assert own >= recall(once.search(QUERIES, k=10)[1], exact) - (0.05 if kind == "ivf" else 0.005)
    if kind == "hnsw":
        index.delete(range(400))
        assert index.index.ntotal == 1700 == len(index)
        exact = nearest(QUERIES, vectors[kept[400:]], k=10)[1]
        assert recall(index.search(QUERIES, k=10)[1], exact) > 0.98


def test_equal_vectors_share_a_place_in_a_graph():
    index = VectorIndex.build(VECTORS[:50], kind="hnsw", ids=range(50))
    again = numpy.concatenate([VECTORS[:3], NEW[:2], NEW[:1]])
    index.add(again, ids=range(100, 106))
    assert index.index.ntotal == 52
    assert index.places.tolist() == [*range(50), 0, 1, 2, 50, 51, 50]
    index.delete([0, 103])
    assert {index.rows[row].id for row in index.search(NEW[:1], k=1)[1][0]} == {105}
    assert {index.rows[row].id for row in index.search(VECTORS[:1], k=1)[1][0]} == {100}
    index.delete([100, 105])
    # A vector that was deleted gets its place again
    index.add(VECTORS[:1], ids=["new"])
    assert index.index.ntotal == 52
    assert index.rows[index.search(VECTORS[:1], k=1)[1][0, 0]].id == "new"


def state_of(index):
    found = [array.tolist() for array in index.search(QUERIES, k=20)]
    return len(index), index.rows, index.index.ntotal, found


GIVEN = {"texts": ["a", "b"], "ids": ["x", "y"]}
WRONG_ADD = {
    "an id that is there": ({"ids": ["x", 3]}, "has the id '3' already \\(1 of 2"),
    "an id twice": ({"ids": ["x", "x"]}, "id 'x' is given more than once"),
    "an id of None": ({"ids": ["x", None]}, r"Cannot use ids\[1\] = None"),
    "an id that is no id": ({"ids": ["x", 1.5]}, r"Cannot use ids\[1\] = 1\.5"),
    "too few ids": ({"ids": ["x"]}, "Given 1 texts or ids for 2 vectors"),
    "too few vectors": ({"vectors": NEW[:1]}, "Given 2 texts or ids for 1 vectors"),
    "too few columns": ({"columns": [{}]}, "Given 1 texts or ids for 2 vectors"),
    "no ids": ({"ids": None}, "have texts and ids, the new ones texts"),
    "no texts": ({"texts": None}, "have texts and ids, the new ones ids"),
    "a text that is none": ({"texts": ["a", 2]}, r"Cannot use texts\[1\] = 2"),
    "another width": ({"vectors": NEW[:2, :8]}, "16.*8|8.*16"),
    "not finite": ({"vectors": NEW[:2] * numpy.nan}, "finite|nan"),
    "no vectors": ({"vectors": NEW[:0], "texts": [], "ids": []}, "vectors"),
    "one vector": ({"vectors": NEW[0]}, "shape"),
    "another encoder": ({"encoder": OTHER}, "'model-a', than 'model-b'"),
    "a column that is no JSON": ({"columns": [{}, {"a": {1, 2}}]}, r"columns\[1\]"),
    "a column of NumPy": ({"columns": [{"a": numpy.int64(1)}, {}]}, r"columns\[0\]"),
    "a column without a number": ({"columns": [{"a": float("nan")}, {}]}, r"columns\[0\].*finite"),
    "columns of a table": ({"columns": {"a": [1, 2]}}, r"columns\[0\]"),
    "a similarity": ({"skip_duplicates": 1.5}, "skip_duplicates"),
    "both": ({"skip_duplicates": 0.9, "replace": True}, "Replace them first"),
}


@pytest.fixture(scope="module", params=["flat", "hnsw", "ivf"])
def unchanged(request):
    """An index, and what it holds."""
    index = built(request.param, 300)
    return index, state_of(index)


@pytest.mark.parametrize("wrong", WRONG_ADD)
def test_what_cannot_be_added_changes_nothing(unchanged, wrong):
    index, before = unchanged
    given, message = WRONG_ADD[wrong]
    arguments = {"vectors": NEW[:2], **GIVEN, **given}
    with pytest.raises((TypeError, ValueError), match=message):
        index.add(arguments.pop("vectors"), **arguments)
    assert state_of(index) == before


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, "nope"], "no row with the id 'nope' \\(1 of 2"),
        ([1, "1"], "id '1' is given more than once"),
        (["nope"], "no row with the id 'nope'"),
        ([5, 5], "id '5' is given more than once"),
        ([None], r"ids\[0\] = None"),
        (range(300), "Cannot delete all vectors"),
        ("a", "several"),
    ],
)
def test_what_cannot_be_deleted_changes_nothing(unchanged, ids, message):
    index, before = unchanged
    with pytest.raises((TypeError, ValueError), match=message):
        index.delete(ids)
    assert state_of(index) == before


def test_all_may_be_replaced_at_once_and_none_deleted():
    for kind in ("flat", "hnsw", "ivf"):
        index = built(kind, 100)
        index.delete([])
        index.add(NEW, ids=range(100), texts=["new"] * 100, replace=True)
        assert {row.text for row in index.rows} == {"new"}
        assert numpy.array_equal(index.search(NEW, k=1)[1][:, 0], numpy.arange(100))
        assert index.index.ntotal == 100


def test_ids_that_are_not_unique_are_searched_and_not_changed():
    index = VectorIndex.build(VECTORS[:3], ids=["a", "b", "a"])
    for act in (lambda: index.delete(["b"]), lambda: index.add(NEW[:1], ids=["c"])):
        with pytest.raises(ValueError, match="id 'a' is in the index more than once"):
            act()
    assert index.search(QUERIES, k=3)[1].shape == (60, 3)


def test_an_index_without_ids_or_rows():
    texts = VectorIndex.build(VECTORS[:3], texts=["a", "b", "c"])
    texts.add(NEW[:2], texts=["d", "e"])
    assert [row.text for row in texts.rows] == ["a", "b", "c", "d", "e"]
    with pytest.raises(ValueError, match="have texts, the new ones texts and ids"):
        texts.add(NEW[:1], texts=["f"], ids=[1])
    with pytest.raises(ValueError, match="no row with the id 1"):
        texts.delete([1])
    plain = VectorIndex.build(VECTORS[:3], kind="hnsw")
    plain.add(iter([NEW[:2], NEW[2:3]]))
    assert (len(plain), plain.rows) == (6, None)
    with pytest.raises(ValueError, match="neither texts nor ids, the new ones ids"):
        plain.add(NEW[:1], ids=[1])
    with pytest.raises(ValueError, match="no row with the id 1"):
        plain.delete([1])
    with pytest.raises(ValueError, match="neither texts nor ids, the new ones columns"):
        plain.add(NEW[3:4], columns=[{"page": 3}])
    pages = VectorIndex.build(VECTORS[:2], columns=[{"page": 1}, {"page": 2}])
    pages.add(NEW[:1], columns=[{"page": 3}])
    assert [row.columns["page"] for row in pages.rows] == [1, 2, 3]


def test_rows_keep_their_own_columns_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"page": [1, 2], "by": ["x", "y"]})
    with pytest.raises(ValueError, match=r"columns\[0\] = 'page'"):
        VectorIndex.build(VECTORS[:2], columns=frame)
    records = frame.to_dict("records")
    index = VectorIndex.build(VECTORS[:2], columns=records)
    records[0]["page"] = 7
    assert [row.columns for row in index.rows] == [{"page": 1, "by": "x"}, {"page": 2, "by": "y"}]


def test_blocks_are_made_when_all_else_is_checked():
    def never():
        raise AssertionError("vectors were read")
        yield

    index = built("flat", 10)
    with pytest.raises(ValueError, match="has the id '3' already"):
        index.add(never(), ids=[3], texts=["a"])


def test_what_faiss_changed_is_refused():
    index = built("ivf", 300)
    index.index.add(NEW[:1] / numpy.linalg.norm(NEW[0]))
    for act in (lambda: index.delete([1]), lambda: index.add(NEW[:2], **GIVEN)):
        with pytest.raises(ValueError, match="The FAISS index holds 301 vectors"):
            act()


@KINDS
def test_faiss_objects_that_are_kept_and_copies(kind):
    index = built(kind, 300)
    kept = index.index
    copied = copy.deepcopy(index)
    index.add(NEW[:2], **GIVEN)
    index.delete([0, 299])
    assert index.search(QUERIES, k=3)[1].shape == (60, 3)
    assert (len(index), len(copied)) == (300, 300)
    assert copied.rows[0].id == 0
    copied.delete([1])
    assert index.rows[0].id == 1
    if kind == "flat":
        kept.remove_ids(numpy.array([3]))
        with pytest.raises(ValueError, match="The FAISS index holds 299 vectors"):
            index.search(QUERIES, k=1)


def by_hand(stored, new, min_score):
    """The near-duplicates among new vectors: one after the other."""
    unit = [vector / max(numpy.linalg.norm(vector), 1e-12) for vector in (*stored, *new)]
    n = len(stored)
    kept, found = list(range(n)), {}
    for number in range(len(new)):
        scores = [unit[place] @ unit[n + number] for place in kept]
        if max(scores) >= min_score:
            found[number] = int(numpy.argmax(scores))
        else:
            kept.append(n + number)
    return found


@KINDS
@pytest.mark.parametrize("min_score", [0.5, 0.8, 0.95, 1])
def test_near_duplicates_are_left_out(kind, min_score):
    rng = numpy.random.default_rng(3)
    stored = drawn(rng, 300)
    new = drawn(rng, 200)
    new[::10] = stored[:20] * 3
    new[5::10] = new[0::10] + 0.01
    new[7] = new[8] = new[100]
    index = VectorIndex.build(stored, kind=kind, ids=range(300))
    found = index.add(new, ids=range(1000, 1200), skip_duplicates=min_score)
    expected = by_hand(stored, new, min_score - 1e-6)
    assert [one.number for one in found] == sorted(expected)
    same = [one.row == expected[one.number] for one in found]
    assert numpy.mean(same) >= (0.9 if kind != "flat" else 1)
    left = {one.number for one in found}
    added = [i for i in range(200) if i not in left]
    assert [row.id for row in index.rows] == [*range(300), *(1000 + i for i in added)]
    every = numpy.concatenate([stored, new[added]])
    for number, row, score in found:
        own = nearest(new[number : number + 1], every[row : row + 1], k=1)[0][0, 0]
        assert own == pytest.approx(score, abs=1e-5)
        assert own >= min_score - 1e-6
    assert len(index) == len(every)


def test_many_equal_texts_are_one():
    index = built("hnsw", 50)
    equal = numpy.repeat(NEW[:2], 800, axis=0)
    ids = range(1000, 2600)
    found = index.add(equal, ids=ids, texts=["a"] * 1600, skip_duplicates=1)
    assert len(found) == 1598
    assert {one.row for one in found} == {50, 51}
    assert len(index.add(equal[:1], ids=["x"], texts=["a"], skip_duplicates=1)) == 1
    assert index.add(NEW[5:7], ids=["x", "y"], texts=["a", "b"], skip_duplicates=1) == []


@KINDS
def test_saved_with_columns_and_deleted_vectors(kind, tmp_path):
    index = built(kind)
    index.delete(range(100))
    index.save(tmp_path)
    loaded = VectorIndex.load(tmp_path)
    assert loaded.rows == index.rows
    assert loaded.rows[0].columns == {"document": "d100", "start_char": 7, "tags": ["x", None]}
    for ours, theirs in zip(loaded.search(QUERIES, k=7), index.search(QUERIES, k=7), strict=True):
        assert numpy.array_equal(ours, theirs)
    assert json.loads((tmp_path / "index.json").read_text())["format"] == "spacy-sbert index 3"


@KINDS
def test_a_folder_of_the_version_before(kind, tmp_path):
    """Without columns and deleted vectors, as they were written."""
    vectors = numpy.concatenate([VECTORS[:50], VECTORS[:5]])
    texts = [f"text {i}" for i in range(55)]
    VectorIndex.build(vectors, kind=kind, ids=range(55), texts=texts).save(tmp_path)
    (path,) = tmp_path.glob("rows-*.jsonl")
    lines = [{"text": text, "id": i, "row": None} for i, text in enumerate(texts)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    manifest = json.loads((tmp_path / "index.json").read_text())
    manifest["format"] = "spacy-sbert index 2"
    manifest["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "index.json").write_text(json.dumps(manifest))
    index = VectorIndex.load(tmp_path)
    assert index.rows[54] == IndexRow("text 54", 54)
    assert set(index.search(VECTORS[:1], k=2)[1][0]) == {0, 50}
    index.delete([0])
    index.add(NEW[:1], ids=["new"], texts=["new"], columns=[{"page": 1}])
    index.save(tmp_path)
    assert VectorIndex.load(tmp_path).rows == index.rows


def test_an_index_that_was_saved_by_another_is_not_overwritten(tmp_path):
    built("flat", 10).save(tmp_path / "index")
    first, second = (VectorIndex.load(tmp_path / "index") for _ in range(2))
    first.delete([0])
    first.save(tmp_path / "index")
    second.delete([1])
    with pytest.raises(RuntimeError, match="Load it again"):
        second.save(tmp_path / "index")
    second.save(tmp_path / "other")
    first.delete([2])
    first.save(tmp_path / "index")
    rows = VectorIndex.load(tmp_path / "index").rows
    assert [row.id for row in rows] == [1, *range(3, 10)]
    lock = Lock(tmp_path / "index" / "lock")
    with pytest.raises(RuntimeError, match="Another process writes the same output"):
        first.save(tmp_path / "index")
    lock.release(remove=True)
    # A new one replaces what is there
    built("flat", 5).save(tmp_path / "index")
    assert len(VectorIndex.load(tmp_path / "index")) == 5
