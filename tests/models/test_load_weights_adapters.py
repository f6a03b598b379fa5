"""LoRA adapters of peft: merged into their base, with the base's settings or their own."""

import os
import shutil

import numpy
import pytest
import spacy
import torch
from helpers.invoking import invoke
from helpers.pipelines import SHARING, change_json, one_pipe
from helpers.small_tokenizers import TEXTS, make_folder
from safetensors.numpy import load_file, save_file

from spacy_sbert import find_sbert
from spacy_sbert.files.checksum import file_digest
from spacy_sbert.hub import export_folder, import_folder
from spacy_sbert.hub.cards import package_card
from spacy_sbert.hub.facts import describe
from spacy_sbert.pipeline.sentence_model import find_transformer

RANK = 4
ALPHA = 6
SELF_ATTENTION = "encoder.layer.{}.attention.self.{}"
LAYERS = [SELF_ATTENTION.format(i, part) for i in (0, 1) for part in ("query", "value")]
# As peft 0.21 writes it, shortened
CONFIG = {
    "alpha_pattern": {},
    "auto_mapping": {"base_model_class": "BertModel"},
    "bias": "none",
    "fan_in_fan_out": False,
    "inference_mode": True,
    "init_lora_weights": True,
    "lora_alpha": ALPHA,
    "lora_dropout": 0.1,
    "megatron_core": "megatron.core",
    "modules_to_save": None,
    "peft_type": "LORA",
    "qalora_group_size": 16,
    "r": RANK,
    "rank_pattern": {},
    "target_modules": ["query", "value"],
    "task_type": "FEATURE_EXTRACTION",
    "use_dora": False,
    "use_rslora": False,
}


def weight_names(layer):
    return [f"base_model.model.{layer}.lora_{matrix}.weight" for matrix in "AB"]


def make_matrices(base, layers=LAYERS):
    """A and B of each layer, by peft's names."""
    rng = numpy.random.default_rng(1)
    weights = load_file(base / "model.safetensors")
    matrices = {}
    for layer in layers:
        n_outputs, n_inputs = weights[f"{layer}.weight"].shape
        first, second = weight_names(layer)
        matrices[first] = rng.normal(0, 0.3, (RANK, n_inputs)).astype("float32")
        matrices[second] = rng.normal(0, 0.3, (n_outputs, RANK)).astype("float32")
    return matrices


def write_adapter(folder, base, matrices, **config):
    folder.mkdir(exist_ok=True)
    save_file(matrices, folder / "adapter_model.safetensors")
    change_json(
        folder / "adapter_config.json",
        **{**CONFIG, "base_model_name_or_path": str(base), **config},
    )
    return folder


def merged_weights(base, matrices, scaling):
    """W + scaling * B A, in float64."""
    weights = load_file(base / "model.safetensors")
    for layer in LAYERS:
        first, second = (matrices[name].astype("float64") for name in weight_names(layer))
        weights[f"{layer}.weight"] = weights[f"{layer}.weight"] + scaling * (second @ first)
    return weights


def states_of(nlp):
    shim = find_transformer("sbert", find_sbert(nlp).model).shim
    shim.load()
    return {name: weight.numpy() for name, weight in shim.network.state_dict().items()}


def encode(nlp):
    return find_sbert(nlp).encode(TEXTS)


@pytest.fixture
def base(tmp_path):
    return make_folder(tmp_path / "base", "wordpiece")


@pytest.fixture
def adapter(base, tmp_path):
    return write_adapter(tmp_path / "adapter", base, make_matrices(base))


@pytest.mark.parametrize("precision", ["float32", "reference"])
@pytest.mark.parametrize(
    ("config", "scaling"), [({}, ALPHA / RANK), ({"use_rslora": True}, ALPHA / RANK**0.5)]
)
def test_weights_are_those_of_numpy(config, scaling, precision, base, tmp_path):
    digest = file_digest(base / "model.safetensors")
    matrices = make_matrices(base)
    folder = write_adapter(tmp_path / "adapter", base, matrices, **config)
    states = states_of(one_pipe(folder, precision=precision))
    expected = merged_weights(base, matrices, scaling)
    assert states.keys() == expected.keys()
    assert max(numpy.abs(states[name] - expected[name]).max() for name in states) < 1e-6
    assert file_digest(base / "model.safetensors") == digest


def test_half_precision_is_multiplied_in_float32(base, tmp_path):
    matrices = make_matrices(base)
    halves = {name: matrix.astype("float16") for name, matrix in matrices.items()}
    states = states_of(one_pipe(write_adapter(tmp_path / "adapter", base, halves)))
    expected = merged_weights(base, halves, ALPHA / RANK)
    assert max(numpy.abs(states[name] - expected[name]).max() for name in states) < 1e-6


def merged_folder(base, matrices, folder):
    shutil.copytree(base, folder)
    weights = merged_weights(base, matrices, ALPHA / RANK)
    weights = {name: weight.astype("float32") for name, weight in weights.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_vectors_and_settings_are_those_of_a_merged_base(base, adapter, tmp_path):
    """Without modules.json: limit, pooling, normalization and prompts are the base's."""
    change_json(base / "1_Pooling" / "config.json", pooling_mode_mean_tokens=False)
    change_json(base / "1_Pooling" / "config.json", pooling_mode_cls_token=True)
    prompts = {"query": "a cat: "}
    change_json(
        base / "config_sentence_transformers.json", prompts=prompts, default_prompt_name="query"
    )
    merged = merged_folder(base, make_matrices(base), tmp_path / "merged")
    expected = import_folder(str(merged))
    nlp = import_folder(str(adapter))
    assert numpy.abs(encode(nlp) - encode(expected)).max() < 1e-5
    assert numpy.abs(encode(nlp) - encode(import_folder(str(base)))).max() > 0.1
    by_name = one_pipe(adapter, pooling="cls", default_prompt_name="query", precision="reference")
    assert numpy.abs(encode(by_name) - encode(expected)).max() < 1e-5


def test_a_shared_transformer_is_merged(base, adapter, tmp_path):
    def vectors(folder):
        factory, architecture = SHARING["shared"]
        nlp = one_pipe(folder, factory, **{"@architectures": architecture})
        model = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}
        nlp.add_pipe("sbert", config={"model": model})
        return numpy.stack([doc.vector for doc in nlp.pipe(TEXTS)])

    merged = merged_folder(base, make_matrices(base), tmp_path / "merged")
    assert numpy.abs(vectors(adapter) - vectors(merged)).max() < 1e-5


def test_a_folder_of_sentence_transformers_has_modules_and_tokenizer_of_its_own(
    base, adapter, tmp_path
):
    for name in ("modules.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(base / name, adapter / name)
    change_json(adapter / "tokenizer_config.json", truncation_side="left")
    change_json(adapter / "sentence_bert_config.json", max_seq_length=6)
    change_json(adapter / "1_Pooling" / "config.json", pooling_mode_max_tokens=True)
    merged = merged_folder(base, make_matrices(base), tmp_path / "merged")
    change_json(merged / "tokenizer_config.json", truncation_side="left")
    change_json(merged / "sentence_bert_config.json", max_seq_length=6)
    expected = one_pipe(merged, pooling="max", precision="reference")
    assert numpy.abs(encode(import_folder(str(adapter))) - encode(expected)).max() < 1e-5


def test_saved_and_exported_without_base_and_adapter(base, adapter, tmp_path):
    invoke("import", adapter, tmp_path / "pipeline")
    expected = encode(import_folder(str(adapter)))
    export_folder(spacy.load(tmp_path / "pipeline"), tmp_path / "exported")
    shutil.rmtree(base)
    shutil.rmtree(adapter)
    assert numpy.array_equal(encode(spacy.load(tmp_path / "pipeline")), expected)
    assert numpy.array_equal(encode(import_folder(str(tmp_path / "exported"))), expected)


def test_cards_name_base_and_adapter(base, adapter, tmp_path):
    nlp = import_folder(str(adapter))
    name = f"base with the adapter {file_digest(adapter / 'adapter_model.safetensors')}"
    assert describe(nlp).encoders[0].base_model == name
    nlp.to_disk(tmp_path / "pipeline")
    assert name in package_card(describe(spacy.load(tmp_path / "pipeline")))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("peft_type", "IA3"),
        ("bias", "all"),
        ("use_dora", True),
        ("rank_pattern", {"query": 2}),
        ("alpha_pattern", {"query": 2}),
        ("modules_to_save", ["pooler"]),
        ("fan_in_fan_out", True),
        ("init_lora_weights", "pissa"),
        ("layers_to_transform", [0]),
        ("a_setting_of_tomorrow", 1),
    ],
)
def test_other_settings_are_refused_by_name(key, value, base, tmp_path):
    folder = write_adapter(tmp_path / "adapter", base, make_matrices(base))
    change_json(folder / "adapter_config.json", **{key: value})
    with pytest.raises(ValueError, match=rf"adapter_config.json sets {key} = .*merge it by peft"):
        encode(one_pipe(folder))


def test_misfits_are_refused_by_name(base, tmp_path):
    first, second = weight_names(LAYERS[-1])
    whole = make_matrices(base)
    none = numpy.zeros((RANK, 16), "float32")
    other = "base_model.model.encoder.layer.2.attention.self.query.lora_A.weight"
    cases = [
        ({name: whole[name] for name in whole if name != second}, second),
        ({name: whole[name] for name in whole if name not in (first, second)}, first),
        ({**whole, other: none}, other),
        ({**whole, first: none[:, :8]}, f"shape: '{first.removesuffix('.lora_A.weight')}'"),
        ({**whole, second: none[:, :3]}, "shape"),
    ]
    for number, (matrices, named) in enumerate(cases):
        folder = write_adapter(tmp_path / str(number), base, matrices)
        with pytest.raises(ValueError, match="does not fit its base") as error:
            encode(one_pipe(folder))
        assert str(folder) in str(error.value)
        assert named in str(error.value)


def test_an_adapter_of_a_larger_base_is_refused(base, tmp_path):
    larger = make_folder(tmp_path / "larger", "wordpiece", hidden_size=32)
    with pytest.raises(ValueError, match="does not fit its base"):
        encode(one_pipe(write_adapter(tmp_path / "adapter", base, make_matrices(larger))))
    deeper = make_folder(tmp_path / "deeper", "wordpiece", num_hidden_layers=3)
    with pytest.raises(ValueError, match=r"does not fit its base.*layer\.2\.attention"):
        encode(one_pipe(write_adapter(tmp_path / "shallow", deeper, make_matrices(base))))


@pytest.mark.parametrize("way", [lambda folder: encode(one_pipe(folder)), import_folder])
def test_a_base_that_is_missing_is_named(way, adapter):
    for name in ("/nowhere/base", "an-owner/a-base"):
        change_json(adapter / "adapter_config.json", base_model_name_or_path=name)
        with pytest.raises(OSError, match=f"adapter in {adapter}: The encoder '{name}' was found"):
            way(str(adapter))
    change_json(adapter / "adapter_config.json", base_model_name_or_path=None)
    with pytest.raises(OSError, match=f"adapter in {adapter}: The encoder 'None' was found"):
        way(str(adapter))


@pytest.mark.parametrize("way", [lambda folder: encode(one_pipe(folder)), import_folder])
def test_pickles_are_refused(way, adapter):
    matrices = load_file(adapter / "adapter_model.safetensors")
    tensors = {name: torch.from_numpy(matrix) for name, matrix in matrices.items()}
    torch.save(tensors, adapter / "adapter_model.bin")
    os.unlink(adapter / "adapter_model.safetensors")
    with pytest.raises(ValueError, match=r"as a pickle \(adapter_model.bin\), which is not read"):
        way(str(adapter))


def test_an_adapter_beside_the_weights_of_its_base(base):
    """As peft leaves it that saves to the folder from which the base was loaded."""
    matrices = make_matrices(base)
    states = states_of(one_pipe(write_adapter(base, base, matrices)))
    expected = merged_weights(base, matrices, ALPHA / RANK)
    assert max(numpy.abs(states[name] - expected[name]).max() for name in states) < 1e-6


def test_an_adapter_of_an_adapter_is_refused(adapter, base, tmp_path):
    second = write_adapter(tmp_path / "second", adapter, make_matrices(base))
    with pytest.raises(ValueError, match=rf"base {adapter} of the adapter .* adapter itself"):
        encode(one_pipe(second))
    merged = write_adapter(base, base, make_matrices(base))
    with pytest.raises(ValueError, match=rf"base {merged} of the adapter .* adapter itself"):
        encode(one_pipe(write_adapter(tmp_path / "third", merged, make_matrices(base))))


@pytest.mark.parametrize("model", ["distilbert", "mpnet", "modernbert"])
def test_other_architectures(model, tmp_path):
    names = {"distilbert": "q_lin", "mpnet": "q", "modernbert": "Wqkv"}
    base = make_folder(tmp_path / "base", "wordpiece", model)
    weights = load_file(base / "model.safetensors")
    end = f".{names[model]}.weight"
    layers = [name.removesuffix(".weight") for name in weights if name.endswith(end)]
    matrices = make_matrices(base, layers)
    folder = write_adapter(tmp_path / "adapter", base, matrices)
    change_json(folder / "adapter_config.json", target_modules=[names[model]])
    states = states_of(one_pipe(folder))
    for layer in layers:
        first, second = (matrices[name].astype("float64") for name in weight_names(layer))
        expected = weights[f"{layer}.weight"] + ALPHA / RANK * (second @ first)
        assert numpy.abs(states[f"{layer}.weight"] - expected).max() < 1e-6


@pytest.mark.parametrize("settings", [{}, {"use_rslora": True}, {"target_modules": "all-linear"}])
def test_weights_are_those_of_peft(settings, base, tmp_path):
    peft = pytest.importorskip("peft")
    from transformers import AutoModel

    config = peft.LoraConfig(
        **{"r": RANK, "lora_alpha": ALPHA, "target_modules": ["query", "value"], **settings}
    )
    model = peft.get_peft_model(AutoModel.from_pretrained(base), config)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.3, generator=generator)
    model.save_pretrained(tmp_path / "adapter")
    states = states_of(one_pipe(tmp_path / "adapter"))
    expected = model.merge_and_unload().state_dict()
    assert states.keys() == expected.keys()
    assert max(numpy.abs(states[name] - expected[name].numpy()).max() for name in states) < 1e-6
