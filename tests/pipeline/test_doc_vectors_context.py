"""Vectors of passages in the context of their Docs, against the states of Hugging Face's model."""

import numpy
import pytest
import torch
from helpers.pipelines import MAX_LENGTH, TRANSFORMERS, no_warnings, through_docbin
from transformers import AutoModel, AutoTokenizer

from spacy_sbert import find_sbert
from spacy_sbert.pipeline import doc_vectors

TEXT = "A man is eating food. The cat sat on the mat. He cannot go. The dog ran fast."


@pytest.fixture
def make(make_nlp):
    """A pipeline with passages of two short sentences at most."""

    def made(encoder="own", unit="doc+chunk", **settings):
        nlp = make_nlp(encoder, unit=unit, **settings)
        first = next(name for name in nlp.pipe_names if name in ("sbert", "transformer"))
        if "sentencizer" not in nlp.pipe_names:
            nlp.add_pipe("sentencizer", before=first)
        config = {"max_length": 16, "min_length": 0}
        nlp.add_pipe("sbert_chunks", config=config, before=first)
        return nlp

    return made


def windows_of(folder, text):
    """The characters and states of a text's wordpieces, read in windows one after another."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    data = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False, verbose=False)
    ids = data["input_ids"]
    states = []
    for start in range(0, len(ids), MAX_LENGTH - 2):
        kept = ids[start : start + MAX_LENGTH - 2]
        window = [tokenizer.cls_token_id, *kept, tokenizer.sep_token_id]
        with torch.no_grad():
            states.append(model(torch.tensor([window])).last_hidden_state[0, 1:-1].numpy())
    return numpy.array(data["offset_mapping"]), numpy.concatenate(states)


def in_context(folder, span, pool):
    offsets, states = windows_of(folder, span.doc.text)
    is_inside = (offsets[:, 0] < span.end_char) & (offsets[:, 1] > span.start_char)
    return pool(states[is_inside], axis=0)


@pytest.mark.parametrize("encoder", TRANSFORMERS)
@pytest.mark.parametrize(("text", "unit"), [(TEXT, "doc+chunk"), (f"{TEXT} {TEXT}", "doc")])
def test_a_passage_pools_its_wordpieces_in_windows_of_its_doc(make, tiny_bert, encoder, text, unit):
    nlp = make(encoder, unit, transformer={"overflow": "windows"})
    sbert = find_sbert(nlp)
    doc = nlp(text)
    spans = list(doc.spans["chunks"])
    assert len(spans) > 1
    for span in spans:
        with no_warnings():
            vector = sbert.vector(span, context=True)
        expected = in_context(tiny_bert, span, numpy.mean)
        assert numpy.allclose(vector, expected, atol=1e-5)
        assert not numpy.allclose(vector, sbert.encode([span.text])[0], atol=0.01)
    # The same hook answers for other Spans, with a warning
    with pytest.warns(UserWarning, match="sbert-pooled-in-context"):
        inner = doc[1:4].vector
    assert numpy.array_equal(inner, sbert.vector(doc[1:4], context=True))


def test_a_passage_alone_is_its_text(make):
    nlp = make()
    sbert = find_sbert(nlp)
    doc = nlp("A man is eating food. The cat sat on the mat. He can go.")
    spans = list(doc.spans["chunks"])
    with no_warnings():
        vectors = [span.vector for span in spans]
    assert numpy.allclose(vectors, sbert.encode([span.text for span in spans]), atol=1e-6)
    assert numpy.allclose(doc.vector, sbert.encode([doc.text])[0], atol=1e-6)


@pytest.mark.parametrize(
    ("pooling", "pool"), [("max", numpy.max), ("cls", numpy.mean), ("mean", numpy.mean)]
)
def test_poolings_and_length(make, tiny_bert, pooling, pool):
    settings = {"pooling": pooling, "normalize": True, "overflow": "windows"}
    nlp = make(model=settings)
    doc = nlp(TEXT)
    span = doc.spans["chunks"][1]
    expected = in_context(tiny_bert, span, pool)
    given = find_sbert(nlp).vector(span, context=True)
    assert numpy.allclose(given, expected / numpy.linalg.norm(expected), atol=1e-5)


@pytest.mark.parametrize("unit", ["doc", "doc+sent", "doc+chunk", "chunk"])
@pytest.mark.parametrize("text", ["The dog ran fast.", "The dog ran. \n", "The dog. He ran."])
def test_a_passage_that_is_all_of_its_doc_has_the_vector_of_that(make, unit, text):
    nlp = make(unit=unit)
    doc = nlp(text)
    (span,) = doc.spans["chunks"]
    with no_warnings():
        vector = find_sbert(nlp).vector(span, context=True)
    assert numpy.allclose(vector, find_sbert(nlp).encode([span.text])[0], atol=1e-6)


@pytest.mark.parametrize("unit", ["chunk", "sent"])
def test_what_was_not_read_in_context_is_refused(make, unit):
    nlp = make(unit=unit)
    doc = nlp(TEXT)
    for span in doc.spans["chunks"]:
        with pytest.raises(ValueError, match=r"not read in its context\. Set unit = \"doc\""):
            find_sbert(nlp).vector(span, context=True)


@pytest.mark.filterwarnings("ignore:.*rows were longer")
def test_what_was_cut_is_refused(make):
    nlp = make()
    doc = nlp(f"{TEXT} {TEXT}")
    first, *_, last = doc.spans["chunks"]
    assert find_sbert(nlp).vector(first, context=True).any()
    with pytest.raises(ValueError, match='overflow = "windows"'):
        find_sbert(nlp).vector(last, context=True)


def test_after_a_dense_layer_and_a_docbin(make):
    dense = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 4, "activation": "tanh"}
    nlp = make(model={"dense": dense})
    nlp.initialize()
    sbert = find_sbert(nlp)
    doc = nlp("A man is eating food. The cat sat on the mat. He ran.")
    assert len(doc.spans["chunks"]) == 2
    expected = [sbert.vector(span, context=True) for span in doc.spans["chunks"]]
    assert expected[0].shape == (4,)
    (loaded,) = through_docbin([doc])
    given = [sbert.vector(span, context=True) for span in loaded.spans["chunks"]]
    assert numpy.array_equal(given, expected)


def test_without_states_it_is_refused(make):
    nlp = make(token_vectors=False)
    doc = nlp(TEXT)
    span = doc.spans["chunks"][0]
    assert doc_vectors.vector(span).any()
    with pytest.raises(ValueError, match="token_vectors = true"):
        doc_vectors.vector(span, context=True)
