"""What is no text, no label, no example and no gold, wherever those are given, is refused and
named.
"""

import math

import pytest
import spacy
from helpers.objectives import layer, make_examples
from helpers.pipelines import PAIRS, make_example
from spacy.tokens import Span, SpanGroup
from spacy.training import Example

from spacy_sbert.readers import example_doc
from spacy_sbert.search import SpanSearch, collect_spans

HALVES = ["\ud83d", "a \udc00 b", "\udfff\ud800", "a" * 5000 + "\ud800"]
SURROGATES = {chr(code) for code in range(0xD800, 0xE000)}
NO_TEXTS = [None, 3.5, 7, True, b"bytes", ["nested"], {"a": 1}, object()]
NOT_SEVERAL = [b"bytes", None, 5, 1.5, True, {"a": "b"}, object()]
ERRORS = (ValueError, TypeError)
COSINE = layer("CosineSimilarityLoss")
SOFTMAX = layer("SoftmaxLoss")


@pytest.fixture(scope="module")
def nlp(make_nlp, tiny_bert):
    made = make_nlp(unit="doc+sent", loss=SOFTMAX)
    made.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert), "n_outputs": 1}})
    made.initialize(lambda: labelled_and_scored(made))
    return made


def labelled_and_scored(nlp):
    return make_examples(nlp, 2, 2, label=["yes", "no"], score=[0.5])


def test_lone_surrogates(counted, nlp):
    sbert = nlp.get_pipe("sbert")
    reranker = nlp.get_pipe("sbert_reranker")
    doc = nlp("A man is eating. The dog ran.")
    with counted("a text with half a character is refused, with its number and position") as cases:
        for text in HALVES:
            at = f"position {next(i for i, one in enumerate(text) if one in SURROGATES)}"
            for what, named, call in (
                ("encode", ("text number 2", at), lambda text: sbert.encode(["a man", text])),
                (
                    "a stream",
                    ("number 3", at),
                    lambda text: sbert.encode(iter(["a", "b", text]), window=1),
                ),
                ("prompt", ("prompt",), lambda text: sbert.encode(["a man"], prompt=text)),
                ("most_similar", ("text number 1", at), doc._.sbert_most_similar),
                ("search", ("text number 1", at), SpanSearch(collect_spans([doc])).search),
                (
                    "score_pairs",
                    ("pair number 1", at),
                    lambda text: reranker.score_pairs([("a", "b"), (text, "b")]),
                ),
                ("rank", ("pair number 1", at), lambda text: reranker.rank("a", ["b", text])),
                ("example_doc", ("members",), lambda text: example_doc(nlp, ["a", text])),
                ("label", ("label",), lambda text: example_doc(nlp, ["a", "b"], label=text)),
                # Refused by spaCy's tokenizer
                ("nlp", ("surrogates not allowed",), nlp),
                ("make_doc", ("surrogates not allowed",), nlp.make_doc),
                ("nlp.pipe", ("surrogates not allowed",), lambda text: list(nlp.pipe(["a", text]))),
            ):
                with cases.refuses(what, *named):
                    call(text)


def test_other_types(counted, nlp):
    sbert = nlp.get_pipe("sbert")
    reranker = nlp.get_pipe("sbert_reranker")
    doc = nlp("A man is eating. The dog ran.")
    for_texts = {
        "text number 2": lambda given: sbert.encode(["a", given]),
        "pair number 0": lambda given: reranker.score_pairs([("a", given)]),
        "members": lambda given: example_doc(nlp, ["a", given]),
        "search": doc._.sbert_most_similar,
        "compare": doc.similarity,
        "no vector of": lambda given: sbert.classify(doc, given),
        "Cannot take Spans": lambda given: list(collect_spans([given])),
    }
    for_several = {
        "score": reranker.score_pairs,
        "Cannot": lambda given: reranker.rank("a", given),
        "members": lambda given: example_doc(nlp, given),
    }
    all_calls = (
        (NO_TEXTS, for_texts),
        (["one text", *NOT_SEVERAL], for_several),
        # Of a single text it gives the vector
        (NOT_SEVERAL, {"several texts": sbert.encode}),
    )
    with counted("what is not text is refused, and named") as cases:
        for wrong, calls in all_calls:
            for given in wrong:
                for named, call in calls.items():
                    with cases.refuses(f"{given!r} as {named}", named, errors=ERRORS):
                        call(given)


def test_stream_that_raises(counted, nlp):
    def broken():
        yield from ["a man", "the dog", "a cat"]
        raise KeyError("mine")

    with counted("an error of a stream of texts reaches who reads the vectors") as cases:
        for window in (1, 2, 3, 100):
            with cases.refuses(f"window {window}", "mine", errors=(KeyError,)):
                nlp.get_pipe("sbert").encode(broken(), window=window)
        with cases.refuses("pipe", "mine", errors=(KeyError,)):
            list(nlp.pipe(broken()))


def test_labels(counted, nlp):
    sbert = nlp.get_pipe("sbert")
    doc = nlp("a man")
    wrong = [
        "yes",
        b"yes",
        5,
        True,
        {"yes"},
        ["yes", None],
        ["yes", 5],
        ["yes", ""],
        ["yes", "\ud800"],
        {"": "yes"},
    ]
    with counted("what is not a label is refused, and named") as cases:
        for given in [*wrong, {"": ["yes", 1]}]:
            for pipe in ("sbert", "sbert_reranker"):
                with cases.refuses(f"initialize, labels = {given!r}", "labels", errors=ERRORS):
                    nlp.get_pipe(pipe).initialize(
                        lambda: labelled_and_scored(nlp), nlp=nlp, labels=given
                    )
        for given in ("other", "sbert", "\ud800", 5, None, True, ["a"]):
            with cases.refuses(f"classify, objective = {given!r}", "objective", errors=ERRORS):
                sbert.classify(doc, doc, objective=given)
        cases.check(sbert.classify(doc, doc).keys() == {"no", "yes"}, "the labels stay")


def test_examples(counted, nlp):
    """Examples whose members are not what the pipes learn from."""

    def with_members(*borders):
        example = make_example(nlp, "a man", "the dog")
        example.reference.spans["sbert"].attrs = {"label": "yes", "score": 0.5}
        for copy in (example.predicted, example.reference):
            attrs = dict(copy.spans["sbert"].attrs)
            spans = [Span(copy, start, end) for start, end in borders]
            copy.spans["sbert"] = SpanGroup(copy, name="sbert", attrs=attrs, spans=spans)
        return example

    with counted("what is not an example is refused, and named") as cases:
        for borders in ([(0, 2)], [(0, 1), (1, 2), (2, 4)], [(0, 1), (1, 2), (2, 3), (3, 4)]):
            with cases.refuses(f"members {borders}", f"has {len(borders)} members"):
                nlp.get_pipe("sbert").update([with_members(*borders)])
        for given in (None, 5, ["text"], [None], [nlp("a")], [("a", "b")]):
            for pipe in ("sbert", "sbert_reranker"):
                with cases.refuses(f"{pipe}.update({given!r})", "", errors=ERRORS):
                    nlp.get_pipe(pipe).update(given)


@pytest.mark.parametrize("encoder", ["own", pytest.param("shared", marks=pytest.mark.slow)])
def test_spans_keys(counted, make_nlp, encoder):
    with counted(
        "a pipe and its span getter that look for examples in two places are refused, both named"
    ) as cases:
        for ours, theirs in [
            ("sbert", "pairs"),
            ("pairs", "sbert"),
            ("a", "b"),
            ("sbert", "Sbert"),
        ]:
            spans = {
                "get_spans": {"@span_getters": "spacy-sbert.sentence_spans.v1", "spans_key": theirs}
            }
            where = {"model": spans} if encoder == "own" else {"transformer": spans}
            with cases.refuses(
                f"{encoder}, {ours}, {theirs}", f"spans_key = '{ours}'", f"doc.spans['{theirs}']"
            ):
                make_nlp(encoder, spans_key=ours, **where)
            nlp = make_nlp(encoder, spans_key=theirs, **where)
            cases.check(nlp.get_pipe("sbert").spans_key == theirs, "equal keys are taken")
        # A transformer that comes later is known when the pipeline is initialized
        if encoder == "shared":
            nlp = spacy.blank("xx")
            model = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}
            nlp.add_pipe("sbert", config={"model": model, "spans_key": "pairs"})
            made = make_nlp("shared")
            nlp.add_pipe("transformer", first=True, source=made)
            with cases.refuses(
                "a transformer that comes later", "spans_key = 'pairs'", "doc.spans['sbert']"
            ):
                nlp.initialize(lambda: [Example(nlp.make_doc("a"), nlp.make_doc("a"))])


# Gold that nothing can be learned from

MULTI = layer("MultiTaskLoss", objectives={"sts": COSINE, "nli": SOFTMAX})
NO_SCORES = [5.0, -1e-6, 1.001, 100, math.nan, math.inf, -math.inf, None, "0.5", [0.5], b"1", {}]
NO_LABELS = ["unknown", "", None, 1, True, math.nan, ["a"], b"a", "\ud800"]
# The encoder and its loss, or the reranker and its objective; what is wrong; what the examples have
# else
GOLD = [
    ("own", COSINE, "score", NO_SCORES, {}),
    ("own", SOFTMAX, "label", NO_LABELS, {}),
    ("shared", COSINE, "score", NO_SCORES, {}),
    ("shared", SOFTMAX, "label", NO_LABELS, {}),
    ("own", MULTI, "score", NO_SCORES, {"objective": "sts"}),
    ("reranker", "regression", "score", NO_SCORES, {}),
    ("reranker", "classification", "label", NO_LABELS, {}),
    ("own", layer("CoSENTLoss"), "score", NO_SCORES[4:], {}),
    ("own", layer("AnglELoss"), "score", NO_SCORES[4:], {}),
    ("own", layer("MatryoshkaLoss", dims=[16, 8], loss=COSINE), "score", NO_SCORES, {}),
    ("own", layer("MatryoshkaLoss", dims=[16, 8], loss=SOFTMAX), "label", NO_LABELS, {}),
    ("own", layer("ContrastiveLoss"), "score", NO_SCORES, {}),
    ("own", layer("OnlineContrastiveLoss"), "score", NO_SCORES, {}),
]


def make_batch(nlp, loss, name):
    if name == "score" and loss is not MULTI:
        return [make_example(nlp, *pair) for pair in PAIRS[:2]]
    return make_examples(
        nlp, 2, 3, label=["a", "b"], **({"objective": ["nli"]} if loss is MULTI else {})
    )


@pytest.mark.filterwarnings("ignore:.*has a new head")
@pytest.mark.parametrize(
    ("encoder", "loss", "name", "wrong", "given"),
    [
        pytest.param(*case, marks=pytest.mark.slow if number > 5 else ())
        for number, case in enumerate(GOLD)
    ],
)
def test_gold(counted, make_nlp, tiny_bert, encoder, loss, name, wrong, given):
    """In a loop of one's own as in a file: the error names the example where its number is out of
    range.
    """
    if encoder == "reranker":
        nlp = spacy.blank("xx")
        nlp.add_pipe(
            "sbert_reranker", config={"model": {"name": str(tiny_bert)}, "objective": loss}
        )
    else:
        nlp = make_nlp(encoder, loss=loss)
    batch = make_batch(nlp, loss, name)
    nlp.initialize(lambda: batch)

    def example(gold):
        made = make_example(nlp, *PAIRS[0][:2])
        made.reference.spans["sbert"].attrs.update({"score": 1.0, **given, name: gold})
        return made

    with counted(
        "gold that nothing can be learned from is refused, and the example is named"
    ) as cases:
        for gold in wrong:
            text = (
                PAIRS[0][0][:20]
                if name == "score" and isinstance(gold, float) and not given
                else ""
            )
            with cases.refuses(
                f"{loss} {name} {gold!r}", text, "gold" if name == "score" else "label"
            ):
                nlp.update([*batch, example(gold)], sgd=False)
        if name == "score" and encoder != "reranker":
            value = nlp.update([*batch, example(1.0)], sgd=False)["sbert"]
            # Where no pair is hard
            is_zero = value == 0 and "Contrastive" in str(loss)
            cases.check(math.isfinite(value) and (value > 0 or is_zero), "what is right")
