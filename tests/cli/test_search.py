"""The commands `search`, `mine` and `cluster`, as a user types them."""

import pytest
import spacy
import srsly
from helpers.invoking import said

TEXTS = [
    "A man is eating food.",
    "The cat sat on the mat.",
    "He cannot go.",
    "The dog ran fast.",
    "the dog ran",
    "he",
]
SEARCH = ("search", "nlp", "corpus.txt")
OUT = ("--output", "found.jsonl", "--overwrite")


@pytest.fixture(autouse=True)
def folder(nlp_folder):
    (nlp_folder / "corpus.txt").write_text("\n".join(TEXTS), encoding="utf8")
    return nlp_folder


def rows(path="found.jsonl"):
    return list(srsly.read_jsonl(path))


def test_search_with_an_index():
    """Its kind cannot be another one once it is saved, and it holds its texts."""
    pytest.importorskip("faiss")
    search = (*SEARCH, "the dog ran", "he", "-k", 2, *OUT)
    said(*search)
    exact = rows()
    assert [row["query"] for row in exact] == ["the dog ran"] * 2 + ["he"] * 2
    assert (exact[0]["text"], exact[0]["row"]) == ("the dog ran", 4)
    assert exact[0]["score"] == pytest.approx(1)
    for what in ("Saved the index to index", "Searched the index in index"):
        output = said(*search, "--index", "index")
        assert what in output
        assert "1.0000 4 the dog ran" in output
        assert [row["row"] for row in rows()] == [row["row"] for row in exact]
    assert "1.0000 4 the dog ran" in said("search", "nlp", "index", "the dog ran", "-k", 1)
    for option in (("--kind", "flat"), ("--index", "other")):
        output = said("search", "nlp", "index", "he", *option, code=1)
        assert option[0] in output
        assert "hnsw" in output


@pytest.mark.parametrize(
    "options",
    [
        ["--threshold", 0.1, "--min-size", 1],
        ["-m", "hierarchical", "-n", 2],
        ["-m", "kmeans", "-n", 3],
    ],
)
def test_cluster(options):
    output = said("cluster", "nlp", "corpus.txt", "out.jsonl", *options)
    found = rows("out.jsonl")
    assert [row["text"] for row in found] == TEXTS
    assert [row["row"] for row in found] == list(range(6))
    n = len({row["cluster"] for row in found})
    assert f"{n} clusters of 6 texts" in output
    assert n == (options[-1] if "-n" in options else n)


@pytest.mark.parametrize(("threshold", "advice"), [(0.999999, True), (-1, False)])
def test_advice_where_most_texts_are_in_no_cluster(threshold, advice):
    output = said(
        "cluster",
        "nlp",
        "corpus.txt",
        "c.tsv",
        "--quiet",
        "--threshold",
        threshold,
        "--min-size",
        2,
    )
    assert ("lower --threshold" in output) is advice


def test_bad_input(folder, make_nlp):
    """Messages name the argument that is wrong: the pipeline, the vectors or the query, not the
    file of texts.
    """
    (folder / "latin.txt").write_bytes(b"one\nM\xfcnchen\n")
    (folder / "empty.txt").write_text("\n  \n")
    (folder / "empty.npy").write_bytes(b"")
    make_nlp(model={"pooling": "max"}).to_disk("other")
    spacy.blank("xx").to_disk("without")
    said(*SEARCH, "he", "--index", "index")
    for arguments, message in [
        (["search", "nlp", "latin.txt", "he"], "line 2: not UTF-8"),
        (["search", "other", "index", "he"], "another encoder"),
        (["search", "nlp", ".", "he"], "no index"),
        (["search", "all-MiniLM-L6-v3", "corpus.txt", "he"], "Did you mean '"),
        (["search", "blank", "corpus.txt", "he"], "blank"),
        ([*SEARCH, "--queries", "empty.txt"], "--queries"),
        ([*SEARCH, "--queries", "none.txt"], "none.txt"),
        ([*SEARCH, "he", "--vectors", "none.npy"], "none.npy"),
        ([*SEARCH, "he", "--vectors", "corpus.txt"], "corpus.txt"),
        (["search", "without", "corpus.txt", "he"], "no 'sbert' pipe"),
        (["index", "build", "empty.npy", "new"], "empty.npy is a file"),
    ]:
        assert message in said(*arguments, code=1)


def test_queries_from_a_file_or_standard_input(folder):
    """The pipeline is loaded once, for all of them."""
    asked = ["the dog ran", "he", "a cat"]
    (folder / "queries.txt").write_text("\ufeffhe\n\n  \na cat\n", encoding="utf8")
    options = ["-k", 2, *OUT, "--quiet"]
    said(*SEARCH, *asked, *options)
    expected = rows()
    said(*SEARCH, asked[0], "--queries", "queries.txt", *options)
    assert rows() == expected
    for mark in ("", "\ufeff"):
        said(*SEARCH, "--queries", "-", *options, piped=mark + "\n".join(asked) + "\n")
        assert rows() == expected
    lines = "he\u2028ran\na cat\x85\n".encode()
    (folder / "queries.txt").write_bytes(lines)
    said(*SEARCH, "--queries", "queries.txt", *options)
    expected = rows()
    assert {row["query"] for row in expected} == {"he\u2028ran", "a cat"}
    said(*SEARCH, "--queries", "-", *options, piped=lines)
    assert rows() == expected
    assert "Cannot read the --queries" in said(
        *SEARCH, "--queries", "-", *options, piped=b"\xff\n", code=1
    )


def test_output_of_search(folder):
    (folder / "long.txt").write_text("the cat " * 20 + "\n" + "the dog\n", encoding="utf8")
    output = said("search", "nlp", "long.txt", "the cat", "-k", 2)
    assert ("the cat " * 20)[:99] + "…" in output
    assert output.count("…") == 1
    search = (*SEARCH, "the dog ran", "-k", 1)
    assert "1.0000 4 the dog ran" in said(*search, *OUT)
    assert "1.0000" in said(*search, "--quiet")
    output = said(*search, *OUT, "--quiet")
    assert "1.0000" not in output
    assert "Wrote 1 rows" in output


def test_mine_all_pairs(folder):
    (folder / "many.txt").write_text("".join(f"text {number}\n" for number in range(2830)))
    # Too many
    assert "pairs" in said("mine", "nlp", "many.txt", "all.tsv", "-k", 0, code=1)
    output = said("mine", "nlp", "corpus.txt", "pairs.jsonl", "-k", 0)
    found = rows("pairs.jsonl")
    assert "Wrote 15 rows" in output
    assert "There may be more pairs" not in output
    assert {(row["first_row"], row["second_row"]) for row in found} == {
        (i, j) for j in range(6) for i in range(j)
    }
    assert all(
        (row["first"], row["second"]) == (TEXTS[row["first_row"]], TEXTS[row["second_row"]])
        for row in found
    )
    said("mine", "nlp", "corpus.txt", "some.jsonl", "-k", 0, "--min-score", repr(found[7]["score"]))
    assert rows("some.jsonl") == found[:8]


def test_search_by_words():
    """With vectors, too, if the method is hybrid; in a file, and in a saved index."""
    pytest.importorskip("faiss")
    pytest.importorskip("bm25s")
    said(*SEARCH, "Dog food?", "-k", 6, "--method", "bm25", *OUT)
    assert {row["text"] for row in rows()} == {TEXTS[0], TEXTS[3], TEXTS[4]}
    search = (*SEARCH, "Dog food?", "-k", 6, "--method", "hybrid")
    said(*search, *OUT)
    found = rows()
    assert len(found) == len(TEXTS)
    said(*search, "--index", "index", "--kind", "flat", *OUT)
    assert rows() == found
    said("search", "nlp", "index", "Dog food?", "-k", 6, "--method", "hybrid", *OUT)
    assert rows() == found


def test_method_is_checked_at_once():
    assert "'vectors', 'bm25' or 'hybrid'" in said(*SEARCH, "he", "--method", "words", code=1)
    output = said(*SEARCH, "he", "--method", "bm25", "--index", "index", code=1)
    assert "--index is of vectors" in output
