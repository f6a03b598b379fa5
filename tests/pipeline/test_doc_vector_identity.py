"""Digests: of a pipeline, which use and saving leave as they are; of an encoder, by which saved indexes are known."""

import numpy
import pytest
import spacy

from spacy_sbert.meta.component import fit_meta
from spacy_sbert.models.digests import pipeline_digest
from spacy_sbert.pipeline.scorer import find_heads

TEXTS = ["A man is eating food.", "The cat sat on the mat.", "a dog"]


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
