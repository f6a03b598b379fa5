"""What does not fit in an encoder's folder is an error that names it, and nothing is made up."""

import json
import shutil
from importlib.util import find_spec
from logging import Logger

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import MINILM, change_json, one_pipe, warnings_with, write_modules
from packaging.version import Version
from transformers import AutoConfig, BertForMaskedLM, BertModel, BertTokenizerFast
from transformers.utils import is_sentencepiece_available

from spacy_sbert.models.resolve import resolve
from spacy_sbert.models.sbert_config import TransformerConfig
from spacy_sbert.models.shim import TransformerShim
from spacy_sbert.models.transformers_versions import INSTALLED

TEXT = "the cat sat on the mat"


@pytest.fixture
def folder(tiny_bert, tmp_path):
    return shutil.copytree(tiny_bert, tmp_path / "bert")


def encode(folder, **model):
    return one_pipe(folder, **model)(TEXT).vector


def score(folder):
    return one_pipe(folder, "sbert_reranker").get_pipe("sbert_reranker").score_pairs([(TEXT, TEXT)])


HEAD = {"architectures": ["BertForSequenceClassification"], "num_labels": 1}
LACKING = [
    (encode, {"num_hidden_layers": 3}, r"weights in .*bert lack .*layer\.2\.attention"),
    (score, {"num_hidden_layers": 1}, r"weights in .*bert hold .*layer\.1\.attention"),
    (encode, {"intermediate_size": 48}, r"config\.json do not make an encoder"),
    (
        encode,
        {"architectures": ["OwnModel"]},
        r"config\.json names the architecture OwnModel.*expected BertModel",
    ),
    (
        encode,
        {"architectures": ["RobertaModel"]},
        r"config\.json names the architecture RobertaModel",
    ),
    (score, HEAD, r"lack classifier\.bias, classifier"),
]


@pytest.mark.parametrize(("use", "settings", "message"), LACKING)
def test_weights_that_do_not_fit(folder, use, settings, message):
    change_json(folder / "config.json", **settings)
    with pytest.raises(ValueError, match=message):
        use(folder)


def test_fewer_layers_may_be_asked_for(folder, tmp_path):
    nlp = one_pipe(folder, transformer_config={"num_hidden_layers": 1})
    model = BertModel.from_pretrained(folder)
    model.encoder.layer = model.encoder.layer[:1]
    model.config.num_hidden_layers = 1
    model.save_pretrained(folder)
    assert numpy.array_equal(nlp(TEXT).vector, encode(folder))
    nlp.to_disk(tmp_path / "saved")
    assert numpy.array_equal(spacy.load(tmp_path / "saved")(TEXT).vector, nlp(TEXT).vector)


@pytest.fixture
def without_pooler(folder):
    """The folder of a model with a head in place of the pooler."""
    model = BertForMaskedLM(AutoConfig.from_pretrained(folder))
    model.bert.load_state_dict(BertModel.from_pretrained(folder).state_dict(), strict=False)
    model.save_pretrained(folder)
    return folder


def test_a_pooler_without_weights_is_taken_off(without_pooler, tiny_bert):
    expected = encode(tiny_bert)
    assert numpy.array_equal(encode(without_pooler), expected)
    change_json(without_pooler / "config.json", architectures=["BertForCL"])
    assert numpy.array_equal(encode(without_pooler), expected)


@pytest.mark.spacy_transformers
def test_a_shared_pooler_without_weights_is_taken_off(without_pooler):
    nlp = one_pipe(
        without_pooler, "transformer", **{"@architectures": "spacy-sbert.TransformerModel.v1"}
    )
    assert "pooler_output" not in nlp(TEXT)._.trf_data.model_output
    again = spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert "pooler_output" not in again(TEXT)._.trf_data.model_output


# Transformers 4; 5 itself
WRONG = [
    ("modules.json", [{"type": 1, "path": ""}], "a list of objects"),
    ("sentence_bert_config.json", {"do_lower_case": "no"}, "true or false"),
    ("sentence_bert_config.json", {"max_seq_length": 0}, "a whole number above 0"),
    ("sentence_bert_config.json", {"max_seq_length": True}, "a whole number above 0"),
    ("config_sentence_transformers.json", "x", "a JSON object"),
    ("config_sentence_transformers.json", {"prompts": {"query": 5}}, "an object of strings"),
    ("config_sentence_transformers.json", {"truncate_dim": "8"}, "a whole number"),
    ("1_Pooling/config.json", {"pooling_mode": 5}, "a string, or a list of them"),
    ("1_Pooling/config.json", {"include_prompt": "x"}, "true or false"),
    ("config.json", {"num_hidden_layers": 10**9}, "at most 1000"),
    (
        "config.json",
        {"layer_norm_eps": None},
        "a float, such as|field 'layer_norm_eps'",
    ),
    ("config.json", {"hidden_act": "x"}, "do not make an encoder"),
    ("tokenizer_config.json", {"model_max_length": "24"}, "a whole number above 0"),
    ("special_tokens_map.json", 5, "a JSON object"),
]


@pytest.mark.parametrize(("name", "content", "expected"), WRONG)
def test_wrong_types_are_named(folder, name, content, expected):
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"))
    change_json(folder / "1_Pooling" / "config.json", pooling_mode_mean_tokens=True)
    if isinstance(content, dict):
        change_json(folder / name, **content)
    else:
        (folder / name).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=expected) as caught:
        encode(folder)
    assert str(folder / name) in str(caught.value)


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "tokenizer_config.json", "config.json", "model.safetensors"]
)
@pytest.mark.parametrize("cut", [0, 0.9])
def test_a_cut_file_is_named(folder, name, cut):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(len(content) * cut)])
    with pytest.raises(ValueError, match=name):
        encode(folder)


def of_sentencepiece(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "sentencepiece.bpe.model").write_bytes(b"x")
    change_json(folder / "tokenizer_config.json", tokenizer_class="XLMRobertaTokenizer")


# Folders of which no file is damaged
VALID_ELSEWHERE = {
    "a tokenizer of SentencePiece": (
        of_sentencepiece,
        # And protobuf, unless another package has brought it
        r"sentencepiece\.bpe\.model.*pip install .*sentencepiece",
    ),
    "one that needs a package": (
        lambda folder: change_json(
            folder / "tokenizer_config.json",
            tokenizer_class="BertJapaneseTokenizer",
            word_tokenizer_type="mecab",
        ),
        r"tokenizer \(BertJapaneseTokenizer\) in .* needs a package that is not installed.*fugashi",
    ),
    "model2vec without modules": (
        lambda folder: change_json(folder / "config.json", model_type="model2vec"),
        r"holds a table of model2vec without modules\.json.*from_model2vec",
    ),
    "modules of before 0.3": (
        lambda folder: write_modules(folder, ("BERT", "")),
        r"module sentence_transformers\.models\.BERT.* before 0\.3.*models\.Transformer in modules",
    ),
}


@pytest.mark.skipif(
    is_sentencepiece_available() or find_spec("fugashi") is not None, reason="packages are here"
)
@pytest.mark.parametrize("kind", VALID_ELSEWHERE)
def test_a_folder_that_is_valid_elsewhere_is_not_called_damaged(folder, kind):
    change, message = VALID_ELSEWHERE[kind]
    if "package" in kind:
        (folder / "tokenizer.json").unlink()
    change(folder)
    with pytest.raises(ValueError, match=message) as caught:
        encode(folder)
    assert "again, from" not in str(caught.value)
    assert "ownload" not in str(caught.value)


@pytest.mark.parametrize("content", [None, "{}", "a folder"])
@pytest.mark.parametrize("name", ["1_Pooling/config.json", "modules.json"])
def test_a_folder_that_was_copied_in_part(folder, name, content):
    """A missing modules.json makes it a plain encoder, which is no error."""
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"))
    change_json(folder / "1_Pooling" / "config.json", pooling_mode_cls_token=True)
    (folder / name).unlink()
    if content == "a folder":
        (folder / name).mkdir()
    elif content is not None:
        (folder / name).write_text(content)
    if name == "modules.json" and content is None:
        assert encode(folder).any()
        return
    with pytest.raises((ValueError, OSError), match=name):
        encode(folder)


def test_a_list_without_modules(folder):
    (folder / "modules.json").write_text("[]")
    with pytest.raises(ValueError, match=r"modules\.json.* one at least"):
        encode(folder)


UNKNOWN = [
    ("transformer_config", "hidden_dropuot_prob", "hidden_dropout_prob"),
    ("transformer_config", "trust_remote_code", "leave it out"),
    ("tokenizer_config", "do_lowercase", "do_lower_case"),
    ("tokenizer_config", "max_length", "model_max_length"),
]


def test_an_unknown_key_is_named(folder):
    for setting, key, near in UNKNOWN:
        with pytest.raises(ValueError, match=f"Unknown key '{key}' in {setting}.*{near}"):
            encode(folder, **{setting: {key: True}})


def test_settings_that_change_no_vector(folder):
    given = {
        "truncation_side": "right",
        "model_max_length": 20,
        "padding_side": "right",
        "strip_accents": True,
    }
    given |= {
        "tokenize_chinese_chars": True,
        "clean_up_tokenization_spaces": True,
        "unk_token": "[UNK]",
    }
    network = {
        "hidden_dropout_prob": 0.2,
        "output_attentions": True,
        "output_hidden_states": True,
        "num_labels": 3,
    }
    network |= {
        "attn_implementation": "eager",
        "classifier_dropout": 0.1,
        "use_cache": False,
        "torch_dtype": "float32",
    }
    expected = encode(folder)
    assert numpy.allclose(
        encode(folder, tokenizer_config=given, transformer_config=network), expected, atol=1e-6
    )
    slow = {"use_fast": False, "additional_special_tokens": []}
    assert numpy.allclose(encode(folder, tokenizer_config=slow), expected, atol=1e-6)
    with pytest.raises(ValueError, match="with this tokenizer_config"):
        encode(folder, tokenizer_config={"do_lower_case": "no"})


def test_nothing_is_said_of_the_real_model(minilm, tmp_path, caplog, capfd):
    folder = shutil.copytree(resolve(MINILM), tmp_path / "minilm")
    # As version 4 writes it
    change_json(folder / "config.json", torch_dtype="float32")
    Logger.warning_once.cache_clear()
    for name in (MINILM, str(folder)):
        TransformerShim(name, TransformerConfig()).load()
    assert not caplog.text
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "kind", ["own.Transformer", "sentence_transformers.models.MLMTransformer", "Transformer"]
)
def test_a_foreign_transformer_module(folder, kind):
    (folder / "modules.json").write_text(json.dumps([{"path": "", "type": kind}]))
    with pytest.raises(ValueError, match=rf"(modules\.json names|has) the module {kind}"):
        encode(folder)


def test_max_seq_length_leaves_room(folder):
    write_modules(folder, ("Transformer", ""))
    change_json(folder / "sentence_bert_config.json", max_seq_length=2)
    with pytest.raises(ValueError, match=r"limited to 2 wordpieces .*2 are special tokens"):
        encode(folder)
    change_json(folder / "sentence_bert_config.json", max_seq_length=3)
    with pytest.warns(UserWarning, match="limit of 3 wordpieces"):
        assert encode(folder).any()


REMEDIES = [
    (
        {"model_type": "nobert"},
        "names the model_type 'nobert', which transformers .* Install a version that does",
    ),
    (
        {"model_type": "bart", "d_model": 8},
        "an encoder with a decoder .is_encoder_decoder = true.. Use an encoder",
    ),
    ({"model_type": "musicgen_decoder"}, "names the model_type|has no class for the model"),
    (
        {"num_attention_heads": 3},
        "cannot encode a text by itself|do not make an encoder|cannot read",
    ),
]


@pytest.mark.parametrize(("settings", "message"), REMEDIES)
def test_a_whole_folder_is_not_to_be_downloaded_again(folder, settings, message):
    change_json(folder / "config.json", **settings)
    with pytest.raises(ValueError, match=message):
        encode(folder)


def test_weights_that_are_not_finite(folder):
    model = BertModel.from_pretrained(folder)
    model.embeddings.word_embeddings.weight.data.fill_(float("nan"))
    model.save_pretrained(folder)
    with pytest.raises(ValueError, match=r"not finite: training diverged"):
        encode(folder)


@pytest.mark.parametrize("settings", [{"hidden_dropout_prob": 0}, {"classifier_dropout": 0.5}])
def test_types_that_a_class_takes_beside_that_of_its_default(folder, settings):
    expected = encode(folder)
    change_json(folder / "config.json", **settings)
    assert numpy.allclose(encode(folder), expected, atol=1e-6)


def test_another_precision_is_no_setting_of_transformers(folder):
    with pytest.raises(ValueError, match=r"torch_dtype = 'float16'.* set precision"):
        encode(folder, transformer_config={"torch_dtype": "float16"})


@pytest.mark.parametrize("precision", ["float32", "reference"])
def test_weights_of_half_precision_are_read_as_float32(folder, precision):
    BertModel.from_pretrained(folder).bfloat16().save_pretrained(folder)
    with warnings_with("sbert-half-precision") as told:
        found = encode(folder, precision=precision, normalize=False, pooling="cls")
    assert len(told) == (Version("5.0") <= INSTALLED)
    model = BertModel.from_pretrained(folder).float().eval()
    with torch.no_grad():
        states = model(
            **BertTokenizerFast.from_pretrained(folder)(TEXT, return_tensors="pt")
        ).last_hidden_state
    assert numpy.allclose(found, states[0, 0].numpy(), atol=1e-6)


@pytest.mark.parametrize("precision", ["float32", "reference"])
def test_feed_forward_layers_in_chunks(folder, tiny_bert, precision):
    """Hugging Face's model fails where the length of a text is no multiple of the chunk."""
    change_json(folder / "config.json", chunk_size_feed_forward=4)
    texts = ["a man", "the cat sat on the mat"]
    expected = one_pipe(tiny_bert, precision=precision).get_pipe("sbert").encode(texts)
    nlp = one_pipe(folder, precision=precision)
    assert numpy.allclose(nlp.get_pipe("sbert").encode(texts), expected, atol=1e-6)


def test_a_folder_that_asks_for_inner_states_is_saved(folder, tiny_bert, tmp_path):
    change_json(folder / "config.json", output_attentions=True, output_hidden_states=True)
    nlp = one_pipe(folder)
    vector = nlp("a man").vector
    assert numpy.allclose(vector, one_pipe(tiny_bert)("a man").vector, atol=1e-6)
    nlp.to_disk(tmp_path / "nlp")
    assert numpy.array_equal(spacy.load(tmp_path / "nlp")("a man").vector, vector)
