"""What a `transformer` of spacy-transformers with our model leaves on Docs."""

import gc
from copy import deepcopy
from weakref import ref

import numpy
import pytest
import srsly
from transformers import AutoTokenizer, ModernBertConfig, ModernBertModel

from spacy_sbert.models.private_attributes import is_installed

if is_installed():
    from spacy_transformers.data_classes import TransformerData

pytestmark = pytest.mark.spacy_transformers

TEXTS = ["A man is eating food. He cannot go.", "", "The cat sat on the mat.", "dog"]


@pytest.mark.parametrize(("unit", "overflow"), [("doc+sent", "truncate"), ("doc", "windows")])
def test_vectors_are_the_same_of_what_was_read_before(make_nlp, unit, overflow):
    nlp = make_nlp("spacy-transformers", unit=unit, transformer={"overflow": overflow})
    sbert = nlp.get_pipe("sbert")
    given = list(nlp.pipe([*TEXTS, TEXTS[0] * 9]))
    for doc in given[::2]:
        assert doc._.trf_data.wordpieces is not None
    read = sbert.predict(given)
    for doc, again in zip(given, read, strict=True):
        own = doc.user_data["._.", "spacy-sbert:sbert", 0, len(doc.text)]
        assert numpy.allclose(own["vectors"], again.vectors, atol=1e-6)
        if doc.text:
            assert numpy.allclose(own["states"], again.wordpieces.states, atol=1e-6)
            assert numpy.array_equal(own["characters"], again.wordpieces.characters)


def test_copies_and_bytes_are_what_spacy_transformers_knows(make_nlp):
    nlp = make_nlp("spacy-transformers")
    doc = nlp(TEXTS[0])
    copied = deepcopy(doc._.trf_data)
    assert type(copied) is TransformerData
    data = doc._.trf_data
    stored = srsly.msgpack_loads(srsly.msgpack_dumps(data))
    for given in (copied, stored):
        assert numpy.array_equal(
            given.model_output["last_hidden_state"], data.model_output.last_hidden_state
        )
        assert numpy.array_equal(given.align.dataXd, data.align.dataXd)
    doc._.trf_data = copied
    (encoded,) = nlp.get_pipe("sbert").predict([doc])
    assert numpy.allclose(encoded.vectors[0], doc.vector, atol=1e-6)


def test_docs_are_kept_by_nobody(make_nlp):
    docs = list(make_nlp("spacy-transformers").pipe(TEXTS))
    kept = [ref(doc) for doc in docs]
    gc.disable()
    try:
        del docs
        assert [doc() for doc in kept] == [None] * len(TEXTS)
    finally:
        gc.enable()


def test_what_is_set_on_a_doc_is_what_sentence_encoders_read(make_nlp):
    nlp = make_nlp("spacy-transformers")
    doc = nlp(TEXTS[0])
    output = deepcopy(doc._.trf_data.model_output)
    output["last_hidden_state"] = output["last_hidden_state"] * 0 + numpy.arange(
        16, dtype="float32"
    )
    # Read before, and not
    for data in (doc._.trf_data, nlp(TEXTS[0])._.trf_data):
        data.model_output = output
        doc._.trf_data = data
        (encoded,) = nlp.get_pipe("sbert").predict([doc])
        assert numpy.allclose(encoded.wordpieces.states, numpy.arange(16))


def test_the_pooler_is_that_of_the_weights_that_encoded(make_nlp):
    nlp = make_nlp("spacy-transformers")
    expected = nlp(TEXTS[0])._.trf_data.model_output.pooler_output
    doc = nlp(TEXTS[0])
    nlp.get_pipe("transformer").model.shim.network.pooler.dense.weight.data.zero_()
    assert numpy.array_equal(doc._.trf_data.model_output.pooler_output, expected)
    assert expected.any()


def test_a_model_that_takes_no_type_ids(make_nlp, tiny_bert, tmp_path):
    """A ModernBERT, with a tokenizer that gives them."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.save_pretrained(tmp_path)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    config = ModernBertConfig(
        vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **sizes
    )
    ModernBertModel(config).save_pretrained(tmp_path)
    texts = ["a dog ran fast", "the cat", ""]
    own, shared = (make_nlp(encoder, name=tmp_path) for encoder in ("own", "spacy-transformers"))
    expected = [doc.vector for doc in own.pipe(texts)]
    found = [doc.vector for doc in shared.pipe(texts)]
    assert numpy.allclose(found, expected, atol=1e-6)
    assert numpy.abs(found[0]).sum() > 0
    assert numpy.allclose(shared.get_pipe("sbert").encode(texts), expected, atol=1e-6)
