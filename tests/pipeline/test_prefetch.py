"""`nlp.pipe` encodes the next batch while the last one is used, and nothing else changes."""

import gc
import subprocess
import sys
import threading

import numpy
import pytest
import torch
from thinc.api import Adam

from spacy_sbert.models.engine.concurrency import TrainedElsewhereError, parallel_map
from spacy_sbert.pipeline import prefetch as component
from spacy_sbert.pipeline.prefetch import THREAD, prefetch

TEXTS = [
    "a man is eating food",
    "the cat sat on the mat",
    "he ran fast",
    "someone having a meal",
    "a dog",
] * 2


@pytest.fixture(autouse=True)
def two_threads(monkeypatch, threads):
    """Two threads, as one has nothing to spare; and batches of two Docs are large enough."""
    threads(2)
    monkeypatch.setattr(component, "PREFETCH_FROM", 2)


@pytest.fixture
def nlp(make_nlp):
    nlp = make_nlp()
    nlp("loads the encoder")
    return nlp


def watch(sbert, monkeypatch):
    """The batches that are encoded, each with its thread."""
    seen = []
    stock = sbert._predict

    def predict(docs, settings):
        seen.append((len(docs), threading.current_thread()))
        return stock(docs, settings)

    monkeypatch.setattr(sbert, "_predict", predict)
    return seen


def test_a_batch_is_encoded_elsewhere_while_the_one_before_is_used(nlp, monkeypatch):
    seen = watch(nlp.get_pipe("sbert"), monkeypatch)
    stream = nlp.pipe(TEXTS, batch_size=2)
    # Of the first batch: the second was handed over before it was
    next(stream)
    next(stream)
    next(stream)
    assert len(seen) >= 2
    list(stream)
    assert [n for n, _ in seen] == [2] * 5
    assert all(thread is not threading.current_thread() for _, thread in seen)


@pytest.mark.parametrize(
    ("config", "batch_size", "n_threads"),
    [
        # Whoever feeds Docs one by one may wait for each
        ({}, 1, 2),
        ({}, 5, 1),
        (
            {"transformer": {"precision": "reference"}},
            5,
            2,
            # A Hugging Face model keeps things of a pass
        ),
        ({"encoder": "shared"}, 5, 2),
        ({"encoder": "static"}, 5, 2),
    ],
)
def test_here_where_nothing_is_gained_or_it_is_not_safe(
    make_nlp, monkeypatch, config, batch_size, n_threads
):
    torch.set_num_threads(n_threads)
    nlp = make_nlp(**config)
    nlp("loads the encoder")
    seen = watch(nlp.get_pipe("sbert"), monkeypatch)
    assert len(list(nlp.pipe(TEXTS, batch_size=batch_size))) == len(TEXTS)
    assert {thread for _, thread in seen} == {threading.current_thread()}


def test_what_fails_upstream_comes_behind_the_docs_before_it(nlp):
    def texts():
        yield from TEXTS[:4]
        raise OSError("the disk is gone")

    got = []
    with pytest.raises(OSError, match="the disk is gone"):
        for doc in nlp.pipe(texts(), batch_size=2):
            got.append(doc)
    assert [doc.text for doc in got] == TEXTS[:4]
    assert all(doc.has_vector for doc in got)


def test_a_batch_that_cannot_be_encoded_goes_to_the_error_handler(nlp, monkeypatch):
    sbert = nlp.get_pipe("sbert")
    stock = sbert._predict
    failed = []

    def predict(docs, settings):
        if docs[0].text == TEXTS[2]:
            raise MemoryError("too large")
        return stock(docs, settings)

    monkeypatch.setattr(sbert, "_predict", predict)
    with pytest.raises(MemoryError, match="too large"):
        list(nlp.pipe(TEXTS, batch_size=2))
    nlp.set_error_handler(
        lambda name, pipe, docs, error: failed.append(
            (name, [doc.text for doc in docs], str(error))
        )
    )
    docs = list(nlp.pipe(TEXTS[:6], batch_size=2))
    assert failed == [("sbert", TEXTS[2:4], "too large")]
    assert [doc.text for doc in docs] == [*TEXTS[:2], *TEXTS[4:6]]
    assert all(doc.has_vector for doc in docs)


def test_who_stops_early_leaves_no_thread_behind(nlp):
    stream = nlp.pipe(TEXTS, batch_size=2)
    next(stream)
    assert any(thread.name.startswith(THREAD) for thread in threading.enumerate())
    del stream
    gc.collect()
    assert not any(thread.name.startswith(THREAD) for thread in threading.enumerate())


def test_one_warning_for_all_that_was_cut(nlp):
    with pytest.warns(UserWarning, match="sbert-truncated.* 2 of") as said:
        docs = list(nlp.pipe(["a man " * 40, *TEXTS, "the cat " * 40], batch_size=2))
    assert [doc._.sbert_truncated for doc in docs] == [True, *[False] * len(TEXTS), True]
    assert len(said) == 1


def test_who_trains_while_docs_come_gets_their_vectors(make_nlp, examples):
    nlp = make_nlp()
    batch = examples(nlp)
    optimizer = Adam(0.001, use_averages=False)
    nlp.initialize(lambda: batch)
    for doc in nlp.pipe(TEXTS, batch_size=2):
        nlp.update(batch, sgd=optimizer)
        assert doc.has_vector


def test_what_is_refused_elsewhere_is_encoded_here():
    def predict(docs):
        if threading.current_thread() is not threading.main_thread():
            raise TrainedElsewhereError
        return docs

    found = [
        prediction() for _, prediction in prefetch(predict, [[1], [2]], is_possible=lambda: True)
    ]
    assert found == [[1], [2]]


def test_no_more_than_one_batch_is_taken_ahead():
    taken = []

    def batches():
        for number in range(4):
            taken.append(number)
            yield [number]

    stream = prefetch(lambda docs: docs, batches(), is_possible=lambda: True)
    for number in range(4):
        docs, prediction = next(stream)
        assert docs == prediction() == [number]
        assert taken == list(range(min(number + 2, 4)))
    assert next(stream, None) is None


@pytest.fixture
def no_new_threads(monkeypatch):
    """No thread starts any more, as by a limit of the system, or once the main thread has ended."""

    def start(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


def test_without_another_thread_batches_are_encoded_here(nlp, no_new_threads):
    sbert = nlp.get_pipe("sbert")
    vectors = [doc.vector for doc in nlp.pipe(TEXTS, batch_size=2)]
    numpy.testing.assert_allclose(vectors, sbert.encode(TEXTS), atol=1e-6)


def test_passes_of_several_threads_run_here_if_one_cannot_start(threads, monkeypatch):
    # As many as no other test has: these threads are new
    threads(4)
    started, start = [], threading.Thread.start

    def start_two(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_two)
    assert list(parallel_map(lambda task: task + 1, range(10))) == list(range(1, 11))
    assert torch.get_num_threads() == 4
    for thread in started:
        thread.join(10)
        assert not thread.is_alive()


UNJOINED = """
import sys, threading, spacy, torch
from spacy_sbert import find_sbert
torch.set_num_threads(2)
nlp = spacy.load(sys.argv[1])
nlp("a cat")
def work():
    threading.main_thread().join()
    texts = [f"a cat {i}" for i in range(300)]
    print(len(list(nlp.pipe(texts, batch_size=128))))
    print(len(find_sbert(nlp).encode(texts, window=128)))
threading.Thread(target=work).start()
"""


def test_a_thread_that_outlives_the_main_one(nlp, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    command = [sys.executable, "-c", UNJOINED, tmp_path / "pipeline"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["300", "300"], done.stderr
