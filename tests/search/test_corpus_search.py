"""What the commands do with files of texts: parity with search among vectors, saved indexes, and
bad input.
"""

import numpy
import pytest
from helpers import pipelines

from spacy_sbert.search import (
    BM25,
    VectorIndex,
    communities,
    hierarchical_clusters,
    identify,
    kmeans_clusters,
    most_similar_pairs,
    nearest,
    reciprocal_rank_fusion,
    searchable,
)
from spacy_sbert.search import corpus_search as module
from spacy_sbert.search.corpus_search import cluster_texts, mine_texts, search_texts
from spacy_sbert.search.searchable import Searchable

TEXTS = [
    "A man is eating food.",
    "The cat sat on the mat.",
    "He cannot go.",
    "The dog ran fast.",
    "the dog ran",
    "he",
]


@pytest.fixture(scope="module")
def pipe(make_nlp):
    return make_nlp().get_pipe("sbert")


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    # Every other line is blank
    path.write_text("\n\n".join(TEXTS) + "\r\n", encoding="utf8")
    return path


@pytest.mark.parametrize("index", [None, "index"])
def test_search(pipe, corpus, index, tmp_path, monkeypatch):
    monkeypatch.setattr(searchable, "_WINDOW", 4)
    folder = None if index is None else tmp_path / index
    vectors = pipe.encode(TEXTS)
    scores, rows = nearest(pipe.encode(["dog", "a cat"]), vectors, k=3)
    # The second time with the index that is there
    for _ in range(2):
        found = search_texts(pipe, corpus, ["dog", "a cat"], k=3, index=folder, kind="flat")
        assert [[one.row for one in best] for best in found] == (2 * rows).tolist()
        assert numpy.allclose([[one.score for one in best] for best in found], scores, atol=1e-6)
        assert [one.text for one in found[0]] == [TEXTS[i] for i in rows[0]]
    assert len(search_texts(pipe, corpus, ["dog"], k=50, index=folder)[0]) == len(TEXTS)
    if folder is not None:
        # Nothing is encoded again
        monkeypatch.setattr(VectorIndex, "build", None)
        search_texts(pipe, corpus, ["dog"], index=folder)
        assert search_texts(pipe, folder, ["dog", "a cat"], k=3) == found


def test_an_index_of_other_texts_or_another_encoder(pipe, corpus, make_nlp, tmp_path):
    search_texts(pipe, corpus, ["dog"], index=tmp_path / "index")
    other = make_nlp(model={"pooling": "cls"}).get_pipe("sbert")
    for where in ({"corpus": corpus, "index": tmp_path / "index"}, {"corpus": tmp_path / "index"}):
        with pytest.raises(ValueError, match="was built with another encoder"):
            search_texts(other, queries=["dog"], **where)
    with pytest.raises(ValueError, match="is of the kind hnsw, not flat"):
        search_texts(pipe, corpus, ["dog"], index=tmp_path / "index", kind="flat")
    corpus.write_text("\n".join(TEXTS[1:]), encoding="utf8")
    with pytest.raises(ValueError, match=r"other texts than those of .*corpus\.txt"):
        search_texts(pipe, corpus, ["dog"], index=tmp_path / "index")


# Texts among blank lines, which `encode` gives rows, too
LINES = ["", TEXTS[0], " ", *TEXTS[1:4], "", *TEXTS[4:]]


@pytest.fixture
def blank(tmp_path):
    path = tmp_path / "blank.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


def texts_of(found):
    return [[one.text for one in best] for best in found]


@pytest.mark.parametrize("way", ["texts", "built", "built before", "index", "index without rows"])
def test_rows_are_those_of_the_file(pipe, corpus, blank, tmp_path, way):
    queries = ["a cat", "food"]
    index = tmp_path / "index"
    if way in ("built before", "index"):
        search_texts(pipe, blank, queries, index=index, kind="flat")
    elif way == "index without rows":
        VectorIndex.build(pipe.encode(TEXTS), encoder=identify(pipe), texts=TEXTS).save(index)
    where = {
        "texts": {"corpus": blank},
        "built": {"corpus": blank, "index": index, "kind": "flat"},
        "built before": {"corpus": blank, "index": index},
        "index": {"corpus": index},
        "index without rows": {"corpus": blank, "index": index},
    }
    found = search_texts(pipe, queries=queries, k=4, **where[way])
    assert texts_of(found) == texts_of(search_texts(pipe, corpus, queries, k=4))
    assert all(LINES[one.row] == one.text for best in found for one in best)
    rows = pipe.encode(LINES, normalize_embeddings=True)
    query = pipe.encode("a cat", normalize_embeddings=True)
    expected = [rows[one.row] @ query for one in found[0]]
    assert numpy.allclose([one.score for one in found[0]], expected, atol=1e-5)


def test_rows_of_pairs_and_clusters(pipe, corpus, blank):
    pairs = mine_texts(pipe, blank, k=5)
    assert [pair[3:] for pair in pairs] == [pair[3:] for pair in mine_texts(pipe, corpus, k=5)]
    assert all((LINES[i], LINES[j]) == (one, other) for _, i, j, one, other in pairs)
    clusters = cluster_texts(pipe, blank, method="kmeans", n_clusters=2)
    assert [(LINES[row], text) for _, row, text in clusters] == [(text, text) for text in TEXTS]


def test_mine(pipe, corpus):
    scores, pairs = most_similar_pairs(pipe.encode(TEXTS), k=4)
    found = mine_texts(pipe, corpus, k=4)
    assert [row[1:3] for row in found] == [tuple(pair) for pair in (2 * pairs).tolist()]
    assert [row[0] for row in found] == scores.tolist()
    assert found[0][3:] == tuple(TEXTS[i] for i in pairs[0])
    assert mine_texts(pipe, corpus, k=4, min_score=float(scores[1])) == found[:2]
    assert len(mine_texts(pipe, corpus, k=1000)) == 15


def test_cluster(pipe, corpus):
    vectors = pipe.encode(TEXTS)
    of_two = [
        label for label, _, _ in cluster_texts(pipe, corpus, method="hierarchical", n_clusters=2)
    ]
    assert of_two == hierarchical_clusters(vectors, n_clusters=2).tolist()
    by_kmeans = [
        label for label, _, _ in cluster_texts(pipe, corpus, method="kmeans", n_clusters=3, seed=1)
    ]
    assert by_kmeans == kmeans_clusters(vectors, n_clusters=3, seed=1).tolist()
    threshold = float(most_similar_pairs(vectors)[0][0]) - 1e-3
    found = cluster_texts(pipe, corpus, threshold=threshold, min_size=2)
    (group,) = communities(vectors, threshold=threshold, min_size=2)
    assert [row for label, row, _ in found if label == 0] == sorted((2 * group).tolist())
    assert [text for _, _, text in found] == TEXTS
    assert {label for label, _, _ in found} == {0, -1}


@pytest.mark.parametrize(
    ("act", "options", "message"),
    [
        pytest.param(search_texts, {"queries": ["a", " "]}, "it has no text", id="empty query"),
        pytest.param(
            search_texts,
            {"queries": ["a"], "index": "i", "kind": "lsh"},
            "kind = 'lsh'",
            id="unknown kind",
        ),
        pytest.param(mine_texts, {"min_score": 2}, "min_score = 2", id="cosine above 1"),
        pytest.param(cluster_texts, {"method": "dbscan"}, "method = 'dbscan'", id="unknown method"),
        pytest.param(
            cluster_texts, {"method": "kmeans"}, "how many clusters", id="k-means without k"
        ),
        pytest.param(
            cluster_texts,
            {"linkage": "single"},
            "takes no linkage: .* threshold, min_size",
            id="option of another method",
        ),
        pytest.param(
            cluster_texts,
            {"method": "hierarchical", "n_clusters": 2},
            "6 .* at most 5",
            id="too many texts",
        ),
    ],
)
def test_refused_options(pipe, corpus, tmp_path, monkeypatch, act, options, message):
    monkeypatch.setattr(module, "_MAX_HIERARCHICAL", 5)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        act(pipe, corpus, **options)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("one.txt", "a\n", "holds one text", id="one text"),
        pytest.param("none.txt", "\n", "holds no text", id="no text"),
        pytest.param(
            "a.csv", "id\n1\n", r"a\.csv, line 1: expected a column 'text', got id", id="no column"
        ),
    ],
)
def test_refused_files(pipe, tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        mine_texts(pipe, tmp_path / name)


# Vectors that are not those of the texts, in their order
OTHERS = {
    "reversed": lambda pipe: pipe.encode(TEXTS)[::-1],
    "shifted": lambda pipe: numpy.roll(pipe.encode(TEXTS), 1, axis=0),
    "sorted": lambda pipe: pipe.encode(sorted(TEXTS)),
    "two changed places": lambda pipe: pipe.encode(TEXTS)[[0, 1, 3, 2, 4, 5]],
    "of another encoder": lambda pipe: numpy.random.default_rng(0).normal(size=(len(TEXTS), 16)),
}


@pytest.mark.parametrize("others", OTHERS)
def test_vectors_of_other_texts_are_refused(pipe, corpus, others, tmp_path):
    given = {"vectors": OTHERS[others](pipe)}
    for act in (
        lambda: search_texts(pipe, corpus, ["dog"], **given),
        lambda: search_texts(pipe, corpus, ["dog"], index=tmp_path / "index", **given),
        lambda: mine_texts(pipe, corpus, **given),
        lambda: module.group_texts(pipe, corpus, min_score=0.5, **given),
        lambda: cluster_texts(pipe, corpus, method="kmeans", n_clusters=2, **given),
    ):
        with pytest.raises(ValueError, match=r"Vector \d is not of the text"):
            act()
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("n", [2, 8, 9, 100])
def test_the_order_of_many_texts(pipe, tmp_path, n):
    texts = [f"{letter} {other} cat" for letter in "abcdefghij" for other in "klmnopqrst"][:n]
    (tmp_path / "corpus.txt").write_text("\n".join(texts), encoding="utf8")
    vectors = pipe.encode(texts)
    assert mine_texts(pipe, tmp_path / "corpus.txt", k=1, vectors=vectors) == mine_texts(
        pipe, tmp_path / "corpus.txt", k=1
    )
    for scale in (3.0, numpy.float16(1)):
        mine_texts(pipe, tmp_path / "corpus.txt", vectors=vectors * scale)
    # Truncated
    mine_texts(pipe, tmp_path / "corpus.txt", vectors=vectors[:, :12])
    with pytest.raises(ValueError, match=r"Vector \d+ is not of the text"):
        mine_texts(pipe, tmp_path / "corpus.txt", vectors=numpy.roll(vectors, 1, axis=0))


def test_collection_is_opened_once_and_searched_often(pipe, corpus, make_nlp, tmp_path):
    expected = search_texts(pipe, corpus, ["dog"], k=3, index=tmp_path / "index", kind="flat")
    collection = Searchable.open(str(tmp_path / "index"))
    for _ in range(2):
        assert collection.search(pipe, ["dog"], k=3) == expected
    assert collection.columns == ["score", "row", "text"]
    other = make_nlp(model={"pooling": "cls"}).get_pipe("sbert")
    with pytest.raises(ValueError, match="was built with another encoder"):
        collection.search(other, ["dog"], k=3)


QUERIES = ["the cat ran", "food"]


def pairs(found):
    return [[(hit.row // 2, pytest.approx(hit.score, abs=1e-6)) for hit in hits] for hits in found]


@pytest.mark.parametrize("index", [None, "index"])
def test_search_by_words(pipe, corpus, index, tmp_path):
    """The first time it is built, then read from the folder; texts without a word are left out."""
    folder = None if index is None else tmp_path / index
    scores, rows = BM25.build(TEXTS, nlp=pipelines.blank()).search(QUERIES, k=6)
    expected = [
        [(row, score) for row, score in zip(*own, strict=True) if score > 0]
        for own in zip(rows.tolist(), scores.tolist(), strict=True)
    ]
    assert list(map(len, expected)) == [3, 1]
    search_texts(pipe, corpus, QUERIES, index=folder, kind="flat")
    for _ in range(2):
        found = search_texts(pipe, corpus, QUERIES, method="bm25", index=folder)
        assert pairs(found) == expected
        if folder is not None:
            assert (folder / "bm25.npz").exists()
            assert (
                pairs(Searchable.open(folder).search(pipe, QUERIES, k=9, method="bm25")) == expected
            )


@pytest.mark.parametrize("index", [None, "index"])
@pytest.mark.parametrize("k", [2, 50])
def test_search_by_words_and_vectors(pipe, corpus, index, k, tmp_path):
    folder = None if index is None else tmp_path / index
    vectors = nearest(pipe.encode(QUERIES), pipe.encode(TEXTS), k=6)
    scores, rows = reciprocal_rank_fusion(
        [vectors, BM25.build(TEXTS, nlp=pipelines.blank()).search(QUERIES, k=6)], k=6
    )
    expected = [list(zip(*own, strict=True))[:k] for own in zip(rows.tolist(), scores, strict=True)]
    found = search_texts(pipe, corpus, QUERIES, k=k, method="hybrid", index=folder, kind="flat")
    assert pairs(found) == expected
    if folder is not None:
        found = Searchable.open(folder).search(pipe, QUERIES, k=k, method="hybrid")
        assert pairs(found) == expected


def test_words_of_an_index_that_changed(pipe, corpus, tmp_path):
    folder = tmp_path / "index"
    search_texts(pipe, corpus, QUERIES, method="hybrid", index=folder, kind="flat")
    Searchable.open(folder).search(pipe, QUERIES, k=1, method="hybrid")
    texts = [*TEXTS[1:], "A cat has food."]
    VectorIndex.build(pipe.encode(texts), encoder=pipe, texts=texts).save(folder)
    (hits,) = Searchable.open(folder).search(pipe, ["food"], k=5, method="bm25")
    assert [hit.text for hit in hits] == ["A cat has food."]


def test_words_of_the_pipeline_of_the_pipe(make_nlp, corpus):
    nlp = make_nlp()
    lemmatizer = nlp.add_pipe("lemmatizer", config={"mode": "lookup"})
    lemmatizer.lookups.add_table("lemma_lookup", {"ran": "run", "runs": "run"})
    lemmatizer.initialize(lookups=lemmatizer.lookups)
    (hits,) = search_texts(nlp.get_pipe("sbert"), corpus, ["runs"], method="bm25")
    assert {hit.text for hit in hits} == {"The dog ran fast.", "the dog ran"}


def test_method_is_refused(pipe, corpus):
    with pytest.raises(ValueError, match="Cannot use method = 'words'"):
        search_texts(pipe, corpus, QUERIES, method="words")
