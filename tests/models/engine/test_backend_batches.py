"""Windows in batches: each once, with the states it has alone, within the budget."""

import math

import numpy
import pytest
import torch
from helpers.small_models import batch_of, largest_difference, make_model, states_alone
from transformers import EsmConfig, EsmModel

from spacy_sbert.models.engine.backend import encode_windows
from spacy_sbert.models.engine.concurrency import parallel_map
from spacy_sbert.models.engine.huggingface import HFBackend
from spacy_sbert.models.engine.packed_bert import PackedBert
from spacy_sbert.models.engine.packing import WIDTHS_APART

NAMES = [
    "packed_bert",
    "padded_bert",
    "packed_roberta",
    "padded_roberta",
    "packed_mpnet",
    "padded_mpnet",
]
NAMES += ["packed_electra_narrow", "packed_distilbert", "padded_distilbert"]
LENGTHS = [
    *numpy.random.default_rng(3).integers(1, 40, 60).tolist(),
    64,
    65,
    1,
    150,
    300,
    128,
    129,
    2,
]


def make_engine(name):
    """A small model, and what encodes with it."""
    kind, _, family = name.partition("_")
    model = make_model(family, max_position_embeddings=320)
    return model, PackedBert(model, torch.float32) if kind == "packed" else HFBackend(model)


def make_windows(lengths, seed=4):
    rng = numpy.random.default_rng(seed)
    return [rng.integers(3, 50, length).tolist() for length in lengths]


def wordpieces_of(windows, types=None):
    type_ids = None if types is None else numpy.concatenate(types)
    return batch_of([len(window) for window in windows], numpy.concatenate(windows), type_ids)


def states_of(engine, wordpieces, budget=0):
    """The states of each window; fails if one comes twice or never."""
    found = {}
    for part in encode_windows(engine, wordpieces, budget=budget):
        assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled(), (
            "the caller's mode is its own"
        )
        assert part.lengths.tolist() == wordpieces.lengths[part.windows].tolist()
        values = torch.from_numpy(part.values)
        assert values.dtype == torch.float32
        assert len(values) == part.lengths.sum()
        for window, states in zip(
            part.windows.tolist(), values.split(part.lengths.tolist()), strict=True
        ):
            assert window not in found
            found[window] = states
    return [found[window] for window in range(len(wordpieces.lengths))]


@pytest.fixture(autouse=True)
def one_thread(threads):
    """Which is quickest for so little."""
    threads(1)


@pytest.mark.parametrize(
    ("name", "budget"),
    [*((name, 300) for name in NAMES), ("packed_bert", 0), ("padded_bert", 10**6)],
)
def test_each_window_has_the_states_it_has_alone(name, budget):
    model, engine = make_engine(name)
    windows = make_windows(LENGTHS)
    if "bert" not in name or "roberta" in name:
        # The tokenizers of RoBERTa and MPNet know "<pad>" in a text, and their positions leave that
        # out.
        windows += [[0, 7, 1, 9, 10, 2], [0, 8, 9, 2]]
    types = (
        [[i % 2 for i in range(len(window))] for window in windows]
        if name == "padded_bert"
        else None
    )
    expected = states_alone(model, windows, types)
    assert (
        largest_difference(states_of(engine, wordpieces_of(windows, types), budget), expected)
        < 1e-5
    )


@pytest.mark.parametrize("name", ["packed_bert", "padded_bert"])
def test_several_threads(name, threads):
    model, engine = make_engine(name)
    windows = make_windows(LENGTHS)
    expected = states_alone(model, windows)
    threads(3)
    assert largest_difference(states_of(engine, wordpieces_of(windows), 100), expected) < 1e-5
    parts = encode_windows(engine, wordpieces_of(windows), budget=100)
    assert len(next(parts).windows) > 0
    # Who takes some parts alone is not kept waiting
    parts.close()
    assert torch.get_num_threads() == 3


def test_each_pass_of_several_runs_on_one_thread(threads):
    # As many as no other test has: these threads are new
    threads(5)
    assert list(parallel_map(lambda task: torch.get_num_threads(), range(10))) == [1] * 10
    assert torch.get_num_threads() == 5


@pytest.mark.parametrize("budget", [8, 1000, 10**6])
@pytest.mark.parametrize("name", ["packed_bert", "padded_bert"])
def test_passes_keep_to_the_budget(name, budget):
    _, engine = make_engine(name)
    passes = engine.batches(
        wordpieces_of(make_windows(LENGTHS)), numpy.arange(len(LENGTHS)), budget
    )
    shapes = [rows.shape for rows in passes]
    assert all(n_rows * width <= budget or n_rows == 1 for n_rows, width in shapes)
    if budget == 10**6:
        apart = WIDTHS_APART if name.startswith("packed") else 1
        long = {apart * math.ceil(length / apart) for length in LENGTHS if length > 64}
        widths = {width for _, width in shapes}
        assert max(widths) == max(long)
        assert len(shapes) == 1 or widths <= {64, *long}
    if budget == 1000:
        assert max(n_rows for n_rows, _ in shapes) >= 1000 // 128 and len(shapes) < 12, (
            "the budget is used"
        )


def test_equal_windows_are_encoded_once(monkeypatch):
    model, engine = make_engine("packed_bert")
    first, second, third = make_windows([12, 12, 30])
    windows = [first, second, first, third, first[:11], second] * 20
    encoded = []
    stock = engine.encode
    monkeypatch.setattr(
        engine, "encode", lambda given, rows: encoded.extend(rows.windows) or stock(given, rows)
    )
    given = states_of(engine, wordpieces_of(windows))
    assert sum(len(windows[window]) for window in encoded) == 12 + 12 + 30 + 11
    assert largest_difference(given, states_alone(model, windows)) < 1e-5
    with torch.inference_mode():
        given[0].fill_(5.0)
    assert not (given[2] == 5.0).any(), "each has states of its own"


def make_esm():
    """It keeps the cosines of its positions for the next batch as wide."""
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 24, "max_position_embeddings": 320, "initializer_range": 0.3}
    config = EsmConfig(
        **sizes,
        position_embedding_type="rotary",
        pad_token_id=1,
        mask_token_id=2,
        token_dropout=False,
    )
    with torch.random.fork_rng():
        torch.manual_seed(2)
        return EsmModel(config).eval()


def test_what_an_encoder_keeps_is_not_that_of_another_thread_and_can_be_trained_with(threads):
    model = make_esm()
    windows = make_windows(list(range(2, 82)))
    expected = states_alone(model, windows)
    threads(4)
    for _ in range(3):
        assert (
            largest_difference(states_of(HFBackend(model), wordpieces_of(windows), 8), expected)
            < 1e-5
        )
    # It keeps those of this width
    states_of(HFBackend(model), wordpieces_of(windows[:1]))
    model.train()(input_ids=torch.tensor(windows[:1])).last_hidden_state[..., 0].sum().backward()
    assert model.encoder.layer[0].attention.self.query.weight.grad.any()
