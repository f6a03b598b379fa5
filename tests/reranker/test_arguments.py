"""The arguments of `score_pairs` and `rank`, with those of sentence-transformers' CrossEncoder, and what is refused."""

import numpy
import pytest
import spacy
import torch
from sentence_transformers import CrossEncoder

from spacy_sbert import find_reranker
from spacy_sbert.reranker import Ranked
from spacy_sbert.reranker.cross_encoder import CrossEncoder as OurCrossEncoder

TEXTS = ["the cat sat on the mat", "a man is eating food", "dog", "someone is having a meal", "he ran fast"]
PAIRS = [("a man is eating", text) for text in TEXTS]


@pytest.fixture(scope="module")
def both(make_reranker, make_classifier):
    """Our pipe and their CrossEncoder of the same folder, of 1 and 3 outputs."""
    folders = {n: make_classifier(n) for n in (1, 3)}
    return {n: (find_reranker(make_reranker(f)), CrossEncoder(str(f), device="cpu")) for n, f in folders.items()}


@pytest.fixture(scope="module")
def reranker(both):
    return both[1][0]


@pytest.mark.parametrize(
    ("n_outputs", "given"),
    [
        (1, {"activation_fn": torch.tanh, "convert_to_tensor": True}),
        (1, {"activation_fn": None, "apply_softmax": False, "convert_to_numpy": True, "show_progress_bar": False}),
        (3, {"apply_softmax": True}),
        (3, {"activation_fn": torch.nn.Sigmoid(), "apply_softmax": True, "convert_to_tensor": True}),
    ],
)
def test_the_scores_of_predict(both, n_outputs, given):
    ours, theirs = both[n_outputs][0].score_pairs(PAIRS, **given), both[n_outputs][1].predict(PAIRS, **given)
    assert type(ours) is type(theirs) and ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert numpy.allclose(ours, theirs, atol=1e-5) and numpy.ptp(numpy.asarray(ours)) > 0.01


@pytest.mark.parametrize("given", [{"top_k": 99}, {"top_k": 2, "activation_fn": torch.nn.Identity()}, {}])
def test_the_results_of_rank(both, given, capsys):
    ours, theirs = (pipe.rank("a man is eating", TEXTS, return_documents=True, **given) for pipe in both[1])
    assert [(r.index, r.text) for r in ours] == [(r["corpus_id"], r["text"]) for r in theirs]
    assert [r.score for r in ours] == pytest.approx([float(r["score"]) for r in theirs], abs=1e-5)
    both[1][0].rank("a man is eating", TEXTS, show_progress_bar=True)
    assert "5/5" in capsys.readouterr().err


def test_rank_is_best_first_and_returns_what_it_was_given(reranker):
    texts = ["the cat sat", "a man is eating", "the cat sat", "dog"]
    scores = reranker.score_pairs([("a man", text) for text in texts], device="cpu")
    ranked = reranker.rank("a man", texts)
    assert [r.index for r in ranked] == sorted(range(4), key=lambda i: (-scores[i], i))
    assert ranked[0] == Ranked(texts[ranked[0].index], float(scores.max()), ranked[0].index)
    assert reranker.rank("a man", iter(texts), k=2, device="cpu") == ranked[:2]
    assert reranker.rank("a", []) == []
    doc = spacy.blank("en").make_doc("the cat sat . a man is eating . dog")
    spans = [doc[:4], doc[4:9], doc[9:]]
    ranked = reranker.rank(doc[4:6], spans)
    by_text = reranker.rank("a man", [span.text for span in spans])
    assert [(r.text.text, r.score) for r in ranked] == [(r.text, r.score) for r in by_text]
    assert all(r.text is spans[r.index] for r in ranked)


def test_no_more_pairs_than_a_batch_has_are_scored_together(reranker, monkeypatch):
    seen = []
    expected, predict = reranker.score_pairs(PAIRS), OurCrossEncoder.predict
    monkeypatch.setattr(OurCrossEncoder, "predict", lambda self, pairs: seen.append(len(pairs)) or predict(self, pairs))
    assert numpy.allclose(reranker.score_pairs(iter(PAIRS), batch_size=2), expected, atol=1e-6)
    found = reranker.rank("a man is eating", TEXTS, batch_size=4)
    assert [one.index for one in found] == (-expected).argsort().tolist()
    assert seen == [2, 2, 1, 4, 1]


def test_an_activation_is_only_that_of_its_call(reranker):
    before = reranker.score_pairs(PAIRS)
    assert not numpy.allclose(reranker.score_pairs(PAIRS, activation_fn=torch.nn.Identity()), before)
    assert numpy.array_equal(reranker.score_pairs(PAIRS), before)
    for wrong in (torch.mean, lambda logits: logits.tolist(), lambda logits: logits[:, 0]):
        with pytest.raises(ValueError, match=r"of logits of shape \(5, 1\): expected a tensor of the same shape"):
            reranker.score_pairs(PAIRS, activation_fn=wrong)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        *(
            (lambda one, pair=pair: one.score_pairs([("a", "b"), pair]), TypeError, "pair number 1, .* two texts")
            for pair in ("ab", ("a",), ("a", "b", "c"), ("a", None), None)
        ),
        (lambda one: one.score_pairs(PAIRS[0]), TypeError, "pair number 0, .*Put a single pair into a list"),
        (
            lambda one: one.predict(PAIRS),
            TypeError,
            r"predict of 'sbert_reranker' scores Docs\. .* score_pairs\(pairs\)",
        ),
        *((lambda one, k=k: one.rank("a", TEXTS, k), ValueError, "at least 1 and at most 5") for k in (0, 6)),
        (lambda one: one.rank("a", TEXTS, k=2, top_k=2), ValueError, "k = 2 and top_k = 2: expected one of them"),
        (lambda one: one.rank("a", "ab"), TypeError, "expected several texts"),
        (lambda one: one.rank("a", spacy.blank("en")("ab")), TypeError, "expected several texts"),
        (lambda one: one.score_pairs(PAIRS, apply_softmax=True), ValueError, "Softmax of a single output is always 1"),
        (lambda one: one.score_pairs(PAIRS, convert_to_numpy=False), ValueError, "Cannot use convert_to_numpy = "),
        (lambda one: one.rank("a", TEXTS, device="cuda"), ValueError, "Cannot use device = "),
    ],
)
def test_refused(reranker, use, error, message):
    with pytest.raises(error, match=message):
        use(reranker)
