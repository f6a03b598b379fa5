"""What the commands do with files of texts: parity with search among vectors, saved indexes, and
bad input.
"""

import numpy
import pytest

from spacy_sbert.search import (
    VectorIndex,
    communities,
    hierarchical_clusters,
    identify,
    kmeans_clusters,
    most_similar_pairs,
    nearest,
)
from spacy_sbert.search import corpus_search as module
from spacy_sbert.search.corpus_search import cluster_texts, mine_texts, search_texts

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
    monkeypatch.setattr(module, "_WINDOW", 4)
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
    with pytest.raises(ValueError, match=r"was built of other texts than those of .*corpus\.txt"):
        search_texts(pipe, corpus, ["dog"], index=tmp_path / "index")


def test_rows_are_those_of_the_file(pipe, corpus, tmp_path):
    """Also of one with blank lines, which `encode` gives rows, too."""
    lines = ["", TEXTS[0], " ", *TEXTS[1:4], "", *TEXTS[4:]]
    (tmp_path / "blank.txt").write_text("\n".join(lines) + "\n")
    blank = tmp_path / "blank.txt"
    index = tmp_path / "index"
    no_rows = tmp_path / "no_rows"
    vectors = pipe.encode(lines, normalize_embeddings=True)
    expected = search_texts(pipe, corpus, ["a cat", "food"], k=4)
    VectorIndex.build(pipe.encode(TEXTS), encoder=identify(pipe), texts=TEXTS).save(no_rows)
    for where in (
        {"corpus": blank},
        {"corpus": blank, "index": index, "kind": "flat"},
        {"corpus": blank, "index": index},
        {"corpus": index},
        {"corpus": blank, "index": no_rows},
    ):
        found = search_texts(pipe, queries=["a cat", "food"], k=4, **where)
        assert [[one.text for one in best] for best in found] == [
            [one.text for one in best] for best in expected
        ]
        assert all(lines[one.row] == one.text for best in found for one in best)
        best = found[0]
        wanted = pipe.encode(["a cat"], normalize_embeddings=True)[0]
        assert numpy.allclose(
            [vectors[one.row] @ wanted for one in best], [one.score for one in best], atol=1e-5
        )
    pairs = mine_texts(pipe, blank, k=5)
    assert [pair[3:] for pair in pairs] == [pair[3:] for pair in mine_texts(pipe, corpus, k=5)]
    assert all((lines[i], lines[j]) == (one, other) for _, i, j, one, other in pairs)
    clusters = cluster_texts(pipe, blank, method="kmeans", n_clusters=2)
    assert [(lines[row], text) for _, row, text in clusters] == [(text, text) for text in TEXTS]


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


def test_refused(pipe, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MAX_HIERARCHICAL", 5)
    for name, content in (("one.txt", "a\n"), ("none.txt", "\n"), ("a.csv", "id\n1\n")):
        (tmp_path / name).write_text(content)
    for work, message in [
        (lambda: search_texts(pipe, corpus, ["a", " "]), "which has no vector: it has no text"),
        (
            lambda: search_texts(pipe, corpus, ["a"], index=tmp_path / "i", kind="lsh"),
            "Cannot use kind = 'lsh'",
        ),
        (lambda: mine_texts(pipe, tmp_path / "one.txt"), "holds one text"),
        (lambda: search_texts(pipe, tmp_path / "none.txt", ["a"]), "holds no text"),
        (
            lambda: search_texts(pipe, tmp_path / "a.csv", ["a"]),
            r"a\.csv, line 1: expected a column 'text', got id",
        ),
        (
            lambda: mine_texts(pipe, corpus, min_score=2),
            "min_score = 2: expected less than or equal to 1",
        ),
        (
            lambda: cluster_texts(pipe, corpus, method="dbscan"),
            "Cannot use method = 'dbscan': expected 'communities'",
        ),
        (lambda: cluster_texts(pipe, corpus, method="kmeans"), "how many clusters"),
        (
            lambda: cluster_texts(pipe, corpus, linkage="single"),
            "'communities' takes no linkage: .* threshold, min_size",
        ),
        (
            lambda: cluster_texts(pipe, corpus, method="hierarchical", n_clusters=2),
            "Cannot cluster 6 .* at most 5",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            work()


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
        with pytest.raises(
            ValueError, match=r"Vector \d is not of the text '.*in the order of the texts"
        ):
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
