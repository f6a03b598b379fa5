"""The identity of an encoder: what changes it, and what does not."""

import json

import numpy
from helpers.pipelines import OTHER_VECTORS, shim_of

from spacy_sbert.bulk.file_encoding import Encoding
from spacy_sbert.pipeline.digest import pipeline_digest
from spacy_sbert.search import identify


def identity(nlp):
    return identify(nlp.get_pipe("sbert"))


def digests(nlp):
    """Of all rooms that keep vectors: an index, a run of `encode`, an evaluation."""
    pipe = nlp.get_pipe("sbert")
    if (dense := pipe.model.get_ref("pooling").dense) is not None:
        dense.set_param("W", numpy.ones((4, 16), dtype="float32"))
        dense.set_param("b", numpy.ones(4, dtype="float32"))
    return (
        identify(pipe).digest,
        json.dumps(Encoding().made_of(pipe.text_encoder(), (), ".npy")),
        pipeline_digest(nlp),
    )


def test_every_setting_that_changes_vectors_is_noticed_everywhere(make_nlp):
    """No two of these pipelines pass for the same, wherever vectors are kept."""
    found = {name: digests(make_nlp(model=model)) for name, model in OTHER_VECTORS.items()}
    found["none"] = digests(make_nlp())
    for kept in zip(*found.values(), strict=True):
        same = [name for name, digest in zip(found, kept, strict=True) if kept.count(digest) > 1]
        assert not same


def test_precision_training_and_another_vocabulary(make_nlp, examples):
    nlp = make_nlp()
    before = identity(nlp)
    digest = pipeline_digest(nlp)
    shim_of(nlp).precision = "bfloat16"
    # An evaluation notices it, an index does not
    assert pipeline_digest(nlp) != digest
    assert identity(nlp) == before
    shim_of(nlp).precision = "float32"
    nlp.initialize(lambda: examples(nlp))
    assert identity(nlp) == before
    nlp.update(examples(nlp), sgd=nlp.create_optimizer())
    trained = identity(nlp)
    assert trained.digest != before.digest
    assert trained.width == before.width
    assert pipeline_digest(nlp) != digest
    shim_of(nlp).tokenizer.add_tokens(["newword"])
    assert identity(nlp).digest != trained.digest
