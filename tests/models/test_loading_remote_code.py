"""Python code that comes with an encoder runs only if who loads it says so."""

import shutil

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import change_json, one_pipe
from thinc.api import reduce_mean

from spacy_sbert.architectures import tok2vec_transformer
from spacy_sbert.hub import import_folder
from spacy_sbert.models.loading import TRUST

CODE = """
import pathlib
pathlib.Path({marker!r}).write_text("ran")
from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast
class OwnConfig(BertConfig):
    model_type = "own_bert"
class Own(BertModel):
    config_class = OwnConfig
class OwnClassifier(BertForSequenceClassification):
    config_class = OwnConfig
class OwnTokenizer(BertTokenizerFast):
    pass
"""
CONFIG_MAP = {
    "AutoConfig": "modeling.OwnConfig",
    "AutoModel": "modeling.Own",
    "AutoModelForSequenceClassification": "modeling.OwnClassifier",
}
TEXT = "the cat sat"


@pytest.fixture
def marker(tmp_path, monkeypatch):
    monkeypatch.delenv(TRUST, raising=False)
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules")
    )
    monkeypatch.syspath_prepend(tmp_path / "modules")
    return tmp_path / "ran"


@pytest.fixture
def coded(tiny_bert, tmp_path, marker):
    """A folder whose config.json, or whose tokenizer_config.json, names classes of its own."""

    def make(file="config.json", **changes):
        folder = shutil.copytree(tiny_bert, tmp_path / file)
        auto_map = (
            CONFIG_MAP
            if file == "config.json"
            else {"AutoTokenizer": [None, "modeling.OwnTokenizer"]}
        )
        change_json(folder / file, auto_map=auto_map, **changes)
        (folder / "modeling.py").write_text(CODE.format(marker=str(marker)))
        return folder

    return make


def own(folder, trust):
    nlp = one_pipe(folder, trust_remote_code=trust)
    return lambda: nlp(TEXT)


def shared(folder, trust):
    nlp = one_pipe(
        folder,
        "transformer",
        trust_remote_code=trust,
        **{"@architectures": "spacy-sbert.TransformerModel.v1"},
    )
    return lambda: nlp(TEXT)


def tok2vec(folder, trust):
    return tok2vec_transformer(reduce_mean(), name=str(folder), trust_remote_code=trust).initialize


def reranker(folder, trust):
    nlp = one_pipe(folder, "sbert_reranker", trust_remote_code=trust)
    return lambda: nlp.get_pipe("sbert_reranker").score_pairs([(TEXT, TEXT)])


def imported(folder, trust):
    return lambda: import_folder(str(folder))


NEEDS = pytest.mark.spacy_transformers
OWN_TYPE = {"model_type": "own_bert"}
LOADS = [
    (own, True, "config.json", {}),
    (own, False, "tokenizer_config.json", {}),
    (own, False, "config.json", OWN_TYPE),
    pytest.param(shared, True, "config.json", {}, marks=NEEDS),
    pytest.param(tok2vec, False, "tokenizer_config.json", {}, marks=NEEDS),
    (imported, False, "config.json", OWN_TYPE),
    (reranker, True, "tokenizer_config.json", OWN_TYPE),
]


@pytest.mark.parametrize(("load", "trust", "file", "changes"), LOADS)
def test_code_of_a_folder_is_not_run(coded, marker, load, trust, file, changes):
    with pytest.raises(ValueError, match=f"{file} name it.*SPACY_SBERT_TRUST_REMOTE_CODE=1"):
        load(coded(file, **changes), trust)()
    assert not marker.exists()


@pytest.mark.parametrize(("value", "trust"), [("true", True), ("1", False)])
def test_the_variable_is_1_and_not_enough(coded, marker, monkeypatch, value, trust):
    monkeypatch.setenv(TRUST, value)
    message = f"trust_remote_code = {str(trust).lower()} .*SPACY_SBERT_TRUST_REMOTE_CODE=1"
    with pytest.raises(ValueError, match=message):
        own(coded(), trust)()
    assert not marker.exists()


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_who_loads_says_so(coded, marker, monkeypatch, tiny_bert, file):
    monkeypatch.setenv(TRUST, "1")
    vector = own(coded(file), True)().vector
    assert marker.exists()
    assert numpy.allclose(vector, own(tiny_bert, False)().vector, atol=1e-6)


def test_a_saved_pipeline_brings_no_consent(coded, marker, monkeypatch, tmp_path):
    monkeypatch.setenv(TRUST, "1")
    nlp = one_pipe(coded(), trust_remote_code=True)
    vector = nlp(TEXT).vector
    nlp.to_disk(tmp_path / "saved")
    data = nlp.to_bytes()
    assert marker.exists()
    assert numpy.array_equal(spacy.load(tmp_path / "saved")(TEXT).vector, vector)
    marker.unlink()
    monkeypatch.delenv(TRUST)
    shutil.rmtree(tmp_path / "modules")
    for load in (lambda: spacy.load(tmp_path / "saved"), lambda: nlp.from_bytes(data)):
        with pytest.raises(ValueError, match="SPACY_SBERT_TRUST_REMOTE_CODE=1"):
            load()
    monkeypatch.setenv(TRUST, "1")
    with pytest.raises(ValueError, match="trust_remote_code = false"):
        spacy.load(tmp_path / "saved", config={"components.sbert.model.trust_remote_code": False})
    assert not marker.exists()


def test_a_kernel_to_be_fetched_is_code(tiny_bert, marker):
    settings = {"attn_implementation": "somebody/kernels:evil"}
    with pytest.raises(ValueError, match="SPACY_SBERT_TRUST_REMOTE_CODE"):
        one_pipe(tiny_bert, transformer_config=settings)(TEXT)


def test_pickled_weights_run_nothing(tiny_bert, marker, tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    folder = shutil.copytree(tiny_bert, tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Evil()}, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="do not make an encoder"):
        own(folder, True)()
    assert not marker.exists()
