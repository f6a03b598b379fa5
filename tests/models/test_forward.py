"""The forward pass of training: no padding, mini-batches, precision, checkpointing and frozen parts."""

import numpy
import pytest
import torch
from pipelines import HOLDER, gradients, make_pipeline, weights
from small_models import batch_of
from thinc.api import Adam
from transformers import AutoModel

from spacy_sbert.models.engine import training as forwards
from spacy_sbert.models.engine.training import cached_forward, plain_forward


@pytest.fixture
def model(tiny_bert):
    return AutoModel.from_pretrained(tiny_bert, hidden_dropout_prob=0.3).train()


def make_inputs(n_rows=21):
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(2, 20, (n_rows,), generator=generator)
    mask = (torch.arange(20)[None] < lengths[:, None]).long()
    return {"input_ids": torch.randint(5, 60, (n_rows, 20), generator=generator) * mask, "attention_mask": mask}


def wordpieces_of(inputs):
    """The same without padding."""
    mask = inputs["attention_mask"].bool()
    return batch_of(mask.sum(1).numpy(), inputs["input_ids"][mask].numpy())


def in_rows(found, inputs):
    """The states of each window in its row, as a Hugging Face model gives them, zeros at padding."""
    padded = torch.zeros(*inputs["input_ids"].shape, found[0].values.shape[1])
    for part in found:
        pieces = torch.from_numpy(part.values).split(part.lengths.tolist())
        for window, states in zip(part.windows.tolist(), pieces, strict=True):
            padded[window, : len(states)] = states
    return padded


def gradient_of(model, inputs, forward, **settings):
    """Output and gradient of every parameter, for a fixed gradient of the states; the same dropout each time."""
    torch.manual_seed(5)
    model.zero_grad()
    found, backward = forward(model, wordpieces_of(inputs), precision="float32", **settings)
    states = in_rows(found, inputs)
    d_states = torch.randn(states.shape, generator=torch.Generator().manual_seed(1))
    d_windows = [[d_states[w, :n] for w, n in zip(p.windows, p.lengths, strict=True)] for p in found]
    backward([torch.cat(own) for own in d_windows])
    return states, {k: p.grad.clone() for k, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("size", [1, 8, 20])
def test_mini_batches_have_the_gradient_of_the_whole_batch(model, size):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    inputs = make_inputs()
    states, expected = gradient_of(model, inputs, plain_forward)
    cached, given = gradient_of(model, inputs, cached_forward, mini_batch_size=size)
    assert torch.allclose(states, cached, atol=1e-5)
    assert given.keys() == expected.keys() and len(given) > 30
    scale = max(gradient.abs().max() for gradient in expected.values())
    assert all(torch.allclose(given[key], expected[key], atol=1e-5 * scale) for key in expected)


@pytest.mark.parametrize("packed", [False, True])
def test_the_second_pass_drops_out_what_the_first_did(model, monkeypatch, packed):
    """With the same parts plain and cached forward draw the same dropout; the generator goes on as if nothing was."""
    inputs = make_inputs()
    if not packed:
        monkeypatch.setattr(forwards, "is_packable", lambda model: False)
    states, expected = gradient_of(model, inputs, plain_forward)
    after_plain = torch.get_rng_state()
    size = len(inputs["input_ids"]) if packed else forwards.CPU_ROWS
    cached, given = gradient_of(model, inputs, cached_forward, mini_batch_size=size)
    assert torch.equal(states, cached) and torch.equal(after_plain, torch.get_rng_state())
    scale = max(gradient.abs().max() for gradient in expected.values())
    assert all(torch.allclose(given[key], expected[key], atol=1e-6 * scale) for key in expected)


@pytest.mark.parametrize(
    ("encoder", "setting"), [("own", {"mini_batch_size": 2}), ("shared", {"gradient_checkpointing": True})]
)
def test_memory_savers_do_not_change_the_gradient(make_nlp, examples, encoder, setting):
    found = []
    for given in ({}, setting):
        nlp = make_pipeline(make_nlp, encoder, **given)
        losses = nlp.update(examples(nlp), sgd=False)
        found.append((losses["sbert"], gradients(nlp, HOLDER[encoder])))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    scale = max(abs(gradient).max() for gradient in found[0][1].values())
    assert all(numpy.allclose(found[0][1][k], found[1][1][k], atol=1e-5 * scale) for k in found[0][1])


@pytest.mark.parametrize("encoder", ["shared", pytest.param("own", marks=pytest.mark.slow)])
def test_frozen_parts_stay(make_nlp, examples, encoder):
    nlp = make_pipeline(make_nlp, encoder, frozen=["embeddings", "encoder.layer.0.attention"])
    before = weights(nlp, HOLDER[encoder])
    nlp.update(examples(nlp), sgd=False)
    for _, pipe in nlp.pipeline:
        pipe.finish_update(Adam(0.01))
    after = weights(nlp, HOLDER[encoder])
    moved = {key for key in before if not numpy.array_equal(before[key], after[key])}
    assert moved == {k for k in before if not k.startswith(("embeddings.", "encoder.layer.0.attention.", "pooler."))}


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


def test_mini_batches_hold_less(model):
    found = []
    for forward, settings in ((plain_forward, {}), (cached_forward, {"mini_batch_size": 4})):
        held = [0]  # bytes of the tensors that a graph saves, as they come and go

        def pack(tensor, held=held):
            held.append(held[-1] + tensor.nbytes)
            return tensor

        def unpack(tensor, held=held):
            held.append(held[-1] - tensor.nbytes)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            gradient_of(model, make_inputs(64), forward, **settings)
        found.append(max(held))
    assert found[1] < found[0] / 6
