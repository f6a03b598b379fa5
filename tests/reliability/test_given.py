"""What is no text, no Doc, no label and no example, wherever texts, Docs, labels and examples are given."""

import pytest
import spacy
from pipelines import make_example
from spacy.tokens import Span, SpanGroup
from spacy.training import Example

from spacy_sbert.readers import example_doc
from spacy_sbert.search import SpanSearch, collect_spans

HALVES = ["\ud83d", "a \udc00 b", "\udfff\ud800", "a" * 5000 + "\ud800"]
SURROGATES = {chr(code) for code in range(0xD800, 0xE000)}
NO_TEXTS = [None, 3.5, 7, True, b"bytes", ["nested"], {"a": 1}, object()]
NOT_SEVERAL = ["one text", b"bytes", None, 5, 1.5, True, {"a": "b"}, object()]
ERRORS = (ValueError, TypeError)


@pytest.fixture(scope="module")
def nlp(tiny_bert):
    made = spacy.blank("en")
    made.add_pipe("sentencizer")
    spans = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc+sent"}
    loss = {"@layers": "spacy-sbert.SoftmaxLoss.v1"}
    made.add_pipe("sbert", config={"model": {"name": str(tiny_bert), "get_spans": spans}, "loss": loss})
    made.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert), "n_outputs": 1}})
    made.initialize(lambda: labelled(made))
    return made


def labelled(nlp):
    examples = [make_example(nlp, "a man", "the dog"), make_example(nlp, "the cat", "a mat")]
    for example, label in zip(examples, ("yes", "no"), strict=True):
        example.reference.spans["sbert"].attrs = {"label": label, "score": 0.5}
    return examples


def test_lone_surrogates(counted, nlp):
    sbert, reranker = nlp.get_pipe("sbert"), nlp.get_pipe("sbert_reranker")
    doc = nlp("A man is eating. The dog ran.")
    with counted("a text with half a character is refused, with its number and position") as cases:
        for text in HALVES:
            at = f"position {next(i for i, one in enumerate(text) if one in SURROGATES)}"
            for what, named, call in (
                ("encode", ("text number 2", at), lambda text: sbert.encode(["a man", text])),
                ("a stream", ("number 3", at), lambda text: sbert.encode(iter(["a", "b", text]), window=1)),
                ("prompt", ("prompt",), lambda text: sbert.encode(["a man"], prompt=text)),
                ("most_similar", ("text number 1", at), doc._.sbert_most_similar),
                ("search", ("text number 1", at), SpanSearch(collect_spans([doc])).search),
                ("score_pairs", ("pair number 1", at), lambda text: reranker.score_pairs([("a", "b"), (text, "b")])),
                ("rank", ("pair number 1", at), lambda text: reranker.rank("a", ["b", text])),
                ("example_doc", ("members",), lambda text: example_doc(nlp, ["a", text])),
                ("label", ("label",), lambda text: example_doc(nlp, ["a", "b"], label=text)),
            ):
                with cases.refuses(what, *named):
                    call(text)
            for call in (nlp, nlp.make_doc, lambda given: list(nlp.pipe(["a", given]))):  # refused by spaCy's tokenizer
                with cases.refuses("nlp", "surrogates not allowed"):
                    call(text)


def test_other_types(counted, nlp):
    sbert, reranker = nlp.get_pipe("sbert"), nlp.get_pipe("sbert_reranker")
    doc = nlp("A man is eating. The dog ran.")
    with counted("what is not text is refused, and named") as cases:
        for given in NO_TEXTS:
            for what, named, call in (
                ("encode", "text number 2", lambda given: sbert.encode(["a", given])),
                ("score_pairs", "pair number 0", lambda given: reranker.score_pairs([("a", given)])),
                ("example_doc", "members", lambda given: example_doc(nlp, ["a", given])),
                ("most_similar", "search", doc._.sbert_most_similar),
                ("similarity", "compare", doc.similarity),
                ("classify", "no vector of", lambda given: sbert.classify(doc, given)),
                ("collect_spans", "number 0", lambda given: list(collect_spans([given]))),
            ):
                with cases.refuses(f"{what} of {given!r}", named, errors=ERRORS):
                    call(given)
        for given in NOT_SEVERAL:
            for what, named, call in (
                ("encode", "several texts", sbert.encode),
                ("score_pairs", "score", reranker.score_pairs),
                ("rank", "Cannot", lambda given: reranker.rank("a", given)),
                ("example_doc", "members", lambda given: example_doc(nlp, given)),
            ):
                with cases.refuses(f"{what} of {given!r}", named, errors=ERRORS):
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


def test_labels(counted, nlp, tiny_bert):
    sbert = nlp.get_pipe("sbert")
    doc = nlp("a man")
    wrong = ["yes", b"yes", 5, True, {"yes"}, ["yes", None], ["yes", 5], ["yes", ""], ["yes", "\ud800"], {"": "yes"}]
    with counted("what is not a label is refused, and named") as cases:
        for given in [*wrong, {"": ["yes", 1]}]:
            for pipe in ("sbert", "sbert_reranker"):
                with cases.refuses(f"initialize, labels = {given!r}", "labels", errors=ERRORS):
                    nlp.get_pipe(pipe).initialize(lambda: labelled(nlp), nlp=nlp, labels=given)
        for given in ("other", "sbert", "\ud800", 5, None, True, ["a"]):
            with cases.refuses(f"classify, objective = {given!r}", "objective", errors=ERRORS):
                sbert.classify(doc, doc, objective=given)
        cases.check(sbert.classify(doc, doc).keys() == {"no", "yes"}, "the labels stay")


def test_examples(counted, nlp):
    """Examples whose members are not what the pipes learn from; for gold see test_gold.py."""

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


SPANS = "spacy-sbert.sentence_spans.v1"


@pytest.mark.parametrize("encoder", ["own", "shared"])
def test_spans_keys(counted, make_nlp, encoder):
    with counted("a pipe and its span getter that look for examples in two places are refused, both named") as cases:
        for ours, theirs in [("sbert", "pairs"), ("pairs", "sbert"), ("a", "b"), ("sbert", "Sbert")]:
            spans = {"get_spans": {"@span_getters": SPANS, "spans_key": theirs}}
            where = {"model": spans} if encoder == "own" else {"transformer": spans}
            with cases.refuses(f"{encoder}, {ours}, {theirs}", f"spans_key = '{ours}'", f"doc.spans['{theirs}']"):
                make_nlp(encoder, spans_key=ours, **where)
            nlp = make_nlp(encoder, spans_key=theirs, **where)
            cases.check(nlp.get_pipe("sbert").spans_key == theirs, "equal keys are taken")
        if encoder == "shared":  # a transformer that comes later is known when the pipeline is initialized
            nlp = spacy.blank("en")
            model = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}
            nlp.add_pipe("sbert", config={"model": model, "spans_key": "pairs"})
            made = make_nlp("shared")
            nlp.add_pipe("transformer", first=True, source=made)
            with cases.refuses("a transformer that comes later", "spans_key = 'pairs'", "doc.spans['sbert']"):
                nlp.initialize(lambda: [Example(nlp.make_doc("a"), nlp.make_doc("a"))])
