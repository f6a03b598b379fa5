"""The arguments of `score_pairs` and `rank`, with those of sentence-transformers' CrossEncoder."""

import numpy
import pytest
import torch
from sentence_transformers import CrossEncoder

from spacy_sbert import find_reranker
from spacy_sbert.reranker.cross_encoder import CrossEncoder as OurCrossEncoder

TEXTS = ["the cat sat on the mat", "a man is eating food", "dog", "someone is having a meal", "he ran fast"]
PAIRS = [("a man is eating", text) for text in TEXTS]


@pytest.fixture
def both(make_reranker, make_classifier):
    """Our pipe and their CrossEncoder of the same folder."""

    def make(n_outputs):
        folder = make_classifier(n_outputs)
        return find_reranker(make_reranker(folder)), CrossEncoder(str(folder), device="cpu")

    return make


@pytest.mark.parametrize(
    ("n_outputs", "given"),
    [
        (1, {"activation_fn": torch.nn.Identity()}),
        (1, {"activation_fn": torch.tanh, "convert_to_tensor": True}),
        (1, {"activation_fn": None, "apply_softmax": False, "convert_to_numpy": True, "show_progress_bar": False}),
        (3, {"activation_fn": torch.nn.Sigmoid()}),
        (3, {"apply_softmax": True}),
        (3, {"activation_fn": torch.nn.Sigmoid(), "apply_softmax": True, "convert_to_tensor": True}),
    ],
)
def test_the_scores_of_predict(both, n_outputs, given):
    ours, theirs = (call(PAIRS, **given) for one in [both(n_outputs)] for call in (one[0].score_pairs, one[1].predict))
    assert type(ours) is type(theirs) and ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert numpy.allclose(ours, theirs, atol=1e-5) and numpy.ptp(numpy.asarray(ours)) > 0.01


@pytest.mark.parametrize("given", [{"top_k": 3}, {"top_k": 99}, {"top_k": 2, "activation_fn": torch.nn.Identity()}, {}])
def test_the_results_of_rank(both, given, capsys):
    reranker, theirs = both(1)
    found = reranker.rank("a man is eating", TEXTS, return_documents=True, show_progress_bar=True, **given)
    expected = theirs.rank("a man is eating", TEXTS, return_documents=True, **given)
    assert [(r.index, r.text) for r in found] == [(r["corpus_id"], r["text"]) for r in expected]
    assert [r.score for r in found] == pytest.approx([float(r["score"]) for r in expected], abs=1e-5)
    assert "5/5" in capsys.readouterr().err


def test_no_more_pairs_than_a_batch_has_are_scored_together(both, monkeypatch):
    reranker, seen = both(1)[0], []
    expected, predict = reranker.score_pairs(PAIRS), OurCrossEncoder.predict

    def watched(self, pairs):
        seen.append(len(pairs))
        return predict(self, pairs)

    monkeypatch.setattr(OurCrossEncoder, "predict", watched)
    assert numpy.allclose(reranker.score_pairs(iter(PAIRS), batch_size=2), expected, atol=1e-6)
    found = reranker.rank("a man is eating", TEXTS, batch_size=4)
    assert [one.index for one in found] == (-expected).argsort().tolist()
    assert seen == [2, 2, 1, 4, 1]
    for call in (lambda: reranker.score_pairs(PAIRS, batch_size=0), lambda: reranker.rank("a", TEXTS, batch_size=0)):
        with pytest.raises(ValueError, match="batch_size = 0"):
            call()


def test_the_device_of_the_pipeline(both):
    reranker, _ = both(1)
    assert numpy.array_equal(reranker.score_pairs(PAIRS, device="cpu"), reranker.score_pairs(PAIRS))
    assert reranker.rank("a", TEXTS, device="cpu") == reranker.rank("a", TEXTS)


def test_an_activation_is_only_that_of_its_call(both):
    reranker, _ = both(1)
    before = reranker.score_pairs(PAIRS)
    assert not numpy.allclose(reranker.score_pairs(PAIRS, activation_fn=torch.nn.Identity()), before)
    assert numpy.array_equal(reranker.score_pairs(PAIRS), before)


@pytest.mark.parametrize("wrong", [torch.mean, lambda logits: logits.tolist(), lambda logits: logits[:, 0]])
def test_an_activation_that_makes_something_else(both, wrong):
    with pytest.raises(ValueError, match=r"of logits of shape \(5, 1\): expected a tensor of the same shape"):
        both(1)[0].score_pairs(PAIRS, activation_fn=wrong)


def test_softmax_of_one_score(both):
    with pytest.raises(ValueError, match=r"Softmax of a single output is always 1\. Leave apply_softmax out"):
        both(1)[0].score_pairs(PAIRS, apply_softmax=True)


@pytest.mark.parametrize(
    ("function", "given"),
    [
        *[
            (name, given)
            for name in ("score_pairs", "rank")
            for given in (
                {"device": "cuda"},
                {"activation_fn": "sigmoid"},
                {"batch_size": 0},
                {"batch_size": True},
                {"show_progress_bar": "no"},
                {"progress": 1},
            )
        ],
        ("score_pairs", {"convert_to_numpy": False}),
        ("score_pairs", {"convert_to_tensor": "yes"}),
        ("score_pairs", {"apply_softmax": 1}),
        ("rank", {"return_documents": False}),
        ("rank", {"top_k": 0}),
        ("rank", {"k": 1.5}),
        ("rank", {"k": True}),
    ],
    ids=str,
)
def test_wrong_values(both, function, given):
    reranker, _ = both(1)
    call = {
        "score_pairs": lambda: reranker.score_pairs(PAIRS, **given),
        "rank": lambda: reranker.rank("a", TEXTS, **given),
    }
    with pytest.raises(ValueError, match=f"Cannot use {next(iter(given))} = "):
        call[function]()


def test_two_counts(both):
    with pytest.raises(ValueError, match="k = 2 and top_k = 2: expected one of them"):
        both(1)[0].rank("a", TEXTS, k=2, top_k=2)


@pytest.mark.parametrize(
    "given", [{"pool": None}, {"chunk_size": 10}, {"prompt": "query: "}, {"colour": "red"}], ids=str
)
def test_unknown_arguments(both, given):
    reranker, _ = both(1)
    for call in (lambda: reranker.score_pairs(PAIRS, **given), lambda: reranker.rank("a", TEXTS, **given)):
        with pytest.raises(TypeError, match="got an unexpected keyword argument"):
            call()


@pytest.mark.parametrize("given", [PAIRS, PAIRS[0], [["a", "b"]], [""]])
def test_predict_is_that_of_spacy(both, given):
    reranker, _ = both(1)
    with pytest.raises(TypeError, match=r"predict of 'sbert_reranker' scores Docs .* call score_pairs\(pairs\)"):
        reranker.predict(given)


def test_a_single_pair(both):
    with pytest.raises(TypeError, match=r"pair number 0, 'a man is eating': .*Put a single pair into a list"):
        both(1)[0].score_pairs(PAIRS[0])
