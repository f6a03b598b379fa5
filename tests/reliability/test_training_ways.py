"""Every way to train: a loop of one's own, `nlp.update(sgd=optimizer)`, takes the steps of `spacy train`."""

import threading
from functools import partial

import numpy
import pytest
import spacy
import torch
from pipelines import LISTENER, PAIRS, make_example
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import SGD, Adam, RAdam

from spacy_sbert.readers import example_doc

PROMISE = "nlp.update(sgd=optimizer) takes the steps of spacy train"
N_STEPS = 2
SHARED = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}
SENTENCE_LISTENER = {"@architectures": "spacy-sbert.SentenceListener.v1"}
SOFTMAX = {"@layers": "spacy-sbert.SoftmaxLoss.v1", "learn_rate_factor": 10.0}
CACHED = {"@layers": "spacy-sbert.CachedMultipleNegativesRankingLoss.v1", "mini_batch_size": 2}
DROPOUT = {"transformer_config": {"hidden_dropout_prob": 0.2}}
CUT = {"max_grad_norm": 0.1, "frozen": ["embeddings"]}
SLOW, WITH_SPACY = pytest.mark.slow, pytest.mark.spacy_transformers


def config_of(nlp, name):
    return {key: value for key, value in nlp.get_pipe_config(name).items() if key != "factory"}


def add_tagger(nlp, *, tok2vec=LISTENER, **kwargs):
    config = {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}}
    tagger = nlp.add_pipe("tagger", config=config, **kwargs)
    for label in ("X", "Y"):
        tagger.add_label(label)


# Batches


def pairs(nlp):
    return [make_example(nlp, *pair) for pair in PAIRS]


def four_pairs(nlp):
    """Two in each of two parts: a pair alone has no negatives."""
    return [*pairs(nlp), make_example(nlp, "The dog ran fast.", "A cat can go.", 0.2)]


def labels(nlp):
    return [
        Example(example_doc(nlp, pair[:2]), example_doc(nlp, pair[:2], label=label))
        for pair, label in zip(PAIRS, ("a", "b", "a"), strict=True)
    ]


def pairs_and_tags(nlp):
    """With tags alone, pairs alone, both, and Docs without a token among them."""
    docs = [nlp.make_doc(text) for text in ("The dog ran fast.", "A man, a cat.", "")]
    tags = [{"tags": ["X" if token.is_punct else "Y" for token in doc]} for doc in docs]
    return [*pairs(nlp), *map(Example.from_dict, docs, tags)]


# Pipelines


def both(make_nlp, transformer=None, **kwargs):
    nlp = make_nlp("shared", transformer=transformer)
    add_tagger(nlp, **kwargs)
    return nlp


def beside(make_nlp):
    """An encoder of its own, and a tagger on a transformer."""
    nlp = make_nlp("shared")
    sbert = config_of(make_nlp(), "sbert")
    nlp.remove_pipe("sbert")
    add_tagger(nlp)
    nlp.add_pipe("sbert", config=sbert)
    return nlp


def tagger_alone(make_nlp):
    nlp = both(make_nlp)
    nlp.remove_pipe("sbert")
    return nlp


def replaced(make_nlp):
    """Each with a transformer of its own; nobody listens to the first."""
    nlp = both(make_nlp)
    nlp.initialize(lambda: pairs_and_tags(nlp))
    for name in ("sbert", "tagger"):
        nlp.replace_listeners("transformer", name, ["model.tok2vec"])
    return nlp


def two_transformers(make_nlp):
    nlp = make_nlp("shared")
    nlp.add_pipe("transformer", name="second", config=config_of(nlp, "transformer"))
    add_tagger(nlp, tok2vec={**LISTENER, "upstream": "second"})
    sbert = config_of(nlp, "sbert")
    nlp.remove_pipe("sbert")
    sbert["model"]["tok2vec"] = {**SENTENCE_LISTENER, "upstream": "transformer"}
    nlp.add_pipe("sbert", config=sbert)
    return nlp


def meta(make_nlp):
    nlp = make_nlp("shared")
    nlp.add_pipe("sbert", name="max", config={"model": {**SHARED, "pooling": "max"}})
    nlp.add_pipe("sbert_meta")
    return nlp


def own(loss=None, **model):
    return lambda make: make(**({"loss": loss} if loss else {}), model=model)


def shared(loss=None, model=None, **transformer):
    kwargs = {key: value for key, value in {"loss": loss, "model": model}.items() if value}
    return lambda make: make("shared", transformer=transformer, **kwargs)


NO_GRADIENT = {"tok2vec": {**SENTENCE_LISTENER, "grad_factor": 0.0}}
WAYS = {  # how the pipeline is made, and its batch
    "own": (own(), pairs),
    "own, in mini-batches": (own(mini_batch_size=2, **DROPOUT), pairs),
    "own, checkpoints": (own(gradient_checkpointing=True, **DROPOUT), pairs),
    "own, cut and frozen": (own(**CUT), pairs),
    "own, labels": (own(SOFTMAX), labels),
    "shared": (shared(), pairs),
    "shared, bfloat16": (shared(precision="bfloat16"), pairs),
    "shared, reference": (shared(precision="reference"), pairs),
    "shared, dropout": (shared(**DROPOUT), pairs),
    "shared, in mini-batches": (shared(mini_batch_size=2, **DROPOUT), pairs),
    "shared, cached ranking": (shared(CACHED), four_pairs),
    "shared, checkpoints": (shared(gradient_checkpointing=True, **DROPOUT), pairs),
    "shared, cut and frozen": (shared(**CUT), pairs),
    "shared, labels": (shared(SOFTMAX), labels),
    "shared, grad_factor 0": (shared(SOFTMAX, NO_GRADIENT), labels),
    "own, a tagger beside": (beside, pairs_and_tags),
    "shared, a tagger before": (partial(both, before="sbert"), pairs_and_tags),
    "shared, a tagger behind": (both, pairs_and_tags),
    "tagger alone": (tagger_alone, pairs_and_tags),
    "replaced listeners": (replaced, pairs_and_tags),
    "two transformers": (two_transformers, pairs_and_tags),
    "meta": (meta, pairs),
}
QUICK = ("own", "own, cut and frozen", "shared", "shared, cached ranking", "shared, a tagger behind")
QUICK += ("replaced listeners", "two transformers")
MARKED_WAYS = [
    pytest.param(way, marks=[SLOW] * (way not in QUICK) + [WITH_SPACY] * (batch is pairs_and_tags or way == "meta"))
    for way, (_, batch) in WAYS.items()
]  # a case that begins with "shared" is known to need spacy-transformers


# Loops


def like_spacy_train(nlp, parts, optimizer, **kwargs):
    """What train_while_improving does in a step."""
    for part in parts:
        nlp.update(part, sgd=False, **kwargs)
    for name, pipe in nlp.pipeline:
        if getattr(pipe, "is_trainable", False) and name not in kwargs.get("exclude", ()):
            pipe.finish_update(optimizer)


def in_a_loop(nlp, parts, optimizer, given=True, **kwargs):
    """The gradients of all parts, and a step with the last; if no optimizer is given, it is that of nlp.initialize."""
    for part in parts[:-1]:
        nlp.update(part, sgd=False, **kwargs)
    nlp.update(parts[-1], **kwargs, **({"sgd": optimizer} if given else {}))


LOOPS = {"sgd given": in_a_loop, "sgd not given": partial(in_a_loop, given=False)}


def all_weights(nlp):
    """Every parameter of every pipe."""
    found = {}
    for name, pipe in nlp.pipeline:
        for i, node in enumerate(pipe.model.walk() if getattr(pipe, "is_trainable", False) else ()):
            names = [key for key in node.param_names if node.has_param(key)]
            found.update({(name, i, key): node.get_param(key).copy() for key in names})
            for shim in node.shims:
                found.update({(name, i, key): p.detach().numpy().copy() for key, p in shim._model.named_parameters()})
    return found


def same(found, expected):
    return found.keys() == expected.keys() and all(numpy.array_equal(found[key], expected[key]) for key in expected)


def restore(nlp, before):
    """As it was, without gradients."""
    for (name, i, key), value in before.items():
        node = list(nlp.get_pipe(name).model.walk())[i]
        if key in node.param_names:
            node.set_param(key, value.copy())
            node.set_grad(key, numpy.zeros_like(value))
        for shim in node.shims:
            parameter = dict(shim._model.named_parameters())[key]
            parameter.data.copy_(torch.from_numpy(value))
            parameter.grad = None


def initialized(nlp, make_batch=pairs_and_tags):
    """A pipeline, its batch, and its weights."""
    fix_random_seed(0)
    batch = make_batch(nlp)
    nlp.initialize(lambda: batch)
    return nlp, batch, all_weights(nlp)


def trained(nlp, batch, loop, *, n_parts=1, make_optimizer=None, **kwargs):
    """The weights after some steps."""
    fix_random_seed(1)
    nlp._optimizer = (make_optimizer or nlp.create_optimizer)()
    for _ in range(N_STEPS):
        loop(nlp, [batch[i::n_parts] for i in range(n_parts)], nlp._optimizer, **kwargs)
        nlp._optimizer.step_schedules()
    return all_weights(nlp)


@pytest.fixture
def judge(counted, request):
    """A case for each loop: its weights are those of the reference, to the last bit, and they moved."""

    def judged(nlp, make_batch=pairs_and_tags, reference=like_spacy_train, loops=LOOPS, **kwargs):
        nlp, batch, before = initialized(nlp, make_batch)
        expected = trained(nlp, batch, reference, **kwargs)
        assert not same(expected, before)
        with counted(PROMISE) as cases:
            for name, loop in loops.items():
                restore(nlp, before)
                try:
                    found = trained(nlp, batch, loop, **kwargs)
                except RuntimeError as error:
                    cases.wrong(f"{request.node.name}, {name}: {error}")
                    continue
                off = max(abs(found[key] - expected[key]).max() for key in expected)
                cases.check(off == 0, f"{request.node.name}, {name}: weights off by {off}")

    return judged


@pytest.mark.filterwarnings("ignore:.*(batch without pairs|saw but a part of|add up|W0)")
@pytest.mark.parametrize("n_parts", [1, pytest.param(2, marks=SLOW)])
@pytest.mark.parametrize("way", MARKED_WAYS)
def test_pipelines(judge, make_nlp, way, n_parts):
    make, batch = WAYS[way]
    judge(make(make_nlp), batch, n_parts=n_parts)


OPTIMIZERS = [
    pytest.param(lambda: Adam(0.01), id="averages", marks=SLOW),
    pytest.param(lambda: RAdam(0.01), id="RAdam", marks=SLOW),
    pytest.param(lambda: Adam(0.01, L2=0.1, use_averages=False), id="decay"),
    pytest.param(lambda: SGD(0.1), id="descent", marks=SLOW),
]


@WITH_SPACY
@pytest.mark.parametrize("make_optimizer", OPTIMIZERS)
def test_optimizers(judge, make_nlp, make_optimizer):
    judge(both(make_nlp), make_optimizer=make_optimizer)


@WITH_SPACY
@pytest.mark.parametrize(
    "transformer", [*(pytest.param(s, marks=SLOW) for s in ({}, DROPOUT)), {**DROPOUT, "mini_batch_size": 2}]
)
@pytest.mark.parametrize("exclude", [(), *(pytest.param((name,), marks=SLOW) for name in ("transformer", "sbert"))])
def test_annotating_between_forward_and_backward(judge, make_nlp, transformer, exclude):
    """The transformer encodes the batch for use while its gradient is awaited, or in place of training."""
    judge(both(make_nlp, transformer), annotates=["transformer"], exclude=exclude)


@pytest.mark.filterwarnings("ignore:.*has a new head")
def test_reranker(judge, tiny_bert):
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}})
    judge(nlp, pairs)


@WITH_SPACY
@pytest.mark.parametrize(
    "setting", [pytest.param({"mini_batch_size": 2}, marks=SLOW), {"gradient_checkpointing": True}]
)
def test_annotating_does_not_change_the_gradient(judge, make_nlp, setting):
    """What is computed again for the gradient drops out the same, though the encoder was used in between."""
    annotating = partial(in_a_loop, annotates=["transformer"])
    judge(both(make_nlp, {**DROPOUT, **setting}), reference=in_a_loop, loops={"annotating": annotating})


def average(nlp, shim):
    with nlp.use_params({(shim.id, "none"): numpy.zeros(1)}):
        pass


@WITH_SPACY
def test_missing_gradient(counted, make_nlp, monkeypatch):
    """The update is made all the same: before the next pass, before the pipeline is saved, or averages are used."""
    nlp, batch, before = initialized(both(make_nlp))
    transformer = nlp.get_pipe("transformer")

    def step():
        in_a_loop(nlp, [batch], nlp._optimizer)

    def train(second, ends=lambda: None):
        """The last listener keeps its second gradient, as spaCy's entity_linker does for a batch without entities."""
        restore(nlp, before)
        nlp._optimizer = Adam(0.01, use_averages=False)
        step()
        with monkeypatch.context() as patched:
            patched.setattr(nlp.get_pipe("tagger"), "update", lambda *args, **kwargs: {})
            second()
        ends()
        return all_weights(nlp)

    def forgetting():
        """As spacy train, and nobody awaits the gradient any more."""
        nlp.update(batch, sgd=False)
        for listener in transformer.listeners:
            listener.receive(None, None, None)
        for _, pipe in nlp.pipeline:
            pipe.finish_update(nlp._optimizer)

    with counted("an update whose gradient never comes is made, once") as cases:
        expected = train(forgetting)
        assert not same(train(step), expected), "it waits"
        for end in (nlp.to_bytes, partial(average, nlp, transformer.model.shim), transformer.model.copy, step):
            right = train(forgetting, forgetting) if end is step else expected
            cases.check(same(train(step, end), right), str(end))


@WITH_SPACY
def test_error_between_forward_and_backward(counted, make_nlp, monkeypatch):
    nlp, batch, _ = initialized(both(make_nlp))
    optimizer = Adam(0.01, use_averages=False)
    in_a_loop(nlp, [batch], optimizer)
    vector, kept = nlp(PAIRS[0][0]).vector, []
    with monkeypatch.context() as patched:
        patched.setattr(nlp.get_pipe("tagger"), "update", lambda *args, **kwargs: 1 / 0)
        try:
            nlp.update(batch, sgd=optimizer)
        except ZeroDivisionError as error:
            kept.append(error)  # and with it the frames that hold the callback
    with counted("an interrupted update leaves the encoder as it was, and the next one trains") as cases:
        cases.check(numpy.array_equal(nlp(PAIRS[0][0]).vector, vector), "vectors after the error")
        before = all_weights(nlp)
        in_a_loop(nlp, [batch], optimizer)
        moved = [key for key, value in all_weights(nlp).items() if not numpy.array_equal(before[key], value)]
        cases.check(any("query" in key[2] for key in moved), "the encoder stands still")
        cases.check(not nlp.get_pipe("transformer").model.shim._deferred, "an update is left over")


@WITH_SPACY
def test_transformer_update_called_directly(judge, make_nlp):
    """Transformer.update takes an optimizer of its own, and makes its update when the last listener calls back."""

    def directly(nlp, parts, optimizer):
        for _, pipe in nlp.pipeline:
            pipe.update(parts[0], sgd=optimizer)

    judge(both(make_nlp), loops={"Transformer.update": directly}, make_optimizer=lambda: Adam(0.01))


def test_other_weights_for_a_while_and_training_elsewhere(counted, make_nlp):
    """While one thread uses averages, another cannot train: its steps would be lost. Nor while a step is begun."""
    nlp, batch, before = initialized(make_nlp(), pairs)
    shim = next(shim for node in nlp.get_pipe("sbert").model.walk() for shim in node.shims)
    averaged, updated, raised = partial(average, nlp, shim), lambda: nlp.update(batch, sgd=Adam(0.01)), []

    def elsewhere(function):
        def run():
            try:
                function()
            except RuntimeError as error:
                raised.append(str(error))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(timeout=60)
        assert not thread.is_alive()

    with counted("weights are not exchanged while another thread trains, nor the other way round") as cases:
        with nlp.use_params({(shim.id, "none"): numpy.zeros(1)}):
            elsewhere(updated)
        cases.check(len(raised) == 1 and "MainThread" in raised[0] and same(all_weights(nlp), before), str(raised))
        _, backprop = nlp.get_pipe("sbert").model.begin_update([example.predicted for example in batch])
        for i, function in enumerate((averaged, updated), start=2):
            elsewhere(function)
            cases.check(len(raised) == i and "MainThread" in raised[-1], str(raised))
        elsewhere(nlp.to_bytes)
        cases.check(len(raised) == 3, "saving elsewhere")
        del backprop
        elsewhere(averaged)
        elsewhere(updated)
        cases.check(len(raised) == 3 and not same(all_weights(nlp), before), "once nobody awaits the gradient")
