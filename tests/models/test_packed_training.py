"""Training on packed rows: states and gradients of Hugging Face's model, with its dropout in its places."""

import numpy
import pytest
import torch
from small_models import TRAINED, batch_of
from torch.nn import functional

from spacy_sbert.models.engine import training
from spacy_sbert.models.engine.packed_bert import is_packable, layers_of
from spacy_sbert.models.engine.packing import PLACES_APART
from spacy_sbert.models.engine.training import plain_forward

DROPOUT = {"hidden_dropout_prob": 1.0, "attention_probs_dropout_prob": 0.5, "dropout": 1.0, "attention_dropout": 0.5}
LENGTHS = [5, 17, 64, 3, 200, 1, 30, 30, 9, 150, 12]
ALONE = [64] * 4  # each fills a row


@pytest.fixture(params=TRAINED)
def make_model(request):
    """All parameters random; settings: of the config."""
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


def gradients(model):
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}
    model.zero_grad()
    return found


def of_hugging_face(model, lengths):
    """The states of all windows, one after another, and the gradients of the sum of each by its weight."""
    wordpieces = make_wordpieces(lengths)
    held = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    ids = torch.full(held.shape, model.config.pad_token_id).masked_scatter(held, torch.from_numpy(wordpieces.ids))
    torch.manual_seed(5)
    states = model(input_ids=ids, attention_mask=held.long()).last_hidden_state[held]
    states.backward(weights_like(states))
    return states.detach(), gradients(model)


def ours(model, lengths, precision="float32"):
    torch.manual_seed(5)
    found, backward = plain_forward(model, make_wordpieces(lengths), precision=precision)
    windows = {}
    for part in found:
        pieces = torch.from_numpy(part.values).split(part.lengths.tolist())
        windows.update(zip(part.windows.tolist(), pieces, strict=True))
    states = torch.cat([windows[window] for window in range(len(lengths))])
    by_window = weights_like(states).split(lengths)
    backward([torch.cat([by_window[window] for window in part.windows]) for part in found])
    return states, gradients(model)


def weights_like(states):
    return torch.randn(states.shape, generator=torch.Generator().manual_seed(2))


def assert_alike(given, expected):
    (states, found), (expected_states, expected_gradients) = given, expected
    assert torch.allclose(states, expected_states, atol=1e-5)
    assert found.keys() == expected_gradients.keys() and len(found) > 30
    for name, gradient in expected_gradients.items():
        assert torch.allclose(found[name], gradient, atol=1e-5 * float(gradient.abs().max()) + 1e-4), name
        assert gradient.any(), name


@pytest.mark.parametrize("lengths", [LENGTHS, [4]], ids=["mixed", "one"])
def test_without_dropout(make_model, lengths):
    model = make_model(0.0)
    assert_alike(ours(model, lengths), of_hugging_face(model, lengths))


def test_dropout_is_where_hugging_face_has_it(make_model, monkeypatch):
    """Where each window fills a row, both draw the same with PyTorch's dropout."""
    model = make_model(0.3)
    with monkeypatch.context() as patched:
        patched.setattr(training, "_dropout", lambda module, x: module(x))
        patched.setattr(training, "_attention", attention_of_pytorch)
        assert_alike(ours(model, ALONE), of_hugging_face(model, ALONE))
    given = ours(model, ALONE)
    assert not torch.allclose(given[0], ours(model.eval(), ALONE)[0], atol=0.1)
    assert_alike(ours(model, LENGTHS), of_hugging_face(model, LENGTHS))


def attention_of_pytorch(query, key, value, mask, p):
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=p)


def test_bfloat16_is_close(make_model):
    model = make_model(0.0)
    (states, found), (expected, by_name) = ours(model, LENGTHS, "bfloat16"), of_hugging_face(model, LENGTHS)
    assert cosine([states], [expected]) > 0.999 and (states - expected).abs().max() > 1e-4
    assert cosine([found[name] for name in by_name], by_name.values()) > 0.99


def cosine(given, expected):
    flat, others = (torch.cat([part.flatten() for part in parts]) for parts in (given, expected))
    return float(torch.cosine_similarity(flat, others, dim=0))


def test_products_are_of_few_shapes(make_model, monkeypatch):
    """Each new one costs memory for good, see passes."""
    model, seen = make_model(0.0), set()
    linear, of_layers = training._linear, [module for parts in layers_of(model) for module in parts.linear]

    def watch(module, x):
        if module in of_layers:
            seen.add(x.shape[:-1])
        return linear(module, x)

    monkeypatch.setattr(training, "_linear", watch)
    draw = numpy.random.default_rng(0)
    for _ in range(8):
        ours(model, draw.integers(1, 110, 8).tolist(), "bfloat16")
    assert all(len(places) == 1 and places[0] % PLACES_APART == 0 for places in seen) and 3 <= len(seen) <= 10
