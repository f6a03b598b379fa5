"""The vectors of tokens that TransformerTok2Vec makes: of Hugging Face's states, by the characters
of wordpieces.
"""

import shutil

import numpy
import pytest
import torch
from helpers.pipelines import MEAN, autograd, blank, error_of_gradients, warnings_with
from helpers.small_models import SHARED_FAMILIES
from helpers.small_tokenizers import make_folder
from spacy.tokens import Doc
from spacy.util import registry
from transformers import AutoModel, AutoTokenizer

NO_DROPOUT = dict.fromkeys(
    ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"), 0.0
)
LIMIT = 12
TEXTS = [
    "One two three. Four five, six.",
    "A man  is eating naïve food.\n\n The dog ran not fast. ",
    "one two three four five six seven eight nine ten eleven twelve. Not.",
    "",
    " ",
    "a",
]
MAX = {"@layers": "reduce_max.v1"}
DOCS = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc"}
SENTENCES = DOCS | {"unit": "sent"}
BOTH = DOCS | {"unit": "doc+sent"}
STRIDED = {"@span_getters": "spacy-sbert.strided_spans.v1", "window": 5, "stride": 3}


@pytest.fixture(scope="module", params=SHARED_FAMILIES)
def family(request, tmp_path_factory):
    kind, config = SHARED_FAMILIES[request.param]
    folder = tmp_path_factory.mktemp("family") / request.param
    return make_folder(folder, kind, request.param, LIMIT, **config, **NO_DROPOUT)


def make_tok2vec(folder, **settings):
    block = {"@architectures": "spacy-sbert.TransformerTok2Vec.v1", "name": str(folder), **settings}
    model = registry.resolve({"model": block})["model"]
    model.initialize()
    return model


def make_docs(texts=TEXTS):
    nlp = blank()
    nlp.add_pipe("sentencizer")
    return list(nlp.pipe(texts))


def rows_of(doc, unit):
    if not len(doc):
        return []
    if unit == "strided":
        starts = range(
            0, max(len(doc) - STRIDED["window"], 0) + STRIDED["stride"], STRIDED["stride"]
        )
        return [doc[start : start + STRIDED["window"]] for start in starts]
    sentences = list(doc.sents)
    whole = [doc[:]]
    return {
        "doc": whole,
        "sent": sentences,
        "doc+sent": whole + sentences if len(sentences) > 1 else whole,
    }[unit]


@torch.no_grad()
def tokens_of_hugging_face(folder, docs, unit, overflow, pool=torch.mean):
    """The vectors of tokens: pooled wordpieces of all rows that share a character with the token or
    its space.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModel.from_pretrained(folder).eval()
    found = []
    for doc in docs:
        pieces = [[] for _ in doc]
        for row in rows_of(doc, unit):
            text = doc.text if len(row) == len(doc) else row.text
            settings = {"truncation": True, "max_length": LIMIT, "return_offsets_mapping": True}
            encoded = tokenizer(text, return_overflowing_tokens=True, stride=0, **settings)
            windows = encoded["input_ids"] if overflow == "windows" else encoded["input_ids"][:1]
            for number, ids in enumerate(windows):
                states = network(torch.tensor([ids])).last_hidden_state[0]
                for state, (start, end) in zip(
                    states, encoded["offset_mapping"][number], strict=True
                ):
                    for token in row:
                        first = token.idx - row.start_char
                        if end > start and start < first + len(token.text_with_ws) and end > first:
                            pieces[token.i].append(state)
        zero = torch.zeros(16)
        vectors = [pool(torch.stack(own), 0) if own else zero for own in pieces]
        found.append(torch.stack(vectors).numpy() if vectors else numpy.zeros((0, 16), "float32"))
    return found


GETTERS = {"doc": DOCS, "sent": SENTENCES, "doc+sent": BOTH, "strided": STRIDED}
CASES = [(unit, "truncate") for unit in GETTERS] + [("doc", "windows"), ("doc+sent", "windows")]


def check_close(given, expected, atol=1e-5):
    for own, other in zip(given, expected, strict=True):
        assert own.shape == other.shape
        numpy.testing.assert_allclose(own, other, atol=atol)


@pytest.mark.parametrize(("unit", "overflow"), CASES)
def test_as_hugging_face(family, unit, overflow):
    """White space and what was cut get zeros, an empty Doc no vector."""
    model = make_tok2vec(family, get_spans=GETTERS[unit], overflow=overflow)
    docs = make_docs()
    expected = tokens_of_hugging_face(family, docs, unit, overflow)
    check_close(model.predict(docs), expected)
    assert overflow == "windows" or any((of_doc == 0).all(axis=1).any() for of_doc in expected)
    alone = [model.predict([doc])[0] for doc in docs]
    check_close(alone, expected)
    with_gradient, _ = model.begin_update(docs)
    check_close(with_gradient, expected)


def test_another_pooling(family):
    model = make_tok2vec(family, get_spans=BOTH, pooling=MAX)
    docs = make_docs()
    check_close(
        model.predict(docs),
        tokens_of_hugging_face(family, docs, "doc+sent", "truncate", torch.amax),
    )


def test_slow_tokenizer(tmp_path):
    """It does not tell the characters of its wordpieces."""
    slow, fast = (
        make_folder(tmp_path / kind, kind, limit=LIMIT) for kind in ("slow wordpiece", "wordpiece")
    )
    docs = make_docs(
        [
            "One two three. Four five, six.",
            "A man is eating food.",
            "",
            "one two three four five six " * 3,
        ]
    )
    for get_spans in (DOCS, BOTH, STRIDED):
        found, expected = (
            make_tok2vec(folder, get_spans=get_spans).predict(docs) for folder in (slow, fast)
        )
        check_close(found, expected)


@pytest.mark.parametrize("texts", [["", ""], [" ", "\n\n"], [" "], []])
def test_without_text(tiny_bert, texts):
    model = make_tok2vec(tiny_bert)
    docs = make_docs(texts)
    for vectors in (model.predict(docs), model.begin_update(docs)[0]):
        assert [of_doc.shape for of_doc in vectors] == [(len(doc), 16) for doc in docs]
        assert not any(of_doc.any() for of_doc in vectors)
    _, backprop = model.begin_update(docs)
    # Nothing is learned
    backprop([of_doc + 1 for of_doc in vectors])


def test_tokens_of_no_row(tiny_bert):
    """The members of an example are its rows; other tokens have no vector."""
    model, (doc,) = make_tok2vec(tiny_bert), make_docs(["the dog ran fast. a cat sat."])
    doc.spans["sbert"] = [doc[5:7], doc[1:3]]
    (vectors,) = model.predict([doc])
    assert (vectors != 0).any(axis=1).tolist() == [
        False,
        True,
        True,
        False,
        False,
        True,
        True,
        False,
        False,
    ]
    alone = Doc(doc.vocab, words=["dog", "ran"], spaces=[True, False])
    check_close([vectors[1:3]], model.predict([alone]))


@pytest.mark.parametrize("grad_factor", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("pooling", [MEAN, MAX], ids=["mean", "max"])
def test_gradient_as_autograd(tiny_bert, pooling, grad_factor):
    """Of a weighted sum of all vectors; tokens are in several rows."""
    model = make_tok2vec(tiny_bert, get_spans=BOTH, pooling=pooling, grad_factor=grad_factor)
    docs = make_docs(
        ["A man is eating. He cannot go.", "", "The cat sat.", "a dog ran. fast food."]
    )
    vectors, backprop = model.begin_update(docs)
    rng = numpy.random.default_rng(0)
    weights = [rng.normal(size=of_doc.shape).astype("float32") for of_doc in vectors]
    backprop([given.copy() for given in weights])
    expected = autograd(tiny_bert, loss_of(docs, weights, pooling))
    assert error_of_gradients(model.transformer.shim, expected, grad_factor) < 1e-5


def loss_of(docs, weights, pooling):
    """sum_t w_t . pooled(wordpieces of t), of PyTorch and in float64."""
    reduce = torch.mean if pooling == MEAN else torch.amax

    def loss(network, tokenizer):
        total = torch.zeros((), dtype=torch.float64)
        for doc, given in zip(docs, weights, strict=True):
            pieces = [[] for _ in doc]
            for row in rows_of(doc, "doc+sent"):
                encoded = tokenizer(
                    row.text, return_offsets_mapping=True, truncation=True, max_length=24
                )
                states = network(torch.tensor([encoded["input_ids"]])).last_hidden_state[0]
                for state, (start, end) in zip(states, encoded["offset_mapping"], strict=True):
                    for token in row:
                        first = token.idx - row.start_char
                        if end > start and start < first + len(token) and end > first:
                            pieces[token.i].append(state)
            for own, weight in zip(pieces, given, strict=True):
                total = (
                    total + (reduce(torch.stack(own), 0) * torch.from_numpy(weight).double()).sum()
                )
        return total

    return loss


# Which every family takes
INPUTS = ["input_ids", "attention_mask"]
STOCK_GETTERS = {
    "doc": ("spacy-transformers.doc_spans.v1", {}),
    "sent": ("spacy-transformers.sent_spans.v1", {}),
    "strided": ("spacy-transformers.strided_spans.v1", {"window": 5, "stride": 3}),
}


@pytest.mark.spacy_transformers
@pytest.mark.parametrize("pooling", [MEAN, MAX], ids=["mean", "max"])
@pytest.mark.parametrize("unit", STOCK_GETTERS)
def test_as_spacy_transformers(family, unit, pooling, tmp_path):
    """Vectors of texts below the limit, and gradients, as Tok2VecTransformer.v3 makes them by
    trfs2arrays.
    """
    folder = shutil.copytree(family, tmp_path / "encoder")
    # The limit, which spacy-transformers does not know
    (folder / "sentence_bert_config.json").unlink()
    getter, settings = STOCK_GETTERS[unit]
    stock = {
        "@architectures": "spacy-transformers.Tok2VecTransformer.v3",
        "name": str(folder),
        "pooling": pooling,
    }
    stock |= {
        "tokenizer_config": {"model_input_names": INPUTS},
        "get_spans": {"@span_getters": getter, **settings},
    }
    theirs = registry.resolve({"model": stock})["model"]
    ours = make_tok2vec(folder, get_spans=GETTERS[unit], pooling=pooling)
    docs = make_docs(["a one two.", "two three. A man", "eight"])
    theirs.initialize(X=docs)
    (expected, backprop_theirs), (found, backprop_ours) = (
        theirs.begin_update(docs),
        ours.begin_update(docs),
    )
    check_close(found, expected)
    rng = numpy.random.default_rng(0)
    weights = [rng.normal(size=of_doc.shape).astype("float32") for of_doc in found]
    backprop_theirs([given.copy() for given in weights])
    backprop_ours([given.copy() for given in weights])
    gradients = []
    for model in (theirs, ours):
        shim = next(shim for node in model.walk() for shim in node.shims)
        named = shim._model.named_parameters()
        gradients.append(
            {
                name.removeprefix("transformer."): own.grad
                for name, own in named
                if own.grad is not None
            }
        )
    assert all(
        torch.allclose(given, gradients[0][name], atol=1e-4) for name, given in gradients[1].items()
    )
    assert any(given.any() for given in gradients[1].values())


def test_one_warning_of_what_was_cut(tiny_bert):
    """Without a sentence encoder the transformer warns, once a call."""
    nlp = blank()
    nlp.add_pipe("sbert_transformer", config={"model": {"name": str(tiny_bert)}})
    long = "the cat sat on the mat. " * 5
    with warnings_with("longer than the encoder's limit") as told:
        docs = list(nlp.pipe([long, "a cat", long]))
    assert len(told) == 1
    assert told[0].count("2 of 3")
    held = (docs[0].tensor != 0).any(axis=1)
    assert held[:20].all()
    assert not held[25:].any()
    with warnings_with("longer than the encoder's limit") as told:
        nlp("a cat sat.")
    assert not told
