"""The gradient of a step that several components take on one `sbert_transformer`, beside that of
autograd.
"""

from functools import cache
from itertools import permutations

import numpy
import pytest
import torch
from helpers.pipelines import (
    LISTENER,
    TOK2VEC_LISTENER,
    add_tagger,
    autograd,
    error_of_gradients,
    finish_update,
    shim_of,
)
from spacy.training import Example
from thinc.api import SGD, Adam
from transformers import AutoModel, AutoTokenizer

from spacy_sbert.models.shim import TransformerShim
from spacy_sbert.readers import pair_doc

pytestmark = pytest.mark.filterwarnings("ignore:.*training batch without pairs")
MAX = {"@layers": "reduce_max.v1"}
SENTENCES = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}
LISTENING = {"@architectures": "spacy-sbert.SentenceListener.v1"}
FACTORS = {"plain": 1.0, "maxima": 0.5, "means": 1.0, "firsts": 2.0, "still": 0.0}
PAIRS = [
    ("A man is eating.", "The cat sat on a mat.", 0.9),
    ("He can not go.", "a dog ran fast", 0.1),
]
TEXTS = ["the food is having a meal.", "a man, a cat."]


def make_pipeline(make_nlp, names=tuple(FACTORS)):
    """Five components that listen: to tokens by spaCy's listener and by ours, and to rows by three
    poolings.
    """
    nlp = make_nlp("shared")
    nlp.remove_pipe("sbert")
    for name in names:
        if name == "plain":
            add_tagger(nlp, name, tok2vec=TOK2VEC_LISTENER)
        elif name == "maxima":
            add_tagger(
                nlp, name, tok2vec={**LISTENER, "pooling": MAX, "grad_factor": FACTORS[name]}
            )
        else:
            model = {
                **SENTENCES,
                "pooling": {"firsts": "cls"}.get(name, "mean"),
                "normalize": False,
            }
            model["tok2vec"] = {**LISTENING, "grad_factor": FACTORS[name]}
            nlp.add_pipe("sbert", name=name, config={"model": model})
        if name in ("plain", "maxima"):
            nlp.get_pipe(name).add_label("Y")
    nlp.initialize()
    for name in names:
        for layer in (node for node in nlp.get_pipe(name).model.walk() if node.name == "softmax"):
            rng = numpy.random.default_rng(len(name))
            layer.set_param("W", rng.normal(size=layer.get_param("W").shape).astype("float32"))
    return nlp


def make_batch(nlp):
    """Pairs with tags and without, texts, and a Doc without a token."""
    examples = []
    for first, second, score in PAIRS:
        reference = pair_doc(nlp, first, second, score)
        predicted = reference.copy()
        predicted.spans["sbert"].attrs.clear()
        examples.append(Example(predicted, reference))
    for text in (*TEXTS, ""):
        doc = nlp.make_doc(text)
        examples.append(Example.from_dict(doc, {"tags": tags_of(doc)}))
    for token, tag in zip(examples[0].reference, tags_of(examples[0].reference), strict=True):
        token.tag_ = tag
    return [examples[i] for i in (2, 0, 4, 3, 1)]


def tags_of(doc):
    return ["Y" if len(token) > 2 else "X" for token in doc]


def update(nlp, names=tuple(FACTORS), **settings):
    exclude = [name for name in nlp.pipe_names if name not in (*names, "transformer")]
    return nlp.update(make_batch(nlp), sgd=False, exclude=exclude, **settings)


def weights_of(nlp, name):
    layer = next(node for node in nlp.get_pipe(name).model.walk() if node.name == "softmax")
    return torch.from_numpy(layer.get_param("W")).double(), torch.from_numpy(
        layer.get_param("b")
    ).double()


def states_of(network, tokenizer, row):
    """The states of the wordpieces of a row, and their characters."""
    encoded = tokenizer(row.text, return_offsets_mapping=True)
    states = network(torch.tensor([encoded["input_ids"]])).last_hidden_state[0]
    return states, encoded["offset_mapping"]


def states_of_token(token, row, states, offsets):
    """The states of the wordpieces of one token of a row."""
    start = token.idx - row.start_char
    end = start + len(token)
    return torch.stack(
        [
            state
            for state, (first, last) in zip(states, offsets, strict=True)
            if first < last and first < end and start < last
        ]
    )


def log_probability(nlp, name, weights, states, tag):
    """Of a tag, by the tagger that pools wordpieces by their mean or maximum."""
    weight, bias = weights
    pooled = states.mean(0) if name == "plain" else states.amax(0)
    return torch.log_softmax(weight @ pooled + bias, 0)[nlp.get_pipe(name).labels.index(tag)]


def loss_of(nlp, names):
    """Return a function of a network and a tokenizer: the losses of components, times their
    grad_factor.
    """
    examples = make_batch(nlp)
    taggers = {name: weights_of(nlp, name) for name in names if name in ("plain", "maxima")}
    encoders = [name for name in names if name not in taggers]

    def tagger_loss(example, row, states, offsets):
        total = torch.zeros((), dtype=torch.float64)
        tagged = [token for token in row if example.reference[token.i].tag_]
        for token in tagged:
            tag = example.reference[token.i].tag_
            own = states_of_token(token, row, states, offsets)
            for name, weights in taggers.items():
                total = total - FACTORS[name] * log_probability(nlp, name, weights, own, tag)
        return total

    def loss(network, tokenizer):
        total = torch.zeros((), dtype=torch.float64)
        errors = {name: [] for name in encoders}
        for example in examples:
            doc = example.predicted
            members = list(doc.spans.get("sbert", ()))
            rows = members or ([doc[:]] if len(doc) else [])
            encoded = [states_of(network, tokenizer, row) for row in rows]
            for row, (states, offsets) in zip(rows, encoded, strict=True):
                total = total + tagger_loss(example, row, states, offsets)
            if members:
                score = example.reference.spans["sbert"].attrs["score"]
                for name in encoders:
                    first, second = (
                        states[0] if name == "firsts" else states.mean(0) for states, _ in encoded
                    )
                    errors[name].append(
                        (torch.cosine_similarity(first, second, dim=0) - score) ** 2
                    )
        for name, found in errors.items():
            if found:
                total = total + FACTORS[name] * torch.stack(found).mean()
        return total

    return loss


@pytest.fixture(scope="module")
def expected(make_nlp, tiny_bert):
    """The gradients of autograd for some of the components."""
    nlp = make_pipeline(make_nlp)
    return cache(lambda names: autograd(tiny_bert, loss_of(nlp, names)))


@pytest.fixture
def passes(monkeypatch):
    """The backward passes of encoders."""
    found = []
    begin_update = TransformerShim.begin_update

    def counted(shim, wordpieces):
        states, backprop = begin_update(shim, wordpieces)
        return states, lambda d_states: found.append(1) or backprop(d_states)

    monkeypatch.setattr(TransformerShim, "begin_update", counted)
    return found


ORDERS = list(permutations(FACTORS))


@pytest.mark.parametrize("order", [ORDERS[0], ORDERS[-1], ORDERS[40], ORDERS[77]], ids="-".join)
def test_step_as_autograd(make_nlp, expected, passes, order):
    nlp = make_pipeline(make_nlp, order)
    update(nlp)
    assert len(passes) == 1
    assert error_of_gradients(shim_of(nlp, "transformer"), expected(tuple(FACTORS))) < 1e-5


def test_every_order(make_nlp, expected, passes):
    nlp = make_pipeline(make_nlp)
    for order in ORDERS:
        shim_of(nlp, "transformer")._model.zero_grad()
        passes.clear()
        components = dict(nlp._components)
        nlp._components = [(name, components[name]) for name in ("transformer", *order)]
        nlp._link_components()
        update(nlp)
        assert len(passes) == 1
        assert error_of_gradients(shim_of(nlp, "transformer"), expected(tuple(FACTORS))) < 1e-5, (
            order
        )


def test_finite_differences(make_nlp, tiny_bert):
    """Of the summed loss in float64, along directions drawn at random and along the gradient."""
    nlp = make_pipeline(make_nlp)
    update(nlp)
    named = shim_of(nlp, "transformer")._model.named_parameters()
    given = {name: own.grad.double() for name, own in named if own.grad is not None}
    network = AutoModel.from_pretrained(tiny_bert).double().eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    loss = loss_of(nlp, tuple(FACTORS))
    parameters = dict(network.named_parameters())
    generator = torch.Generator().manual_seed(0)
    parameters = {name: parameters[name] for name in given}
    for i in range(5):
        drawn = {
            n: torch.randn(own.shape, generator=generator, dtype=torch.float64)
            for n, own in parameters.items()
        }
        direction = given if i == 0 else drawn
        step = 1e-6 / max(float(own.abs().max()) for own in direction.values())
        values = []
        for sign in (1, -2):
            with torch.no_grad():
                for name, own in parameters.items():
                    own += sign * step * direction[name]
                values.append(float(loss(network, tokenizer)))
        with torch.no_grad():
            for name, own in parameters.items():
                own += step * direction[name]
        slope = sum(float((given[name] * direction[name]).sum()) for name in parameters)
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(slope, rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("place", [0, 1, 3], ids=["first", "in between", "last"])
@pytest.mark.parametrize("absent", FACTORS)
def test_component_that_does_not_call_back(make_nlp, expected, passes, absent, place):
    """A frozen one, or one without gold: for the last one the pass is made by finish_update, or
    before the next.
    """
    others = [name for name in FACTORS if name != absent]
    nlp = make_pipeline(
        make_nlp, (*others[:place], absent, *others[place:]) if place < 3 else (*others, absent)
    )
    update(nlp, others)
    assert len(passes) == (place < 3)
    nlp.get_pipe("transformer")._end_step()
    assert len(passes) == 1
    assert error_of_gradients(shim_of(nlp, "transformer"), expected(tuple(others))) < 1e-5
    update(nlp, others)
    # Adds the step before, and its own
    update(nlp)
    assert len(passes) == 3
    finish_update(nlp, SGD(0.0))
    assert len(passes) == 3


def test_another_order_than_that_of_the_pipeline(make_nlp):
    """A gradient that comes too late is not lost without a word."""
    nlp = make_pipeline(make_nlp, ("plain", "means"))
    batch = make_batch(nlp)
    nlp.get_pipe("transformer").update(batch)
    nlp.get_pipe("means").update(batch)
    with pytest.raises(ValueError, match=r"in the order of the pipeline"):
        nlp.get_pipe("plain").update(batch)


def test_nobody_calls_back(make_nlp, passes):
    nlp = make_pipeline(make_nlp)
    update(nlp, ())
    finish_update(nlp, SGD(0.0))
    assert not passes
    assert all(own.grad is None for own in shim_of(nlp, "transformer")._model.parameters())


@pytest.mark.parametrize("disabled", ["plain", "still"])
def test_disabled_component(make_nlp, expected, passes, disabled):
    """Nobody waits for its gradient."""
    nlp = make_pipeline(make_nlp)
    others = tuple(name for name in FACTORS if name != disabled)
    with nlp.select_pipes(disable=disabled):
        update(nlp, others)
    assert len(passes) == 1
    assert error_of_gradients(shim_of(nlp, "transformer"), expected(others)) < 1e-5


def test_ner_without_gold(make_nlp, passes):
    """It returns before it calls back; the others train as without it."""
    found = []
    for with_ner in (False, True):
        nlp = make_pipeline(make_nlp, ("plain", "means"))
        if with_ner:
            model = {
                "@architectures": "spacy.TransitionBasedParser.v2",
                "state_type": "ner",
                "tok2vec": LISTENER,
            }
            model |= {
                "extra_state_tokens": False,
                "hidden_width": 8,
                "maxout_pieces": 2,
                "use_upper": False,
            }
            ner = nlp.add_pipe("ner", config={"model": model})
            ner.add_label("FOOD")
            ner.initialize(lambda nlp=nlp: make_batch(nlp), nlp=nlp)
        update(nlp, nlp.pipe_names)
        finish_update(nlp, SGD(0.1))
        found.append(
            {
                name: own.detach()
                for name, own in shim_of(nlp, "transformer")._model.named_parameters()
            }
        )
    assert len(passes) == 2
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


@pytest.mark.parametrize("way", ["nlp.update(sgd)", "spacy train"])
def test_both_ways_learn(make_nlp, way):
    nlp = make_pipeline(make_nlp)
    optimizer = Adam(0.01)
    losses = []
    for _ in range(15):
        if way == "spacy train":
            losses.append(nlp.update(make_batch(nlp), sgd=False))
            finish_update(nlp, optimizer)
        else:
            losses.append(nlp.update(make_batch(nlp), sgd=optimizer))
    for name in FACTORS.keys() - {"still"}:
        assert losses[-1][name] < 0.8 * losses[0][name], name


def test_accumulated_gradient(make_nlp, passes):
    """Of the parts of a batch it is that of the batch, for losses that are sums."""
    names = ("plain", "maxima")
    whole, parts = (make_pipeline(make_nlp, names) for _ in range(2))
    batch = make_batch(whole)
    whole.update(batch, sgd=False)
    # The second is a Doc without a token
    for part in (batch[:2], batch[2:3], batch[3:]):
        parts.update(part, sgd=False)
    assert len(passes) == 3
    expected = {
        name: own.grad for name, own in shim_of(whole, "transformer")._model.named_parameters()
    }
    expected = {name: own for name, own in expected.items() if own is not None and own.any()}
    assert error_of_gradients(shim_of(parts, "transformer"), expected) < 1e-5


def test_loss_is_reported(make_nlp):
    """As of a Tok2Vec: the sum of the squared gradients that it got."""
    nlp = make_pipeline(make_nlp, ("still",))
    assert update(nlp)["transformer"] == 0.0
    nlp = make_pipeline(make_nlp, ("plain",))
    assert update(nlp)["transformer"] > 0.0
