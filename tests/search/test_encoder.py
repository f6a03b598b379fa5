"""The identity of an encoder: what changes it, and what does not."""

import json

import numpy
from pipelines import shim_of

from spacy_sbert.bulk.file_encoding import Encoding
from spacy_sbert.models.fingerprint import pipeline_digest
from spacy_sbert.search import identify


def identity(nlp):
    return identify(nlp.get_pipe("sbert"))


DENSE = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 4, "activation": "tanh"}
OTHERS = {  # settings that change vectors, by what they change
    "pooling": {"pooling": "cls"},
    "two poolings": {"pooling": "mean+max"},
    "normalisation": {"normalize": True},
    "windows": {"overflow": "windows"},
    "width": {"truncate_dim": 8},
    "prompt": {"prompts": {"p": "a dog "}, "default_prompt_name": "p"},
    "prompt, pooled without": {"prompts": {"p": "a dog "}, "default_prompt_name": "p", "include_prompt": False},
    "case": {"tokenizer_config": {"do_lower_case": False}},
    "accents": {"tokenizer_config": {"strip_accents": False}},
    "limit": {"tokenizer_config": {"model_max_length": 12}},
    "activation": {"transformer_config": {"hidden_act": "relu"}},
    "layer norm": {"transformer_config": {"layer_norm_eps": 0.1}},
    "dense": {"dense": DENSE},
    "dense, another activation": {"dense": {**DENSE, "activation": "sigmoid"}},
}


def digests(nlp):
    """Of all rooms that keep vectors: an index, a run of `encode`, an evaluation."""
    pipe = nlp.get_pipe("sbert")
    if (dense := pipe.model.get_ref("pooling").dense) is not None:
        dense.set_param("W", numpy.ones((4, 16), dtype="float32"))
        dense.set_param("b", numpy.ones(4, dtype="float32"))
    return identify(pipe).digest, json.dumps(Encoding().made_of(pipe.text_encoder(), (), ".npy")), pipeline_digest(nlp)


def test_every_setting_that_changes_vectors_is_noticed_everywhere(make_nlp):
    """No two of these pipelines pass for the same, wherever vectors are kept."""
    found = {name: digests(make_nlp(model=model)) for name, model in OTHERS.items()}
    found["none"] = digests(make_nlp())
    for kept in zip(*found.values(), strict=True):
        same = [name for name, digest in zip(found, kept, strict=True) if kept.count(digest) > 1]
        assert not same


def test_precision_training_and_another_vocabulary(make_nlp, examples):
    nlp = make_nlp()
    before, digest = identity(nlp), pipeline_digest(nlp)
    shim_of(nlp).precision = "bfloat16"
    assert pipeline_digest(nlp) != digest and identity(nlp) == before  # an evaluation notices it, an index does not
    shim_of(nlp).precision = "float32"
    nlp.initialize(lambda: examples(nlp))
    assert identity(nlp) == before
    nlp.update(examples(nlp), sgd=nlp.create_optimizer())
    trained = identity(nlp)
    assert trained.digest != before.digest and trained.width == before.width and pipeline_digest(nlp) != digest
    shim_of(nlp).tokenizer.add_tokens(["newword"])
    assert identity(nlp).digest != trained.digest
