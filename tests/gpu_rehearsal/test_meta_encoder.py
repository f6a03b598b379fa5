"""The encoder, in use and in training, as on a GPU: nothing mixes devices, nothing waits, every
dtype has a kernel.
"""

from functools import partial
from types import SimpleNamespace

import numpy
import pytest
import torch
from gpu_rehearsal.strict_meta import META, StrictCalls, strict_gpu
from helpers.small_models import TRAINED, batch_of
from thinc.api import Adam
from transformers import BertConfig

from spacy_sbert.models.engine import backend, packed_training, training
from spacy_sbert.models.engine.bert_families import is_packable
from spacy_sbert.models.engine.fused_adam import can_fuse
from spacy_sbert.models.engine.packed_bert import PackedBert
from spacy_sbert.models.engine.training import cached_forward, plain_forward
from spacy_sbert.models.private_attributes import is_installed
from spacy_sbert.models.span_batch import TokenEmbeddings
from spacy_sbert.reranker import cross_encoder

if is_installed():
    from spacy_sbert.models import spacy_transformers

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
LENGTHS = [5, 17, 64, 3, 200, 1, 30, 30, 9]
N = sum(LENGTHS)
# uploads: ids, columns, types and windows; places of the states
LAYOUT = 4
PLACES = 1
# Of distances, which Hugging Face computes on the CPU as well
BUCKETS = {"mpnet": 1}


@pytest.fixture(params=TRAINED)
def kind(request):
    return request.param


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch):
    """Arrays stay what they are, where CuPy would share their memory; autocast is that of
    StrictCalls.
    """
    for module in (training, backend):
        monkeypatch.setattr(module, "torch2xp", lambda tensor: tensor)
    if is_installed():
        monkeypatch.setattr(spacy_transformers, "torch2xp", lambda tensor: tensor)
        monkeypatch.setattr(spacy_transformers, "xp2torch", lambda array, device: array.to(device))
    monkeypatch.setattr(training, "autocast", lambda device, precision: strict_autocast(precision))


def strict_autocast(precision):
    return StrictCalls(None if precision == "float32" else DTYPES[precision])


def make_model(kind):
    network, config, sizes = TRAINED[kind]
    with META:
        model = network(config(**sizes))
    assert is_packable(model)
    assert model.device == META
    return model.train()


def make_wordpieces(with_types=False):
    # Padding is spelled, too
    ids = numpy.random.default_rng(4).integers(0, 50, N)
    return batch_of(LENGTHS, ids, numpy.arange(N) % 2 if with_types else None)


@pytest.mark.parametrize(
    ("precision", "with_types"), [("float32", True), ("bfloat16", False), ("float16", True)]
)
def test_a_pass(kind, precision, with_types):
    engine = PackedBert(make_model(kind), DTYPES[precision])
    wordpieces = make_wordpieces(with_types)
    (rows,) = engine.batches(wordpieces, numpy.array([0, 1, 3, 6, 7]), 1000)
    with strict_gpu() as gpu:
        states = engine.encode(wordpieces, rows)
    assert states.shape == (rows.shape[0] * rows.shape[1], 16)
    assert (states.dtype, states.device) == (DTYPES[precision], META)
    assert gpu.uploads == LAYOUT + BUCKETS.get(kind, 0)
    assert gpu.called.count("native_layer_norm") == 5
    assert "bmm" in gpu.called


def test_a_run(kind, monkeypatch):
    """In passes of the size that suits a GPU, one after another, and with nothing that is done for
    a CPU.
    """
    engine = PackedBert(make_model(kind), torch.float16)
    wordpieces = make_wordpieces()
    budgets = []
    stock = engine.batches
    engine.batches = lambda *given: budgets.append(given[2]) or stock(*given)
    # Would be noticed
    monkeypatch.setattr(backend, "parallel_map", None)
    with strict_gpu() as gpu:
        found = list(backend.encode_windows(engine, wordpieces))
    assert budgets == [backend.GPU_BUDGET]
    assert sorted(window for part in found for window in part.windows) == list(range(len(LENGTHS)))
    for part in found:
        assert part.values.shape == (part.lengths.sum(), 16)
        assert (part.values.dtype, part.values.device) == (torch.float32, META)
    assert gpu.uploads == len(found) * (LAYOUT + PLACES + BUCKETS.get(kind, 0))


@pytest.mark.parametrize(
    ("precision", "mini_batch_size"), [("float32", 0), ("bfloat16", 0), ("float16", 4)]
)
def test_training(kind, precision, mini_batch_size, monkeypatch):
    """With dropout, forwards and backwards; gradients are float32, as the weights are."""
    for name in ("_Linear", "_kept"):
        # Would be noticed
        monkeypatch.setattr(packed_training, name, None)
    model = make_model(kind)
    wordpieces = make_wordpieces()
    encode = plain_forward
    n_parts = n_passes = 1
    if mini_batch_size:
        encode = partial(cached_forward, mini_batch_size=mini_batch_size)
        n_parts = 3
        n_passes = 6
    with strict_gpu() as gpu:
        states, backward = encode(model, wordpieces, precision=precision)
        backward([torch.ones_like(part.values) for part in states])
    assert len(states) == n_parts
    for part in states:
        assert part.values.shape == (part.lengths.sum(), 16)
        assert (part.values.dtype, part.values.device) == (torch.float32, META)
    for p in learning(model).values():
        assert (p.grad.shape, p.grad.dtype, p.grad.device) == (p.shape, torch.float32, META)
    assert gpu.uploads == n_passes * (LAYOUT + PLACES + BUCKETS.get(kind, 0))
    assert "bernoulli_" in gpu.called, "of dropout"


def learning(model):
    return {name: p for name, p in model.named_parameters() if "pooler" not in name}


def test_optimizer(kind):
    """Thinc's own Adam works on the arrays of a GPU."""
    model = make_model(kind)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer = Adam(0.01, use_averages=False)
    with strict_gpu() as gpu:
        named = {(1, name): p for name, p in learning(model).items()}
        assert not can_fuse(optimizer, named)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert (norm.shape, norm.device, gpu.uploads) == ((), META, 0)


@pytest.mark.spacy_transformers
def test_padded_states():
    """What other listeners of a shared transformer take, and the gradient that they give."""
    lengths = numpy.array([3, 2, 4])
    parts = []
    wordpieces = make_wordpieces()
    wordpieces.lengths = lengths
    for windows in ([0, 2], [1]):
        own = lengths[windows]
        parts.append(
            TokenEmbeddings(numpy.array(windows), own, torch.ones(int(own.sum()), 16, device=META))
        )
    with strict_gpu() as gpu:
        states, backprop = spacy_transformers._pad_states(wordpieces, parts, 16, META)
        # As spacy-transformers makes it in another thread
        d_values = backprop(torch.ones(3, 4, 16))
    assert (states.shape, states.dtype, states.device) == ((3, 4, 16), torch.float32, META)
    assert [(each.shape, each.device) for each in d_values] == [((7, 16), META), ((2, 16), META)]
    assert gpu.uploads == 3


class MetaHead(torch.nn.Linear):
    device = META

    def get_input_embeddings(self):
        raise NotImplementedError

    def forward(self, input_ids, **_):
        return SimpleNamespace(logits=super().forward(torch.ones(len(input_ids), 1, device=META)))


class MetaClassifier(cross_encoder._ClassifierShim):
    """A cross-encoder without a folder; its network is one layer."""

    def __init__(self):
        super().__init__("nothing", n_outputs=2, max_batch_items=0)
        self._model = MetaHead(1, 2, device=META)
        self._model.config = BertConfig(num_labels=2)


def test_scores_of_pairs(monkeypatch):
    """In the order of the pairs, and back, in parts of one each."""
    monkeypatch.setattr(cross_encoder, "GPU_BUDGET", 1)
    monkeypatch.setattr(
        cross_encoder, "autocast", lambda device, precision: strict_autocast("float32")
    )
    shim = MetaClassifier()
    wordpieces = make_wordpieces()
    with strict_gpu() as gpu:
        used = shim.logits(wordpieces)
        logits, backprop = shim.begin_logits(wordpieces)
        backprop(torch.ones_like(logits))
    for found in (used, logits):
        assert (found.shape, found.dtype, found.device) == ((len(LENGTHS), 2), torch.float32, META)
    assert shim._model.weight.grad.shape == (2, 1)
    assert gpu.uploads == 10 * len(LENGTHS), "twice four inputs and the places"
