"""Packed rows of ModernBERT: the states of Hugging Face's model, window by window, whatever is
encoded beside a window.
"""

import math

import numpy
import pytest
import torch
from helpers.pipelines import shim_of
from helpers.small_models import (
    MODERNBERT_SIZES,
    batch_of,
    cosine,
    largest_difference,
    make_modernbert,
    states_alone,
)
from srsly import cloudpickle
from transformers import AutoModel, AutoTokenizer, ModernBertConfig, ModernBertModel, __version__

from spacy_sbert.models.engine.backend import encode_windows
from spacy_sbert.models.engine.bert_families import is_packable
from spacy_sbert.models.engine.huggingface import HFBackend, ReferenceBackend
from spacy_sbert.models.engine.packed_modernbert import (
    PackedModernBert,
    is_packable_modernbert,
    rotary_frequencies,
    rotate,
    rotation,
    without_distant,
)
from spacy_sbert.models.engine.torch_backend import TorchBackendCache

# Of short texts that share rows, and of texts with a row of their own
LENGTHS = (3, 7, 400, 40, 5, 64, 65, 128, 129, 200, 17, 9)
BIASES = {"attention_bias": True, "mlp_bias": True, "norm_bias": True}
SETTINGS = {
    "local_16": {},
    "local_128": {"local_attention": 128},
    "odd_local_7": {"local_attention": 7, "global_attn_every_n_layers": 2},
    "all_global": {"global_attn_every_n_layers": 1},
    "biases": BIASES,
    "attention_bias": {"attention_bias": True},
    "mlp_bias": {"mlp_bias": True},
    "tanh": {"hidden_activation": "gelu_pytorch_tanh"},
    "relu": {"hidden_activation": "relu"},
    "three_heads": {"hidden_size": 30, "num_attention_heads": 3},
    "eager": {"attn_implementation": "eager"},
}
TEXT = "A man is eating food."


def make_windows(lengths=LENGTHS):
    rng = numpy.random.default_rng(0)
    return [rng.integers(3, 50, length).tolist() for length in lengths]


def encode(backend, windows):
    """The states of each window."""
    wordpieces = batch_of([len(window) for window in windows], numpy.concatenate(windows))
    found = {}
    for embeddings in encode_windows(backend, wordpieces):
        states = torch.from_numpy(embeddings.values).split(embeddings.lengths.tolist())
        found |= dict(zip(embeddings.windows.tolist(), states, strict=True))
    return [found[number] for number in range(len(windows))]


def relative_difference(given, expected):
    largest = max(float(states.abs().max()) for states in expected)
    return largest_difference(given, expected) / largest


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_states_are_those_of_each_window_alone(settings):
    model = make_modernbert(**settings)
    assert is_packable_modernbert(model)
    windows = make_windows()
    expected = states_alone(model, windows)
    given = encode(PackedModernBert(model, torch.float32), windows)
    assert torch.cat(expected).std() > 0.3
    assert relative_difference(given, expected) < 1e-6


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("local_attention", [16, 128])
def test_the_window_of_local_attention_is_exact(local_attention, change):
    model = make_modernbert(local_attention=local_attention)
    windows = make_windows([400])
    expected = states_alone(model, windows)
    backend = PackedModernBert(model, torch.float32)
    assert backend.local_distance == local_attention // 2
    backend.local_distance += change
    assert relative_difference(encode(backend, windows), expected) > 1e-4


def test_scores_beyond_the_distance():
    scores = torch.zeros(1, 1, 4, 4)
    scores[..., 3] = -torch.inf
    inf = math.inf
    expected = [[0, 0, -inf, -inf], [0, 0, 0, -inf], [-inf, 0, 0, -inf], [-inf, -inf, 0, -inf]]
    assert without_distant(scores, 1)[0, 0].tolist() == expected
    assert without_distant(scores, 3) is scores


def test_rotation_by_hand():
    """A quarter of a turn for each place in the first pair of numbers, of the other a hundredth."""
    frequencies = rotary_frequencies(10000.0, 4)
    assert frequencies.tolist() == pytest.approx([1, 0.01])
    # (places, queries and keys, heads, size)
    heads = torch.tensor([1.0, 2.0, 0.0, 0.0]).expand(3, 2, 1, 4).clone()
    rotate(heads, rotation(torch.tensor([0, 1, 2]), frequencies * math.pi / 2))
    turn = math.pi / 200
    expected = [
        [1, 2, 0, 0],
        [0, 2 * math.cos(turn), 1, 2 * math.sin(turn)],
        [-1, 2 * math.cos(2 * turn), 0, 2 * math.sin(2 * turn)],
    ]
    for part in (0, 1):
        assert torch.allclose(heads[:, part, 0], torch.tensor(expected), atol=1e-6)


@pytest.mark.parametrize("local_attention", [16, 128])
def test_neighbours_have_no_influence(local_attention):
    backend = PackedModernBert(make_modernbert(local_attention=local_attention), torch.float32)
    windows = make_windows()
    together = encode(backend, windows)
    alone = [encode(backend, [window])[0] for window in windows]
    assert relative_difference(together, alone) < 1e-6
    beside_another = encode(backend, [windows[0], make_windows([50])[0], windows[4]])
    assert relative_difference(beside_another[::2], [together[0], together[4]]) < 1e-6


@pytest.mark.parametrize("settings", [{}, BIASES], ids=["plain", "biases"])
def test_bfloat16_is_close(settings):
    model = make_modernbert(**settings)
    windows = make_windows([3, 7, 40, 100])
    expected = states_alone(model, windows)
    given = encode(PackedModernBert(model, torch.bfloat16), windows)
    assert cosine(given, expected) > 0.9999
    assert largest_difference(given, expected) > 1e-4, "it is half precision"


class Adapted(torch.nn.Linear):
    """As that of an adapter: the weight is not all."""


class Changed(ModernBertModel):
    """May do anything."""


def with_adapter(part):
    model = make_modernbert()
    layer = model.layers[1]
    holder = layer.attn if hasattr(layer.attn, part) else layer.mlp
    stock = getattr(holder, part)
    setattr(holder, part, Adapted(stock.in_features, stock.out_features, bias=False))
    return model


def with_setting(name, value):
    model = make_modernbert()
    setattr(model.config, name, value)
    return model


def with_scaled_rope():
    scaling = {"rope_type": "linear", "factor": 2.0}
    # Version 4 makes no ModernBERT of scaled positions: its config says so afterwards
    if __version__.startswith("4."):
        return with_setting("rope_scaling", scaling)
    return make_modernbert(rope_scaling=scaling)


OTHERS = {
    "adapter_of_attention": lambda: with_adapter("Wqkv"),
    "adapter_of_feed_forward": lambda: with_adapter("Wi"),
    "unknown_activation": lambda: make_modernbert(hidden_activation="silu"),
    "subclass": lambda: Changed(ModernBertConfig(**MODERNBERT_SIZES)),
    "all_layers": lambda: with_setting("output_hidden_states", True),
    "partly_rotated": lambda: with_setting("partial_rotary_factor", 0.5),
    "scaled_positions": with_scaled_rope,
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_others_stay_with_hugging_face(make):
    model = make()
    assert not is_packable_modernbert(model)
    cache = TorchBackendCache()
    assert type(cache.backend_of(model, "float32")) is HFBackend
    assert cache.encodes_alone(model, "float32")


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_the_backend_that_is_chosen(precision):
    model = make_modernbert()
    cache = TorchBackendCache()
    assert type(cache.backend_of(model, precision)) is PackedModernBert
    assert not cache.encodes_alone(model, precision)
    assert type(cache.backend_of(model, "reference")) is ReferenceBackend


def test_it_is_not_rounded_nor_packed_in_training():
    model = make_modernbert()
    cache = TorchBackendCache()
    assert not is_packable(model)
    assert not cache.needs_calibration(model, "int8")
    wordpieces = batch_of([3], [4, 5, 6])
    with pytest.raises(ValueError, match="ModernBertModel is not calibrated"):
        cache.calibrate(model, wordpieces)


@pytest.mark.parametrize("name", ["embeddings.tok_embeddings", "layers.2.mlp.Wi", "final_norm"])
def test_weights_that_change_in_place_are_noticed(name):
    model = make_modernbert()
    cache = TorchBackendCache()
    windows = make_windows([5, 30])
    before = encode(cache.backend_of(model, "float32"), windows)
    with torch.no_grad():
        model.get_submodule(name).weight.mul_(-2)
    expected = states_alone(model, windows)
    assert relative_difference(before, expected) > 0.01
    given = encode(cache.backend_of(model, "float32"), windows)
    assert relative_difference(given, expected) < 1e-6


# In the pipeline


@pytest.fixture
def folder(tiny_bert, tmp_path):
    """A ModernBERT with the tokenizer of the tiny BERT."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.save_pretrained(tmp_path)
    make_modernbert(vocab_size=len(tokenizer), local_attention=4).save_pretrained(tmp_path)
    return tmp_path


def backend_of(nlp):
    return shim_of(nlp).backend()


def test_vectors_are_those_of_the_plain_model(make_nlp, folder):
    nlp = make_nlp(name=folder, transformer={"precision": "float32"})
    model = AutoModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = [TEXT, "the cat", "a dog ran fast " * 5]
    vectors = nlp.get_pipe("sbert").encode(texts)
    assert type(backend_of(nlp)) is PackedModernBert
    for text, vector in zip(texts, vectors, strict=True):
        pieces = tokenizer(text, truncation=True)["input_ids"]
        (states,) = states_alone(model, [pieces])
        assert numpy.allclose(vector, states.mean(0), atol=1e-6)
        assert numpy.allclose(nlp(text).vector, vector, atol=1e-6)


def test_a_copy_and_bytes_give_the_same_vectors(make_nlp, folder):
    nlp = make_nlp(name=folder)
    expected = nlp(TEXT).vector
    copied = cloudpickle.loads(cloudpickle.dumps(nlp))
    from_bytes = make_nlp(name=folder)
    shim_of(nlp).network.final_norm.weight.data.mul_(2)
    changed = nlp(TEXT).vector
    assert numpy.allclose(changed, 2 * expected, atol=1e-5)
    from_bytes.from_bytes(nlp.to_bytes())
    assert numpy.array_equal(from_bytes(TEXT).vector, changed)
    assert type(backend_of(from_bytes)) is PackedModernBert
    assert numpy.array_equal(copied(TEXT).vector, expected)
