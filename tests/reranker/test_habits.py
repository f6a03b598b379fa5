"""What users of sentence-transformers' CrossEncoder type: taken where it means the same, else our way is told."""

import numpy
import pytest
import torch
from sentence_transformers import CrossEncoder

from spacy_sbert import find_reranker

TEXTS = ["the cat sat on the mat", "a man is eating food", "dog", "someone is having a meal", "he ran fast"]
PAIRS = [("a man is eating", text) for text in TEXTS]


@pytest.fixture
def both(make_reranker, make_classifier):
    """Our pipe and their CrossEncoder of the same folder."""

    def make(n_outputs):
        folder = make_classifier(n_outputs)
        return find_reranker(make_reranker(folder)), CrossEncoder(str(folder), device="cpu")

    return make


@pytest.fixture
def reranker(make_reranker):
    return find_reranker(make_reranker())


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


def test_what_asks_for_what_is_done_anyway(both):
    """Defaults of sentence-transformers, and what its users write beside them."""
    reranker, _ = both(1)
    done = {"device": "cpu", "num_workers": 0, "pool": None, "convert_to_numpy": True, "convert_to_tensor": False}
    assert numpy.array_equal(reranker.score_pairs(PAIRS, **done), reranker.score_pairs(PAIRS))
    assert reranker.rank("a", TEXTS, apply_softmax=False, **done) == reranker.rank("a", TEXTS)


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"device": "cuda"}, r"spacy\.require_gpu\(\)"),
        ({"pool": {"processes": []}}, "n_process = 2"),
        ({"chunk_size": 10}, "window by window"),
        ({"prompt": "query: "}, "before the texts of the pairs"),
        ({"prompt_name": "query"}, "before the texts of the pairs"),
        ({"num_workers": 2}, "leave it out"),
    ],
)
def test_what_means_something_else(reranker, given, remedy):
    for call in (lambda: reranker.score_pairs(PAIRS, **given), lambda: reranker.rank("a", TEXTS, **given)):
        with pytest.raises(TypeError, match=f"(score_pairs|rank) does not take {next(iter(given))}: .*{remedy}"):
            call()


@pytest.mark.parametrize("given", [PAIRS, PAIRS[0], [""]])
def test_predict_is_that_of_spacy(reranker, given):
    for others in ({}, {"batch_size": 32, "show_progress_bar": True}):
        with pytest.raises(TypeError, match=r"predict of 'sbert_reranker' scores Docs .* call score_pairs\(pairs\)"):
            reranker.predict(given, **others)


SHAPE = r"of logits of shape \(5, 1\): expected a tensor of the same shape"
REFUSED = [
    (lambda one: one.score_pairs(PAIRS, activation_fn=torch.mean), ValueError, SHAPE),
    (lambda one: one.score_pairs(PAIRS, activation_fn=lambda logits: logits.tolist()), ValueError, SHAPE),
    (lambda one: one.score_pairs(PAIRS, activation_fn="sigmoid"), ValueError, "expected a function"),
    (lambda one: one.score_pairs(PAIRS, apply_softmax=True), ValueError, "Softmax of a single output is always 1"),
    (lambda one: one.score_pairs(PAIRS, convert_to_numpy=False), TypeError, "convert_to_tensor = True"),
    (lambda one: one.score_pairs(PAIRS[0]), TypeError, "pair number 0, 'a man is eating': .*single pair into a list"),
    (lambda one: one.score_pairs(PAIRS, colour="red"), TypeError, "unexpected keyword argument 'colour'"),
    (lambda one: one.rank("a", TEXTS, colour="red"), TypeError, "unexpected keyword argument 'colour'"),
    (lambda one: one.rank("a", TEXTS, top_k=0), ValueError, "top_k = 0: expected 1 or more"),
    (lambda one: one.rank("a", TEXTS, batch_size=0), ValueError, "batch_size = 0"),
    (lambda one: one.rank("a", TEXTS, return_documents=False), TypeError, "return_documents = False"),
    (lambda one: one.rank("a", TEXTS, convert_to_tensor=True), TypeError, "convert_to_tensor: .*is a float"),
    (lambda one: one.rank("a", TEXTS, apply_softmax=True), TypeError, "apply_softmax: .*always 1"),
    (lambda one: one.rank("a", TEXTS, k=2, top_k=2), TypeError, "top_k beside k"),
]


@pytest.mark.parametrize(("use", "error", "message"), REFUSED)
def test_refused(reranker, use, error, message):
    with pytest.raises(error, match=message):
        use(reranker)
