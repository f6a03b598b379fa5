"""Training of a reranker: from gold to gradient, heads, seeds, the training loop, and what is
refused.
"""

import shutil
from functools import partial
from pathlib import Path

import numpy
import pytest
import spacy
import torch
from helpers.gradients import finite_differences, relative_error
from helpers.pipelines import PAIRS, ROOT, gradients, no_warnings, scored_pairs, weights
from spacy.cli.train import train
from spacy.training import Example
from thinc.api import Adam
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

from spacy_sbert.evaluation import evaluate
from spacy_sbert.readers import example_doc
from spacy_sbert.readers.examples import make_example as as_example
from spacy_sbert.reranker.objectives import (
    binary_cross_entropy,
    label_cross_entropy,
    mean_squared_error,
)

PIPE = "sbert_reranker"
HEAD = {"classifier.weight", "classifier.bias"}
LABELLED = [
    ("a man is eating", "someone is eating", "entailment"),
    ("the cat sat", "the dog ran fast", "neutral"),
    ("he can go", "he cannot go", "contradiction"),
]
# With the activation: the loss, and that of PyTorch
OBJECTIVES = {
    ("regression", "auto"): (
        binary_cross_entropy,
        lambda s, y: binary_cross_entropy_with_logits(s[:, 0], y),
    ),
    ("squared_error", "auto"): (
        partial(mean_squared_error, activation="sigmoid"),
        lambda s, y: mse_loss(s[:, 0].sigmoid(), y),
    ),
    ("squared_error", "identity"): (mean_squared_error, lambda s, y: mse_loss(s[:, 0], y)),
    ("classification", "auto"): (label_cross_entropy, cross_entropy),
}
pytestmark = pytest.mark.filterwarnings("ignore:.*(has a new head|longer than the)")


def labelled(nlp):
    return [
        as_example(example_doc(nlp, (first, second), label=label))
        for first, second, label in LABELLED
    ]


def moved(before, after):
    """The names of the weights that are not the same."""
    assert before.keys() == after.keys()
    return {key for key in before if not numpy.array_equal(before[key], after[key])}


@pytest.mark.parametrize("objective", OBJECTIVES, ids=", ".join)
def test_losses_are_those_of_pytorch(objective):
    ours, theirs = OBJECTIVES[objective]
    rng = numpy.random.default_rng(0)
    is_of_labels = objective[0] == "classification"
    logits = torch.tensor(
        rng.normal(size=(5, 4 if is_of_labels else 1), scale=3), requires_grad=True
    )
    gold = numpy.array([0, 2, 1, 3, 3] if is_of_labels else [0.0, 1.0, 0.3, 0.5, 0.9])
    expected = theirs(logits, torch.tensor(gold))
    expected.backward()
    loss, d_logits = ours(logits.detach().numpy(), gold)
    assert loss == pytest.approx(expected.item(), abs=1e-12)
    assert numpy.allclose(d_logits, logits.grad.numpy(), atol=1e-12)
    slopes = finite_differences(lambda x: ours(x, gold)[0], logits.detach().numpy().copy())
    assert relative_error(d_logits, slopes) < 1e-8


@pytest.mark.parametrize("objective", OBJECTIVES, ids=", ".join)
def test_gradient_is_that_of_autograd(make_reranker, make_classifier, objective):
    """Of every parameter; the squared error is of the score after the activation."""
    name, activation = objective
    is_of_labels = name == "classification"
    nlp = make_reranker(
        make_classifier(3 if is_of_labels else 1), objective=name, model={"activation": activation}
    )
    examples = (labelled if is_of_labels else scored_pairs)(nlp)
    nlp.initialize(lambda: examples)
    shim = nlp.get_pipe(PIPE).model.shim
    before = weights(nlp, PIPE)
    # Without an optimizer nothing moves
    losses = nlp.update(examples, sgd=False)
    assert not moved(before, weights(nlp, PIPE))
    given = gradients(nlp, PIPE)
    shim._model.zero_grad()
    texts = [[span.text for span in example.predicted.spans["sbert"]] for example in examples]
    inputs = shim.tokenizer(
        *map(list, zip(*texts, strict=True)), padding=True, truncation=True, max_length=24
    )
    logits = shim._model(**{key: torch.tensor(value) for key, value in inputs.items()}).logits
    labels = sorted(label for *_, label in LABELLED)
    gold = (
        [labels.index(label) for *_, label in LABELLED]
        if is_of_labels
        else [score for *_, score in PAIRS]
    )
    expected = OBJECTIVES[objective][1](logits, torch.tensor(gold))
    expected.backward()
    assert losses[PIPE] == pytest.approx(expected.item(), abs=1e-6)
    autograd = gradients(nlp, PIPE)
    assert given.keys() == autograd.keys() == before.keys()
    assert all(numpy.allclose(given[key], autograd[key], atol=1e-6) for key in given)


def test_parts_of_a_batch_add_up(make_reranker, monkeypatch):
    nlp = make_reranker()
    examples = scored_pairs(nlp)
    whole = nlp.update(examples, sgd=False)
    expected = gradients(nlp, PIPE)
    nlp.get_pipe(PIPE).model.shim._model.zero_grad()
    monkeypatch.setattr("spacy_sbert.reranker.classifier.CPU_TRAINING_BUDGET", 10)
    for example in examples:
        example.reference.spans["sbert"].attrs["batch_size"] = len(examples)
    losses = {}
    for part in (examples[:2], examples[2:]):
        nlp.update(part, sgd=False, losses=losses)
    assert losses[PIPE] == pytest.approx(whole[PIPE], abs=1e-6)
    given = gradients(nlp, PIPE)
    assert all(numpy.allclose(given[key], expected[key], atol=1e-6) for key in expected)


@pytest.mark.parametrize("objective", ["regression", "squared_error", "classification"])
def test_three_pairs_are_learned_by_heart(make_reranker, tiny_bert, objective):
    nlp = make_reranker(tiny_bert, objective=objective)
    examples = (labelled if objective == "classification" else scored_pairs)(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    before = weights(nlp, PIPE)
    for _ in range(40):
        nlp.update(examples, sgd=optimizer)
    assert moved(before, weights(nlp, PIPE)) == before.keys()
    scores = nlp.evaluate(examples)
    if objective != "classification":
        assert scores["sts_spearman"] == pytest.approx(1.0)
        assert scores["sts_pearson"] > 0.95
    else:
        assert scores["nli_acc"] == 1.0
        assert scores["sts_spearman"] is None
    # The head is no new one
    with no_warnings():
        assert len(nlp.get_pipe(PIPE).score_pairs([("a", "b")])) == 1


def test_a_new_head_is_of_the_seed_of_the_pipeline(make_reranker, tiny_bert):
    found = []
    for seed in (1, 1, 2):
        nlp = make_reranker(tiny_bert)
        nlp.config["training"]["seed"] = seed
        # Is not what it depends on
        torch.manual_seed(len(found))
        state = torch.get_rng_state()
        nlp.initialize(lambda nlp=nlp: scored_pairs(nlp))
        assert torch.equal(torch.get_rng_state(), state)
        found.append(weights(nlp, PIPE))
    assert not moved(found[0], found[1])
    assert moved(found[0], found[2]) == {"classifier.weight"}


@pytest.fixture(scope="module")
def of_labels(make_reranker, tiny_bert, tmp_path_factory):
    """The folder of a pipeline whose reranker learned labels."""
    folder = tmp_path_factory.mktemp("of_labels")
    nlp = make_reranker(tiny_bert, objective="classification")
    optimizer = nlp.initialize(lambda: labelled(nlp))
    optimizer.learn_rate = 0.01
    nlp.update(labelled(nlp), sgd=optimizer)
    nlp.to_disk(folder)
    return folder


def test_the_network_of_a_checkpoint_learns_another_objective(make_reranker, of_labels, tmp_path):
    """The name of the encoder is not looked for, and a saved pipeline needs its checkpoint no
    more.
    """
    first = Path(shutil.copytree(of_labels, tmp_path / "first"))
    nlp = make_reranker(
        "nobody/has-it", objective="squared_error", model={"activation": "identity"}
    )
    nlp.config["initialize"]["components"][PIPE] = {"checkpoint": str(first)}
    optimizer = nlp.initialize(lambda: scored_pairs(nlp))
    now = weights(nlp, PIPE)
    assert moved(weights(spacy.load(first), PIPE), now) == HEAD
    reranker = nlp.get_pipe(PIPE)
    assert reranker.objective == "squared_error"
    assert reranker.labels == ()
    assert reranker.model.shim.has_new_head
    assert nlp.update(scored_pairs(nlp), sgd=optimizer)[PIPE] > 0
    assert moved(now, weights(nlp, PIPE)) == now.keys(), "all of it learns"
    scores = reranker.score_pairs([("a man", "the cat")])
    nlp.to_disk(tmp_path / "second")
    first.rename(tmp_path / "elsewhere")
    assert numpy.array_equal(
        spacy.load(tmp_path / "second").get_pipe(PIPE).score_pairs([("a man", "the cat")]), scores
    )


def test_examples_that_are_no_pairs_are_left_out(make_reranker):
    nlp = make_reranker()
    plain = Example(nlp.make_doc("the cat"), nlp.make_doc("the cat"))
    pairs = scored_pairs(nlp)
    assert nlp.update([plain, *pairs], sgd=False)[PIPE] == nlp.update(pairs, sgd=False)[PIPE] > 0
    with pytest.warns(UserWarning, match="got a training batch without pairs") as seen:
        assert nlp.update([plain], sgd=False) == {PIPE: 0.0}
        nlp.update([plain], sgd=False)
    assert len(seen) == 1


def test_members_on_the_reference_alone_are_told_of(make_reranker):
    nlp = make_reranker()
    pairs = scored_pairs(nlp)
    lost = Example(nlp.make_doc(pairs[0].reference.text), pairs[0].reference)
    with pytest.warns(UserWarning, match=r"\[sbert-members-lost\] 1 of 4 examples"):
        nlp.update([*pairs, lost], sgd=False)


def test_gold_of_another_text_is_refused(make_reranker):
    nlp = make_reranker()
    first, second, *_ = scored_pairs(nlp)
    with pytest.raises(ValueError, match="has the gold values of another text"):
        nlp.update([first, Example(first.predicted, second.reference)], sgd=False)


def test_frozen_parts_stay(make_reranker, tiny_bert):
    nlp = make_reranker(tiny_bert, model={"frozen": ["bert"]})
    optimizer = nlp.initialize(lambda: scored_pairs(nlp))
    before = weights(nlp, PIPE)
    nlp.update(scored_pairs(nlp), sgd=optimizer)
    assert moved(before, weights(nlp, PIPE)) == HEAD


def test_all_frozen_is_refused(make_reranker, tiny_bert):
    nlp = make_reranker(tiny_bert, model={"frozen": ["bert", "classifier"]})
    optimizer = nlp.initialize(lambda: scored_pairs(nlp))
    for _ in range(2):
        with pytest.raises(ValueError, match="frozen names all weights"):
            nlp.update(scored_pairs(nlp), sgd=optimizer)


@pytest.mark.parametrize(
    ("objective", "n_outputs", "make", "message"),
    [
        ("regression", 1, labelled, "has no gold value 'score'"),
        ("classification", 3, scored_pairs, "has no gold value 'label'"),
        (
            "classification",
            1,
            labelled,
            '1 outputs, which do not fit the objective "classification"',
        ),
        ("regression", 3, scored_pairs, '3 outputs, which do not fit the objective "regression"'),
    ],
)
def test_gold_and_outputs_that_do_not_fit(
    make_reranker, make_classifier, objective, n_outputs, make, message
):
    nlp = make_reranker(make_classifier(n_outputs), objective=objective)
    with pytest.raises(ValueError, match=message):
        nlp.update(make(nlp), sgd=False)


def test_labels_that_do_not_fit(make_reranker, tiny_bert):
    nlp = make_reranker(tiny_bert, objective="classification")
    with pytest.raises(ValueError, match="all examples have the same: neutral"):
        nlp.initialize(lambda: labelled(nlp)[1:2])
    nlp.initialize(lambda: labelled(nlp)[:2])
    with pytest.raises(ValueError, match="The label 'contradiction'"):
        nlp.update(labelled(nlp), sgd=False)
    regression = make_reranker(tiny_bert)
    with pytest.raises(ValueError, match='the objective "regression" learns scores'):
        regression.get_pipe(PIPE).initialize(
            lambda: scored_pairs(regression), nlp=regression, labels=["a", "b"]
        )


@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_a_loss_that_is_not_finite(make_reranker):
    nlp = make_reranker()
    nlp.initialize(lambda: scored_pairs(nlp))
    with torch.no_grad():
        nlp.get_pipe(PIPE).model.shim._model.classifier.bias.fill_(torch.inf)
    with pytest.raises(
        ValueError,
        match=r"'regression' is not finite in the batch .*'A man is",
    ):
        nlp.update(scored_pairs(nlp), sgd=Adam(0.1))


@pytest.fixture
def fit(tiny_bert, tmp_path, monkeypatch):
    """Train a config on the random tiny BERT for two steps."""
    monkeypatch.chdir(ROOT)

    def run(output, config="reranker", **overrides):
        steps = {"training.max_epochs": 0, "training.max_steps": 2, "training.eval_frequency": 2}
        steps |= {"corpora.train.limit": 40, "corpora.dev.limit": 20}
        name = (
            {}
            if "paths.checkpoint" in overrides
            else {"components.sbert_reranker.model.name": str(tiny_bert)}
        )
        train(f"configs/{config}.cfg", tmp_path / output, overrides={**steps, **name, **overrides})
        return spacy.load(tmp_path / output / "model-last")

    return run


def test_the_shipped_config_trains(fit):
    first, second = (fit(f"out{i}") for i in range(2))
    performance = first.meta["performance"]
    assert performance["sbert_reranker_loss"] > 0
    scores = evaluate(first, ROOT / "assets" / "pairs-dev.csv", limit=20)
    assert scores["pairs"] == 20
    assert scores["sts_spearman"] == pytest.approx(performance["sts_spearman"], abs=1e-6)
    ours = weights(first, PIPE)
    assert "classifier.weight" in ours
    assert not moved(ours, weights(second, PIPE))


def test_the_two_steps_of_the_shipped_configs(fit, tmp_path):
    nlp = fit("nli", "reranker_nli")
    assert 0 < nlp.meta["performance"]["nli_acc"] <= 1
    second = fit(
        "second", "reranker_two_step", **{"paths.checkpoint": str(tmp_path / "nli" / "model-last")}
    )
    assert second.meta["performance"]["sts_spearman"] is not None
    first = weights(nlp, PIPE)
    after = weights(second, PIPE)
    assert first["classifier.weight"].shape[0] == 3
    assert after["classifier.weight"].shape[0] == 1
    moved = [abs(after[key] - first[key]).max() for key in first if "classifier" not in key]
    assert 0 < max(moved) < 1e-3, "two steps of at most 5e-5"


def test_heads_and_labels(make_reranker, make_classifier, nli_classifier, tiny_bert):
    """Those of the examples; a trained head of the same labels stays, in the order of its
    folder.
    """
    nlp = make_reranker(tiny_bert, objective="classification")
    reranker = nlp.get_pipe(PIPE)
    assert reranker.labels == ()
    assert not reranker.model.shim.is_loaded
    nlp.initialize(lambda: labelled(nlp))
    assert (
        reranker.labels == ("contradiction", "entailment", "neutral") == tuple(reranker.label_data)
    )
    assert reranker.score_pairs([("a", "b")]).shape == (1, 3)
    nlp.config["initialize"]["components"][PIPE] = {"labels": ["yes", "no", "maybe"]}
    nlp.initialize()
    loaded = make_reranker("not there", objective="classification").from_bytes(nlp.to_bytes())
    assert loaded.get_pipe(PIPE).labels == ("yes", "no", "maybe")
    for folder, stays in ((nli_classifier, True), (make_classifier(3), False)):
        nlp = make_reranker(folder, objective="classification")
        reranker = nlp.get_pipe(PIPE)
        before = reranker.score_pairs([("a", "b")])
        nlp.initialize(lambda nlp=nlp: labelled(nlp))
        assert reranker.model.shim.has_new_head != stays
        assert numpy.array_equal(reranker.score_pairs([("a", "b")]), before) == stays
        assert reranker.labels == (
            ("entailment", "neutral", "contradiction")
            if stays
            else ("contradiction", "entailment", "neutral")
        )


def test_checkpoints_with_and_without_a_head(make_reranker, of_labels, tmp_path):
    nlp = make_reranker("nobody/has-it", objective="classification")
    nlp.get_pipe(PIPE).initialize(lambda: labelled(nlp), nlp=nlp, checkpoint=of_labels)
    assert not moved(weights(spacy.load(of_labels), PIPE), weights(nlp, PIPE))
    nlp = make_reranker()
    reranker = nlp.get_pipe(PIPE)
    with pytest.raises(OSError, match="Can't find model 'nowhere'"):
        reranker.initialize(lambda: scored_pairs(nlp), nlp=nlp, checkpoint="nowhere")
    other = spacy.blank("xx")
    other.add_pipe("sentencizer")
    other.to_disk(tmp_path)
    with pytest.raises(
        ValueError,
        match=r"'sbert_reranker' .* sentencizer\.",
    ):
        reranker.initialize(lambda: scored_pairs(nlp), nlp=nlp, checkpoint=tmp_path)
