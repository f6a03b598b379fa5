"""Weights that are read without the classes of Hugging Face: what they are, and when the classes
are needed.
"""

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from operator import is_

import numpy
import pytest
import spacy
import torch
import transformers
from helpers.pipelines import change_json, one_pipe, shim_of
from helpers.small_models import MODELS, by_window, make_model, make_rows
from safetensors.torch import load_file, save_file

from spacy_sbert.models.encoder_checks import position_limit
from spacy_sbert.models.engine.bert_families import (
    FAMILIES,
    BertParameters,
    Family,
    is_packable,
    load_parameters,
)
from spacy_sbert.models.engine.packed_bert import PackedBert
from spacy_sbert.models.load_tokenizer import load_tokenizer
from spacy_sbert.models.load_weights import build_network
from spacy_sbert.models.loading import Source, load_config
from spacy_sbert.models.sbert_config import TransformerConfig
from spacy_sbert.models.shim import TransformerShim

TEXTS = ["The cat sat.", "A man is eating food.", "It is."]


def read(folder, trust=False, **settings):
    source = Source(folder, "tiny", transformer_config=settings, trust=trust)
    return load_parameters(source, load_config(source))


def test_every_family_has_a_model_here():
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind, *_ in MODELS.values()}
    assert {name.removeprefix("transformers.models.") for name in kinds} == set(FAMILIES)


@pytest.mark.parametrize(("use_task_id", "is_known"), [(False, True), (True, False)])
def test_a_model_with_further_parameters_is_not_packed(use_task_id, is_known, monkeypatch):
    """ERNIE adds an embedding of tasks to those of BERT."""
    monkeypatch.setitem(FAMILIES, "ernie.modeling_ernie.ErnieModel", Family())
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 40, "vocab_size": 50}
    config = transformers.ErnieConfig(**sizes, num_hidden_layers=1, use_task_id=use_task_id)
    assert is_packable(transformers.ErnieModel(config)) == is_known


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_of_from_pretrained(name, tmp_path):
    """Their states are equal to the last bit."""
    make_model(name).save_pretrained(tmp_path)
    stock = type(make_model(name)).from_pretrained(tmp_path)
    found = read(tmp_path)
    assert isinstance(found, BertParameters)
    assert position_limit(found) == position_limit(stock)
    rows = make_rows()
    given, expected = (
        by_window(PackedBert(model, torch.float32), rows) for model in (found, stock)
    )
    assert all(map(torch.equal, given, expected))


@pytest.mark.parametrize("name", MODELS)
def test_the_network_is_that_of_from_pretrained(name, tmp_path):
    kind = type(make_model(name))
    make_model(name).save_pretrained(tmp_path)
    stock = kind.from_pretrained(tmp_path)
    found = read(tmp_path)
    before = torch.get_rng_state()
    network = build_network(found.config, found.state_dict())
    assert torch.equal(before, torch.get_rng_state()), "training draws the same numbers"
    assert type(network) is kind
    assert not network.training
    expected = {**stock.config.to_dict(), "_name_or_path": found.config.name_or_path}
    assert network.config.to_dict() == expected


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("tensors", ["named_parameters", "named_buffers"])
def test_weights_of_the_network_are_those_of_from_pretrained(name, tensors, tmp_path):
    """None is copied in memory."""
    make_model(name).save_pretrained(tmp_path)
    stock = type(make_model(name)).from_pretrained(tmp_path)
    found = read(tmp_path)
    read_weights = dict(found.named_parameters())
    assert read_weights.keys() == dict(stock.named_parameters()).keys()
    network = build_network(found.config, found.state_dict())
    ours = dict(getattr(network, tensors)())
    theirs = dict(getattr(stock, tensors)())
    assert list(ours) == list(theirs)
    for key, weight in ours.items():
        assert torch.equal(weight, theirs[key]), key
        assert weight.requires_grad == theirs[key].requires_grad, key
        if key in read_weights:
            assert weight.data_ptr() == read_weights[key].data_ptr(), key


@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_a_folder_without_a_pooler(name, tmp_path):
    network = make_model(name)
    network.pooler = None
    network.save_pretrained(tmp_path)
    found = read(tmp_path)
    assert found.state_dict().keys() == network.state_dict().keys()
    assert build_network(found.config, found.state_dict()).pooler is None


def with_weights(change):
    def changed(folder):
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors", {"format": "pt"})

    return changed


def with_config(**values):
    return lambda folder: change_json(folder / "config.json", **values)


NORM = "encoder.layer.1.output.LayerNorm.bias"
OTHERS = {
    "half_precision": with_weights(lambda weights: weights.update({NORM: weights[NORM].half()})),
    "lacks_one": with_weights(lambda weights: weights.pop(NORM)),
    "has_another": with_weights(lambda weights: weights.update(other=torch.zeros(16))),
    "another_width": with_weights(lambda weights: weights.update({NORM: torch.zeros(15)})),
    "half_a_pooler": with_weights(lambda weights: weights.pop("pooler.dense.bias")),
    "prefix_of_a_head": with_weights(
        lambda weights: weights.update({f"bert.{NORM}": weights.pop(NORM)})
    ),
    "damaged": lambda folder: (folder / "model.safetensors").write_bytes(b"\x00" * 100),
    "other_files": lambda folder: (folder / "model.safetensors").rename(
        folder / "model-00001-of-00002.safetensors"
    ),
    "another_class": with_config(architectures=["RobertaModel"]),
    "fewer_layers": with_config(num_hidden_layers=1),
    "no_padding": with_config(pad_token_id=None),
    "padding_out_of_the_vocabulary": with_config(pad_token_id=10_000),
    "heads_of_no_width": with_config(num_attention_heads=3),
    "a_decoder": with_config(is_decoder=True),
    "causal": with_config(is_causal=True),
    "another_activation": with_config(hidden_act="silu"),
    "relative_positions": with_config(position_embedding_type="relative"),
    "quantized": with_config(quantization_config={"quant_method": "fp8"}),
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_the_class_reads_all_others(change, tmp_path, tiny_bert):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    # As folders say whose head is gone
    change_json(folder / "config.json", architectures=["BertForMaskedLM"])
    assert read(folder) is not None
    change(folder)
    assert read(folder) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"frozen": ["embeddings"]},
        {"gradient_checkpointing": True},
        {"precision": "reference"},
    ],
)
def test_the_class_is_there_for_settings(tiny_bert, settings):
    assert read(tiny_bert, hidden_dropout_prob=0.3) is None
    assert read(tiny_bert, trust=True) is None
    shim = TransformerShim(str(tiny_bert), TransformerConfig(**settings))
    shim.load()
    assert type(shim.weights) is transformers.BertModel


def test_saved_pipelines_need_no_network_and_stay_the_same(tiny_bert, tmp_path):
    nlp = one_pipe(tiny_bert)
    expected = nlp.get_pipe("sbert").encode(TEXTS)
    assert isinstance(shim_of(nlp).weights, BertParameters)
    nlp.to_disk(tmp_path / "first")
    assert type(shim_of(nlp).weights) is transformers.BertModel
    again = spacy.load(tmp_path / "first")
    for pipeline in (nlp, again):
        assert numpy.array_equal(pipeline.get_pipe("sbert").encode(TEXTS), expected)
    assert isinstance(shim_of(again).weights, BertParameters)
    assert again(TEXTS[0]).similarity(nlp(TEXTS[0])) == pytest.approx(1), "of one fingerprint"
    again.to_disk(tmp_path / "second")
    first, second = (
        (tmp_path / name / "sbert" / "model").read_bytes() for name in ("first", "second")
    )
    assert first == second


def test_ranges_of_int8_survive_the_network(tiny_bert):
    nlp = one_pipe(tiny_bert)
    nlp.get_pipe("sbert").calibrate(TEXTS * 20)
    shim = shim_of(nlp)
    ranges = shim.calibration
    assert isinstance(shim.weights, BertParameters)
    assert ranges is not None
    assert type(shim.network) is transformers.BertModel
    assert shim.calibration is ranges


def test_threads_that_ask_for_it_get_one(tiny_bert):
    shim = TransformerShim(str(tiny_bert), TransformerConfig())
    shim.load()
    with ThreadPoolExecutor(4) as pool:
        networks = list(pool.map(lambda _: shim.network, range(8)))
    assert all(network is networks[0] for network in networks)


@pytest.mark.parametrize(
    "written", ["BertTokenizer", "BertTokenizerFast", None, "PreTrainedTokenizerFast"]
)
def test_the_tokenizer_is_that_of_the_auto_class(written, tmp_path, tiny_bert):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    change_json(folder / "tokenizer_config.json", tokenizer_class=written)
    expected = transformers.AutoTokenizer.from_pretrained(folder)
    found = load_tokenizer(Source(folder, "tiny"))
    assert type(found) is type(expected)
    assert found(TEXTS).input_ids == expected(TEXTS).input_ids


def test_parameters_come_in_the_order_of_pytorch(tiny_bert):
    made = read(tiny_bert)
    for module in (made, deepcopy(made), pickle.loads(pickle.dumps(made))):
        expected = [weight for _, weight in module.named_parameters()]
        found = list(module.parameters())
        assert len(found) == len(expected) > 0
        assert all(map(is_, found, expected))
    assert list(made.parameters(recurse=False)) == []
