"""Several threads on one encoder: each gets vectors of one state of the weights, or the error that another trains."""

import ctypes
import gc
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy
import pytest
import spacy
import torch
from counting import parts
from pipelines import PAIRS, TRAINED, make_example
from spacy.util import fix_random_seed
from thinc.api import Adam
from transformers import AutoTokenizer, DistilBertConfig, DistilBertModel, DistilBertTokenizerFast

from spacy_sbert.models.engine.concurrency import TrainedElsewhereError

WORDS = ["a", "man", "is", "eating", "food", "someone", "having", "meal", "the", "cat", "sat", "on", "mat", "he", "go"]
DROPOUT = {"bert": {"hidden_dropout_prob": 0.3}, "distilbert": {"dropout": 0.3}}
N_STEPS = 8
USED_WHILE_TRAINED = (
    "whoever encodes while another thread trains gets vectors of one state of the weights, or is refused"
)
TRAINED_WHILE_USED = "an encoder that is used meanwhile is trained as if it were not"
USED_TOGETHER = "threads that encode at a time get the vectors that one alone gets"
TRAINED_TOGETHER = "of two threads that train one encoder each makes whole steps, or is refused by name"


@pytest.fixture(autouse=True)
def many_switches():
    """Have Python change threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture(scope="module")
def folders(tiny_bert, tmp_path_factory) -> dict[str, Path]:
    """Of an encoder that is packed, and of one that is not."""
    folder = tmp_path_factory.mktemp("threads") / "distilbert"
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    DistilBertTokenizerFast.from_pretrained(tiny_bert).save_pretrained(folder)
    sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 24}
    other = {"initializer_range": 0.5, "activation": "silu"}  # which is not packed
    with torch.random.fork_rng():
        torch.manual_seed(0)
        DistilBertModel(DistilBertConfig(vocab_size=len(tokenizer), **sizes, **other)).save_pretrained(folder)
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
    return nlp.get_pipe("sbert_reranker").score_pairs(zip(texts[::2], texts[1::2], strict=True))[:, None]


USES = (encode, pipe, call)
PIPELINES = [
    (encoder, kind, precision)
    for encoder in ("own", "dense", "shared", "reranker")
    for kind in ("bert", "distilbert")
    for precision in ("float32", "bfloat16", "reference")
    if (encoder, precision) != ("reranker", "reference")
]
QUICK = [("own", "bert", "float32"), ("shared", "distilbert", "float32"), ("reranker", "distilbert", "float32")]
EVERY_KIND = [  # of each encoder one is quick
    pytest.param(encoder, kind, marks=[pytest.mark.slow] * ((encoder, kind, "float32") not in QUICK))
    for encoder in ("own", "shared", "reranker")
    for kind in ("bert", "distilbert")
]


def pipelines_and_parts(n, encoders):
    """Each pipeline in n parts; of a few the first is quick."""
    return [
        pytest.param(*pipeline, part, marks=[pytest.mark.slow] * (part > 0 or pipeline not in QUICK))
        for pipeline in PIPELINES
        for part in range(n)
        if pipeline[0] in encoders
    ]


def make_pipeline(make_nlp, folders, encoder, kind, precision):
    """With dropout; the batch to train it on."""
    settings = {"precision": precision, "transformer_config": DROPOUT[kind]}
    fix_random_seed(0)
    if encoder == "reranker":
        nlp = spacy.blank("en")
        nlp.add_pipe("sbert_reranker", config={"model": {"name": str(folders[kind]), **settings}})
    elif encoder in ("own", "dense"):
        dense = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 8} if encoder == "dense" else None
        nlp = make_nlp(name=folders[kind], model={**settings, "dense": dense})
    else:
        nlp = make_nlp("shared", name=folders[kind], transformer=settings)
    batch = [make_example(nlp, *pair) for pair in PAIRS]
    nlp.initialize(lambda: batch)
    return nlp, batch


def in_threads(*functions):
    """Run functions at a time; raises what they raise."""
    raised = []
    ready = threading.Barrier(len(functions))

    def run(function):
        ready.wait()
        try:
            function()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(one,), name=f"worker {i}") for i, one in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads), "hangs"
    if raised:
        raise raised[0]


def check_refused(cases, message):
    if "Another thread ('worker " in message and "or load the pipeline a second time" in message:
        cases.refused()
    else:
        cases.wrong(message)


def train(nlp, batch, after_step=lambda: None):
    fix_random_seed(0)
    optimizer = Adam(0.02, use_averages=False)
    for _ in range(N_STEPS):
        nlp.update(batch, sgd=optimizer)
        after_step()


def close(found, expected):
    return found.shape == expected.shape and numpy.allclose(found, expected, atol=1e-5)


def is_of_one_state(found, states, use):
    """All that encode and score return is of one state; of the others each row."""
    if use in (encode, score):
        return any(close(found, state) for state in states)
    return all(any(close(row, state[i]) for state in states) for i, row in enumerate(found))


@pytest.mark.filterwarnings("ignore:.*(has a new head|longer than the)")
@pytest.mark.parametrize(
    ("encoder", "kind", "precision", "part"), pipelines_and_parts(6, ("own", "dense", "shared", "reranker"))
)
def test_used_while_trained(counted, make_nlp, folders, encoder, kind, precision, part):
    """The states are those of the same training without anybody else."""
    texts = make_texts(part)
    use = score if encoder == "reranker" else USES[part % len(USES)]
    alone, batch = make_pipeline(make_nlp, folders, encoder, kind, precision)
    states = [use(alone, texts)]
    train(alone, batch, lambda: states.append(use(alone, texts)))
    apart = [abs(states[k + 1] - states[k]).max() for k in range(N_STEPS)]
    assert min(apart) > 1e-3, "states that cannot be told apart"
    nlp, batch = make_pipeline(make_nlp, folders, encoder, kind, precision)
    found, refused, done = [use(nlp, texts)], [], threading.Event()

    def use_it():
        while not done.is_set():
            try:
                found.append(use(nlp, texts))
            except TrainedElsewhereError as error:
                refused.append(str(error))
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
        for message in refused:
            check_refused(cases, message)
    with counted(TRAINED_WHILE_USED) as cases:
        cases.check(close(use(nlp, texts), states[-1]), what)


@pytest.mark.filterwarnings("ignore:.*has a new head")
@pytest.mark.parametrize(("encoder", "kind"), EVERY_KIND)
def test_used_amid_a_pass_of_training(counted, make_nlp, folders, encoder, kind):
    nlp, _ = make_pipeline(make_nlp, folders, encoder, kind, "float32")
    shims = [shim for _, pipe in nlp.pipeline for node in pipe.model.walk() for shim in node.shims]
    texts, trained = make_texts(0), threading.Barrier(2)
    uses = [score] if encoder == "reranker" else [pipe, call] if encoder == "shared" else list(USES)

    def train_it():
        with shims[0].use.changing():
            trained.wait()
            trained.wait()

    def use_it():
        trained.wait()
        try:
            for use in uses:
                with pytest.raises(TrainedElsewhereError, match="Another thread \\('worker 0'\\) trains this encoder"):
                    use(nlp, texts)
        finally:
            trained.wait()

    with counted(USED_WHILE_TRAINED) as cases:
        in_threads(train_it, use_it)
        cases.refused()
        for use in uses:
            cases.check(numpy.isfinite(use(nlp, texts)).all(), "once it is trained")


@pytest.mark.parametrize(("encoder", "kind", "precision", "part"), pipelines_and_parts(4, ("own", "shared")))
def test_used_together(counted, make_nlp, folders, encoder, kind, precision, part):
    """encode and encode, encode and pipe, pipe and pipe, on other texts each."""
    nlp, _ = make_pipeline(make_nlp, folders, encoder, kind, precision)
    first, second = make_texts(2 * part), make_texts(2 * part + 1, n=60)
    with counted(USED_TOGETHER) as cases:
        for functions in ((encode, encode), (encode, pipe), (pipe, pipe)):
            expected = [function(nlp, texts) for function, texts in zip(functions, (first, second), strict=True)]
            found: list[list] = [[], []]
            in_threads(
                lambda use=functions[0], to=found[0]: to.extend(use(nlp, first) for _ in range(3)),
                lambda use=functions[1], to=found[1]: to.extend(use(nlp, second) for _ in range(3)),
            )
            for of_thread, right in zip(found, expected, strict=True):
                for vectors in of_thread:
                    cases.check(close(vectors, right), f"{encoder} {kind} {precision} {functions}")


@pytest.mark.filterwarnings("ignore:.*has a new head")
@pytest.mark.parametrize("part", parts(4))
@pytest.mark.parametrize("encoder", ["own", "shared", "reranker"])
def test_trained_together(counted, make_nlp, folders, encoder, part):
    kind = ("bert", "distilbert")[part % 2]
    nlp, batch = make_pipeline(make_nlp, folders, encoder, kind, "float32")
    optimizer = Adam(0.01, use_averages=False)
    done, refused = [], []

    def train_it():
        for _ in range(6):
            try:
                nlp.update(batch, sgd=optimizer)
                done.append(1)
            except RuntimeError as error:
                refused.append(str(error))

    in_threads(train_it, train_it)
    with counted(TRAINED_TOGETHER) as cases:
        for message in refused:
            check_refused(cases, message)
        steps = max(optimizer.nr_update.values())
        cases.check(steps == len(done), f"{len(done)} updates done, {steps} steps made, {len(refused)} refused")
        nlp.update(batch, sgd=optimizer)
        cases.check(max(optimizer.nr_update.values()) == steps + 1, "alone again")


@pytest.mark.parametrize(("encoder", "kind"), EVERY_KIND[:4])
def test_an_interrupted_update_leaves_no_dropout(counted, make_nlp, folders, monkeypatch, encoder, kind):
    nlp, batch = make_pipeline(make_nlp, folders, encoder, kind, "float32")
    texts = make_texts(0)
    expected = [use(nlp, texts) for use in USES]
    sbert = nlp.get_pipe("sbert")
    with counted("an interrupted update leaves the encoder as it was") as cases:
        for error in (ZeroDivisionError, KeyboardInterrupt):
            with monkeypatch.context() as patched:
                patched.setattr(sbert, "_batch_loss", lambda *args, error=error: (_ for _ in ()).throw(error()))
                with pytest.raises(error):
                    nlp.update(batch, sgd=Adam(0.1))
            for use, right in zip(USES, expected, strict=True):
                cases.check(close(use(nlp, texts), right), f"{encoder} {kind} {use.__name__}")
                in_threads(lambda use=use, right=right: cases.check(close(use(nlp, texts), right), "another thread"))


FORKS = """
import sys, threading
import numpy, spacy, torch
from thinc.api import Adam
from spacy.training import Example
from spacy_sbert.readers import pair_doc

folder, texts = sys.argv[1], sys.argv[2].split("|")
torch.set_num_threads(2)
nlp = spacy.blank("en")
nlp.add_pipe("sbert", config={"model": {"name": folder}})
reference = pair_doc(nlp, "a man", "the cat", 0.5)
batch = [Example(reference.copy(), reference)]
nlp.initialize(lambda: batch)
optimizer, states, done = Adam(0.02, use_averages=False), [], threading.Event()
states.append(nlp.get_pipe("sbert").encode(texts))

def train():
    while not done.is_set():
        nlp.update(batch, sgd=optimizer)
        states.append(nlp.get_pipe("sbert").encode(texts))

thread = threading.Thread(target=train)
thread.start()
found = [[nlp.get_pipe("sbert").vector(doc) for doc in nlp.pipe(texts, n_process=2, batch_size=4)] for _ in range(3)]
done.set()
thread.join()
right = sum(
    any(numpy.allclose(vector, state[i], atol=1e-5) for state in states)
    for vectors in found
    for i, vector in enumerate(vectors)
)
print("right", right, "of", sum(map(len, found)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="nothing is forked there")
@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_forked_while_trained(counted, folders, tmp_path, kind):
    """nlp.pipe(n_process=2) while another thread trains: it ends, and each worker has one state of the weights."""
    (tmp_path / "forks.py").write_text(FORKS)
    command = [sys.executable, str(tmp_path / "forks.py"), str(folders[kind]), "|".join(make_texts(0))]
    with counted("workers that are forked while another thread trains have one state of the weights") as cases:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        words = done.stdout.split()
        assert words[:1] == ["right"], done.stdout + done.stderr
        cases.right(int(words[1]))
        for _ in range(int(words[3]) - int(words[1])):
            cases.wrong(f"{kind}: {done.stdout}")


MALLOC_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", bool) if sys.platform == "linux" else bool


def resident() -> int:
    """Bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("rounds", "n_texts"), [(6, 200), pytest.param(30, 2000, marks=pytest.mark.slow)], ids=["quick", "whole"]
)
def test_memory_stays(counted, make_nlp, folders, rounds, n_texts):
    """Rounds of nlp.pipe, encode and training, after two to warm up."""
    nlp, batch = make_pipeline(make_nlp, folders, TRAINED, "distilbert", "float32")
    texts, optimizer = make_texts(0, n=n_texts), Adam(0.001, use_averages=False)
    found = []
    for _ in range(rounds + 2):
        for doc in nlp.pipe(texts):
            assert doc.has_vector
        encode(nlp, texts)
        nlp.update(batch, sgd=optimizer)
        gc.collect()
        MALLOC_TRIM(0)  # what was freed is not in use, whenever glibc gives it back
        found.append(resident())
    with counted("resident memory stays within 2 % over rounds of use and training") as cases:
        for i, size in enumerate(found[2:]):
            cases.check(size < 1.02 * found[1], f"round {i}: {size / found[1] - 1:.1%} more")
