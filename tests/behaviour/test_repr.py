"""`repr` is one line without addresses and loads nothing."""

import re

import numpy
import pytest
import spacy
from helpers.pipelines import EVERY_ENCODER

from spacy_sbert.evaluation import PipelineSource
from spacy_sbert.evaluation.report import Results
from spacy_sbert.meta import GCCA
from spacy_sbert.readers.corpora import PairCorpus
from spacy_sbert.search import SpanSearch, VectorIndex, collect_spans, identify
from spacy_sbert.visual.heatmap import heatmap


def is_a_line(text):
    return "\n" not in text and not re.search("0x[0-9a-f]{6}|array", text)


def test_a_pipe_before_and_after_loading(tiny_bert):
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe(
        "sbert", name="mine", config={"model": {"name": str(tiny_bert), "pooling": "mean+max"}}
    )
    assert (
        repr(pipe)
        == f"SentenceBert('mine': {tiny_bert}, mean+max pooling, float32, not loaded yet)"
    )
    pipe.encode(["A man is eating food."])
    assert (
        repr(pipe)
        == f"SentenceBert('mine': {tiny_bert}, mean+max pooling, 32 numbers, float32 on cpu)"
    )


@pytest.mark.parametrize("encoder", EVERY_ENCODER)
def test_every_encoder(make_nlp, encoder):
    pipe = make_nlp(encoder, model={"pooling": "max"}).get_pipe("sbert")
    assert is_a_line(repr(pipe))
    assert repr(pipe).startswith("SentenceBert('sbert': ")
    assert "max pooling" in repr(pipe)
    parts = [part for node in pipe.model.walk() for part in (node, *node.shims)]
    assert all(
        is_a_line(repr(part)) for part in parts if type(part).__module__.startswith("spacy_sbert")
    )


def test_other_objects(make_nlp, tiny_bert):
    nlp = make_nlp(unit="sent")
    docs = list(nlp.pipe(["A man is eating. The cat sat.", "the dog"]))
    pipe = nlp.get_pipe("sbert")
    vectors = numpy.ones((2, 4))
    empty = {
        "model": {"name": "mine", "digest": "0" * 64},
        "tasks": {},
        "skipped": {},
        "failed": {},
    }
    objects = [
        VectorIndex.build(vectors, kind="flat"),
        SpanSearch(collect_spans(docs)),
        pipe.model,
        identify(pipe),
    ]
    objects += [
        PipelineSource(nlp, name="mine"),
        PairCorpus("pairs.csv", limit=5),
        GCCA(size=2),
        heatmap(docs),
    ]
    nlp.add_pipe("sbert", name="other", source=make_nlp())
    objects += [Results(empty), nlp.add_pipe("sbert_meta")]
    objects.append(nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}}))
    assert [repr(one) for one in objects if not is_a_line(repr(one))] == []
