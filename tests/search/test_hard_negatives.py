"""Hard negatives: those of a brute-force miner and of sentence-transformers, and errors."""

import gzip
import os
from pathlib import Path

import numpy
import pytest
import spacy

from spacy_sbert.models.resolve import find_local
from spacy_sbert.reranker import find_reranker
from spacy_sbert.search import nearest
from spacy_sbert.search.hard_negatives import mine_hard_negatives

WORDS = ["a man", "the dog", "a cat", "food", "he", "the mat", "someone", "a meal"]
VERBS = ["is eating", "ran fast", "sat on the mat", "can go", "is having food", "sat"]
TEXTS = [f"{who} {verb}" for who in WORDS for verb in VERBS]
# The first anchor has two positives, one of them twice; the second is a positive of the third
PAIRS = [
    (TEXTS[0], TEXTS[7]),
    (TEXTS[9], TEXTS[13]),
    (TEXTS[20], TEXTS[9]),
    (TEXTS[0], TEXTS[30]),
    (TEXTS[0], f" {TEXTS[7]} "),
    (TEXTS[41], TEXTS[2]),
]
SETTINGS = [
    {},
    {"num_negatives": 1},
    {"range_min": 2, "range_max": 6},
    {"num_negatives": 5, "max_score": 0.9},
    {"num_negatives": 5, "min_score": 0.5, "max_score": 0.95},
    {"num_negatives": 4, "absolute_margin": 0.05},
    {"num_negatives": 4, "relative_margin": 0.1, "range_min": 1},
]
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
QUORA = Path(os.environ.get("SPACY_SBERT_DATA", ""), "quora", "paraphrase_train.tsv.gz")


@pytest.fixture(scope="module")
def pipe(make_nlp):
    return make_nlp().get_pipe("sbert")


@pytest.fixture(scope="module")
def reranker(tiny_bert):
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert), "n_outputs": 1}})
    nlp.initialize()
    return find_reranker(nlp)


def brute_force(score, corpus, settings):
    """The picks of each pair by their definition; score: of two texts."""
    texts = list(dict.fromkeys([*corpus, *(positive.strip() for _, positive in PAIRS)]))
    n = settings.get("num_negatives", 3)
    start = settings.get("range_min", 0)
    end = settings.get("range_max", len(texts))
    found = {}
    for anchor, positive in PAIRS:
        own = [second.strip() for first, second in PAIRS if first == anchor]
        lowest = min(score(anchor, text) for text in own)
        limit = min(
            settings.get("max_score", 1.0),
            lowest - settings.get("absolute_margin", -3.0),
            lowest - settings.get("relative_margin", -3.0) * abs(lowest),
        )
        others = [text for text in texts if text != anchor and text not in own]
        others.sort(key=lambda text, anchor=anchor: -score(anchor, text))
        least = settings.get("min_score", -1.0)
        left = [text for text in others if least <= score(anchor, text) <= limit]
        found[anchor, positive.strip()] = tuple(left[start:end][:n])
    return found


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_picks_are_those_of_the_definition(pipe, settings):
    scores, rows = nearest(pipe.encode(TEXTS), pipe.encode(TEXTS), k=len(TEXTS))
    cosines = {
        (TEXTS[i], TEXTS[j]): float(score)
        for i in range(len(TEXTS))
        for score, j in zip(scores[i], rows[i], strict=True)
    }
    # All ranks count: ours are the first ten times as many
    expected = brute_force(lambda *pair: cosines[pair], TEXTS, {"range_max": 60, **settings})
    mined = mine_hard_negatives(pipe, PAIRS, TEXTS, **{"range_max": 60, **settings})
    assert {(pair.anchor, pair.positive): pair.negatives for pair in mined} == expected
    assert len(mined) == len(expected) == 5
    for pair in mined:
        others = (pair.positive, *pair.negatives)
        given = [cosines[pair.anchor, text] for text in others]
        assert pair.scores == pytest.approx(given, abs=1e-6)


def test_pairs_of_one_anchor_are_together_and_share_their_negatives(pipe):
    first, second, *_ = mine_hard_negatives(pipe, PAIRS, TEXTS)
    assert (first.anchor, first.positive) == (TEXTS[0], TEXTS[7])
    assert (second.anchor, second.positive) == (TEXTS[0], TEXTS[30])
    assert first.negatives == second.negatives
    assert first.scores[1:] == second.scores[1:]


def test_without_a_corpus_negatives_are_other_positives(pipe):
    positives = {positive.strip() for _, positive in PAIRS}
    for pair in mine_hard_negatives(pipe, PAIRS, num_negatives=2):
        assert len(set(pair.negatives)) == 2
        assert set(pair.negatives) <= positives - {pair.anchor, pair.positive}


def test_texts_are_equal_but_for_white_space(pipe):
    spaced = [" ", *(f"  {text}\t" for text in TEXTS)]
    assert mine_hard_negatives(pipe, PAIRS, spaced) == mine_hard_negatives(pipe, PAIRS, TEXTS)


def test_fewer_than_were_asked_for(pipe):
    mined = mine_hard_negatives(pipe, PAIRS, TEXTS, absolute_margin=1.9)
    assert [pair.negatives for pair in mined] == [()] * 5
    assert [len(pair.scores) for pair in mined] == [1] * 5


@pytest.mark.parametrize("margin", [None, 0.0])
def test_a_cross_encoder_scores(pipe, reranker, margin):
    """All candidates that count, also without a margin."""
    pairs = [(anchor, text) for anchor, _ in PAIRS for text in TEXTS]
    scores = dict(zip(pairs, reranker.score_pairs(pairs).tolist(), strict=True))
    settings = {"range_max": 60, "num_negatives": 4}
    if margin is not None:
        settings["absolute_margin"] = margin
    expected = brute_force(lambda *pair: scores[pair], TEXTS, settings)
    mined = mine_hard_negatives(pipe, PAIRS, TEXTS, cross_encoder=reranker, **settings)
    for pair in mined:
        given = [scores[pair.anchor, text] for text in (pair.positive, *pair.negatives)]
        assert pair.scores == pytest.approx(given, abs=1e-6)
        wanted = [scores[pair.anchor, text] for text in expected[pair.anchor, pair.positive]]
        # Equal scores may be in another order
        assert given[1:] == pytest.approx(wanted, abs=1e-6)


def test_prompts_are_those_of_queries_and_documents(make_nlp, pipe):
    prompts = {"query": "he can", "document": "the cat"}
    with_prompts = make_nlp(model={"prompts": prompts}).get_pipe("sbert")
    mined = mine_hard_negatives(with_prompts, PAIRS, TEXTS)
    queries = pipe.encode([pair.anchor for pair in mined], prompt="he can")
    positives = pipe.encode([pair.positive for pair in mined], prompt="the cat")
    cosines = (queries * positives).sum(axis=1)
    cosines /= numpy.linalg.norm(queries, axis=1) * numpy.linalg.norm(positives, axis=1)
    assert [pair.scores[0] for pair in mined] == pytest.approx(cosines.tolist(), abs=1e-6)


REFUSED = {
    "There are no pairs": ([], TEXTS, {}),
    "pair \\('a', ' '\\) has a blank text": ([PAIRS[0], ("a", " ")], TEXTS, {}),
    "or one text twice": ([("he", " he ")], TEXTS, {}),
    "after range_min = 5 among 5 ranks. Lower them": (
        PAIRS,
        TEXTS,
        {"range_min": 5, "range_max": 5},
    ),
    "no num_negatives = 4 after range_min = 0 among 3 ranks": (
        PAIRS,
        TEXTS,
        {"num_negatives": 4, "range_max": 3},
    ),
    "no num_negatives = 3 after range_min = 0 among 1 ranks": (PAIRS[:1], [TEXTS[3]], {}),
    "num_negatives": (PAIRS, TEXTS, {"num_negatives": 0}),
    "range_min": (PAIRS, TEXTS, {"range_min": -1}),
    "relative_margin": (PAIRS, TEXTS, {"relative_margin": -0.5}),
    "absolute_margin": (PAIRS, TEXTS, {"absolute_margin": -0.1}),
    "max_score": (PAIRS, TEXTS, {"max_score": float("nan")}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(pipe, message, monkeypatch):
    """Before any text is encoded."""
    monkeypatch.setattr(type(pipe), "encode", None)
    pairs, corpus, settings = REFUSED[message]
    with pytest.raises(ValueError, match=message):
        mine_hard_negatives(pipe, pairs, corpus, **settings)


def quora(n):
    """The first n pairs whose anchor is no positive: sentence-transformers takes it as negative."""
    if not QUORA.is_file():
        pytest.skip("SPACY_SBERT_DATA has no Quora pairs")
    pairs = []
    with gzip.open(QUORA, "rt", encoding="utf8") as file:
        for line in file:
            anchor, positive = line.strip().split("\t")[:2]
            if anchor != positive:
                pairs.append((anchor, positive))
            if len(pairs) == n:
                break
    positives = {positive for _, positive in pairs}
    return [pair for pair in pairs if pair[0] not in positives]


@pytest.mark.parametrize("n", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_picks_of_sentence_transformers(n):
    datasets = pytest.importorskip("datasets")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import mine_hard_negatives as mine_theirs

    pairs = quora(n)
    folder = find_local(MODEL)
    if folder is None:
        pytest.skip(f"{MODEL} is not on this machine")
    theirs = SentenceTransformer(str(folder), device="cpu")
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": MODEL}})
    anchors, positives = zip(*pairs, strict=True)
    dataset = datasets.Dataset.from_dict({"anchor": anchors, "positive": positives})
    for settings in (
        {},
        {"range_min": 2, "range_max": 9, "num_negatives": 2},
        {"relative_margin": 0.05, "num_negatives": 5},
        {"absolute_margin": 0.1, "max_score": 0.8, "min_score": 0.2, "num_negatives": 4},
    ):
        rows = mine_theirs(
            dataset,
            theirs,
            output_format="n-tuple",
            output_scores=True,
            verbose=False,
            **settings,
        )
        count = settings.get("num_negatives", 3)
        names = ["anchor", "positive", *(f"negative_{i + 1}" for i in range(count))]
        mined = mine_hard_negatives(nlp.get_pipe("sbert"), pairs, **settings)
        complete = [pair for pair in mined if len(pair.negatives) == count]
        assert len(complete) == len(rows)
        for pair, row in zip(complete, rows, strict=True):
            assert pair.scores == pytest.approx(row["scores"], abs=1e-5)
            texts = [pair.anchor, pair.positive, *pair.negatives]
            expected = [row[name] for name in names]
            # Texts that differ in case alone have one vector
            assert [text.lower() for text in texts] == [text.lower() for text in expected]
