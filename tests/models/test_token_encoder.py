"""Encoders whose units are tokens: what is read, how it is pooled, and the way back, of its own and
listening.
"""

import numpy
import pytest
import spacy
from helpers.gradients import finite_differences, relative_error
from helpers.pipelines import (
    CURATED_LISTENER,
    HOLDER,
    TOKENS,
    gradients,
    make_example,
    pooled,
    reloaded,
)
from spacy.tokens import Doc
from thinc.api import Model, fix_random_seed
from thinc.types import Ragged

from spacy_sbert.models.pooling import SentencePooling
from spacy_sbert.models.sentence_encoder import SentenceEncoder
from spacy_sbert.models.spans import sentence_spans
from spacy_sbert.models.token_encoder import Tok2VecEncoder

TEXT = "He can't go. \n The cat sat on the mat. Food."
ARCHITECTURE = "spacy-sbert.Tok2VecSentenceEncoder.v1"
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16}


def states_of(nlp, doc):
    """What the pipeline's tok2vec makes of a Doc, zeros for white space, which one of its own does
    not read.
    """
    if nlp.has_pipe("tok2vec"):
        return doc.tensor
    kept = [token.i for token in doc if not token.is_space]
    words = [doc[i].text for i in kept]
    spaces = [bool(doc[i].whitespace_) for i in kept]
    alone = Doc(nlp.vocab, words=words, spaces=spaces)
    for token, i in zip(alone, kept, strict=True):
        token.norm_ = doc[i].norm_
    states = numpy.zeros((len(doc), 16), dtype="float32")
    states[kept] = (
        nlp.get_pipe("sbert").model.get_ref("encoder").get_ref("reader").predict([alone])[0]
    )
    return states


@pytest.mark.parametrize(
    ("encoder", "pooling"), [("tokens", "max"), ("tokens", "cls+mean"), ("listening", "mean")]
)
def test_a_row_is_its_tokens_pooled_without_white_space(make_nlp, encoder, pooling):
    nlp = make_nlp(encoder, model={"pooling": pooling})
    doc = nlp(TEXT)
    kept = [token.i for token in doc if not token.is_space]
    assert len(kept) == len(doc) - 1
    assert numpy.allclose(doc.vector, pooled(states_of(nlp, doc)[kept], pooling), atol=1e-6)
    assert doc._.sbert_truncated is False
    assert doc.has_vector


@pytest.mark.parametrize("encoder", TOKENS)
def test_spans_and_tokens_pool_their_tokens_in_context(make_nlp, encoder):
    nlp = make_nlp(encoder)
    doc = nlp(TEXT)
    states = states_of(nlp, doc)
    assert numpy.allclose(doc[2].vector, states[2], atol=1e-6)
    assert numpy.allclose(doc[3:8].vector, states[[3, 4, 6, 7]].mean(axis=0), atol=1e-6), (
        "5 is white space"
    )
    assert not doc[5].has_vector
    assert not doc[5].vector.any()


def test_a_sentence_of_a_listener_is_read_in_context(make_nlp):
    nlp = make_nlp("listening", unit="doc+sent")
    doc = nlp("He ran. The cat sat.")
    first, second = doc.sents
    assert numpy.allclose(
        second.vector, doc.tensor[second.start : second.end].mean(axis=0), atol=1e-6
    )
    assert not numpy.allclose(first.vector, nlp("He ran.").vector, atol=1e-3), "it saw what follows"


class Hearing(Model):
    upstream_name = "*"


def make_table(kind=Model):
    """A tok2vec in float64 that mixes what stands side by side: x_t = W e_t + V e_(t-1), e made of
    the text.
    """
    rng = numpy.random.default_rng(1)
    params = {"W": rng.normal(size=(3, 4)), "V": rng.normal(size=(3, 4))}

    def embed(doc):
        rows = [numpy.random.default_rng(token.orth % 1000).normal(size=4) for token in doc]
        return numpy.array(rows).reshape(len(doc), 4)

    def forward(model, docs, is_train):
        embedded = [embed(doc) for doc in docs]
        before = [numpy.vstack([numpy.zeros((1, 4)), rows])[:-1] for rows in embedded]
        w = model.get_param("W")
        v = model.get_param("V")

        def backprop(d_outputs):
            for d_rows, rows, others in zip(d_outputs, embedded, before, strict=True):
                model.inc_grad("W", d_rows.T @ rows)
                model.inc_grad("V", d_rows.T @ others)
            return docs

        return [
            rows @ w.T + others @ v.T for rows, others in zip(embedded, before, strict=True)
        ], backprop

    return kind("table", forward, params=params, dims={"nO": 3})


@pytest.mark.parametrize(("kind", "unit"), [(Model, "doc+sent"), (Hearing, "doc")])
@pytest.mark.parametrize("pooling", ["mean", "cls+max+weightedmean"])
def test_gradient(pooling, kind, unit):
    """By finite differences, rows that overlap and Docs without rows among them."""
    table = make_table(kind)
    encoder = SentenceEncoder(
        Tok2VecEncoder(table, sentence_spans(unit=unit)), SentencePooling(pooling, True)
    )
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    docs = [nlp("He ran. \n A cat sat."), nlp(""), nlp(" "), nlp("Food")]
    pair = nlp("a b c d")
    pair.spans["sbert"] = [pair[2:4], pair[0:1]]
    docs.append(pair)
    rng = numpy.random.default_rng(2)
    encoded, backprop = encoder.begin_update(docs)
    upstream = [rng.normal(size=doc.vectors.shape) for doc in encoded]
    assert [len(doc.vectors) for doc in encoded] == [3 if unit == "doc+sent" else 1, 0, 1, 1, 2]
    assert not encoded[2].vectors.any()
    backprop(upstream)

    def value(name, x):
        table.set_param(name, x)
        found = encoder.begin_update(docs)[0]
        return sum(
            float((doc.vectors * weight).sum()) for doc, weight in zip(found, upstream, strict=True)
        )

    names = ("W", "V")
    given = numpy.stack([table.get_grad(name) for name in names])
    wanted = [
        finite_differences(lambda x, name=name: value(name, x), table.get_param(name).copy())
        for name in names
    ]
    assert relative_error(given, numpy.stack(wanted)) < 1e-6


def joint(make_nlp, encoder, pipes, before=None):
    """The gradients of a tagger and of sentence vectors on one encoder, as far as they are asked
    for.
    """
    fix_random_seed(0)
    nlp = make_nlp(encoder)
    listener = LISTENER if encoder == "listening" else CURATED_LISTENER
    tagger = nlp.add_pipe("tagger", config={"model": {"tok2vec": listener}}, before=before)
    batch = [
        make_example(nlp, *pair)
        for pair in [("A man ran.", "He sat.", 0.3), ("Food.", "A cat can go.", 0.9)]
    ]
    for example in batch:
        for token in example.reference:
            token.tag_ = "X" if token.i % 2 else "Y"
    fix_random_seed(0)
    nlp.initialize(lambda: batch)
    for node in tagger.model.walk():
        # Of zeros, through which no gradient would come
        if node.name == "softmax":
            node.set_param("W", numpy.random.default_rng(3).normal(size=(2, 16)).astype("float32"))
    holder = nlp.get_pipe(HOLDER[encoder])
    holder.listener_map = {}
    for name in pipes:
        holder.find_listeners(nlp.get_pipe(name))
    with nlp.select_pipes(enable=[HOLDER[encoder], *pipes]):
        nlp.update(batch, sgd=False)
    if encoder == "curated":
        return gradients(nlp, HOLDER[encoder])
    nodes = enumerate(holder.model.walk())
    return {
        (i, name): node.get_grad(name)
        for i, node in nodes
        for name in node.param_names
        if node.has_grad(name)
    }


@pytest.mark.parametrize("encoder", ["listening", "curated"])
def test_gradients_of_two_pipes_add_up(make_nlp, encoder):
    both, sbert, tagger = (
        joint(make_nlp, encoder, pipes) for pipes in (["sbert", "tagger"], ["sbert"], ["tagger"])
    )
    reverse = joint(make_nlp, encoder, ["tagger", "sbert"], before="sbert")
    assert both.keys() == sbert.keys() == tagger.keys()
    assert len(both) > 3
    scale = max(numpy.abs(gradient).max() for gradient in both.values())
    for key, given in both.items():
        assert sbert[key].any() and tagger[key].any(), key
        assert numpy.abs(given - (sbert[key] + tagger[key])).max() < 1e-5 * scale
        assert numpy.abs(given - reverse[key]).max() < 1e-5 * scale


def test_nothing_to_hear(make_nlp):
    nlp = make_nlp("listening")
    doc = nlp.make_doc("A cat sat.")
    with pytest.raises(ValueError, match=r"'A cat sat\.' .*'tok2vec'.*doc\.tensor is empty"):
        nlp.get_pipe("sbert")(doc)
    doc.tensor = numpy.zeros((4, 5), dtype="float32")
    with pytest.raises(ValueError, match=r"5 numbers.*listens for 16"):
        nlp.get_pipe("sbert")(doc)
    assert nlp.get_pipe("sbert")(Doc(nlp.vocab)).vector.shape == (16,)
    for settings in ({"prompt": "query: "}, {"prompt_name": "query"}):
        with pytest.raises(ValueError, match=r"Cannot put the prompt 'query.*token-to-vector"):
            nlp.get_pipe("sbert").encode(["a"], **settings)
        with pytest.raises(ValueError, match=r"Cannot put the prompt 'query.*token-to-vector"):
            nlp("a", component_cfg={"sbert": settings})
    nlp = spacy.blank("xx")
    nlp.add_pipe("sbert", config={"model": {"@architectures": ARCHITECTURE, "tok2vec": LISTENER}})
    with pytest.raises(ValueError, match=r"none stands before it; .*\['sbert'\]"):
        nlp.initialize()
    nlp.add_pipe("tok2vec", first=True)
    with pytest.raises(ValueError, match=r"16 numbers.*'tok2vec' makes 96: set width = 96"):
        nlp.initialize()


def test_ragged_output():
    """As that of spaCy's static vectors."""
    flat = make_table()

    def forward(model, docs, is_train):
        given, backprop = flat(docs, is_train)
        lengths = numpy.array([len(rows) for rows in given], dtype="int32")
        return Ragged(numpy.concatenate(given), lengths), lambda d: backprop(
            numpy.split(d.dataXd, lengths.cumsum()[:-1])
        )

    ragged = Model("ragged", forward, dims={"nO": 3})
    docs = [spacy.blank("xx")("a b c"), spacy.blank("xx")("d")]
    encoders = [Tok2VecEncoder(tok2vec, sentence_spans()) for tok2vec in (flat, ragged)]
    both = [SentenceEncoder(encoder, SentencePooling("mean", False)) for encoder in encoders]
    grads = []
    for encoder in both:
        encoded, backprop = encoder.begin_update(docs)
        backprop([doc.vectors for doc in encoded])
        grads.append(
            (numpy.concatenate([doc.vectors for doc in encoded]), flat.get_grad("W").copy())
        )
        flat.set_grad("W", flat.get_grad("W") * 0)
    assert all(numpy.array_equal(*pair) for pair in zip(*grads, strict=True))


def test_replaced_listeners_read_alone(make_nlp, tmp_path):
    nlp = make_nlp("listening", unit="doc+sent")
    expected = nlp("He ran.").vector
    nlp.replace_listeners("tok2vec", "sbert", ["model.tok2vec"])
    nlp.remove_pipe("tok2vec")
    doc = nlp("He ran. The cat sat.")
    assert numpy.allclose(next(doc.sents).vector, expected, atol=1e-6)
    assert numpy.array_equal(reloaded(nlp, tmp_path)(doc.text).vector, doc.vector)
