"""Scores of pairs: parity with sentence-transformers, cut pairs, activations, ranking, and what is refused."""

import json
import warnings

import numpy
import pytest
import spacy
import torch
from pipelines import MINILM
from sentence_transformers import CrossEncoder
from transformers import AutoTokenizer, BertTokenizer
from transformers.models.bert.modeling_bert import BertForSequenceClassification

from spacy_sbert.models.resolve import resolve
from spacy_sbert.models.sbert_config import read_settings
from spacy_sbert.reranker.cross_encoder import _PairTokenizer

WORDS = ["a", "man", "is", "eating", "food", "someone", "having", "meal", "the", "cat", "sat", "on", "mat", "dog"]
WORDS += ["fast"]
RNG = numpy.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(WORDS, size=n)) for n in RNG.integers(0, 40, size=80)]
PAIRS = list(zip(TEXTS[:40], TEXTS[40:], strict=True))
SHORT = [(first[:20], second[:20]) for first, second in PAIRS[:4]]
NEW_HEAD = pytest.mark.filterwarnings("ignore:.*has a new head")
CUT = pytest.mark.filterwarnings("ignore:.*longer than the cross-encoder's limit")


def reranker_of(nlp):
    return nlp.get_pipe("sbert_reranker")


@CUT
@pytest.mark.parametrize(("n_outputs", "kind"), [(1, "bert"), (3, "bert"), (1, "distilbert")])
def test_parity_with_sentence_transformers(make_reranker, make_classifier, n_outputs, kind):
    folder = make_classifier(n_outputs, kind)
    ours = reranker_of(make_reranker(folder)).score_pairs(iter(PAIRS))
    theirs = CrossEncoder(str(folder), device="cpu").predict(PAIRS, batch_size=7)
    assert ours.dtype == "float32" and ours.shape == theirs.shape == ((40,) if n_outputs == 1 else (40, 3))
    assert numpy.allclose(ours, theirs, atol=1e-5, rtol=0)
    assert numpy.ptp(ours) > 0.1


@pytest.mark.slow  # with the published weights; the tiny encoder below gets a new head in the same way
@NEW_HEAD
def test_a_plain_encoder_gets_a_new_head():
    """3 outputs on MiniLM: the encoder is the published one, and the same head is drawn each time."""
    settings = {"model": {"name": MINILM, "n_outputs": 3}}
    rerankers = [spacy.blank("en").add_pipe("sbert_reranker", config=settings) for _ in range(2)]
    pairs = [("A man is eating food.", "Someone is having a meal."), ("A dog.", "The stock market fell sharply.")]
    first, second = (reranker.score_pairs(pairs) for reranker in rerankers)
    assert first.shape == (2, 3) and numpy.array_equal(first, second)
    model = BertForSequenceClassification.from_pretrained(resolve(MINILM), num_labels=3).eval()
    model.classifier.load_state_dict(rerankers[0].model.shim._model.classifier.state_dict())
    inputs = AutoTokenizer.from_pretrained(resolve(MINILM))(*map(list, zip(*pairs, strict=True)), padding=True)
    with torch.no_grad():
        expected = model(**{key: torch.tensor(value) for key, value in inputs.items()}).logits
    assert numpy.allclose(first, expected.numpy(), atol=1e-5)


def test_a_new_head_says_that_it_is_new(make_reranker, make_classifier, tiny_bert):
    """Also one that another number of outputs makes of a trained one, whose encoder stays."""
    folder = make_classifier(3)
    plain, kept, other = (
        reranker_of(make_reranker(f, model={"n_outputs": n})) for f, n in ((tiny_bert, 0), (folder, 3), (folder, 2))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kept.score_pairs([("a", "b")]).shape == (1, 3)
    for reranker, shape in ((plain, (1,)), (other, (1, 2))):
        with pytest.warns(UserWarning, match="has a new head, drawn at random") as seen:
            assert reranker.score_pairs([("a", "b")]).shape == reranker.score_pairs([("a", "b")]).shape == shape
        assert len(seen) == 1
    ours, theirs = (r.model.shim._model.bert.state_dict() for r in (kept, other))
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.parametrize("kind", [AutoTokenizer, BertTokenizer])
def test_pairs_are_cut_as_transformers_cuts_them(tiny_bert, kind):
    tokenizer = kind.from_pretrained(tiny_bert)
    found = _PairTokenizer(tokenizer, read_settings(tiny_bert, "tiny"), 15).tokenize_pairs(PAIRS)
    fast = AutoTokenizer.from_pretrained(tiny_bert)
    expected = fast(*map(list, zip(*PAIRS, strict=True)), truncation="longest_first", max_length=15)
    assert found.ids.tolist() == [i for ids in expected["input_ids"] for i in ids]
    assert found.type_ids.tolist() == [i for types in expected["token_type_ids"] for i in types]
    whole = fast(*map(list, zip(*PAIRS, strict=True)))["input_ids"]
    assert found.n_cut.tolist() == [max(len(ids) - 15, 0) for ids in whole] and found.n_cut.any()


def test_one_warning_a_call_for_cut_pairs(make_reranker):
    reranker = reranker_of(make_reranker())
    long = " ".join(["cat"] * 30)
    for _ in range(2):
        with pytest.warns(UserWarning, match="2 of 3 pairs were longer than the cross-encoder's limit of 24") as seen:
            reranker.score_pairs([(long, "a"), ("a", "b"), (long, long)])
        assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reranker.score_pairs([("a", "b")])


def test_max_length(make_reranker):
    reranker = reranker_of(make_reranker(model={"max_length": 10}))
    with pytest.warns(UserWarning, match="limit of 10 wordpieces"):
        cut = reranker.score_pairs([("cat sat on the mat is", "dog ran fast")])
    assert cut == pytest.approx(reranker.score_pairs([("cat sat on the", "dog ran fast")]), abs=1e-6)
    for wrong in (4, 25):
        with pytest.raises(ValueError, match=f"max_length = {wrong} wordpieces: expected 8 to 24"):
            reranker_of(make_reranker(model={"max_length": wrong})).score_pairs([("a", "b")])


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_activations(make_reranker, make_classifier, n_outputs):
    folder = make_classifier(n_outputs)

    def scores(activation):
        found = reranker_of(make_reranker(folder, model={"activation": activation})).score_pairs(SHORT)
        return found.reshape(len(SHORT), n_outputs).astype("float64")

    logits, sigmoid = scores("identity"), scores("sigmoid")
    assert numpy.allclose(sigmoid, 1 / (1 + numpy.exp(-logits)), atol=1e-6)
    assert numpy.array_equal(scores("auto"), sigmoid if n_outputs == 1 else logits)
    if n_outputs == 3:
        exponentials = numpy.exp(logits)
        assert numpy.allclose(scores("softmax"), exponentials / exponentials.sum(axis=1, keepdims=True), atol=1e-6)


def set_in(file, **values):
    content = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps({**content, **values}))


@pytest.mark.parametrize("where", ["new", "old", "file"])
def test_auto_follows_the_folder(make_reranker, make_classifier, where):
    """As do the ms-marco cross-encoders, whose scores are logits; in the places that sentence-transformers writes."""
    folder, identity = make_classifier(1), "torch.nn.modules.linear.Identity"
    if where == "file":
        set_in(folder / "config_sentence_transformers.json", activation_fn=identity)
    elif where == "new":
        set_in(folder / "config.json", sentence_transformers={"activation_fn": identity})
    else:
        set_in(folder / "config.json", sbert_ce_default_activation_function=identity)
    nlp = make_reranker(folder)
    logits = reranker_of(make_reranker(folder, model={"activation": "identity"})).score_pairs(SHORT)
    assert numpy.array_equal(reranker_of(nlp).score_pairs(SHORT), logits)
    loaded = make_reranker("not there").from_bytes(nlp.to_bytes())
    assert numpy.array_equal(reranker_of(loaded).score_pairs(SHORT), logits)


def test_foreign_activations_are_not_run(make_reranker, make_classifier):
    folder = make_classifier(1)
    set_in(folder / "config.json", sentence_transformers={"activation_fn": "os.getcwd"})
    with pytest.raises(ValueError, match=r"names the activation 'os\.getcwd', which is not supported"):
        reranker_of(make_reranker(folder)).score_pairs([("a", "b")])
    own = {"model": {"activation": "sigmoid"}}
    assert reranker_of(make_reranker(folder, **own)).score_pairs([("a", "b")]).shape == (1,)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model": {"activation": "softmax"}}, "Softmax of a single output is always 1"),
        ({"model": {"n_outputs": 3}}, "gives 3 numbers a pair: expected one"),
        ({"model": {"@architectures": "spacy-sbert.SentenceEncoder.v1"}}, "is not a cross-encoder: expected the arch"),
    ],
)
@NEW_HEAD
def test_settings_that_are_refused(make_reranker, config, message):
    with pytest.raises(ValueError, match=message):
        reranker_of(make_reranker(**config)).rank("a", ["a", "b"])


def test_texts_of_a_quarter_of_a_megabyte_are_cut(make_reranker):
    """Of two long texts the tokenizer's own truncation would make as many windows as the product of theirs."""
    long = "cat sat " * 30_000
    with pytest.warns(UserWarning, match="2 of 2 pairs"):
        scores = reranker_of(make_reranker()).score_pairs([(long, long), (long[:200], long[:200])])
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)


def test_scores_that_are_not_finite(make_reranker):
    reranker = reranker_of(make_reranker())
    reranker.score_pairs([("a", "b")])
    with torch.no_grad():
        reranker.model.shim._model.classifier.weight.fill_(torch.nan)
    with pytest.raises(ValueError, match=r"gives to the pair \('a', 'b'\) is not finite"):
        reranker.score_pairs([("a", "b")])


@CUT
def test_scores_hardly_depend_on_batches_and_precision(make_reranker, make_classifier, monkeypatch):
    assert reranker_of(make_reranker(make_classifier(3))).score_pairs(iter([])).shape == (0, 3)
    reranker, pairs = reranker_of(make_reranker()), PAIRS[:12]
    near = reranker_of(make_reranker(model={"precision": "bfloat16"})).score_pairs(SHORT)
    exact, whole = reranker.score_pairs(SHORT), reranker.score_pairs(pairs)
    assert near.dtype == "float32" and numpy.allclose(exact, near, atol=0.05) and not numpy.array_equal(exact, near)
    monkeypatch.setattr("spacy_sbert.reranker.component.WINDOW", 7)
    parts = reranker_of(make_reranker(model={"max_batch_items": 30})).score_pairs(pair for pair in pairs)
    assert numpy.allclose(whole, parts, atol=1e-6)
