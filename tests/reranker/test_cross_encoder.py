"""Scores of pairs: parity with sentence-transformers, arguments, cut pairs, activations, and what
is refused.
"""

import numpy
import pandas
import pyarrow
import pytest
import spacy
import torch
from helpers.made_views import WORDS
from helpers.pipelines import MINILM, change_json, no_warnings, write_modules
from sentence_transformers import CrossEncoder
from transformers import AutoTokenizer, BertTokenizer
from transformers.models.bert.modeling_bert import BertForSequenceClassification

from spacy_sbert import find_reranker
from spacy_sbert.models.resolve import resolve
from spacy_sbert.models.sbert_config import read_settings
from spacy_sbert.reranker import Ranked
from spacy_sbert.reranker.cross_encoder import CrossEncoder as OurCrossEncoder
from spacy_sbert.reranker.pair_tokenizer import PairTokenizer

RNG = numpy.random.default_rng(0)
DRAWN = [" ".join(RNG.choice(WORDS, size=n)) for n in RNG.integers(0, 40, size=80)]
# Some are cut
PAIRS = list(zip(DRAWN[:40], DRAWN[40:], strict=True))
QUERY = "a man is eating"
TEXTS = [
    "the cat sat on the mat",
    "a man is eating food",
    "dog",
    "someone is having a meal",
    "he ran fast",
]
SHORT = [(QUERY, text) for text in TEXTS]
pytestmark = pytest.mark.filterwarnings("ignore:.*(has a new head|longer than the)")


@pytest.fixture(scope="module")
def both(make_reranker, make_classifier):
    """Our pipe and their CrossEncoder of the same folder."""
    folders = {
        "one": make_classifier(),
        "three": make_classifier(3),
        "distilbert": make_classifier(1, "distilbert"),
    }
    return {
        n: (find_reranker(make_reranker(f)), CrossEncoder(str(f), device="cpu"))
        for n, f in folders.items()
    }


@pytest.fixture(scope="module")
def reranker(both):
    return both["one"][0]


@pytest.mark.parametrize(
    ("classifier", "given"),
    [
        ("one", {}),
        ("three", {}),
        ("distilbert", {}),
        ("one", {"activation_fn": torch.tanh, "convert_to_tensor": True}),
        (
            "one",
            {
                "activation_fn": None,
                "apply_softmax": False,
                "convert_to_numpy": True,
                "show_progress_bar": False,
            },
        ),
        ("three", {"apply_softmax": True}),
        (
            "three",
            {"activation_fn": torch.nn.Sigmoid(), "apply_softmax": True, "convert_to_tensor": True},
        ),
    ],
)
def test_scores_are_those_of_sentence_transformers(both, classifier, given):
    ours, theirs = both[classifier]
    found = ours.score_pairs(iter(PAIRS), **given)
    expected = theirs.predict(PAIRS, batch_size=7, **given)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert numpy.allclose(found, expected, atol=1e-5, rtol=0)
    assert numpy.ptp(numpy.asarray(found)) > 0.1


@pytest.mark.parametrize("classifier", ["one", "three"])
@pytest.mark.parametrize(
    "options", [{}, {"convert_to_tensor": True}, {"activation_fn": torch.nn.Identity()}]
)
def test_pairs_are_given_as_to_predict(both, classifier, options):
    """A single pair has one score; arrays and tables have that of each row."""
    ours, theirs = both[classifier]
    for given in (
        SHORT[0],
        [*SHORT[0]],
        numpy.array(SHORT[0]),
        SHORT,
        [*map(list, SHORT)],
        numpy.array(SHORT),
    ):
        found = ours.score_pairs(given, **options)
        expected = theirs.predict(given, **options)
        assert numpy.shape(found) == numpy.shape(expected)
        assert found.dtype == expected.dtype
        assert numpy.allclose(found, expected, atol=1e-5, rtol=0)
    found = ours.score_pairs(SHORT, **options)
    frame = pandas.DataFrame(SHORT, columns=["query", "passage"], index=[3, 1, 4, 1, 5])
    tables = [
        frame,
        pyarrow.Table.from_pandas(frame, preserve_index=False),
        frame.to_records(index=False),
    ]
    for given in (
        *tables,
        tuple(SHORT),
        iter(SHORT),
        frame.to_numpy(),
        numpy.array(SHORT, dtype=object),
    ):
        assert numpy.array_equal(ours.score_pairs(given, **options), found)
    for empty in ([], (), numpy.empty((0, 2), dtype=object), frame.iloc[:0], iter([])):
        assert ours.score_pairs(empty, **options).shape == found[:0].shape
    doc = spacy.blank("xx")("a man is eating")
    assert numpy.allclose(
        ours.score_pairs((doc, doc[:2]), **options),
        ours.score_pairs([(doc, doc[:2])], **options)[0],
    )


@pytest.mark.parametrize(
    "given", [{"top_k": 99}, {"top_k": 2, "activation_fn": torch.nn.Identity()}, {}]
)
def test_ranks_are_those_of_sentence_transformers(both, given):
    ours, theirs = (pipe.rank(QUERY, TEXTS, return_documents=True, **given) for pipe in both["one"])
    assert [(r.index, r.text) for r in ours] == [(r["corpus_id"], r["text"]) for r in theirs]
    assert [r.score for r in ours] == pytest.approx([float(r["score"]) for r in theirs], abs=1e-5)


def test_rank_is_best_first_and_returns_what_it_was_given(reranker):
    texts = ["the cat sat", "a man is eating", "the cat sat", "dog"]
    scores = reranker.score_pairs([("a man", text) for text in texts], device="cpu")
    ranked = reranker.rank("a man", texts)
    assert [r.index for r in ranked] == sorted(range(4), key=lambda i: (-scores[i], i))
    assert ranked[0] == Ranked(texts[ranked[0].index], float(scores.max()), ranked[0].index)
    assert reranker.rank("a man", iter(texts), k=2, device="cpu") == ranked[:2]
    assert reranker.rank("a", []) == []
    doc = spacy.blank("xx").make_doc("the cat sat . a man is eating . dog")
    spans = [doc[:4], doc[4:9], doc[9:]]
    ranked = reranker.rank(doc[4:6], spans)
    by_text = reranker.rank("a man", [span.text for span in spans])
    assert [(r.text.text, r.score) for r in ranked] == [(r.text, r.score) for r in by_text]
    assert all(r.text is spans[r.index] for r in ranked)


def test_no_more_pairs_than_a_batch_has_are_scored_together(reranker, monkeypatch):
    seen = []
    expected = reranker.score_pairs(SHORT)
    predict = OurCrossEncoder.predict
    monkeypatch.setattr(
        OurCrossEncoder,
        "predict",
        lambda self, pairs: seen.append(len(pairs)) or predict(self, pairs),
    )
    assert numpy.allclose(reranker.score_pairs(iter(SHORT), batch_size=2), expected, atol=1e-6)
    found = reranker.rank(QUERY, TEXTS, batch_size=4)
    assert [one.index for one in found] == (-expected).argsort().tolist()
    assert seen == [2, 2, 1, 4, 1]


def test_an_activation_is_only_that_of_its_call(reranker):
    before = reranker.score_pairs(SHORT)
    assert not numpy.allclose(
        reranker.score_pairs(SHORT, activation_fn=torch.nn.Identity()), before
    )
    assert numpy.array_equal(reranker.score_pairs(SHORT), before)
    for wrong in (torch.mean, lambda logits: logits.tolist(), lambda logits: logits[:, 0]):
        with pytest.raises(ValueError, match=r"logits of shape \(5, 1\)"):
            reranker.score_pairs(SHORT, activation_fn=wrong)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        *(
            (
                lambda one, pair=pair: one.score_pairs([("a", "b"), pair]),
                TypeError,
                "pair number 1, .* two texts",
            )
            for pair in ("ab", ("a",), ("a", "b", "c"), ("a", None), None)
        ),
        (lambda one: one.score_pairs(["a", "b", "c"]), TypeError, "pair number 0, 'a'"),
        (lambda one: one.score_pairs(numpy.array("a")), TypeError, "Cannot score array"),
        (
            lambda one: one.score_pairs(numpy.array([["a", "b", "c"]])),
            TypeError,
            "pair number 0, .* two texts",
        ),
        (
            lambda one: one.score_pairs(pandas.DataFrame({"a": ["b"]})),
            TypeError,
            "a table of 1 columns",
        ),
        (
            lambda one: one.score_pairs(pandas.DataFrame({"a": ["b"], "c": [None]})),
            TypeError,
            "pair number 0, ",
        ),
        (
            lambda one: one.score_pairs(("a", "b", "c")),
            TypeError,
            "pair number 0, .*expected two texts",
        ),
        *(
            (use, TypeError, r"The pipe 'sbert_reranker' takes Docs, not .*score_pairs\(pairs\)")
            for given in ("a text", None, 3, SHORT)
            for use in (
                lambda one, given=given: one(given),
                lambda one, given=given: one.predict([given]),
                lambda one, given=given: list(one.pipe([given])),
            )
        ),
        *(
            (lambda one, k=k: one.rank("a", TEXTS, k), ValueError, "at least 1 and at most 5")
            for k in (0, 6)
        ),
        (
            lambda one: one.rank("a", TEXTS, k=2, top_k=2),
            ValueError,
            "k = 2 and top_k = 2: expected one of them",
        ),
        (lambda one: one.rank("a", "ab"), TypeError, "expected several texts"),
        (lambda one: one.rank("a", spacy.blank("xx")("ab")), TypeError, "expected several texts"),
        (
            lambda one: one.score_pairs(SHORT, apply_softmax=True),
            ValueError,
            "Softmax of a single output is always 1",
        ),
        (
            lambda one: one.score_pairs(SHORT, convert_to_numpy=False),
            ValueError,
            "Cannot use convert_to_numpy = ",
        ),
        (lambda one: one.rank("a", TEXTS, device="cuda"), ValueError, "Cannot use device = "),
    ],
)
def test_arguments_that_are_refused(reranker, use, error, message):
    with pytest.raises(error, match=message):
        use(reranker)


# With the published weights; the tiny encoder below gets a new head in the same way
@pytest.mark.slow
def test_a_plain_encoder_gets_a_new_head():
    """3 outputs on MiniLM: the encoder is the published one, and the same head is drawn each
    time.
    """
    settings = {"model": {"name": MINILM, "n_outputs": 3}}
    rerankers = [spacy.blank("xx").add_pipe("sbert_reranker", config=settings) for _ in range(2)]
    pairs = [
        ("A man is eating food.", "Someone is having a meal."),
        ("A dog.", "The stock market fell sharply."),
    ]
    first, second = (reranker.score_pairs(pairs) for reranker in rerankers)
    assert first.shape == (2, 3)
    assert numpy.array_equal(first, second)
    model = BertForSequenceClassification.from_pretrained(resolve(MINILM), num_labels=3).eval()
    model.classifier.load_state_dict(rerankers[0].model.shim._model.classifier.state_dict())
    inputs = AutoTokenizer.from_pretrained(resolve(MINILM))(
        *map(list, zip(*pairs, strict=True)), padding=True
    )
    with torch.no_grad():
        expected = model(**{key: torch.tensor(value) for key, value in inputs.items()}).logits
    assert numpy.allclose(first, expected.numpy(), atol=1e-5)


def test_a_new_head_says_that_it_is_new(make_reranker, make_classifier, tiny_bert):
    """Also one that another number of outputs makes of a trained one, whose encoder stays."""
    folder = make_classifier(3)
    plain, kept, other = (
        find_reranker(make_reranker(f, model={"n_outputs": n}))
        for f, n in ((tiny_bert, 0), (folder, 3), (folder, 2))
    )
    with no_warnings():
        assert kept.score_pairs([("a", "b")]).shape == (1, 3)
    for reranker, shape in ((plain, (1,)), (other, (1, 2))):
        with pytest.warns(UserWarning, match="new head") as seen:
            assert (
                reranker.score_pairs([("a", "b")]).shape
                == reranker.score_pairs([("a", "b")]).shape
                == shape
            )
        assert len(seen) == 1
    ours, theirs = (r.model.shim._model.bert.state_dict() for r in (kept, other))
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.parametrize("kind", [AutoTokenizer, BertTokenizer])
def test_pairs_are_cut_as_transformers_cuts_them(tiny_bert, kind):
    tokenizer = kind.from_pretrained(tiny_bert)
    found = PairTokenizer(tokenizer, read_settings(tiny_bert, "tiny"), 15).tokenize_pairs(PAIRS)
    fast = AutoTokenizer.from_pretrained(tiny_bert)
    expected = fast(*map(list, zip(*PAIRS, strict=True)), truncation="longest_first", max_length=15)
    assert found.ids.tolist() == [i for ids in expected["input_ids"] for i in ids]
    assert found.type_ids.tolist() == [i for types in expected["token_type_ids"] for i in types]
    whole = fast(*map(list, zip(*PAIRS, strict=True)))["input_ids"]
    assert found.n_cut.tolist() == [max(len(ids) - 15, 0) for ids in whole]
    assert found.n_cut.any()


def test_one_warning_a_call_for_cut_pairs(reranker):
    long = " ".join(["cat"] * 30)
    for _ in range(2):
        with pytest.warns(UserWarning, match="2 of 3 pairs .* limit of 24") as seen:
            reranker.score_pairs([(long, "a"), ("a", "b"), (long, long)])
        assert len(seen) == 1
        assert seen[0].filename == __file__
    with no_warnings():
        reranker.score_pairs([("a", "b")])


def test_texts_of_a_quarter_of_a_megabyte_are_cut(reranker):
    """Of two long texts the tokenizer's own truncation would make as many windows as the product of
    theirs.
    """
    long = "cat sat " * 30_000
    with pytest.warns(UserWarning, match="2 of 2 pairs"):
        scores = reranker.score_pairs([(long, long), (long[:200], long[:200])])
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)


def test_max_length(make_reranker):
    reranker = find_reranker(make_reranker(model={"max_length": 10}))
    with pytest.warns(UserWarning, match="limit of 10 wordpieces"):
        cut = reranker.score_pairs([("cat sat on the mat is", "dog ran fast")])
    assert cut == pytest.approx(
        reranker.score_pairs([("cat sat on the", "dog ran fast")]), abs=1e-6
    )
    for wrong in (4, 25):
        with pytest.raises(ValueError, match=f"max_length = {wrong} wordpieces: expected 8 to 24"):
            find_reranker(make_reranker(model={"max_length": wrong})).score_pairs([("a", "b")])


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_activations(make_reranker, make_classifier, n_outputs):
    folder = make_classifier(n_outputs)

    def scores(activation):
        found = find_reranker(make_reranker(folder, model={"activation": activation})).score_pairs(
            SHORT
        )
        return found.reshape(len(SHORT), n_outputs).astype("float64")

    logits = scores("identity")
    sigmoid = scores("sigmoid")
    assert numpy.allclose(sigmoid, 1 / (1 + numpy.exp(-logits)), atol=1e-6)
    assert numpy.array_equal(scores("auto"), sigmoid if n_outputs == 1 else logits)
    if n_outputs == 3:
        exponentials = numpy.exp(logits)
        assert numpy.allclose(
            scores("softmax"), exponentials / exponentials.sum(axis=1, keepdims=True), atol=1e-6
        )


IDENTITY = "torch.nn.modules.linear.Identity"


@pytest.mark.parametrize(
    ("file", "values"),
    [
        (
            "config_sentence_transformers.json",
            {"activation_fn": IDENTITY, "model_type": "CrossEncoder"},
        ),
        ("config.json", {"sentence_transformers": {"activation_fn": IDENTITY}}),
        ("config.json", {"sbert_ce_default_activation_function": IDENTITY}),
    ],
)
def test_auto_follows_the_folder(make_reranker, make_classifier, file, values):
    """As do the ms-marco cross-encoders, whose scores are logits; in the places that
    sentence-transformers writes.
    """
    folder = make_classifier(1)
    write_modules(folder, ("Transformer", ""))
    change_json(folder / file, **values)
    nlp = make_reranker(folder)
    logits = find_reranker(make_reranker(folder, model={"activation": "identity"})).score_pairs(
        SHORT
    )
    assert numpy.array_equal(find_reranker(nlp).score_pairs(SHORT), logits)
    loaded = make_reranker("not there").from_bytes(nlp.to_bytes())
    assert numpy.array_equal(find_reranker(loaded).score_pairs(SHORT), logits)


def test_prompts(make_reranker, make_classifier):
    """Before the first text of each pair, as CrossEncoder does."""
    folder = make_classifier(1)
    write_modules(folder, ("Transformer", ""))
    prompts = {"query": "the dog: ", "none": ""}
    change_json(folder / "sentence_bert_config.json", transformer_task="sequence-classification")
    file = folder / "config_sentence_transformers.json"
    change_json(file, model_type="CrossEncoder", prompts=prompts, default_prompt_name="query")
    nlp = make_reranker(folder)
    reranker = find_reranker(nlp)
    theirs = CrossEncoder(str(folder), device="cpu")
    for options in ({}, {"prompt_name": "none"}, {"prompt": "he "}):
        given = reranker.score_pairs(SHORT, **options)
        assert numpy.allclose(
            given, theirs.predict(SHORT, show_progress_bar=False, **options), atol=1e-6
        )
    written = [("the dog: " + first, second) for first, second in SHORT]
    assert numpy.allclose(
        reranker.score_pairs(SHORT), reranker.score_pairs(written, prompt=""), atol=1e-6
    )
    again = find_reranker(make_reranker("not there").from_bytes(nlp.to_bytes()))
    assert numpy.array_equal(again.score_pairs(SHORT), reranker.score_pairs(SHORT))
    first, second = SHORT[0]
    assert (
        reranker.rank(first, [second], prompt="he ")[0].score
        == reranker.score_pairs([SHORT[0]], prompt="he ")[0]
    )
    with pytest.raises(
        ValueError,
        match=r"prompt_name = 'other': .*'query', 'none'",
    ):
        reranker.score_pairs(SHORT, prompt_name="other")
    with pytest.raises(ValueError, match="Got both"):
        reranker.score_pairs(SHORT, prompt_name="query", prompt="x")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("LogitScore", "LogitScore, which is unknown here"),
        ("Dense", "modules Transformer, Dense"),
    ],
)
def test_modules_of_a_cross_encoder(make_reranker, make_classifier, kind, expected):
    folder = make_classifier(1)
    change_json(folder / "config_sentence_transformers.json", model_type="CrossEncoder")
    write_modules(folder, ("Transformer", ""), (kind, "1"))
    with pytest.raises(ValueError, match=expected):
        find_reranker(make_reranker(folder)).score_pairs(SHORT)


def test_foreign_activations_are_not_run(make_reranker, make_classifier):
    folder = make_classifier(1)
    change_json(folder / "config.json", sentence_transformers={"activation_fn": "os.getcwd"})
    with pytest.raises(ValueError, match=r"activation_fn = 'os\.getcwd'"):
        find_reranker(make_reranker(folder)).score_pairs([("a", "b")])
    own = {"model": {"activation": "sigmoid"}}
    assert find_reranker(make_reranker(folder, **own)).score_pairs([("a", "b")]).shape == (1,)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model": {"activation": "softmax"}}, "Softmax of a single output is always 1"),
        ({"model": {"n_outputs": 3}}, "gives 3 numbers a pair: expected one"),
        (
            {"model": {"@architectures": "spacy-sbert.SentenceEncoder.v1"}},
            "is not a cross-encoder: expected the arch",
        ),
    ],
)
def test_settings_that_are_refused(make_reranker, config, message):
    with pytest.raises(ValueError, match=message):
        find_reranker(make_reranker(**config)).rank("a", ["a", "b"])


def test_scores_that_are_not_finite(make_reranker):
    reranker = find_reranker(make_reranker())
    reranker.score_pairs([("a", "b")])
    with torch.no_grad():
        reranker.model.shim._model.classifier.weight.fill_(torch.nan)
    with pytest.raises(ValueError, match=r"gives to the pair \('a', 'b'\) is not finite"):
        reranker.score_pairs([("a", "b")])


def test_scores_hardly_depend_on_batches_and_precision(both, reranker, make_reranker, monkeypatch):
    assert both["three"][0].score_pairs(iter([])).shape == (0, 3)
    near = find_reranker(make_reranker(model={"precision": "bfloat16"})).score_pairs(SHORT)
    exact = reranker.score_pairs(SHORT)
    whole = reranker.score_pairs(PAIRS[:12])
    assert near.dtype == "float32"
    assert numpy.allclose(exact, near, atol=0.05)
    assert not numpy.array_equal(exact, near)
    monkeypatch.setattr("spacy_sbert.reranker.pair_scoring.WINDOW", 7)
    parts = find_reranker(make_reranker(model={"max_batch_items": 30})).score_pairs(
        pair for pair in PAIRS[:12]
    )
    assert numpy.allclose(whole, parts, atol=1e-6)
