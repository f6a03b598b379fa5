"""An encoder of somebody else: what it must implement, and what it gets for that."""

from contextlib import contextmanager

import numpy
import pytest
import spacy
from spacy.util import registry
from thinc.api import Model

from spacy_sbert.models.encoder import Encoder
from spacy_sbert.models.pooling import SentencePooling
from spacy_sbert.models.sentence_encoder import SentenceEncoder
from spacy_sbert.models.span_batch import TokenEmbeddings, read_tokens
from spacy_sbert.models.spans import sentence_spans
from spacy_sbert.models.text_encoders import Tok2VecTextEncoder

TEXTS = ["a cat sat", "somebody ran"]


class Letters(Encoder, Model):
    """The state of a token: how many letters it has, times a weight, and 1."""

    kind = "a count of letters"
    reads_tokens = True

    def __init__(self):
        super().__init__("letters", None, dims={"nO": 2}, params={"weight": None})
        self.set_param("weight", self.ops.asarray1f([3.0]))

    @contextmanager
    def read(self, docs, *, prompt, with_pieces, is_train):
        yield self.read_spans(docs, sentence_spans()(docs), with_pieces=with_pieces)

    def read_spans(self, docs, spans, *, with_pieces=False):
        tokens = [token for doc in docs for token in doc]
        counts = numpy.ones(len(tokens), dtype="int64")
        _, places, batch = read_tokens(docs, spans, counts, with_pieces=with_pieces)
        lengths = numpy.array([len(token) for token in tokens], dtype="float32")[places]
        weight = self.get_param("weight")
        states = numpy.stack([lengths * weight, numpy.ones_like(lengths)], axis=1)
        windows = numpy.arange(len(batch.lengths))
        batch.states = [TokenEmbeddings(windows, batch.lengths, states)]
        batch.backprop = lambda d_states: self.inc_grad("weight", lengths @ d_states[0][:, :1])
        return batch

    def text_encoder(self, pooling, settings, pipe):
        return Tok2VecTextEncoder(
            self, pooling, settings, self, tokenizer=pipe.tokenizer, upstream=None
        )


@registry.architectures("test.Letters.v1")
def letters():
    return SentenceEncoder(Letters(), SentencePooling("mean", None))


@pytest.fixture
def nlp():
    nlp = spacy.blank("xx")
    nlp.add_pipe("sbert", config={"model": {"@architectures": "test.Letters.v1"}})
    return nlp


def test_its_vectors(nlp):
    doc = nlp("a cat sat")
    assert doc.vector.tolist() == [7.0, 1.0]
    assert doc[1:].vector.tolist() == [9.0, 1.0]
    assert doc[0].vector.tolist() == [3.0, 1.0]
    vectors = nlp.get_pipe("sbert").encode(TEXTS)
    assert numpy.array_equal(vectors, [doc.vector for doc in nlp.pipe(TEXTS)])


def test_it_learns(nlp, examples):
    pairs = examples(nlp)
    optimizer = nlp.initialize(lambda: pairs)
    encoder = nlp.get_pipe("sbert").model.source
    before = encoder.get_param("weight").copy()
    nlp.update(pairs, sgd=optimizer)
    assert encoder.get_param("weight") != before


def test_its_weights_are_saved_and_in_its_fingerprint(nlp, tmp_path):
    sbert = nlp.get_pipe("sbert")
    before = sbert.fingerprint()
    sbert.model.source.set_param("weight", numpy.array([5.0], dtype="float32"))
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert loaded("a cat sat").vector[0] == pytest.approx(7 / 3 * 5)
    assert loaded.get_pipe("sbert").fingerprint() == sbert.fingerprint() != before


def test_its_description_and_width(nlp):
    sbert = nlp.get_pipe("sbert")
    assert "tokens, mean pooling" in repr(sbert)
    assert sbert.width == 2


def test_a_prompt_is_refused(nlp):
    with pytest.raises(ValueError, match="prompt 'query: '"):
        nlp("a cat", component_cfg={"sbert": {"prompt": "query: "}})


def test_what_needs_a_transformer_names_its_kind(nlp):
    with pytest.raises(ValueError, match="is a count of letters"):
        nlp.get_pipe("sbert").calibrate(TEXTS)
