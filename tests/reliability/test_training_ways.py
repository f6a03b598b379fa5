"""Every way to train: a loop of one's own, `nlp.update(sgd=optimizer)`, takes the steps of `spacy
train`.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy
import pytest
import spacy
import torch
from helpers.objectives import make_examples
from helpers.pipelines import (
    LISTENER,
    PAIRS,
    SHARING,
    add_tagger,
    finish_update,
    make_example,
    parameters_of,
    scored_pairs,
    shim_of,
)
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import SGD, Adam, RAdam

PROMISE = "nlp.update(sgd=optimizer) takes the steps of spacy train"
N_STEPS = 2
SHARED = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}
SENTENCE_LISTENER = {"@architectures": "spacy-sbert.SentenceListener.v1"}
SOFTMAX = {"@layers": "spacy-sbert.SoftmaxLoss.v1", "learn_rate_factor": 10.0}
CACHED = {"@layers": "spacy-sbert.CachedMultipleNegativesRankingLoss.v1", "mini_batch_size": 2}
DROPOUT = {"transformer_config": {"hidden_dropout_prob": 0.2}}
HALVES = {**DROPOUT, "mini_batch_size": 2}
CHECKPOINTS = {**DROPOUT, "gradient_checkpointing": True}
CUT = {"max_grad_norm": 0.1, "frozen": ["embeddings"]}
SLOW = pytest.mark.slow


def four_pairs(nlp):
    """Two in each of two parts: a pair alone has no negatives."""
    return [*scored_pairs(nlp), make_example(nlp, "The dog ran fast.", "A cat can go.", 0.2)]


def labels(nlp):
    return make_examples(nlp, 2, 3, label=["a", "b"])


def pairs_and_tags(nlp):
    """With tags alone, pairs alone, both, and Docs without a token among them."""
    docs = [nlp.make_doc(text) for text in ("The dog ran fast.", "A man, a cat.", "")]
    tags = [{"tags": ["X" if token.is_punct else "Y" for token in doc]} for doc in docs]
    return [*scored_pairs(nlp), *map(Example.from_dict, docs, tags)]


def both(make_nlp, encoder="shared", *, transformer=None, **kwargs):
    nlp = make_nlp(encoder, transformer=transformer)
    add_tagger(nlp, **kwargs)
    return nlp


def tagger_alone(make_nlp):
    nlp = both(make_nlp)
    nlp.remove_pipe("sbert")
    return nlp


def beside(make_nlp):
    """An encoder of its own, and a tagger on a transformer."""
    nlp = tagger_alone(make_nlp)
    nlp.add_pipe("sbert", source=make_nlp())
    return nlp


def replaced(make_nlp):
    """Each with a transformer of its own; nobody listens to the first."""
    nlp = both(make_nlp)
    nlp.initialize(lambda: pairs_and_tags(nlp))
    for name in ("sbert", "tagger"):
        nlp.replace_listeners("transformer", name, ["model.tok2vec"])
    return nlp


def two_transformers(make_nlp):
    nlp = make_nlp("shared", model={"tok2vec": {**SENTENCE_LISTENER, "upstream": "transformer"}})
    second = {"model": nlp.get_pipe_config("transformer")["model"]}
    nlp.add_pipe("sbert_transformer", name="second", config=second, before="sbert")
    add_tagger(nlp, tok2vec={**LISTENER, "upstream": "second"}, before="sbert")
    return nlp


def meta(make_nlp):
    nlp = make_nlp("shared")
    nlp.add_pipe("sbert", name="max", config={"model": {**SHARED, "pooling": "max"}})
    nlp.add_pipe("sbert_meta")
    return nlp


def reranker(make_nlp):
    nlp = spacy.blank("xx")
    name = make_nlp().get_pipe_config("sbert")["model"]["name"]
    nlp.add_pipe("sbert_reranker", config={"model": {"name": name}})
    return nlp


def made(encoder="own", **config):
    return lambda make_nlp: make_nlp(encoder, **config)


NO_GRADIENT = {"tok2vec": {**SENTENCE_LISTENER, "grad_factor": 0.0}}
# How the pipeline is made, and its batch
WAYS = {
    "own": (made(), scored_pairs),
    "own, in mini-batches": (made(model=HALVES), scored_pairs),
    "own, checkpoints": (made(model=CHECKPOINTS), scored_pairs),
    "own, cut and frozen": (made(model=CUT), scored_pairs),
    "own, labels": (made(loss=SOFTMAX), labels),
    "shared": (made("shared"), scored_pairs),
    "shared, bfloat16": (made("shared", transformer={"precision": "bfloat16"}), scored_pairs),
    "shared, reference": (made("shared", transformer={"precision": "reference"}), scored_pairs),
    "shared, dropout": (made("shared", transformer=DROPOUT), scored_pairs),
    "shared, in mini-batches": (made("shared", transformer=HALVES), scored_pairs),
    "shared, cached ranking": (made("shared", loss=CACHED), four_pairs),
    "shared, checkpoints": (made("shared", transformer=CHECKPOINTS), scored_pairs),
    "shared, cut and frozen": (made("shared", transformer=CUT), scored_pairs),
    "shared, labels": (made("shared", loss=SOFTMAX), labels),
    "shared, grad_factor 0": (made("shared", loss=SOFTMAX, model=NO_GRADIENT), labels),
    "own, a tagger beside": (beside, pairs_and_tags),
    "shared, a tagger before": (partial(both, before="sbert"), pairs_and_tags),
    "shared, a tagger behind": (both, pairs_and_tags),
    "tagger alone": (tagger_alone, pairs_and_tags),
    "replaced listeners": (replaced, pairs_and_tags),
    "two transformers": (two_transformers, pairs_and_tags),
    "meta": (meta, scored_pairs),
    "reranker": (reranker, scored_pairs),
}


def like_spacy_train(nlp, parts, optimizer, **kwargs):
    """What train_while_improving does in a step."""
    for part in parts:
        nlp.update(part, sgd=False, **kwargs)
    for name, pipe in nlp.pipeline:
        if getattr(pipe, "is_trainable", False) and name not in kwargs.get("exclude", ()):
            pipe.finish_update(optimizer)


def in_a_loop(nlp, parts, optimizer, given=True, **kwargs):
    """The gradients of all parts, and a step with the last; if no optimizer is given, it is that of
    nlp.initialize.
    """
    for part in parts[:-1]:
        nlp.update(part, sgd=False, **kwargs)
    nlp.update(parts[-1], **kwargs, **({"sgd": optimizer} if given else {}))


LOOPS = {"sgd given": in_a_loop, "sgd not given": partial(in_a_loop, given=False)}


def directly(nlp, parts, optimizer):
    """Transformer.update takes an optimizer of its own, and makes its update when the last listener
    calls back.
    """
    for _, pipe in nlp.pipeline:
        pipe.update(parts[0], sgd=optimizer)


ANNOTATES = {"annotates": ["transformer"]}
# How a pipeline with a tagger is made, and what else the judge is told
OTHERWISE = {
    "averages": (both, {"make_optimizer": partial(Adam, 0.01)}),
    "RAdam": (both, {"make_optimizer": partial(RAdam, 0.01)}),
    "decay": (both, {"make_optimizer": partial(Adam, 0.01, L2=0.1, use_averages=False)}),
    "descent": (both, {"make_optimizer": partial(SGD, 0.1)}),
    "Transformer.update": (
        both,
        {"loops": {"directly": directly}, "make_optimizer": partial(Adam, 0.01)},
    ),
}
# The transformer encodes the batch for use while its gradient is awaited, or in place of training.
OTHERWISE |= {
    f"annotating, {name}, without {exclude}": (
        partial(both, transformer=given),
        {**ANNOTATES, "exclude": exclude},
    )
    for name, given in {"plain": {}, "dropout": DROPOUT, "in mini-batches": HALVES}.items()
    for exclude in ([], ["transformer"], ["sbert"])
}
# What is computed again for the gradient drops out the same, though the encoder was used in
# between.
OTHERWISE |= {
    f"the same gradient, {name}": (
        partial(both, transformer=given),
        {"reference": in_a_loop, "loops": {"annotating": partial(in_a_loop, **ANNOTATES)}},
    )
    for name, given in {"in mini-batches": HALVES, "checkpoints": CHECKPOINTS}.items()
}
QUICK = {
    "own",
    "own, cut and frozen",
    "shared",
    "shared, cached ranking",
    "shared, a tagger behind",
    "reranker",
}
QUICK |= {
    "replaced listeners",
    "two transformers",
    "decay",
    "Transformer.update",
    "the same gradient, checkpoints",
}
QUICK |= {"annotating, in mini-batches, without []"}
CASES = {(way, n): (*made, {"n_parts": n}) for way, made in WAYS.items() for n in (1, 2)}
CASES |= {(way, 1): (make, pairs_and_tags, settings) for way, (make, settings) in OTHERWISE.items()}
# A case that begins with "shared" is known to need spacy-transformers
MARKED = [
    pytest.param(
        *case,
        marks=[SLOW] * (case[0] not in QUICK or case[1] > 1),
    )
    for case, (make, batch, _) in CASES.items()
]


def same(found, expected):
    return found.keys() == expected.keys() and all(
        numpy.array_equal(found[key], expected[key]) for key in expected
    )


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
    return nlp, batch, parameters_of(nlp)


def trained(nlp, batch, loop, *, n_parts=1, make_optimizer=None, **kwargs):
    """The weights after some steps."""
    fix_random_seed(1)
    nlp._optimizer = (make_optimizer or nlp.create_optimizer)()
    for _ in range(N_STEPS):
        loop(nlp, [batch[i::n_parts] for i in range(n_parts)], nlp._optimizer, **kwargs)
        nlp._optimizer.step_schedules()
    return parameters_of(nlp)


@pytest.fixture
def judge(counted, request):
    """A case for each loop: its weights are those of the reference, to the last bit, and they
    moved.
    """

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


@pytest.mark.filterwarnings(
    "ignore:.*(batch without pairs|saw but a part of|add up|W0|has a new head)"
)
@pytest.mark.parametrize(("way", "n_parts"), MARKED)
def test_pipelines(judge, make_nlp, way, n_parts):
    make, batch, settings = CASES[way, n_parts]
    judge(make(make_nlp), batch, **settings)


def average(nlp, shim):
    with nlp.use_params({(shim.id, "none"): numpy.zeros(1)}):
        pass


@pytest.mark.parametrize("encoder", SHARING)
def test_missing_gradient(counted, make_nlp, monkeypatch, encoder):
    """The update is made all the same: before the next pass, before the pipeline is saved, or
    averages are used.
    """
    nlp, batch, before = initialized(both(make_nlp, encoder))
    transformer = nlp.get_pipe("transformer")

    def step():
        in_a_loop(nlp, [batch], nlp._optimizer)

    def train(second, ends=lambda: None):
        """The last listener keeps its second gradient, as spaCy's entity_linker does for a batch
        without entities.
        """
        restore(nlp, before)
        # Of the training before
        transformer._step = None
        nlp._optimizer = Adam(0.01, use_averages=False)
        step()
        with monkeypatch.context() as patched:
            patched.setattr(nlp.get_pipe("tagger"), "update", lambda *args, **kwargs: {})
            second()
        ends()
        return parameters_of(nlp)

    def forgetting():
        """As spacy train, and nobody awaits the gradient any more."""
        nlp.update(batch, sgd=False)
        # Whose component loses the gradients of the others
        if encoder == "spacy-transformers":
            for listener in transformer.listeners:
                listener.receive(None, None, None)
        finish_update(nlp, nlp._optimizer)

    with counted("an update whose gradient never comes is made, once") as cases:
        expected = train(forgetting)
        assert not same(train(step), expected), "it waits"
        ends = [nlp.to_bytes, partial(average, nlp, shim_of(nlp, "transformer")), step]
        for end in (*ends, transformer.model.copy) if encoder == "spacy-transformers" else ends:
            right = train(forgetting, forgetting) if end is step else expected
            cases.check(same(train(step, end), right), str(end))


def test_error_between_forward_and_backward(counted, make_nlp, monkeypatch):
    nlp, batch, _ = initialized(both(make_nlp))
    optimizer = Adam(0.01, use_averages=False)
    in_a_loop(nlp, [batch], optimizer)
    vector = nlp(PAIRS[0][0]).vector
    kept = []
    with monkeypatch.context() as patched:
        patched.setattr(nlp.get_pipe("tagger"), "update", lambda *args, **kwargs: 1 / 0)
        try:
            nlp.update(batch, sgd=optimizer)
        except ZeroDivisionError as error:
            # And with it the frames that hold the callback
            kept.append(error)
    with counted(
        "an interrupted update leaves the encoder as it was, and the next one trains"
    ) as cases:
        cases.check(numpy.array_equal(nlp(PAIRS[0][0]).vector, vector), "vectors after the error")
        before = parameters_of(nlp)
        in_a_loop(nlp, [batch], optimizer)
        moved = [
            key
            for key, value in parameters_of(nlp).items()
            if not numpy.array_equal(before[key], value)
        ]
        cases.check(any("query" in key[2] for key in moved), "the encoder stands still")
        cases.check(not shim_of(nlp, "transformer")._deferred, "an update is left over")


def test_other_weights_for_a_while_and_training_elsewhere(counted, make_nlp):
    """While one thread uses averages, another cannot train: its steps would be lost. Nor while a
    step is begun.
    """
    nlp, batch, before = initialized(make_nlp(), scored_pairs)
    shim = shim_of(nlp)
    averaged = partial(average, nlp, shim)

    def updated():
        return nlp.update(batch, sgd=Adam(0.01))

    def elsewhere(function):
        """The error that it raises in another thread, as text."""
        with ThreadPoolExecutor(1) as pool:
            return str(pool.submit(function).exception(timeout=60) or "")

    with counted(
        "weights are not exchanged while another thread trains, nor the other way round"
    ) as cases:
        with nlp.use_params({(shim.id, "none"): numpy.zeros(1)}):
            said = elsewhere(updated)
        cases.check("MainThread" in said and same(parameters_of(nlp), before), said)
        _, backprop = nlp.get_pipe("sbert").model.begin_update(
            [example.predicted for example in batch]
        )
        for function in (averaged, updated):
            said = elsewhere(function)
            cases.check("MainThread" in said, said)
        said = elsewhere(nlp.to_bytes)
        cases.check(not said, f"saving elsewhere: {said}")
        del backprop
        said = elsewhere(averaged) + elsewhere(updated)
        cases.check(
            not said and not same(parameters_of(nlp), before),
            f"{said} once nobody awaits the gradient",
        )
