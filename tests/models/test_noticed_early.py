"""What would fail, or be slow, at the first text is noticed before: names of encoders, and arithmetic."""

import platform
import shutil
import warnings

import numpy
import pytest
import spacy
import torch
from transformers import AutoTokenizer, ModernBertConfig, ModernBertModel

from spacy_sbert.models import private_attributes as private_torch
from spacy_sbert.models.engine import backends as inference

IMPOSSIBLE = ["/no/such/folder", "../nowhere", "~/bert", "a/b/c", "a b", "org/", "org/a:b", "C:\\bert", "a--b"]


def add(factory, name, model=None):
    nlp = spacy.blank("en")
    nlp.add_pipe(factory, config={"model": {"name": str(name), **(model or {})}})
    return nlp


def test_a_name_that_cannot_be_found():
    for name in IMPOSSIBLE:
        with pytest.warns(UserWarning, match=r"sbert-encoder-missing.*is not a folder, and no encoder on the hub"):
            nlp = add("sbert", name)
    for work in (nlp.get_pipe("sbert").load, nlp.get_pipe("sbert").text_encoder):
        with pytest.raises(OSError, match="was found in none of the four places"):
            work()


@pytest.mark.parametrize("factory", ["sbert", "sbert_reranker"])
def test_each_pipe_tells(tmp_path, factory):
    with pytest.warns(UserWarning, match="'/no' of the pipe '.*' cannot be found"):
        nlp = add(factory, "/no")
    for work in (nlp.initialize, nlp.get_pipe(factory).load):
        with pytest.raises(OSError, match="was found in none"):
            work()
    with pytest.warns(UserWarning, match="cannot be found"):
        static = add("sbert", "/no", {"@architectures": "spacy-sbert.StaticSentenceEncoder.v1"})
    with pytest.raises(OSError, match="was found in none"):
        static.get_pipe("sbert").text_encoder()
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.warns(UserWarning, match="it is a file, not a folder"):
        add(factory, tmp_path / "model.bin")


def test_names_that_may_be_found(tiny_bert, monkeypatch):
    near = "HF_HUB_OFFLINE is set. Did you mean 'sentence-transformers/all-MiniLM-L6-v2'"
    with pytest.warns(UserWarning, match=near):
        add("sbert", "all-MiniLM-L6-v3")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in (tiny_bert, "org/some-encoder", "some-encoder", "all-MiniLM-L6-v2"):
            add("sbert", name)


def test_a_saved_pipeline_needs_no_folder(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    nlp = add("sbert", folder)
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(folder)}})
    nlp.to_disk(tmp_path / "nlp")
    shutil.rmtree(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = spacy.load(tmp_path / "nlp")
        loaded.get_pipe("sbert").load()
    assert numpy.array_equal(loaded("a dog").vector, nlp("a dog").vector)


@pytest.mark.parametrize(
    ("machine", "amx", "warned"), [("x86_64", False, True), ("AMD64", True, False), ("aarch64", False, False)]
)
def test_bfloat16_without_its_arithmetic(tiny_bert, monkeypatch, machine, amx, warned):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx, raising=False)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        sbert = add("sbert", tiny_bert, {"precision": "bfloat16"}).get_pipe("sbert")
        sbert.encode(["a dog"])
        sbert.encode(["a dog"])
        other = add("sbert", tiny_bert).get_pipe("sbert").text_encoder()
        other.set_precision("bfloat16", [])
        other.set_precision("auto", [])
        add("sbert", tiny_bert, {"precision": "auto"}).get_pipe("sbert").load()
    slow = [str(one.message) for one in seen if "slow-bfloat16" in str(one.message)]
    assert len(slow) == (2 if warned else 0) and all('precision = "auto"' in message for message in slow)
    assert (private_torch.has_bfloat16_arithmetic() is False) is warned
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inference.warn_of_slow("bfloat16", "cuda")


@pytest.mark.spacy_transformers
def test_a_shared_model_that_takes_no_type_ids(make_nlp, tiny_bert, tmp_path):
    """A ModernBERT, with a tokenizer that gives them."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.save_pretrained(tmp_path)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = ModernBertConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **sizes)
    ModernBertModel(config).save_pretrained(tmp_path)
    texts = ["a dog ran fast", "the cat", ""]
    own, shared = (make_nlp(encoder, name=tmp_path) for encoder in ("own", "shared"))
    expected = [doc.vector for doc in own.pipe(texts)]
    found = [doc.vector for doc in shared.pipe(texts)]
    assert numpy.allclose(found, expected, atol=1e-6) and numpy.abs(found[0]).sum() > 0
    assert numpy.allclose(shared.get_pipe("sbert").encode(texts), expected, atol=1e-6)
