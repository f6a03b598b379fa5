"""Gold that nothing can be learned from is refused by name, in a loop of one's own as in a file."""

import math

import pytest
import spacy
from pipelines import PAIRS, make_example
from spacy.training import Example

from spacy_sbert.readers import example_doc

PROMISE = "gold that nothing can be learned from is refused, and the example is named"
COSINE = {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"}
SOFTMAX = {"@layers": "spacy-sbert.SoftmaxLoss.v1"}
MATRYOSHKA = {"@layers": "spacy-sbert.MatryoshkaLoss.v1", "dims": [16, 8]}
OF_SCORES = {
    "cosine": COSINE,
    "matryoshka": {**MATRYOSHKA, "loss": COSINE},
    **{name: {"@layers": f"spacy-sbert.{name}.v1"} for name in ("ContrastiveLoss", "OnlineContrastiveLoss")},
}
OF_ORDER = ("CoSENTLoss", "AnglELoss")
OF_LABELS = {"softmax": SOFTMAX, "matryoshka": {**MATRYOSHKA, "loss": SOFTMAX}}
NO_SCORES = [5.0, -1e-6, 1.001, 100, math.nan, math.inf, -math.inf, None, "0.5", [0.5], b"1", {}]
NO_LABELS = ["unknown", "", None, 1, True, math.nan, ["a"], b"a", "\ud800"]


def spoiled(nlp, **gold):
    example = make_example(nlp, *PAIRS[0][:2], 1.0)
    example.reference.spans["sbert"].attrs.update(gold)
    return example


def labelled(nlp, pair, label):
    reference = example_doc(nlp, pair[:2], label=label)
    return Example(example_doc(nlp, pair[:2]), reference)


def refuse_all(cases, nlp, batch, name, golds):
    for gold in golds:
        example = spoiled(nlp, **{name: gold})
        named = example.reference.text[:20] if name == "score" and isinstance(gold, float) else ""
        with cases.refuses(f"{nlp.pipe_names} {name} {gold!r}", named, "gold" if name == "score" else "label"):
            nlp.update([*batch, example], sgd=False)


@pytest.mark.parametrize(("encoder", "loss"), [*(("own", loss) for loss in OF_SCORES), ("shared", "cosine")])
def test_scores_out_of_range(counted, make_nlp, encoder, loss):
    nlp = make_nlp(encoder, loss=OF_SCORES[loss])
    batch = [make_example(nlp, *PAIRS[0]), make_example(nlp, *PAIRS[1])]
    nlp.initialize(lambda: batch)
    with counted(PROMISE) as cases:
        refuse_all(cases, nlp, batch, "score", NO_SCORES)
        cases.check(math.isfinite(nlp.update(batch, sgd=False)["sbert"]), "0 and 1")


def test_scores_of_one_objective(counted, make_nlp):
    loss = {"@layers": "spacy-sbert.MultiTaskLoss.v1", "objectives": {"sts": COSINE, "nli": SOFTMAX}}
    nlp = make_nlp(loss=loss)
    labels = [labelled(nlp, pair, label) for pair, label in zip(PAIRS, "aba", strict=True)]
    for example in labels:
        example.reference.spans["sbert"].attrs["objective"] = "nli"
    nlp.initialize(lambda: labels)
    with counted(PROMISE) as cases:
        for score in NO_SCORES:
            with cases.refuses(f"one of several: {score!r}", "gold"):
                nlp.update([*labels, spoiled(nlp, objective="sts", score=score)], sgd=False)
        cases.check(nlp.update([*labels, spoiled(nlp, objective="sts")], sgd=False)["sbert"] > 0, "1")


@pytest.mark.parametrize("loss", OF_ORDER)
def test_scores_of_order(counted, make_nlp, loss):
    nlp = make_nlp(loss={"@layers": f"spacy-sbert.{loss}.v1"})
    batch = [make_example(nlp, *pair[:2], 5 * pair[2] - 1) for pair in PAIRS]
    nlp.initialize(lambda: batch)
    with counted(PROMISE) as cases:
        cases.check(nlp.update(batch, sgd=False)["sbert"] > 0, loss)
        refuse_all(cases, nlp, batch, "score", NO_SCORES[4:])


@pytest.mark.parametrize(("encoder", "loss"), [*(("own", loss) for loss in OF_LABELS), ("shared", "softmax")])
def test_unknown_labels(counted, make_nlp, encoder, loss):
    nlp = make_nlp(encoder, loss=OF_LABELS[loss])
    batch = [labelled(nlp, pair, label) for pair, label in zip(PAIRS, "aba", strict=True)]
    nlp.initialize(lambda: batch)
    with counted(PROMISE) as cases:
        refuse_all(cases, nlp, batch, "label", NO_LABELS)


@pytest.mark.filterwarnings("ignore:.*has a new head")
@pytest.mark.parametrize("objective", ["regression", "classification"])
def test_the_reranker(counted, tiny_bert, objective):
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}, "objective": objective})
    is_label = objective == "classification"
    labels = [labelled(nlp, pair, label) for pair, label in zip(PAIRS, "aba", strict=True)]
    batch = labels if is_label else [make_example(nlp, *pair) for pair in PAIRS]
    nlp.initialize(lambda: batch)
    with counted(PROMISE) as cases:
        refuse_all(cases, nlp, batch, *(("label", NO_LABELS) if is_label else ("score", NO_SCORES)))
