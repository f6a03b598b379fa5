"""Digests: of a pipeline, which use and saving leave as they are; of an encoder, by which resumed runs know it."""

import numpy
import pytest
import spacy

from spacy_sbert.meta.component import fit_meta
from spacy_sbert.models.fingerprint import encoder_digest, pipeline_digest
from spacy_sbert.pipeline.scorer import find_heads

TEXTS = ["A man is eating food.", "The cat sat on the mat.", "a dog"]
DENSE = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 4, "activation": "tanh"}


@pytest.mark.parametrize("kind", ["own", "shared", "reranked", "meta"])
def test_use_and_saving_change_no_digest(make_nlp, tiny_bert, tmp_path, kind):
    nlp, model = make_nlp("shared" if kind == "shared" else "own"), {"name": str(tiny_bert)}
    if kind == "reranked":
        nlp.add_pipe("sbert_reranker", config={"model": model})
    if kind == "meta":
        nlp.add_pipe("sbert", name="other", config={"model": {**model, "pooling": "max"}})
        nlp.add_pipe("sbert_meta", config={"pipes": ["sbert", "other"]})
        fit_meta(nlp, "sbert_meta", lambda: TEXTS)
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
    pairs = examples(nlp)
    for example, label in zip(pairs, "aba", strict=True):
        example.reference.spans["sbert"].attrs["label"] = label
    nlp.initialize(lambda: pairs)
    before = pipeline_digest(nlp)
    (head,) = find_heads(nlp.get_pipe("sbert").model).values()
    head.set_param("W", head.get_param("W") + 1)
    assert pipeline_digest(nlp) == before


def test_the_digest_of_an_encoder(make_nlp):
    """Which poolings and layers there are, each number of the weights, and how texts are cut."""
    models = [{}, {"pooling": "cls"}, {"pooling": "mean+max"}, {"normalize": True}, {"truncate_dim": 4}]
    models += [{"overflow": "windows"}, {"prompts": {"q": "go "}, "default_prompt_name": "q"}, {"dense": DENSE}]
    encoders = [make_nlp(model=model).get_pipe("sbert").text_encoder() for model in models]
    dense = encoders[-1].pooling.dense
    for name, shape in (("W", (4, 16)), ("b", (4,))):
        dense.set_param(name, numpy.ones(shape, dtype="float32"))
    digests = [encoder_digest(encoder.model, encoder.pooling) for encoder in encoders]
    assert digests[0] == encoder_digest(encoders[0].model.copy(), encoders[0].pooling)
    dense.get_param("b")[3] += 1e-6
    weight = encoders[0].model.shim.network.embeddings.word_embeddings.weight.data
    weight[7, 3] += 1e-6
    digests += [encoder_digest(encoder.model, encoder.pooling) for encoder in (encoders[0], encoders[-1])]
    assert len(set(digests)) == len(digests)
