"""Packed rows: the states of Hugging Face's model, window by window, whatever stands beside a
window.
"""

from functools import partial
from operator import attrgetter

import numpy
import pytest
import torch
from helpers.small_models import (
    MODELS,
    PACKED,
    SIZES,
    batch_of,
    by_window,
    cosine,
    largest_difference,
    make_model,
    make_rows,
    make_window,
    states_alone,
)
from transformers import AlbertConfig, AlbertModel, BertConfig, BertModel

from spacy_sbert.models import private_attributes as private_torch
from spacy_sbert.models.engine import bert_families, packed_bert
from spacy_sbert.models.engine.bert_families import is_packable
from spacy_sbert.models.engine.packed_bert import PackedBert
from spacy_sbert.models.engine.packing import Batch, lay_out


def alone(model, rows):
    """The states of each window alone, by Hugging Face."""
    windows, types = zip(*(window for row in rows for window in row), strict=True)
    return states_alone(model, windows, types)


@pytest.mark.parametrize("with_types", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_states_are_those_of_each_window_alone(name, with_types):
    model = make_model(name)
    assert is_packable(model)
    rows = make_rows(model.config.type_vocab_size if with_types else 1)
    expected = alone(model, rows)
    given = by_window(PackedBert(model, torch.float32), rows)
    assert len(given) == 7
    assert torch.cat(expected).std() > 0.3
    assert largest_difference(given, expected) < 1e-5


@pytest.mark.parametrize(
    ("name", "dtype"), [*((n, torch.float32) for n in PACKED), ("bert", torch.bfloat16)]
)
def test_neighbours_have_no_influence(name, dtype):
    encoder = PackedBert(make_model(name), dtype)
    rows = make_rows(n_types=3)
    others = make_rows(n_types=3)
    others[0][1] = make_window(5, 3, seed=98)
    others[2][1] = make_window(8, 3, seed=99)
    given = by_window(encoder, rows)
    changed = by_window(encoder, others, padding=9)
    equal = [torch.equal(a, b) for a, b in zip(given, changed, strict=True)]
    assert equal == [True, False, True, True, False, True, True]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["bert_tanh", "bert_relu", "bert_odd_heads", "mpnet"])
def test_plain_products_are_those_of_onednn(monkeypatch, name, dtype):
    if not private_torch._has_packed_linear(torch.ones(2, 2, dtype=dtype)):
        pytest.skip("needs oneDNN's kernels")
    model = make_model(name)
    rows = make_rows()
    fused = by_window(PackedBert(model, dtype), rows)
    monkeypatch.setattr(private_torch, "_has_packed_linear", lambda weight: False)
    # Would be noticed
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", None)
    plain = by_window(PackedBert(model, dtype), rows)
    if dtype == torch.float32:
        assert largest_difference(plain, fused) < 1e-5
        assert largest_difference(plain, alone(model, rows)) < 1e-5
    else:
        assert cosine(plain, fused) > 0.999


@pytest.mark.parametrize("name", ["bert_tanh", "bert_relu", *PACKED])
def test_bfloat16_is_close(name):
    model = make_model(name)
    rows = make_rows(n_types=3)
    expected = alone(model, rows)
    given = by_window(PackedBert(model, torch.bfloat16), rows)
    assert {states.dtype for states in given} == {torch.bfloat16}
    assert cosine(given, expected) > 0.999
    assert largest_difference(given, expected) > 1e-4, "it is half precision"


def test_minilm(minilm):
    model = minilm.get_pipe("sbert").model.get_ref("encoder").get_ref("transformer").shim
    model.load()
    rows = [[make_window(n, 2, seed=n) for n in row] for row in ([30, 20, 14], [60])]
    model = model._model.eval()
    assert is_packable(model)
    assert (
        largest_difference(
            by_window(PackedBert(model, torch.float32), rows, width=64), alone(model, rows)
        )
        < 1e-5
    )


class Changed(BertModel):
    """May do anything."""


class Adapted(torch.nn.Linear):
    """As that of an adapter: the weight is not all."""


def with_adapter():
    model = make_model("bert")
    model.encoder.layer[1].attention.self.query = Adapted(16, 16)
    return model


def with_pruned_heads(name):
    model = make_model(name)
    if hasattr(model, "prune_heads"):
        model.prune_heads({0: [0], 1: [1], 2: [0]})
        return model
    family = bert_families.family_of(model)
    attention, _, n_heads = family.path(bert_families.N_HEADS).rpartition(".")
    for layer in attrgetter(family.layers)(model):
        # As version 4 of transformers left it
        setattr(attrgetter(attention)(layer), n_heads, 1)
    return model


def with_adapted_embeddings():
    model = make_model("electra_narrow")
    model.embeddings_project = Adapted(12, 16)
    return model


OTHERS = {
    "decoder": lambda: make_model("bert", is_decoder=True),
    "cross_attention": lambda: make_model("bert", is_decoder=True, add_cross_attention=True),
    "relative_positions": lambda: make_model("bert", position_embedding_type="relative_key"),
    "all_layers": lambda: make_model("bert", output_hidden_states=True),
    "attentions": lambda: make_model("bert", output_attentions=True),
    "unknown_activation": lambda: make_model("bert", hidden_act="silu"),
    "subclass": lambda: Changed(BertConfig(**SIZES)),
    "unknown_activation_of_distilbert": lambda: make_model("distilbert", activation="silu"),
    "another_architecture": lambda: AlbertModel(AlbertConfig(**SIZES, embedding_size=8)),
    **{
        f"pruned_heads_of_{name}": partial(with_pruned_heads, name)
        for name in ("bert", "mpnet", "distilbert")
    },
    "adapter": with_adapter,
    "adapter_between_embeddings_and_layers": with_adapted_embeddings,
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_others_are_not_packable(make):
    assert not is_packable(make())


@pytest.mark.parametrize("block", [1, 2 * 20 * 20 * 2])
def test_blocks_of_rows_give_the_same_bits(monkeypatch, block):
    """Attention in bfloat16 is made for a few rows at a time: here one, and two."""
    encoder = PackedBert(make_model("bert"), torch.bfloat16)
    rows = make_rows()
    whole = by_window(encoder, rows)
    monkeypatch.setattr(packed_bert, "_BLOCK", block)
    assert all(map(torch.equal, by_window(encoder, rows), whole))


@pytest.mark.parametrize(
    ("length", "width", "places"),
    [(1, 4, 4), (9, 12, 12), (32, 32, 32), (33, 40, 48), (40, 40, 48)],
)
def test_a_window_alone_takes_few_places(length, width, places):
    """Its row is hardly longer than itself, and products are of few shapes."""
    engine = PackedBert(make_model("bert"), torch.float32)
    seen = []
    pieces = batch_of([length], numpy.random.default_rng(0).integers(8, 50, length))
    (rows,) = engine.batches(pieces, numpy.arange(1), 2048)
    assert rows.shape == (1, width)
    wider = Batch(rows.windows, rows.starts, (2, 128))
    ids, columns, _, owners = lay_out(pieces, wider, engine.device)
    expected = engine(ids, columns, None, owners)
    assert len(expected) == 256
    for layer in engine.layers:
        layer.linears = {
            name: lambda states, product=product: seen.append(len(states)) or product(states)
            for name, product in layer.linears.items()
        }
    found = engine.encode(pieces, rows)
    assert set(seen) == {places}
    assert torch.allclose(found[:length], expected[:length], rtol=0, atol=1e-5)
