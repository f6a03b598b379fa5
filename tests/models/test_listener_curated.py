"""A curated_transformer that is shared: what is read of it, the way back, and what is refused."""

import numpy
import pytest
import spacy
from helpers.gradients import relative_error
from helpers.pipelines import (
    CURATED,
    MEAN,
    MINILM,
    add_curated,
    finish_update,
    gradients,
    pooled,
    reloaded,
    shim_of,
    weights,
)
from helpers.pipelines import CURATED_LISTENER as LISTENER
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam, fix_random_seed
from thinc.types import Ragged

from spacy_sbert.models.resolve import find_local
from spacy_sbert.pipeline.doc_vectors import find

TEXT = "He cannot go. \n The cat sat on the mat. Food."
SHARED = "spacy-sbert.SharedSentenceEncoder.v1"
TOKENS = "spacy-sbert.Tok2VecSentenceEncoder.v1"
WEIGHTING = {"@architectures": f"{CURATED}ScalarWeight.v1", "num_layers": 2}
LAYERS = {
    **LISTENER,
    "@architectures": f"{CURATED}ScalarWeightingListener.v1",
    "weighting": WEIGHTING,
}


@pytest.mark.parametrize("pooling", ["mean", "max", "cls+mean"])
def test_a_row_is_the_wordpieces_of_its_text_pooled(make_nlp, pooling):
    nlp = make_nlp("curated", unit="doc+sent", model={"pooling": pooling})
    doc = nlp(TEXT)
    pieces = doc._.trf_data.last_hidden_layer_state
    starts = numpy.append(0, numpy.cumsum(pieces.lengths))
    assert doc[5].is_space
    assert pieces.lengths[5] == 0
    assert max(pieces.lengths) > 1
    assert numpy.allclose(doc.vector, pooled(pieces.dataXd, pooling), atol=1e-6)
    for sent in doc.sents:
        expected = pooled(pieces.dataXd[starts[sent.start] : starts[sent.end]], pooling)
        assert numpy.allclose(sent.vector, expected, atol=1e-6), "in the context of its Doc"
    if pooling == "mean":
        of_tokens = [
            part.mean(axis=0) for part in numpy.split(pieces.dataXd, starts[1:-1]) if len(part)
        ]
        given = [token.vector for token in doc if token.has_vector]
        assert numpy.allclose(given, of_tokens, atol=1e-6)
        assert len(given) == len(doc) - 1


def test_parity_with_an_encoder_of_its_own(minilm, tmp_path):
    """The same states for the same wordpieces, alone and beside a ner; unit length as the folder
    says.
    """
    texts = ["It isn't U.S.-made (e.g. 3,141.59)!", "Ångström's \n café", "?", "word " * 60]
    nlp = spacy.blank("xx")
    add_curated(nlp, find_local(MINILM), window=128)
    nlp.add_pipe("sbert", config={"model": {"@architectures": SHARED}})
    nlp.to_disk(tmp_path)
    for beside in (False, True):
        if beside:
            ner = nlp.add_pipe("ner", config={"model": {"tok2vec": {**LISTENER, "width": 384}}})
            ner.add_label("FOOD")
            ner.initialize(lambda: [Example(nlp.make_doc("a"), nlp.make_doc("a"))], nlp=nlp)
        for text in texts:
            doc = nlp(text)
            # Cut at the same places
            own = minilm(" ".join(token.text for token in doc if not token.is_space))
            states, given = (find(one)[0].data["states"] for one in (own, doc))
            assert given.shape == states.shape
            assert numpy.abs(given - states).max() < 1e-5
            mean = states.mean(axis=0)
            assert numpy.abs(doc.vector - mean / numpy.linalg.norm(mean)).max() < 1e-5
    assert numpy.linalg.norm(spacy.load(tmp_path)("A man is eating.").vector) == pytest.approx(
        1.0, abs=1e-6
    )


def test_examples_without_members_get_a_gradient_of_zero(make_nlp, examples):
    nlp = make_nlp("curated")
    pairs = examples(nlp)
    grads = []
    plain = [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in ("A cat sat.", "", "Food")]
    nlp.initialize(lambda: pairs)
    for batch in (pairs, [*plain, *pairs]):
        shim_of(nlp, "transformer")._model.zero_grad()
        nlp.update(batch, sgd=False)
        grads.append(gradients(nlp, "transformer"))
    assert all(
        relative_error(grads[1][key], given) < 1e-4
        for key, given in grads[0].items()
        if "key" not in key
    )
    shim_of(nlp, "transformer")._model.zero_grad()
    nlp.update(plain, sgd=False)
    assert not any(grad.any() for grad in gradients(nlp, "transformer").values())


@pytest.mark.parametrize("how", ["grad_factor", "frozen", "frozen_components"])
def test_weights_that_are_to_stay(make_nlp, examples, how):
    tok2vec = {
        "@architectures": "spacy-sbert.SentenceListener.v1",
        "grad_factor": 0.0 if how == "grad_factor" else 1.0,
    }
    nlp = make_nlp("curated", model={"tok2vec": tok2vec})
    batch = examples(nlp)
    kept = {"exclude": ["transformer"], "annotates": ["transformer"]}
    nlp.initialize(lambda: batch)
    nlp.get_pipe("transformer").frozen = how == "frozen"
    before = weights(nlp, "transformer")
    losses = nlp.update(batch, sgd=False, **(kept if how == "frozen_components" else {}))
    nlp.get_pipe("transformer").finish_update(Adam(0.01))
    assert losses["sbert"] > 0
    assert all(
        numpy.array_equal(before[key], value) for key, value in weights(nlp, "transformer").items()
    )


@pytest.mark.spacy_transformers
@pytest.mark.parametrize("order", [("own", "curated"), ("curated", "own")])
def test_of_both_kinds_the_nearest_is_heard(tiny_bert, examples, order):
    nlp = spacy.blank("xx")
    for kind in order:
        if kind == "curated":
            add_curated(nlp, tiny_bert)
        else:
            source = {"@architectures": "spacy-sbert.TransformerModel.v1", "name": str(tiny_bert)}
            nlp.add_pipe("transformer", name="stock", config={"model": source})
    nlp.add_pipe("sbert", config={"model": {"@architectures": SHARED}})
    batch = examples(nlp)
    names = {"own": "stock", "curated": "transformer"}
    nlp.initialize(lambda: batch)
    doc = nlp("A man is eating.")
    nlp.update(batch, sgd=False)
    assert hasattr(doc._.trf_data, "last_hidden_layer_state") == (order[1] == "curated")
    assert numpy.allclose(nlp.get_pipe("sbert").encode([doc.text])[0], doc.vector, atol=1e-6)
    found = [bool(gradients(nlp, names[kind])) for kind in order]
    assert found == [False, True]


@pytest.mark.parametrize(
    "tok2vec", [{"@architectures": "spacy-sbert.SentenceListener.v1"}, LISTENER]
)
def test_replaced_listeners(make_nlp, examples, tmp_path, tok2vec):
    nlp = make_nlp("curated", model={"tok2vec": tok2vec})
    doc = nlp(TEXT)
    nlp.replace_listeners("transformer", "sbert", ["model.tok2vec"])
    nlp.remove_pipe("transformer")
    for one in (nlp, reloaded(nlp, tmp_path)):
        assert numpy.allclose(one(TEXT).vector, doc.vector, atol=1e-6)
        assert one("").vector.shape == (16,)
        assert numpy.allclose(
            one.get_pipe("sbert").encode([TEXT, ""]), [doc.vector, doc.vector * 0], atol=1e-6
        )
        batch = examples(one)
        one.initialize(lambda batch=batch: batch)
        assert one.update(batch, sgd=False)["sbert"] > 0
        assert all(grad.any() for key, grad in gradients(one, "sbert").items() if "position" in key)


@pytest.mark.parametrize(
    "tok2vec", [pytest.param(LISTENER, marks=pytest.mark.slow), LAYERS], ids=["last", "all"]
)
def test_tokens_that_its_own_listeners_give(tiny_bert, examples, tok2vec, tmp_path):
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    add_curated(nlp, tiny_bert, all_layer_outputs=tok2vec is LAYERS)
    nlp.add_pipe("sbert", config={"model": {"@architectures": TOKENS, "tok2vec": tok2vec}})
    batch = examples(nlp)
    nlp.initialize(lambda: batch)
    doc = nlp(TEXT)
    listener = nlp.get_pipe("sbert").model.get_ref("encoder").get_ref("reader").layers[0]
    (tokens,) = listener.predict([doc])
    kept = [token.i for token in doc if not token.is_space]
    assert numpy.allclose(doc.vector, tokens[kept].mean(axis=0), atol=1e-6)
    assert numpy.allclose(
        nlp.get_pipe("sbert").encode([TEXT, ""]), [doc.vector, doc.vector * 0], atol=1e-6
    )
    before = weights(nlp, "transformer")
    optimizer = Adam(0.003)
    for _ in range(60):
        losses = nlp.update(batch, sgd=False)
        finish_update(nlp, optimizer)
    assert losses["sbert"] < 0.005
    assert not any(
        numpy.array_equal(before[key], value) for key, value in weights(nlp, "transformer").items()
    )
    expected = nlp(TEXT).vector
    assert numpy.array_equal(reloaded(nlp, tmp_path)(TEXT).vector, expected)


def add(nlp, **model):
    nlp.add_pipe("sbert", config={"model": model})
    return nlp


def refused(message, use):
    with pytest.raises(ValueError, match=message):
        use()


def test_nothing_to_listen_to(make_nlp, tiny_bert, examples):
    nlp = make_nlp("curated")
    sbert = nlp.get_pipe("sbert")
    doc = nlp.make_doc(TEXT)
    doc._.trf_data = object()
    refused(
        r"(?s)left object on the Doc.*expected the output of the 'transformer' or 'cur",
        lambda: sbert(doc),
    )
    refused(
        "and a curated_transformer read them as they are",
        lambda: sbert.encode(["a"], prompt="query: "),
    )
    with nlp.select_pipes(disable="transformer"):
        refused("it is disabled", lambda: nlp(TEXT))
    refused(
        "'transformer' or 'curated_transformer' stands",
        add(spacy.blank("xx"), **{"@architectures": SHARED}).initialize,
    )
    tokens = {"@architectures": TOKENS, "tok2vec": LISTENER}
    message = "listens to a 'curated_transformer' component .*, and none stands before it"
    refused(message, add(spacy.blank("xx"), **tokens).initialize)
    nlp = spacy.blank("xx")
    add_curated(nlp, tiny_bert)
    batch = examples(add(nlp, **tokens))
    nlp.initialize(lambda: batch)
    # What listeners of its package do not hear
    frozen = {
        "exclude": ["transformer"],
        "annotates": ["transformer"],
    }
    message = r"set frozen = true in its own block, \[components\.transformer\]"
    refused(message, lambda: nlp.update(batch, sgd=False, **frozen))


def test_widths_and_layers(tiny_bert):
    def curated(**model):
        nlp = spacy.blank("xx")
        add_curated(nlp, tiny_bert)
        return add(nlp, **{"@architectures": TOKENS, **model})

    wide = {**LISTENER, "width": 32}
    message = "vectors of 32 numbers, and the component 'transformer' makes 16: set width = 16"
    refused(message, curated(tok2vec=wide).initialize)
    refused(
        r"gave vectors of 16 numbers.*listens for 32: set the width",
        lambda: curated(tok2vec=wide)(TEXT),
    )
    message = r"set all_layer_outputs = true in \[components\.transformer\]"
    refused(message, curated(tok2vec=LAYERS).initialize)
    message = r"listens to all layers.*expected spacy-sbert\.SentenceListener\.v1"
    refused(message, lambda: curated(**{"@architectures": SHARED, "tok2vec": LAYERS}))
    each = {
        "@architectures": f"{CURATED}TransformerLayersListener.v1",
        "layers": 2,
        "width": 16,
        "pooling": MEAN,
    }
    refused(
        r"gives a vector of each layer: expected .*LastTransformerLayerListener",
        lambda: curated(tok2vec=each),
    )


def test_half_precision_is_pooled_in_single(make_nlp):
    nlp = make_nlp("curated", model={"pooling": "mean"})
    doc = nlp(TEXT)
    pieces = doc._.trf_data.last_hidden_layer_state
    doc._.trf_data.all_outputs[-1] = Ragged(pieces.dataXd.astype("float16"), pieces.lengths)
    given = nlp.get_pipe("sbert")(Doc.copy(doc)).vector
    assert given.dtype == numpy.float32
    assert numpy.array_equal(
        given, pooled(pieces.dataXd.astype("float16").astype("float32"), "mean")
    )
