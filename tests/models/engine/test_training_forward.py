"""The forward pass of training, packed or not: states, gradients and places of dropout are Hugging
Face's.
"""

import numpy
import pytest
import torch
from helpers.pipelines import HOLDER, finish_update, gradients, make_pipeline, weights
from helpers.small_models import TRAINED, batch_of, cosine
from thinc.api import Adam
from torch.nn import functional
from transformers import AutoModel

from spacy_sbert.models.engine import packed_training, training
from spacy_sbert.models.engine.bert_families import is_packable, layers_of
from spacy_sbert.models.engine.packing import PLACES_APART
from spacy_sbert.models.engine.training import cached_forward, plain_forward

DROPOUT = {
    "hidden_dropout_prob": 1.0,
    "attention_probs_dropout_prob": 0.5,
    "dropout": 1.0,
    "attention_dropout": 0.5,
}
LENGTHS = [5, 17, 64, 3, 200, 1, 30, 30, 9, 150, 12]
# Each fills a row
ALONE = [64] * 4
# For the tiny BERT
SHORT = torch.randint(2, 20, (64,), generator=torch.Generator().manual_seed(3)).tolist()


@pytest.fixture(params=TRAINED)
def make_model(request):
    """All parameters random."""
    kind, config, sizes = TRAINED[request.param]

    def make(dropout):
        model = kind(config(**sizes, **{name: share * dropout for name, share in DROPOUT.items()}))
        generator = torch.Generator().manual_seed(1)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3, generator=generator)
        assert is_packable(model)
        return model.train()

    return make


def make_wordpieces(lengths):
    return batch_of(lengths, numpy.random.default_rng(4).integers(3, 50, sum(lengths)))


def gradients_of(model):
    found = {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    model.zero_grad()
    return found


def of_hugging_face(model, lengths):
    """The states of all windows, one after another, and the gradients of the sum of each by its
    weight.
    """
    wordpieces = make_wordpieces(lengths)
    held = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    ids = torch.full(held.shape, model.config.pad_token_id).masked_scatter(
        held, torch.from_numpy(wordpieces.ids)
    )
    torch.manual_seed(5)
    states = model(input_ids=ids, attention_mask=held.long()).last_hidden_state[held]
    states.backward(weights_like(states))
    return states.detach(), gradients_of(model)


def ours(model, lengths, forward=plain_forward, precision="float32", **settings):
    torch.manual_seed(5)
    found, backward = forward(model, make_wordpieces(lengths), precision=precision, **settings)
    windows = {}
    for part in found:
        pieces = torch.from_numpy(part.values).split(part.lengths.tolist())
        windows.update(zip(part.windows.tolist(), pieces, strict=True))
    states = torch.cat([windows[window] for window in range(len(lengths))])
    by_window = weights_like(states).split(lengths)
    backward([torch.cat([by_window[window] for window in part.windows]) for part in found])
    return states, gradients_of(model)


def weights_like(states):
    return torch.randn(states.shape, generator=torch.Generator().manual_seed(2))


def assert_alike(given, expected):
    (states, found), (expected_states, expected_gradients) = given, expected
    assert torch.allclose(states, expected_states, atol=1e-5)
    assert found.keys() == expected_gradients.keys()
    assert len(found) > 30
    for name, gradient in expected_gradients.items():
        assert torch.allclose(
            found[name], gradient, atol=1e-5 * float(gradient.abs().max()) + 1e-4
        ), name
        assert gradient.any(), name


@pytest.mark.parametrize("lengths", [LENGTHS, [4]], ids=["mixed", "one"])
def test_without_dropout(make_model, lengths):
    model = make_model(0.0)
    assert_alike(ours(model, lengths), of_hugging_face(model, lengths))


def test_dropout_is_where_hugging_face_has_it(make_model, monkeypatch):
    """Where each window fills a row, both draw the same with PyTorch's dropout."""
    model = make_model(0.3)
    with monkeypatch.context() as patched:
        patched.setattr(packed_training, "_dropout", lambda module, x: module(x))
        patched.setattr(packed_training, "_attention", attention_of_pytorch)
        assert_alike(ours(model, ALONE), of_hugging_face(model, ALONE))
    given = ours(model, ALONE)
    assert not torch.allclose(given[0], ours(model.eval(), ALONE)[0], atol=0.1)
    assert_alike(ours(model, LENGTHS), of_hugging_face(model, LENGTHS))


def attention_of_pytorch(query, key, value, mask, p):
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=p)


def test_bfloat16_is_close(make_model):
    model = make_model(0.0)
    given, (expected, by_name) = (
        ours(model, LENGTHS, precision="bfloat16"),
        of_hugging_face(model, LENGTHS),
    )
    states, found = given
    assert cosine([states], [expected]) > 0.999
    assert (states - expected).abs().max() > 1e-4
    assert cosine([found[name] for name in by_name], by_name.values()) > 0.99


def test_products_are_of_few_shapes(make_model, monkeypatch):
    """Each new one costs memory for good, see passes."""
    model = make_model(0.0)
    seen = set()
    linear = packed_training._linear
    of_layers = [
        module
        for parts in layers_of(model)
        for module in parts.values()
        if isinstance(module, torch.nn.Linear)
    ]

    def watch(module, x):
        if module in of_layers:
            seen.add(x.shape[:-1])
        return linear(module, x)

    monkeypatch.setattr(packed_training, "_linear", watch)
    draw = numpy.random.default_rng(0)
    for _ in range(8):
        ours(model, draw.integers(1, 110, 8).tolist(), precision="bfloat16")
    assert all(len(places) == 1 and places[0] % PLACES_APART == 0 for places in seen)
    assert 3 <= len(seen) <= 10


# Mini-batches


@pytest.fixture
def model(tiny_bert):
    return AutoModel.from_pretrained(tiny_bert, hidden_dropout_prob=0.3).train()


def assert_close(given, expected, atol):
    """Gradients, relative to the largest of all."""
    scale = max(abs(gradient).max() for gradient in expected.values())
    assert given.keys() == expected.keys()
    assert len(given) > 30
    for key in expected:
        assert numpy.allclose(given[key], expected[key], atol=float(atol * scale)), key


@pytest.mark.parametrize("size", [1, 8, 20])
def test_mini_batches_have_the_gradient_of_the_whole_batch(model, size):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    states, expected = ours(model, SHORT[:21])
    cached, given = ours(model, SHORT[:21], cached_forward, mini_batch_size=size)
    assert torch.allclose(states, cached, atol=1e-5)
    assert_close(given, expected, 1e-5)


@pytest.mark.parametrize("packed", [False, True])
def test_the_second_pass_drops_out_what_the_first_did(model, monkeypatch, packed):
    """With the same parts plain and cached forward draw the same dropout; the generator goes on as
    if nothing was.
    """
    lengths = SHORT[:21]
    if not packed:
        monkeypatch.setattr(training, "is_packable", lambda model: False)
    states, expected = ours(model, lengths)
    after_plain = torch.get_rng_state()
    size = len(lengths) if packed else training.CPU_ROWS
    cached, given = ours(model, lengths, cached_forward, mini_batch_size=size)
    assert torch.equal(states, cached)
    assert torch.equal(after_plain, torch.get_rng_state())
    assert_close(given, expected, 1e-6)


@pytest.mark.parametrize(
    ("encoder", "setting"),
    [("own", {"mini_batch_size": 2}), ("shared", {"gradient_checkpointing": True})],
)
def test_memory_savers_do_not_change_the_gradient(make_nlp, examples, encoder, setting):
    found = []
    for given in ({}, setting):
        nlp = make_pipeline(make_nlp, encoder, **given)
        losses = nlp.update(examples(nlp), sgd=False)
        found.append((losses["sbert"], gradients(nlp, HOLDER[encoder])))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    assert_close(found[1][1], found[0][1], 1e-5)


def test_mini_batches_hold_less(model):
    found = []
    for forward, settings in ((plain_forward, {}), (cached_forward, {"mini_batch_size": 4})):
        # Bytes of the tensors that a graph saves, as they come and go
        held = [0]

        def pack(tensor, held=held):
            held.append(held[-1] + tensor.nbytes)
            return tensor

        def unpack(tensor, held=held):
            held.append(held[-1] - tensor.nbytes)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            ours(model, SHORT, forward, **settings)
        found.append(max(held))
    assert found[1] < found[0] / 6


# In the pipeline


def test_an_encoder_that_is_all_frozen_is_refused(make_nlp, examples):
    """Its pooler, which nothing uses, is not."""
    nlp = make_pipeline(make_nlp, "own", frozen=["embeddings", "encoder"])
    before = weights(nlp, "sbert")
    with pytest.raises(ValueError, match="frozen names all weights"):
        nlp.update(examples(nlp), sgd=Adam(0.01))
    after = weights(nlp, "sbert")
    assert all(numpy.array_equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("encoder", ["shared", pytest.param("own", marks=pytest.mark.slow)])
def test_frozen_parts_stay(make_nlp, examples, encoder):
    nlp = make_pipeline(make_nlp, encoder, frozen=["embeddings", "encoder.layer.0.attention"])
    before = weights(nlp, HOLDER[encoder])
    nlp.update(examples(nlp), sgd=False)
    finish_update(nlp, Adam(0.01))
    after = weights(nlp, HOLDER[encoder])
    moved = {key for key in before if not numpy.array_equal(before[key], after[key])}
    assert moved == {
        k
        for k in before
        if not k.startswith(("embeddings.", "encoder.layer.0.attention.", "pooler."))
    }


REFUSED = [
    ({"precision": "int4"}, "precision.*'int4'"),
    ({"mini_batch_size": -3}, "mini_batch_size = -3"),
    ({"frozen": ["encoder.layer.9"]}, r"Cannot freeze 'encoder\.layer\.9'"),
    ({"frozen": "abc"}, "frozen = 'abc': expected a list"),
]


def test_refused_settings(make_nlp):
    for setting, message in REFUSED:
        with pytest.raises(ValueError, match=message):
            make_pipeline(make_nlp, "own", **setting)


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without a GPU")
def test_float16_trains_on_a_gpu_and_runs_anywhere(make_nlp, examples):
    nlp = make_pipeline(make_nlp, precision="float16")
    with pytest.raises(ValueError, match='precision = "float16" needs a GPU'):
        nlp.update(examples(nlp), sgd=False)
    text = "A man is eating food."
    assert numpy.array_equal(nlp(text).vector, make_nlp()(text).vector)
