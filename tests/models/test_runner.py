"""Windows in batches: each once, with the states it has alone, within the budget."""

import math

import numpy
import pytest
import torch
from small_models import batch_of
from small_models import make_model as make_small
from transformers import EsmConfig, EsmModel

from spacy_sbert.models.engine.backends import HFBackend, run
from spacy_sbert.models.engine.concurrency import parallel_map
from spacy_sbert.models.engine.packed_bert import PackedBert
from spacy_sbert.models.engine.packing import WIDTHS_APART

TRANSFORMERS = {  # a small model, and whether its rows are packed
    **{f"packed_{name}": (name, True) for name in ("bert", "roberta", "electra_narrow", "mpnet", "distilbert")},
    **{f"padded_{name}": (name, False) for name in ("bert", "roberta", "mpnet", "distilbert")},
}


def make_model(name):
    return make_small(name, max_position_embeddings=320)


def make_encoder(name):
    kind, packed = TRANSFORMERS[name]
    model = make_model(kind)
    return model, PackedBert(model, torch.float32) if packed else model


def make_windows(lengths, seed=4):
    rng = numpy.random.default_rng(seed)
    return [rng.integers(3, 50, length).tolist() for length in lengths]


LENGTHS = [*numpy.random.default_rng(3).integers(1, 40, 60).tolist(), 64, 65, 1, 150, 300, 128, 129, 2]


def wordpieces_of(windows, types=None):
    type_ids = None if types is None else numpy.concatenate(types)
    return batch_of([len(window) for window in windows], numpy.concatenate(windows), type_ids)


def engine_of(encoder):
    return encoder if isinstance(encoder, PackedBert) else HFBackend(encoder)


def states_of(encoder, wordpieces, budget=0):
    """The states of each window; fails if one comes twice or never."""
    found = {}
    for part in run(engine_of(encoder), wordpieces, budget=budget):
        assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled(), "the caller's mode is its own"
        assert part.lengths.tolist() == wordpieces.lengths[part.windows].tolist()
        values = torch.from_numpy(part.values)
        assert values.dtype == torch.float32 and len(values) == part.lengths.sum()
        for window, states in zip(part.windows.tolist(), values.split(part.lengths.tolist()), strict=True):
            assert window not in found
            found[window] = states
    return [found[window] for window in range(len(wordpieces.lengths))]


def one_by_one(model, windows, types=None):
    found = []
    for i, window in enumerate(windows):
        inputs = {} if types is None else {"token_type_ids": torch.tensor([types[i]])}
        mask = torch.ones(1, len(window), dtype=torch.long)
        with torch.no_grad():
            output = model(input_ids=torch.tensor([window]), attention_mask=mask, **inputs)
        found.append(output.last_hidden_state[0])
    return found


def assert_alike(given, expected):
    assert [states.shape for states in given] == [states.shape for states in expected]
    assert max(float((a - b).abs().max()) for a, b in zip(given, expected, strict=True)) < 1e-5


@pytest.fixture(autouse=True)
def threads():
    """One thread, which is quickest for so little; to be called with another number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def passes(monkeypatch):
    """Watch an encoder: the ids of each pass, and which places in it belong to a window."""
    seen = []

    def watch(encoder):
        if isinstance(encoder, PackedBert):
            call = PackedBert.__call__

            def spy(self, ids, columns, types, windows, n_used=None):
                seen.append((ids.numpy().copy(), windows.numpy() >= 0))
                return call(self, ids, columns, types, windows, n_used)

            monkeypatch.setattr(PackedBert, "__call__", spy)
        else:
            encoder.register_forward_pre_hook(
                lambda module, args, given: seen.append(
                    (given["input_ids"].numpy().copy(), given["attention_mask"].numpy() > 0)
                ),
                with_kwargs=True,
            )
        return seen

    return watch


@pytest.mark.parametrize(
    ("name", "budget"), [*((name, 300) for name in TRANSFORMERS), ("packed_bert", 0), ("padded_bert", 10**6)]
)
def test_each_window_has_the_states_it_has_alone(name, budget):
    model, encoder = make_encoder(name)
    windows = make_windows(LENGTHS)
    assert_alike(states_of(encoder, wordpieces_of(windows), budget), one_by_one(model, windows))


@pytest.mark.parametrize("name", ["packed_bert", "padded_bert"])
def test_several_threads(name, threads):
    model, encoder = make_encoder(name)
    windows = make_windows(LENGTHS)
    expected = one_by_one(model, windows)
    threads(3)
    given = states_of(encoder, wordpieces_of(windows), 100)
    assert torch.get_num_threads() == 3
    assert_alike(given, expected)
    parts = run(engine_of(encoder), wordpieces_of(windows), budget=100)
    assert len(next(parts).windows) > 0
    parts.close()  # who takes some parts alone is not kept waiting
    assert torch.get_num_threads() == 3


def test_each_pass_of_several_runs_on_one_thread(threads):
    threads(5)  # as many as no other test has: these threads are new
    assert list(parallel_map(lambda task: torch.get_num_threads(), range(10))) == [1] * 10
    assert torch.get_num_threads() == 5


def test_token_types():
    model, encoder = make_encoder("padded_bert")
    windows, rng = make_windows(LENGTHS), numpy.random.default_rng(8)
    types = [rng.integers(0, 2, length).tolist() for length in LENGTHS]
    expected = one_by_one(model, windows, types)
    assert_alike(states_of(encoder, wordpieces_of(windows, types)), expected)
    assert (expected[0] - one_by_one(model, windows[:1])[0]).abs().max() > 0.1


@pytest.mark.parametrize("budget", [8, 1000, 10**6])
@pytest.mark.parametrize("name", ["packed_bert", "padded_bert"])
def test_passes_keep_to_the_budget(name, budget, passes):
    _, encoder = make_encoder(name)
    seen = passes(encoder)
    states_of(encoder, wordpieces_of(make_windows(LENGTHS)), budget)
    assert all(ids.size <= budget or len(ids) == 1 for ids, _ in seen)
    if budget == 10**6:
        widths = sorted(ids.shape[1] for ids, _ in seen)
        apart = WIDTHS_APART if name.startswith("packed") else 1
        long = {apart * math.ceil(length / apart) for length in LENGTHS if length > 64}
        assert widths[-1] == max(long) and (len(widths) == 1 or set(widths) <= {64, *long})
    if budget == 1000:
        widest = max(len(ids) for ids, _ in seen)
        assert widest >= 1000 // 128 and len(seen) < 12, "the budget is used"


def test_equal_windows_are_encoded_once(passes):
    model, encoder = make_encoder("packed_bert")
    first, second, third = make_windows([12, 12, 30])
    windows = [first, second, first, third, first[:11], second] * 20
    seen = passes(encoder)
    given = states_of(encoder, wordpieces_of(windows))
    assert sum(int(held.sum()) for _, held in seen) == 12 + 12 + 30 + 11
    assert_alike(given, one_by_one(model, windows))
    with torch.inference_mode():
        given[0].fill_(5.0)
    assert not (given[2] == 5.0).any(), "each has states of its own"


@pytest.mark.parametrize("name", ["packed_roberta", "padded_roberta", "packed_mpnet", "padded_mpnet"])
def test_padding_that_a_text_spells_has_no_position(name):
    """The tokenizers of RoBERTa and MPNet know "<pad>" in a text, and their positions leave that out."""
    model, encoder = make_encoder(name)
    windows = [[0, 7, 1, 9, 10, 2], [0, 8, 9, 2]]
    assert_alike(states_of(encoder, wordpieces_of(windows)), one_by_one(model, windows))


def make_esm():
    """It keeps the cosines of its positions for the next batch as wide."""
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 24, "max_position_embeddings": 320, "initializer_range": 0.3}
    config = EsmConfig(**sizes, position_embedding_type="rotary", pad_token_id=1, mask_token_id=2, token_dropout=False)
    with torch.random.fork_rng():
        torch.manual_seed(2)
        return EsmModel(config).eval()


def test_what_an_encoder_keeps_can_be_trained_with():
    model, windows = make_esm(), make_windows([9, 9])
    states_of(model, wordpieces_of(windows))
    model.train()(input_ids=torch.tensor(windows)).last_hidden_state.sum().backward()
    assert model.encoder.layer[0].attention.self.query.weight.grad.any()


def test_what_an_encoder_keeps_is_not_that_of_another_thread(threads):
    model, windows = make_esm(), make_windows(list(range(2, 82)))
    expected = one_by_one(model, windows)
    threads(4)
    for _ in range(3):
        assert_alike(states_of(model, wordpieces_of(windows), 8), expected)
