"""Digests: of a pipeline, which use and saving leave as they are; of an encoder, by which saved indexes are known."""

import hashlib
import json

import numpy
import pytest
import spacy

from spacy_sbert.meta.component import fit_meta
from spacy_sbert.models.digests import _tokenizer_state, encoder_digest, pipeline_digest
from spacy_sbert.models.fingerprint import config_state
from spacy_sbert.pipeline.scorer import find_heads

TEXTS = ["A man is eating food.", "The cat sat on the mat.", "a dog"]
DENSE = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 4, "activation": "tanh"}
# What saved digests have of the layers that pool and finish: their names and settings are a format.
POOLINGS = {
    "mean": [["mean_pooling", {}], ["unit_length", {}]],
    "cls": [["cls_pooling", {}], ["unit_length", {}]],
    "max": [["max_pooling", {}], ["unit_length", {}]],
    "mean_sqrt_len": [["mean_sqrt_len_pooling", {}], ["unit_length", {}]],
    "mean+max": [["concatenated_pooling", {}], ["mean_pooling", {}], ["max_pooling", {}], ["unit_length", {}]],
}


def make_reranked(make_nlp, tiny_bert):
    nlp = make_nlp()
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}})
    return nlp


def make_meta(make_nlp, tiny_bert):
    nlp = make_nlp()
    nlp.add_pipe("sbert", name="other", config={"model": {"name": str(tiny_bert), "pooling": "max"}})
    nlp.add_pipe("sbert_meta", config={"pipes": ["sbert", "other"]})
    fit_meta(nlp, "sbert_meta", lambda: TEXTS)
    return nlp


PIPELINES = {
    "own": lambda make_nlp, tiny_bert: make_nlp(),
    "shared": lambda make_nlp, tiny_bert: make_nlp("shared"),
    "reranked": make_reranked,
    "meta": make_meta,
}


@pytest.mark.parametrize("kind", PIPELINES)
def test_use_and_saving_change_no_digest(make_nlp, tiny_bert, tmp_path, kind):
    nlp = PIPELINES[kind](make_nlp, tiny_bert)
    before = pipeline_digest(nlp)
    list(nlp.pipe(TEXTS))
    assert pipeline_digest(nlp) == before
    nlp.to_disk(tmp_path / "nlp")
    assert pipeline_digest(spacy.load(tmp_path / "nlp")) == before


def test_what_else_vectors_depend_on(make_nlp):
    nlp = make_nlp()
    digests = [pipeline_digest(nlp)]
    with nlp.select_pipes(disable=["sbert"]):
        digests.append(pipeline_digest(nlp))
    nlp.tokenizer.add_special_case("cannot", [{"ORTH": "cannot"}])
    digests.append(pipeline_digest(nlp))
    nlp.vocab.set_vector("dog", numpy.ones(3, dtype="float32"))
    digests.append(pipeline_digest(nlp))
    nlp.add_pipe("sentencizer")
    digests.append(pipeline_digest(nlp))
    assert len(set(digests)) == len(digests)


def test_training_a_head_changes_no_vector(make_nlp, examples):
    nlp = make_nlp(loss={"@layers": "spacy-sbert.SoftmaxLoss.v1"})
    nlp.initialize(lambda: labelled(examples(nlp)))
    before = pipeline_digest(nlp)
    (head,) = find_heads(nlp.get_pipe("sbert").model).values()
    head.set_param("W", head.get_param("W") + 1)
    assert pipeline_digest(nlp) == before


def labelled(examples):
    for number, example in enumerate(examples):
        example.reference.spans["sbert"].attrs["label"] = "ab"[number % 2]
    return examples


def add(found, name, array):
    found.update(f"{name} {array.dtype.str} {array.shape};".encode())
    found.update(numpy.ascontiguousarray(array).data)


@pytest.mark.parametrize(
    "model", [*({"pooling": pooling} for pooling in POOLINGS), {"normalize": True, "dense": DENSE}]
)
def test_digests_of_saved_indexes(make_nlp, model):
    """They are computed as they were when the first index was saved."""
    pipe = make_nlp(model=model).get_pipe("sbert")
    layers = POOLINGS[model.get("pooling", "mean")]
    weights = {}
    if (dense := pipe.model.get_ref("pooling").dense) is not None:
        weights = {"W": numpy.ones((4, 16), dtype="float32"), "b": numpy.ones(4, dtype="float32")}
        for name, weight in weights.items():
            dense.set_param(name, weight)
        layers = [*layers, ["dense", {"activation": "tanh"}]]
    encoder = pipe.text_encoder()
    digest = encoder_digest(encoder.model, encoder.pooling)
    network, tokenizer = encoder.model.shim.network, encoder.model.shim.tokenizer
    expected = {"model_type": "bert", "hidden_act": "gelu", "num_attention_heads": 2, "layer_norm_eps": 1e-12}
    assert expected.items() <= config_state(network.config).items()
    pooling = model.get("pooling", "mean")
    how = {
        "tokenizer": _tokenizer_state(tokenizer),
        "lowercase": False,
        "max_length": 24,
        "overflow": "truncate",
        "prompt": "",
        "include_prompt": True,
        "config": config_state(network.config),
        "pooling": [pooling, *layers],
        "normalize": "normalize" in model,
        "width": 4 if weights else 32 if "+" in pooling else 16,
    }
    found = hashlib.sha256(json.dumps(how, sort_keys=True).encode("utf8"))
    for name, weight in sorted(network.state_dict().items()):
        add(found, name, weight.numpy())
    for name, weight in weights.items():
        add(found, f"3 {name}", weight)
    assert digest == found.hexdigest()
