"""The recipe of docs/keywords.md gives KeyBERT and BERTopic the vectors of the pipe, also of a
shared transformer.
"""

import numpy
import pytest
from helpers.pipelines import ROOT, blocks, slow
from helpers.stand_ins import stand_in_for_missing

PAGE = ROOT / "docs" / "keywords.md"
TEXTS = ["A man is eating food.", "The dog ran fast.", "He cannot go.", "The cat sat on the mat."]


@pytest.mark.parametrize("encoder", ["shared", "spacy-transformers", *slow("own", "static")])
def test_embedders_give_the_vectors_of_the_pipe(make_nlp, monkeypatch, encoder):
    """Of what the page defines, with a small pipeline in the place of its own."""
    stand_in_for_missing(monkeypatch)
    nlp = make_nlp(encoder)
    namespace = {}
    monkeypatch.setattr("spacy.blank", lambda lang: nlp)
    monkeypatch.setattr(nlp, "add_pipe", lambda name: nlp.get_pipe(name))
    for block in blocks(PAGE.read_text(encoding="utf8")):
        exec(compile(block, PAGE.name, "exec"), namespace)
    expected = numpy.stack([nlp(text).vector for text in TEXTS])
    for name in ("SbertEmbedder", "SbertTopicEmbedder"):
        embedder = namespace[name](nlp.get_pipe("sbert"))
        # Words come as an array
        for texts in (
            TEXTS,
            numpy.array(TEXTS, dtype=object),
            numpy.array(TEXTS),
        ):
            # Which zero-shot topics of BERTopic give
            for verbose in (False, None):
                assert numpy.allclose(embedder.embed(texts, verbose=verbose), expected, atol=1e-5)
    if encoder == "spacy-transformers":
        pooler = numpy.stack(
            [numpy.ravel(nlp(text)._.trf_data.tensors[-1])[: expected.shape[1]] for text in TEXTS]
        )
        # Which KeyBERT(model=nlp) reads
        assert not numpy.allclose(pooler, expected, atol=1e-2)
    # BERTopic itself needs more texts than these
    if not hasattr(
        namespace["BERTopic"],
        "get_topic_info",
    ):
        topics = namespace["find_topics"](TEXTS)[1]
        assert len(topics) == len(TEXTS)
        assert set(topics) == {0, 1}
