"""BM25 by another definition, words of pipelines, and what is saved."""

import math
import sys
from collections import Counter
from pathlib import Path

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language

from spacy_sbert.search import BM25
from spacy_sbert.search.bm25 import saved_bm25

TEXTS = [
    "A man is eating food.",
    "The cat sat on the mat, the warm mat.",
    "He plays the guitar.",
    "Two cats eat the food of a man.",
    "...",
    "He plays the guitar.",
]
QUERIES = ["Who plays the guitar?", "food, food for a cat", "zebra", "the", ""]
# The words of the queries that count: stop words only where there are no others
WORDS = [["plays", "guitar"], ["food", "food", "cat"], ["zebra"], ["the"], []]


def reference(texts: list[list[str]], query: list[str], k1: float, b: float) -> list[float]:
    """BM25 of each text, written as the formula."""
    n = len(texts)
    mean = sum(map(len, texts)) / n
    scores = []
    for text in texts:
        counts = Counter(text)
        score = 0.0
        for word in filter(counts.__contains__, query):
            n_word = sum(word in other for other in texts)
            idf = math.log(1 + (n - n_word + 0.5) / (n_word + 0.5))
            length = k1 * (1 - b + b * len(text) / mean)
            score += idf * counts[word] / (counts[word] + length)
        scores.append(score)
    return scores


def words(text: str) -> list[str]:
    return [word for word in text.lower().replace(",", " ").replace(".", " ").split() if word]


def lemma_pipeline(lang: str = "en") -> Language:
    """A pipeline with a lemmatizer that looks lemmas up."""
    nlp = spacy.blank(lang)
    lemmatizer = nlp.add_pipe("lemmatizer", config={"mode": "lookup"})
    lemmatizer.lookups.add_table("lemma_lookup", {"cats": "cat", "eating": "eat", "plays": "Play"})
    lemmatizer.initialize(lookups=lemmatizer.lookups)
    return nlp


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (0.0, 0.0)])
def test_scores_are_those_of_the_formula(k1: float, b: float) -> None:
    scores, rows = BM25.build(TEXTS, k1=k1, b=b).search(QUERIES, k=len(TEXTS))
    assert (scores.dtype, rows.dtype) == (numpy.float32, numpy.int64)
    for query, own_scores, own_rows in zip(WORDS, scores, rows, strict=True):
        expected = reference(list(map(words, TEXTS)), query, k1, b)
        assert_allclose(own_scores, numpy.array(expected)[own_rows], rtol=1e-5)


def test_order_is_by_score_then_row() -> None:
    bm25 = BM25.build(TEXTS)
    every_score, every_row = bm25.search(QUERIES, k=len(TEXTS))
    assert every_row[0].tolist()[:2] == [2, 5]
    for scores, rows in zip(every_score, every_row, strict=True):
        assert rows.tolist() == sorted(
            rows.tolist(), key=lambda row: (-scores[list(rows).index(row)], row)
        )
    for k in range(1, len(TEXTS)):
        scores, rows = bm25.search(QUERIES, k=k)
        assert_array_equal(rows, every_row[:, :k])
        assert_array_equal(scores, every_score[:, :k])


def test_query_without_a_known_word_scores_zero() -> None:
    scores, rows = BM25.build(TEXTS).search(["zebra", "", "?!"], k=3)
    assert not scores.any()
    assert rows.tolist() == [[0, 1, 2]] * 3


def test_stop_words_count_if_a_query_has_no_others() -> None:
    bm25 = BM25.build(["the who", "a band", "the band of the town"])
    scores, rows = bm25.search(["The Who", "the band"], k=3)
    assert rows[0, 0] == 0
    # Only "band" counts
    assert_array_equal(numpy.sort(scores[1])[0], 0)
    assert rows[1, -1] == 0


def test_lemmas_of_the_pipeline() -> None:
    bm25 = BM25.build(TEXTS, nlp=lemma_pipeline())
    scores, rows = bm25.search(["cat", "play eats"], k=2)
    assert set(rows[0]) == {1, 3}
    assert set(rows[1]) == {2, 5}
    assert (scores > 0).all()


def test_pipes_after_the_lemmatizer_do_not_run() -> None:
    @Language.component("never_run")
    def never_run(doc):  # type: ignore[no-untyped-def]
        raise AssertionError("this pipe is not needed")

    for nlp in (lemma_pipeline(), spacy.blank("en")):
        nlp.add_pipe("never_run")
        assert len(BM25.build(TEXTS, nlp=nlp)) == len(TEXTS)


def test_tokenizer_of_the_language() -> None:
    bm25 = BM25.build(["L'avion vole.", "La route"], nlp=spacy.blank("fr"))
    assert bm25.search(["avion"], k=1)[0][0, 0] > 0


def test_docs_and_spans_are_read_by_their_texts() -> None:
    nlp = spacy.blank("en")
    docs = list(nlp.pipe(TEXTS))
    given = [docs[0], docs[1][:], *TEXTS[2:]]
    found = BM25.build(given).search([nlp(query) for query in QUERIES], k=3)
    expected = BM25.build(TEXTS).search(QUERIES, k=3)
    assert_array_equal(found, expected)


@pytest.mark.parametrize("make_nlp", [None, lemma_pipeline], ids=["words", "lemmas"])
def test_saved_scores_are_loaded(make_nlp, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    nlp = make_nlp() if make_nlp else None
    bm25 = BM25.build(TEXTS, nlp=nlp)
    bm25.save(tmp_path / "bm25.npz")
    loaded = BM25.load(tmp_path / "bm25.npz", nlp=nlp)
    assert len(loaded) == len(bm25)
    for one, other in zip(loaded.search(QUERIES, k=4), bm25.search(QUERIES, k=4), strict=True):
        assert_array_equal(one, other)
    loaded.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "bm25.npz").read_bytes()


def test_pipeline_of_other_words_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bm25.npz"
    BM25.build(TEXTS, nlp=lemma_pipeline()).save(path)
    with pytest.raises(
        ValueError, match="has lemmas of 'en', and the pipeline makes words of 'en'"
    ):
        BM25.load(path)
    BM25.build(TEXTS).save(path)
    with pytest.raises(ValueError, match="has words of 'en', and the pipeline makes words of 'de'"):
        BM25.load(path, nlp=spacy.blank("de"))


def test_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bm25.npz"
    BM25.build(TEXTS).save(path)
    whole = path.read_bytes()
    for place in (100, len(whole) // 2):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        with pytest.raises(ValueError, match="holds no BM25"):
            BM25.load(path)
    path.write_bytes(whole[:-50])
    with pytest.raises(ValueError, match="holds no BM25"):
        BM25.load(path)


def test_saved_is_taken_again_until_the_texts_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bm25.npz"
    first = saved_bm25(path, TEXTS, None)
    other = saved_bm25(path, TEXTS[1:], None)
    assert (len(first), len(other)) == (6, 5)
    monkeypatch.setattr(BM25, "build", None)
    again = saved_bm25(path, TEXTS[1:], None)
    assert_array_equal(again.search(QUERIES, k=2), other.search(QUERIES, k=2))
    monkeypatch.undo()
    # A folder that cannot be written
    assert len(saved_bm25(path / "bm25.npz", TEXTS, None)) == 6


@pytest.mark.parametrize(
    ("texts", "match"),
    [([], "0 texts"), (["", " ", "?"], "3 texts"), (["a", "\ud800"], "lone surrogate")],
)
def test_texts_without_words_are_refused(texts: list[str], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        BM25.build(texts)


def test_bad_arguments_are_refused() -> None:
    bm25 = BM25.build(TEXTS)
    for k in (0, len(TEXTS) + 1, 1.5):
        with pytest.raises(ValueError, match=f"Cannot find {k} nearest of 6 texts"):
            bm25.search(["food"], k=k)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="several texts"):
        bm25.search("food", k=1)
    with pytest.raises(TypeError, match="text number 2"):
        BM25.build(["food", None])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="Cannot use b = 2"):
        BM25.build(TEXTS, b=2)
    with pytest.raises(ValueError, match="Cannot use k1 = -1"):
        BM25.build(TEXTS, k1=-1)


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ImportError, match=r"spacy-sbert\[search\]"):
        BM25.build(TEXTS)
