"""Every objective on the whole pipeline: it reaches heads and encoder, in parts as at once, beside
others.
"""

import itertools
import re

import numpy
import pytest
from helpers.objectives import (
    LABELS,
    MULTI,
    OBJECTIVES,
    SCORES,
    heads,
    layer,
    make,
    make_examples,
    several,
    step,
)
from helpers.pipelines import (
    ENCODERS,
    HOLDER,
    INSTALLED,
    TRAINED,
    gradients,
    reloaded,
    shim_of,
    warnings_with,
    weights,
)

from spacy_sbert.training.batchers import batch_by_objective


@pytest.mark.parametrize(
    ("encoder", "name"),
    [(TRAINED, name) for name in OBJECTIVES]
    + [(one, "MatryoshkaLoss") for one in ENCODERS if one != TRAINED],
)
def test_every_parameter_moves_and_the_loss_falls(make_nlp, encoder, name):
    nlp, batch = make(make_nlp, encoder, name)
    before = weights(nlp, HOLDER[encoder])
    before_heads = heads(nlp)
    assert bool(before_heads) == (
        OBJECTIVES[name][1].get("label") == LABELS or name.startswith("Projected")
    )
    first = step(nlp, batch, rate=0.001)["sbert"]
    assert first > 0
    assert numpy.isfinite(first)
    after = weights(nlp, HOLDER[encoder])
    after_heads = heads(nlp)
    assert [
        key for key in before if numpy.array_equal(before[key], after[key]) and "pooler" not in key
    ] == []
    assert [
        key for key in before_heads if numpy.array_equal(before_heads[key], after_heads[key])
    ] == []
    for _ in range(7):
        last = step(nlp, batch, rate=0.001)["sbert"]
    assert last < first


@pytest.mark.parametrize("is_frozen", [True, False])
def test_frozen_encoder_or_pipe(make_nlp, is_frozen):
    """With a frozen encoder the head trains, with a frozen pipe nothing does."""
    tok2vec = {"@architectures": "spacy-sbert.SentenceListener.v1", "grad_factor": 0.0}
    model = {"model": {"tok2vec": tok2vec}} if is_frozen else {}
    nlp, batch = make(make_nlp, TRAINED, "SoftmaxLoss", **model)
    before = weights(nlp, "transformer")
    before_heads = heads(nlp)
    step(nlp, batch, exclude=[] if is_frozen else ["sbert", "transformer"])
    assert all(
        numpy.array_equal(value, before[key]) for key, value in weights(nlp, "transformer").items()
    )
    assert all(
        numpy.array_equal(value, before_heads[key]) != is_frozen
        for key, value in heads(nlp).items()
    )


def check_near(given, expected):
    scale = max(abs(gradient).max() for gradient in expected.values())
    assert all(numpy.allclose(given[key], expected[key], atol=1e-5 * scale) for key in expected)


@pytest.mark.parametrize(
    "name", ["CosineSimilarityLoss", "MatryoshkaLoss", "DistillationLoss of translations"]
)
def test_accumulated_gradients_equal_the_whole_batch(make_nlp, name):
    """Also where they are not of equal size: spaCy makes three of 2, 2, 2 and of 7 examples
    four.
    """
    nlp, batch = make(make_nlp, TRAINED, name)
    batch = [*batch, batch[0]][:7]
    noted = next(batch_by_objective(7)(batch))
    whole = nlp.update(noted, sgd=False)["sbert"]
    expected = gradients(nlp, "transformer")
    shim_of(nlp, "transformer")._model.zero_grad()
    losses = {}
    for part in (noted[:2], noted[2:4], noted[4:6], noted[6:]):
        nlp.update(part, sgd=False, losses=losses)
    assert losses["sbert"] == pytest.approx(whole, rel=1e-5)
    check_near(gradients(nlp, "transformer"), expected)


def warned(of, update, *batches):
    """Return the warnings in which a text occurs."""
    with warnings_with(of) as found:
        for batch in batches:
            update(batch, sgd=False)
    return found


def test_warns_of_partial_batches(make_nlp):
    for name, expected in (("CoSENTLoss", 1), ("CosineSimilarityLoss", 0)):
        nlp, batch = make(make_nlp, "own", name)
        noted = next(batch_by_objective(6)(batch))
        assert len(warned("accumulate_gradient", nlp.update, noted[:3], noted[3:])) == expected
    for accumulate, expected in ((1, 0), (2, 1)):
        nlp = make_nlp()
        nlp.config["training"]["accumulate_gradient"] = accumulate
        nlp.initialize(lambda nlp=nlp: make_examples(nlp, 2, **SCORES))
        batches = (
            make_examples(nlp, 2, **SCORES),
            next(batch_by_objective(6)(make_examples(nlp, 2, **SCORES))),
        )
        assert len(warned("is not told of the size", nlp.update, *batches)) == expected


@pytest.mark.parametrize(
    ("name", "scores", "message"),
    [
        (
            "MultipleNegativesRankingLoss",
            [1.0, 0.75, 0.25],
            "MultipleNegativesRankingLoss does not read scores.*0.25 ",
        ),
        ("MultipleNegativesRankingLoss", [1.0, 0.75], None),
        ("CosineSimilarityLoss", [0.25], None),
    ],
)
def test_warns_of_ignored_scores(make_nlp, name, scores, message):
    nlp, batch = make(make_nlp, "own", name)
    for example, score in zip(batch, itertools.cycle(scores), strict=False):
        example.reference.spans["sbert"].attrs["score"] = score
    # Whose first pair of low score is another
    other = list(reversed(batch))
    found = warned("[sbert-scores-ignored]", nlp.update, batch, other, batch)
    assert len(found) == (message is not None)
    assert message is None or re.search(message, found[0])


def test_parts_of_a_sum_add_up(make_nlp):
    nlp, batch = make(make_nlp, "own", "OnlineContrastiveLoss")
    alone = nlp.update(batch[:2], sgd=False)["sbert"]
    with pytest.warns(UserWarning, match="accumulate_gradient"):
        assert nlp.update(next(batch_by_objective(6)(batch))[:2], sgd=False)[
            "sbert"
        ] == pytest.approx(alone)


def test_diverged_training_raises(make_nlp):
    nlp, batch = make(make_nlp, "own", "CosineSimilarityLoss")
    nlp.get_pipe("sbert").loss_weight = float("inf")
    with pytest.raises(ValueError, match=r"'CosineSimilarityLoss' is not finite"):
        nlp.update(batch, sgd=False)


def test_loss_weight_scales_value_and_gradient(make_nlp):
    found = []
    for factor in (1.0, 20.0):
        nlp, batch = make(make_nlp, "own", "CosineSimilarityLoss", loss_weight=factor)
        found.append((nlp.update(batch, sgd=False)["sbert"], gradients(nlp, "sbert")))
    assert found[1][0] == pytest.approx(20 * found[0][0], rel=1e-5)
    assert all(
        numpy.allclose(20 * found[0][1][k], found[1][1][k], rtol=1e-3, atol=1e-6)
        for k in found[0][1]
    )


def test_learning_rate_of_the_head(make_nlp):
    moved = []
    for factor in (1.0, 5.0):
        nlp, batch = make(
            make_nlp, "own", "SoftmaxLoss", loss=layer("SoftmaxLoss", learn_rate_factor=factor)
        )
        before = heads(nlp)
        before_encoder = weights(nlp, "sbert")
        step(nlp, batch)
        moved.append([abs(value - before[key]).max() for key, value in heads(nlp).items()])
        moved.append(
            max(
                abs(value - before_encoder[key]).max()
                for key, value in weights(nlp, "sbert").items()
            )
        )
    assert moved[2] == pytest.approx([5 * value for value in moved[0]], rel=1e-3)
    assert moved[3] == pytest.approx(moved[1])


def test_cached_loss_encodes_in_mini_batches(make_nlp):
    for encoder in INSTALLED[: INSTALLED.index("tokens")]:
        nlp, batch = make(make_nlp, encoder, "CachedMultipleNegativesRankingLoss")
        assert shim_of(nlp, HOLDER[encoder]).mini_batch_size == 4
        cached = nlp.update(batch, sgd=False)["sbert"], gradients(nlp, HOLDER[encoder])
        nlp, batch = make(make_nlp, encoder, "MultipleNegativesRankingLoss")
        assert nlp.update(batch, sgd=False)["sbert"] == pytest.approx(cached[0], rel=1e-5)
        check_near(cached[1], gradients(nlp, HOLDER[encoder]))


def test_each_objective_gets_its_own_examples(make_nlp):
    nlp, batch = make(make_nlp, TRAINED, "MultiTaskLoss")
    assert nlp.get_pipe("sbert").labels == tuple(sorted(LABELS))
    losses = nlp.update(batch, sgd=False)
    assert losses["sbert"] == pytest.approx(
        losses["sbert_nli"] + losses["sbert_sts"] + losses["sbert_tri"]
    )
    alone = make_nlp(TRAINED, loss=layer("CosineSimilarityLoss"))
    alone.initialize()
    expected = alone.update(make_examples(alone, 2, 4, **SCORES), sgd=False)["sbert"]
    assert losses["sbert_sts"] == pytest.approx(2 * expected, rel=1e-5)
    before = heads(nlp)
    assert len(before) == 2
    step(nlp, batch)
    assert not any(numpy.array_equal(value, before[key]) for key, value in heads(nlp).items())


def test_scores_of_each_data_set(make_nlp):
    nlp, batch = make(make_nlp, "own", "MultiTaskLoss")
    sick = make_examples(nlp, 2, 4, score=[0.9, 0.1], label=["neutral"], objective=["sick"])
    scores = nlp.evaluate([*batch, *sick])
    alone = nlp.evaluate(batch)
    # The others' labels are no head's
    assert scores["nli_acc"] == scores["nli_acc_nli"] == alone["nli_acc"]
    assert scores["sts_spearman_sts"] == alone["sts_spearman"] != scores["sts_spearman"]
    assert scores["sts_spearman_sick"] == pytest.approx(nlp.evaluate(sick)["sts_spearman"])
    assert scores["triplet_acc_tri"] == scores["triplet_acc"]
    assert "nli_acc_sts" not in scores


def test_labels_of_two_pipes(make_nlp):
    nlp, batch = make(make_nlp, "own", "SoftmaxLoss")
    alone = nlp.evaluate(batch)["nli_acc"]
    plain = {"model": {"name": nlp.config["components"]["sbert"]["model"]["name"]}}
    nlp.add_pipe("sbert", name="second", config=plain)
    assert nlp.evaluate(batch)["sbert_nli_acc"] == alone
    assert nlp.evaluate(batch)["nli_acc"] is None


def trained(make_nlp, encoder=TRAINED, loss=None, n=30):
    nlp, batch = make(
        make_nlp, encoder, "SoftmaxLoss", loss=loss or layer("SoftmaxLoss", learn_rate_factor=3.0)
    )
    for _ in range(n):
        step(nlp, batch, rate=0.003)
    return nlp, batch


NESTED = {**layer("MatryoshkaLoss", dims=[8, 16]), "loss": layer("SoftmaxLoss")}


@pytest.mark.parametrize(("encoder", "loss"), [("tokens", None), (TRAINED, NESTED)])
def test_labels_survive_saving(make_nlp, tmp_path, encoder, loss):
    nlp, batch = trained(make_nlp, encoder, loss)
    loaded = reloaded(nlp, tmp_path / "nlp")
    for pipeline in (nlp, loaded):
        pipe = pipeline.get_pipe("sbert")
        assert pipe.labels == tuple(sorted(LABELS))
        for example in batch:
            first, second = example.reference.spans["sbert"]
            found = pipe.classify(pipeline(first.text), pipeline(second.text))
            assert sum(found.values()) == pytest.approx(1.0, abs=1e-5)
            assert max(found, key=found.get) == example.reference.spans["sbert"].attrs["label"]
        scores = pipeline.evaluate(make_examples(pipeline, 2, label=LABELS))
        assert scores["nli_acc"] == 1.0
        assert scores["sts_spearman"] is None
    doc = loaded(batch[0].predicted.copy())
    assert (
        doc.spans["sbert"].attrs["sbert_label"] == batch[0].reference.spans["sbert"].attrs["label"]
    )


def test_training_resumes_from_a_loaded_pipeline(make_nlp, tmp_path):
    nlp, _ = trained(make_nlp, n=2)
    loaded = reloaded(nlp, tmp_path / "nlp")
    loss = nlp.update(make_examples(nlp, 2, label=LABELS), sgd=False)["sbert"]
    assert loaded.update(make_examples(loaded, 2, label=LABELS), sgd=False)[
        "sbert"
    ] == pytest.approx(loss, rel=1e-5)
    given = make_nlp(loss=layer("SoftmaxLoss"))
    given.get_pipe("sbert").initialize(
        lambda: make_examples(given, 2, 1, label=["neutral"]), nlp=given, labels=LABELS
    )
    assert given.get_pipe("sbert").label_data == sorted(LABELS)
    other = make_examples(nlp, 2, label=["yes", "no"])
    with pytest.raises(ValueError, match=r"(?s)yes.*contradiction, entailment, neutral"):
        loaded.update(other, sgd=False)
    with pytest.raises(ValueError, match=r"(?s)contradiction, entailment, neutral.*no, yes"):
        loaded.get_pipe("sbert").initialize(lambda: other, nlp=loaded)


@pytest.mark.parametrize(
    ("loss", "n_members", "gold", "message"),
    [
        (layer("SoftmaxLoss"), 2, SCORES, "has no gold value 'label': expected a label"),
        (layer("SoftmaxLoss"), 2, {"label": ["neutral"]}, "all examples have the same: neutral"),
        (
            layer("BatchHardTripletLoss"),
            1,
            {"label": ["neutral"]},
            "all examples have the same: neutral",
        ),
        (layer("DistillationLoss"), 1, {}, "expected a teacher's vector"),
        (layer("MarginMSELoss"), 3, {}, "expected a teacher's scores"),
        (
            layer("MarginMSELoss"),
            3,
            {"scores": [[1.0, 0.5], [1.0]]},
            "numbers, as many in each example",
        ),
        (layer("MarginMSELoss"), 4, {"scores": [[1.0, 0.5]]}, "takes 3 scores of each example"),
        (MULTI, 2, {**SCORES, "objective": ["qa"]}, "'qa', but .* has nli, sts, tri"),
        (MULTI, 2, SCORES, "'', but"),
    ],
)
def test_wrong_examples(make_nlp, loss, n_members, gold, message):
    nlp = make_nlp(loss=loss)
    start = several(nlp) if loss is MULTI else []
    batch = make_examples(nlp, n_members, **gold)
    with pytest.raises(ValueError, match=message):
        nlp.initialize(lambda: start or batch)
        nlp.update(batch, sgd=False)


def test_wrong_calls(make_nlp):
    nlp = make_nlp()
    with pytest.raises(ValueError, match="has 0 trained classification heads"):
        nlp.get_pipe("sbert").classify(nlp("a man"), nlp("a dog"))
    nlp = make_nlp(loss=MULTI)
    with pytest.raises(ValueError, match="names the objectives typo, expected some of"):
        nlp.get_pipe("sbert").initialize(
            lambda: several(nlp)[:3], nlp=nlp, labels={"typo": ["a", "b"]}
        )
