"""What a folder of another version of transformers asks for is done, or refused by name; nothing is
ignored.
"""

import shutil
from contextlib import contextmanager

import numpy
import pytest
import torch
from helpers.pipelines import change_json, one_pipe, warnings_with
from packaging.version import Version
from transformers import BertConfig, BertModel, BertTokenizerFast
from transformers import Gemma3TextConfig as GemmaConfig
from transformers import Gemma3TextModel as Gemma
from transformers import Qwen3Config as QwenConfig
from transformers import Qwen3Model as Qwen

from spacy_sbert.models.transformers_versions import INSTALLED

SIZES = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
SIZES |= {"num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 64, "pad_token_id": 0}
TEXTS = ["a man is eating food", "the cat sat on the mat", "someone"]


@pytest.fixture
def make_folder(tiny_bert, tmp_path):
    """Write the folder of a tiny random encoder with the tokenizer of the tiny BERT."""

    def make(model_class, config_class, *, tokenizer=None, **changes):
        n_words = len((tiny_bert / "vocab.txt").read_text().splitlines())
        torch.manual_seed(0)
        model = model_class(config_class(**SIZES, vocab_size=n_words))
        folder = tmp_path / "encoder"
        model.save_pretrained(folder)
        for file in tiny_bert.iterdir():
            if "token" in file.name or file.name == "vocab.txt":
                shutil.copy(file, folder)
        change_json(
            folder / "tokenizer_config.json",
            model_input_names=["input_ids", "attention_mask"],
            **(tokenizer or {}),
        )
        change_json(folder / "config.json", **changes)
        return folder

    return make


def text_encoder(folder, **model):
    """The pipe of an encoder, which is loaded."""
    pipe = one_pipe(folder, **model).get_pipe("sbert")
    pipe.load()
    return pipe


def states_of(folder, model_class, **settings):
    """The last state of each text, of Hugging Face's own model."""
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    model = model_class.from_pretrained(folder, **settings).eval()
    with torch.no_grad():
        found = [
            model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, -1].numpy()
            for text in TEXTS
        ]
    return numpy.stack(found)


@contextmanager
def refused_before(version, message):
    """Expect an error that names what is needed, or, from this version on, none."""
    if Version(version) <= INSTALLED:
        yield
        return
    with pytest.raises(
        ValueError, match=rf"{message}.* {INSTALLED} ignores.*transformers {version} or later"
    ):
        yield


BOTH_WAYS = [(Gemma, GemmaConfig, "use_bidirectional_attention", True, "4.56.2")]
BOTH_WAYS += [(Qwen, QwenConfig, "is_causal", False, "5.2")]


@pytest.mark.parametrize(("model", "config", "setting", "value", "version"), BOTH_WAYS)
def test_attention_both_ways_is_not_read_as_causal(
    make_folder, model, config, setting, value, version
):
    folder = make_folder(model, config)
    causal = text_encoder(folder, pooling="cls").encode(TEXTS)
    change_json(folder / "config.json", **{setting: value})
    with refused_before(version, f"{setting} = {value}"):
        found = text_encoder(folder, pooling="cls").encode(TEXTS)
        # The first sees the others
        assert abs(found - causal).max() > 1e-3


ROPES = [{"rope_theta": 1_000_000.0, "rope_type": "default"}]
ROPES += [
    {
        "rope_theta": 10_000.0,
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 16,
    }
]


@pytest.mark.parametrize("rope", ROPES)
def test_rotary_positions_of_version_5_are_not_ignored(make_folder, rope):
    folder = make_folder(Qwen, QwenConfig)
    plain = text_encoder(folder, pooling="lasttoken").encode(TEXTS)
    change_json(folder / "config.json", rope_parameters=rope, rope_theta=..., rope_scaling=...)
    with refused_before("5.0", "rope_parameters = "):
        found = text_encoder(folder, pooling="lasttoken", normalize=False).encode(TEXTS)
        assert abs(text_encoder(folder, pooling="lasttoken").encode(TEXTS) - plain).max() > 1e-6
        assert numpy.allclose(found, states_of(folder, Qwen), atol=1e-6)


@pytest.mark.parametrize("kind", ["relative_key", "relative_key_query"])
def test_relative_positions_of_version_4_are_not_ignored(tiny_bert, tmp_path, kind):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    change_json(folder / "config.json", position_embedding_type=kind)
    if Version("5.0") <= INSTALLED:
        with pytest.raises(ValueError, match=f"position_embedding_type = {kind}"):
            text_encoder(folder)
        return
    # The table of distances
    torch.manual_seed(0)
    BertModel(BertConfig.from_pretrained(folder)).save_pretrained(folder)
    expected = states_of(folder, BertModel)
    found = text_encoder(folder, pooling="lasttoken", normalize=False).encode(TEXTS)
    assert numpy.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("theta", [..., 1_000_000.0])
def test_rotary_positions_that_are_known_are_read(make_folder, theta):
    """Those of the default, and those that are written for version 4, too."""
    rope = {"rope_theta": 10_000.0 if theta is ... else theta, "rope_type": "default"}
    folder = make_folder(Qwen, QwenConfig, rope_parameters=rope, rope_theta=theta, rope_scaling=...)
    expected = states_of(folder, Qwen)
    found = text_encoder(folder, pooling="lasttoken", normalize=False).encode(TEXTS)
    assert numpy.allclose(found, expected, atol=1e-6)


def test_settings_of_a_newer_version_are_named_once(make_folder):
    changes = {"transformers_version": "99.1", "attention_sink": 4, "gated": True}
    nothing = {"new_token_id": 7, "_internal": 1, "unused": None, "empty": [], "off": False}
    folder = make_folder(Qwen, QwenConfig, **changes, **nothing)
    with warnings_with("sbert-unknown-settings") as told:
        text_encoder(folder).encode(TEXTS)
    assert len(told) == 1
    assert "99.1" in told[0]
    assert f"{INSTALLED} does not know: attention_sink, gated." in told[0]


def test_the_tokenizer_class_of_version_5_is_read(make_folder, tiny_bert):
    folder = make_folder(Qwen, QwenConfig)
    expected = text_encoder(folder).encode(TEXTS)
    change_json(folder / "tokenizer_config.json", tokenizer_class="TokenizersBackend")
    (folder / "vocab.txt").unlink()
    assert numpy.array_equal(text_encoder(folder).encode(TEXTS), expected)


@pytest.mark.parametrize(
    ("model", "config", "side"), [(Qwen, QwenConfig, "left"), (Gemma, GemmaConfig, "right")]
)
def test_the_last_token_of_a_decoder(make_folder, model, config, side):
    folder = make_folder(model, config, tokenizer={"padding_side": side})
    expected = states_of(folder, model)
    encoder = text_encoder(folder, pooling="lasttoken", normalize=False)
    # together, texts of several lengths
    assert numpy.allclose(encoder.encode(TEXTS), expected, atol=1e-6)
    assert numpy.allclose(encoder.encode(TEXTS[2:]), expected[2:], atol=1e-6)
