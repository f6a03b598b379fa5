"""Several threads on one encoder: each gets vectors of one state of the weights, or the error that
another trains.
"""

import ctypes
import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from unittest.mock import Mock

import numpy
import pytest
import torch
from helpers.counted_cases import parts
from helpers.pipelines import TRAINED, one_pipe, scored_pairs
from spacy.util import fix_random_seed
from thinc.api import Adam
from transformers import DistilBertConfig, DistilBertModel, DistilBertTokenizerFast

from spacy_sbert.models.engine.concurrency import TrainedElsewhereError

WORDS = [
    "a",
    "man",
    "is",
    "eating",
    "food",
    "someone",
    "having",
    "meal",
    "the",
    "cat",
    "sat",
    "on",
    "mat",
    "he",
    "go",
]
DROPOUT = {"bert": {"hidden_dropout_prob": 0.3}, "distilbert": {"dropout": 0.3}}
N_STEPS = 8
USED_WHILE_TRAINED = (
    "whoever encodes while another thread trains gets vectors of one state of the weights, or is "
    "refused"
)
ANOTHER_TRAINS = ("Another thread ('worker_", "or load the pipeline a second time")
pytestmark = pytest.mark.filterwarnings("ignore:.*(has a new head|longer than the)")


@pytest.fixture(autouse=True)
def many_switches():
    """Have Python change threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture(scope="module")
def folders(tiny_bert, tmp_path_factory):
    """Of an encoder that is packed, and of one that is not."""
    folder = tmp_path_factory.mktemp("threads") / "distilbert"
    tokenizer = DistilBertTokenizerFast.from_pretrained(tiny_bert)
    tokenizer.save_pretrained(folder)
    sizes = {
        "dim": 16,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 32,
        "max_position_embeddings": 24,
    }
    # Which is not packed
    other = {"initializer_range": 0.5, "activation": "silu"}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        DistilBertModel(
            DistilBertConfig(vocab_size=len(tokenizer), **sizes, **other)
        ).save_pretrained(folder)
    return {"bert": tiny_bert, "distilbert": folder}


def make_texts(seed, n=40):
    rng = numpy.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(2, 16))) for _ in range(n)]


def encode(nlp, texts):
    return nlp.get_pipe("sbert").encode(texts)


def pipe(nlp, texts):
    return numpy.stack([doc.vector for doc in nlp.pipe(texts, batch_size=16)])


def call(nlp, texts):
    return numpy.stack([nlp(text).vector for text in texts[:4]])


def score(nlp, texts):
    return nlp.get_pipe("sbert_reranker").score_pairs(zip(texts[::2], texts[1::2], strict=True))[
        :, None
    ]


USES = (encode, pipe, call)
QUICK = [
    ("own", "bert", "float32"),
    ("shared", "distilbert", "float32"),
    ("reranker", "distilbert", "float32"),
]


def pipelines(encoders, n_parts=1, precisions=("float32",)):
    """Each pipeline in n parts; of a few the first is quick."""
    return [
        pytest.param(
            *pipeline, part, marks=[pytest.mark.slow] * (part > 0 or pipeline not in QUICK)
        )
        for pipeline in product(encoders, ("bert", "distilbert"), precisions)
        if pipeline[::2] != ("reranker", "reference")
        for part in range(n_parts)
    ]


PIPELINE = ("encoder", "kind", "precision", "part")
PRECISIONS = ("float32", "bfloat16", "reference")


@pytest.fixture
def build(make_nlp, folders):
    """Make a pipeline with dropout, and the batch to train it on."""

    def make(encoder, kind, precision="float32"):
        settings = {"precision": precision, "transformer_config": DROPOUT[kind]}
        fix_random_seed(0)
        if encoder == "reranker":
            nlp = one_pipe(folders[kind], "sbert_reranker", **settings)
        elif encoder == "shared":
            nlp = make_nlp("shared", name=folders[kind], transformer=settings)
        else:
            dense = (
                {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 8}
                if encoder == "dense"
                else None
            )
            nlp = make_nlp(name=folders[kind], model={**settings, "dense": dense})
        batch = scored_pairs(nlp)
        nlp.initialize(lambda: batch)
        return nlp, batch

    return make


def in_threads(*works):
    """What calls return that run at a time; raises what they raise."""
    pool = ThreadPoolExecutor(len(works), "worker")
    ready = threading.Barrier(len(works))

    def run(work):
        ready.wait()
        return work()

    running = [pool.submit(run, work) for work in works]
    found = [one.result(timeout=120) for one in running]
    pool.shutdown()
    return found


def train(nlp, batch, after_step=lambda: None, n_steps=N_STEPS):
    fix_random_seed(0)
    optimizer = Adam(0.02, use_averages=False)
    for _ in range(n_steps):
        nlp.update(batch, sgd=optimizer)
        after_step()


def close(found, expected):
    return found.shape == expected.shape and numpy.allclose(found, expected, atol=1e-5)


def is_of_one_state(found, states, use):
    """All that encode and score return is of one state; of the others each row."""
    if use in (encode, score):
        return any(close(found, state) for state in states)
    return all(any(close(row, state[i]) for state in states) for i, row in enumerate(found))


@pytest.mark.parametrize(PIPELINE, pipelines(("own", "dense", "shared", "reranker"), 6, PRECISIONS))
def test_used_while_trained(counted, build, encoder, kind, precision, part):
    """The states are those of the same training without anybody else."""
    texts = make_texts(part)
    use = score if encoder == "reranker" else USES[part % len(USES)]
    alone, batch = build(encoder, kind, precision)
    states = [use(alone, texts)]
    train(alone, batch, lambda: states.append(use(alone, texts)))
    apart = [abs(states[k + 1] - states[k]).max() for k in range(N_STEPS)]
    assert min(apart) > 1e-3, "states that cannot be told apart"
    nlp, batch = build(encoder, kind, precision)
    found = [use(nlp, texts)]
    refused = []
    done = threading.Event()

    def use_it():
        while not done.is_set():
            try:
                found.append(use(nlp, texts))
            except TrainedElsewhereError as error:
                refused.append(error)
                time.sleep(0.001)

    def train_it():
        try:
            train(nlp, batch)
        finally:
            done.set()

    in_threads(use_it, train_it)
    what = f"{encoder} {kind} {precision} {use.__name__}"
    with counted(USED_WHILE_TRAINED) as cases:
        for vectors in found:
            off = min(abs(vectors - state).max() for state in states)
            cases.check(is_of_one_state(vectors, states, use), f"{what}: off by {off}")
        for error in refused:
            cases.check_message(error, what, *ANOTHER_TRAINS)
    with counted("an encoder that is used meanwhile is trained as if it were not") as cases:
        cases.check(close(use(nlp, texts), states[-1]), what)


@pytest.mark.parametrize(PIPELINE, pipelines(("own", "shared", "reranker")))
def test_used_amid_a_pass_of_training(counted, build, encoder, kind, precision, part):
    nlp, _ = build(encoder, kind)
    shims = [shim for _, pipe in nlp.pipeline for node in pipe.model.walk() for shim in node.shims]
    texts = make_texts(0)
    trained = threading.Barrier(2)
    uses = {"reranker": [score], "shared": [pipe, call]}.get(encoder, USES)

    def train_it():
        with shims[0].use.changing():
            trained.wait()
            trained.wait()

    def use_it():
        trained.wait()
        try:
            for use in uses:
                with pytest.raises(
                    TrainedElsewhereError, match=r"Another thread \('worker_.'\) trains this"
                ):
                    use(nlp, texts)
        finally:
            trained.wait()

    with counted(USED_WHILE_TRAINED) as cases:
        in_threads(train_it, use_it)
        cases.refused()
        for use in uses:
            cases.check(numpy.isfinite(use(nlp, texts)).all(), "once it is trained")


@pytest.mark.parametrize(PIPELINE, pipelines(("own", "shared"), 4, PRECISIONS))
def test_used_together(counted, build, encoder, kind, precision, part):
    """encode and encode, encode and pipe, pipe and pipe, on other texts each."""
    nlp, _ = build(encoder, kind, precision)
    given = make_texts(2 * part), make_texts(2 * part + 1, n=60)
    with counted("threads that encode at a time get the vectors that one alone gets") as cases:
        for uses in ((encode, encode), (encode, pipe), (pipe, pipe)):
            works = [partial(use, nlp, texts) for use, texts in zip(uses, given, strict=True)]
            expected = [work() for work in works]
            found = in_threads(*(lambda work=work: [work() for _ in range(3)] for work in works))
            for of_thread, right in zip(found, expected, strict=True):
                for vectors in of_thread:
                    cases.check(close(vectors, right), f"{encoder} {kind} {precision} {uses}")


@pytest.mark.parametrize("part", parts(4))
@pytest.mark.parametrize("encoder", ["own", "shared", "reranker"])
def test_trained_together(counted, build, encoder, part):
    nlp, batch = build(encoder, ("bert", "distilbert")[part % 2])
    optimizer = Adam(0.01, use_averages=False)
    done = []
    refused = []

    def train_it():
        for _ in range(6):
            try:
                nlp.update(batch, sgd=optimizer)
                done.append(1)
            except RuntimeError as error:
                refused.append(error)

    in_threads(train_it, train_it)
    with counted(
        "of two threads that train one encoder each makes whole steps, or is refused by name"
    ) as cases:
        for error in refused:
            cases.check_message(error, encoder, *ANOTHER_TRAINS)
        steps = max(optimizer.nr_update.values())
        cases.check(
            steps == len(done),
            f"{len(done)} updates done, {steps} steps made, {len(refused)} refused",
        )
        nlp.update(batch, sgd=optimizer)
        cases.check(max(optimizer.nr_update.values()) == steps + 1, "alone again")


@pytest.mark.parametrize(PIPELINE, pipelines(("own", "shared")))
def test_an_interrupted_update_leaves_no_dropout(
    counted, build, monkeypatch, encoder, kind, precision, part
):
    nlp, batch = build(encoder, kind)
    texts = make_texts(0)
    expected = [use(nlp, texts) for use in USES]

    with counted("an interrupted update leaves the encoder as it was") as cases:
        for error in (ZeroDivisionError, KeyboardInterrupt):
            with monkeypatch.context() as patched, pytest.raises(error):
                patched.setattr(nlp.get_pipe("sbert"), "_batch_loss", Mock(side_effect=error))
                nlp.update(batch, sgd=Adam(0.1))
            for use, right in zip(USES, expected, strict=True):
                (elsewhere,) = in_threads(partial(use, nlp, texts))
                cases.check(close(use(nlp, texts), right), f"{encoder} {kind} {use.__name__}")
                cases.check(close(elsewhere, right), "another thread")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="nothing is forked there")
@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_forked_while_trained(counted, build, kind):
    """nlp.pipe(n_process=2) while another thread trains: it ends, and each worker has one state of
    the weights.
    """
    nlp, batch = build("own", kind)
    sbert = nlp.get_pipe("sbert")
    texts = make_texts(0)
    done = threading.Event()
    states = [encode(nlp, texts)]

    def train_it():
        while not done.is_set():
            train(nlp, batch, lambda: states.append(encode(nlp, texts)), n_steps=1)

    def fork():
        try:
            return [
                [sbert.vector(doc) for doc in nlp.pipe(texts, n_process=2, batch_size=4)]
                for _ in range(3)
            ]
        finally:
            done.set()

    _, found = in_threads(train_it, fork)
    with counted(
        "workers that are forked while another thread trains have one state of the weights"
    ) as cases:
        for vectors in found:
            for i, vector in enumerate(vectors):
                cases.check(any(close(vector, state[i]) for state in states), kind)
        assert cases.counts.total() == 3 * 40


MALLOC_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", bool) if sys.platform == "linux" else bool


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("rounds", "n_texts"),
    [(6, 60), pytest.param(30, 2000, marks=pytest.mark.slow)],
    ids=["quick", "whole"],
)
def test_memory_stays(counted, build, rounds, n_texts):
    """Rounds of nlp.pipe, encode and training, after two to warm up."""
    nlp, batch = build(TRAINED, "distilbert")
    texts = make_texts(0, n=n_texts)
    optimizer = Adam(0.001, use_averages=False)
    found = []
    # What is there already
    gc.freeze()
    for _ in range(rounds + 2):
        assert all(doc.has_vector for doc in nlp.pipe(texts))
        encode(nlp, texts)
        nlp.update(batch, sgd=optimizer)
        gc.collect()
        # What was freed is not in use, whenever glibc gives it back
        MALLOC_TRIM(0)
        # Bytes that are in memory
        found.append(4096 * int(Path("/proc/self/statm").read_text().split()[1]))
    gc.unfreeze()
    with counted("resident memory stays within 2 % over rounds of use and training") as cases:
        for i, size in enumerate(found[2:]):
            cases.check(size < 1.02 * found[1], f"round {i}: {size / found[1] - 1:.1%} more")
