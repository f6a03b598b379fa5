"""From pairs to gradient: it is the right one, it reaches the encoder, and three pairs can be
learned by heart.
"""

import numpy
import pytest
import torch
from helpers.pipelines import (
    HOLDER,
    PAIRS,
    TRAINED,
    TRANSFORMERS,
    gradients,
    make_example,
    make_pipeline,
    no_warnings,
    shim_of,
    weights,
)
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam
from transformers import AutoModel, AutoTokenizer

from spacy_sbert.models.engine import training as forward
from spacy_sbert.readers import pair_doc


def reference_gradient(folder, pooling="mean", normalize=False):
    """Loss and gradient of every parameter by PyTorch alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder)
    vectors = []
    for texts in zip(*[pair[:2] for pair in PAIRS], strict=True):
        data = tokenizer(list(texts), padding=True, return_tensors="pt")
        states = model(**data).last_hidden_state
        mask = data["attention_mask"][:, :, None]
        if pooling == "mean":
            vector = (states * mask).sum(1) / mask.sum(1)
        elif pooling == "max":
            vector = states.masked_fill(mask == 0, -torch.inf).max(1).values
        else:
            vector = states[:, 0]
        vectors.append(torch.nn.functional.normalize(vector) if normalize else vector)
    gold = torch.tensor([score for *_, score in PAIRS])
    loss = torch.nn.functional.mse_loss(torch.cosine_similarity(*vectors), gold)
    loss.backward()
    return loss.item(), {
        key: value.grad.numpy() for key, value in model.named_parameters() if value.grad is not None
    }


@pytest.mark.parametrize(
    ("encoder", "pooling", "normalize"),
    [
        *((encoder, "mean", False) for encoder in TRANSFORMERS),
        (TRAINED, "mean", True),
        (TRAINED, "max", False),
        ("own", "cls", False),
    ],
)
def test_gradient_equals_autograd(make_nlp, examples, tiny_bert, encoder, pooling, normalize):
    nlp = make_nlp(encoder, model={"pooling": pooling, "normalize": normalize})
    nlp.initialize()
    losses = nlp.update(examples(nlp), sgd=False)
    loss, expected = reference_gradient(tiny_bert, pooling, normalize)
    assert losses["sbert"] == pytest.approx(loss, rel=1e-5)
    given = gradients(nlp, HOLDER[encoder])
    assert expected.keys() <= given.keys()
    assert len(expected) > 30
    scale = max(abs(gradient).max() for gradient in expected.values())
    for key, gradient in expected.items():
        assert numpy.allclose(given[key], gradient, atol=1e-5 * scale), key


def test_gradient_of_members_in_any_order(make_nlp, examples):
    """v may stand before u in the text, and there may be other text between and around them."""
    nlp = make_pipeline(make_nlp, TRAINED)
    doc = nlp.make_doc("dog The cat sat on the mat. he ran A man is eating. fast")
    given = Example(doc.copy(), doc)
    pair = make_example(nlp, "A man is eating.", "The cat sat on the mat.", 0.7)
    for side in (given.predicted, given.reference):
        side.spans["sbert"] = [Span(side, 10, 15), Span(side, 1, 8)]
        side.spans["sbert"].attrs["score"] = 0.7
    assert [s.text for s in given.predicted.spans["sbert"]] == [
        "A man is eating.",
        "The cat sat on the mat.",
    ]
    results = []
    for example in (pair, given):
        losses = nlp.update([example], sgd=False)
        results.append((losses["sbert"], gradients(nlp, "transformer")))
        shim_of(nlp, "transformer")._model.zero_grad()
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    assert all(numpy.allclose(results[0][1][k], results[1][1][k], atol=1e-6) for k in results[0][1])


def test_windows_of_a_long_member_learn_too(make_nlp):
    nlp = make_pipeline(make_nlp, overflow="windows")
    long = make_example(nlp, "the cat sat " * 20, "a dog ran", 1.0)
    before = nlp.evaluate([long, make_example(nlp, "a", "the mat", 0.5)])
    assert before["sts_spearman"] is not None
    losses = [nlp.update([long], sgd=Adam(0.003))["sbert"] for _ in range(20)]
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("on_reference", [True, False])
def test_batch_without_pairs(make_nlp, on_reference):
    nlp = make_pipeline(make_nlp)
    before = weights(nlp, "sbert")
    pair = make_example(nlp, "the cat sat", "a dog ran")
    example = Example(
        nlp.make_doc(pair.reference.text), pair.reference if on_reference else nlp.make_doc("a dog")
    )
    with pytest.warns(UserWarning, match="sbert-nothing-to-learn.*frozen_components") as seen:
        assert nlp.update([example], sgd=nlp.create_optimizer()) == {"sbert": 0.0}
    assert ("example.reference has them" in str(seen[0].message)) == on_reference
    assert all(
        numpy.array_equal(before[key], value) for key, value in weights(nlp, "sbert").items()
    )


def test_members_on_the_reference_alone_are_told_of(make_nlp, examples):
    """As spaCy's own Corpus makes examples; beside others, whose members are there."""
    nlp = make_pipeline(make_nlp)
    pairs = examples(nlp)
    optimizer = nlp.initialize(lambda: pairs)
    lost = [Example(nlp.make_doc(pair.reference.text), pair.reference) for pair in pairs[:2]]
    with pytest.warns(UserWarning, match=r"\[sbert-members-lost\] 2 of 5 examples") as seen:
        for _ in range(2):
            nlp.update([*pairs, *lost], sgd=optimizer)
    assert len(seen) == 1
    with pytest.warns(UserWarning, match=r"\[sbert-members-lost\] 2 of 5 examples"):
        nlp.evaluate([*pairs, *lost])
    with no_warnings():
        nlp.evaluate(pairs)


def test_gold_of_another_text_is_refused(make_nlp, examples):
    nlp = make_pipeline(make_nlp)
    first, second, *_ = examples(nlp)
    optimizer = nlp.initialize(lambda: [first, second])
    crossed = Example(first.predicted, second.reference)
    with pytest.raises(ValueError, match="has the gold values of another text"):
        nlp.update([first, crossed], sgd=optimizer)
    with pytest.raises(ValueError, match="has the gold values of another text"):
        nlp.get_pipe("sbert").score([first, crossed])
    with no_warnings():
        nlp.update([first, second], sgd=optimizer)


def test_an_encoder_without_gradients_is_told_of(make_nlp, examples):
    nlp = make_pipeline(make_nlp)
    pairs = examples(nlp)
    optimizer = nlp.initialize(lambda: pairs)
    before = nlp("the cat").vector
    shim_of(nlp).network.requires_grad_(False)
    with pytest.warns(UserWarning, match=r"\[sbert-no-gradients\] The encoder .* is trained"):
        nlp.update(pairs, sgd=optimizer)
    assert numpy.array_equal(nlp("the cat").vector, before)


def test_a_pipe_without_a_loss(make_nlp, examples):
    nlp = make_nlp(loss=None)
    nlp.initialize()
    with no_warnings():
        assert nlp.update([Example(nlp.make_doc("a dog"), nlp.make_doc("a dog"))], sgd=False) == {
            "sbert": 0.0
        }
    with pytest.raises(ValueError, match=r"without a loss"):
        nlp.update(examples(nlp), sgd=False)


@pytest.mark.parametrize("word", [" ", "\x00"])
def test_empty_members(make_nlp, word):
    nlp = make_pipeline(make_nlp)
    doc = Doc(nlp.vocab, words=["a", word])
    doc.spans["sbert"] = [doc[:1], doc[1:]]
    example = Example(doc, doc.copy())
    example.reference.spans["sbert"].attrs["score"] = 1.0
    with pytest.raises(ValueError, match=r"has an empty member \(number 2\)"):
        nlp.get_pipe("sbert").update([example])


def test_loss_equals_sentence_transformers(minilm):
    """The same pairs, the same loss, by the library that people come from."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import losses

    from spacy_sbert.models.resolve import resolve

    model = SentenceTransformer(
        str(resolve("sentence-transformers/all-MiniLM-L6-v2")), device="cpu"
    ).eval()
    features = [model.tokenize([pair[i] for pair in PAIRS]) for i in (0, 1)]
    expected = losses.CosineSimilarityLoss(model)(
        features, torch.tensor([score for *_, score in PAIRS])
    )
    batch = [make_example(minilm, *pair) for pair in PAIRS]
    pipe = minilm.get_pipe("sbert")
    value, _ = pipe.get_loss(batch, pipe.predict([example.predicted for example in batch]))
    assert value == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize(("loss", "most"), [("CosineSimilarityLoss", 100), ("SoftmaxLoss", 300)])
def test_examples_read_by_initialize(make_nlp, loss, most):
    """A teacher would encode them all; labels may stand in the last."""
    nlp = make_nlp(TRAINED, loss={"@layers": f"spacy-sbert.{loss}.v1"})
    reads = []

    def corpus():
        reads.append(0)
        for number in range(300):
            reads[-1] += 1
            example = make_example(nlp, *PAIRS[0])
            example.reference.spans["sbert"].attrs["label"] = "last" if number == 299 else "first"
            yield example

    nlp.initialize(corpus)
    assert max(reads) == most
    assert nlp.get_pipe("sbert").labels == (() if most == 100 else ("first", "last"))


@pytest.mark.parametrize("encoder", sorted({"own", TRAINED}))
def test_docs_without_members_do_not_change_the_loss(make_nlp, examples, monkeypatch, encoder):
    """Beside other components an encoder of its own has no work with their examples."""
    nlp = make_nlp(encoder)
    seen = []
    batch = examples(nlp)
    nlp.initialize(lambda: batch)
    alone = nlp.update(batch, sgd=False)["sbert"]
    stock = forward.packed_states
    monkeypatch.setattr(
        forward, "packed_states", lambda *given: seen.append(len(given[2])) or stock(*given)
    )
    others = [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in ("The dog ran fast.", "")]
    mixed = nlp.update([others[0], *batch, others[1]], sgd=False)
    assert mixed["sbert"] == pytest.approx(alone, rel=1e-5)
    assert alone > 0
    assert encoder != "own" or seen == [2 * len(batch)], "rows of pairs alone"


def test_a_score_without_a_dimension_is_a_number(make_nlp):
    nlp = make_nlp()
    for score in (torch.tensor(0.25), numpy.array(0.25), numpy.float32(0.25)):
        doc = pair_doc(nlp, "the cat", "a dog", score)
        assert doc.spans["sbert"].attrs["score"] == 0.25
        assert Doc(nlp.vocab).from_bytes(doc.to_bytes()).spans["sbert"].attrs["score"] == 0.25
