"""Freed memory goes back once resident memory has grown, and where the system has a way."""

import sys

import pytest

from spacy_sbert.encoder.engine import heap

MB = 10**6


@pytest.fixture
def resident(monkeypatch):
    """What is resident at each look, to be filled."""
    found = []
    monkeypatch.setattr(heap, "_resident", lambda: found.pop(0) * MB)
    return found


@pytest.fixture
def given_back(monkeypatch, resident):
    calls = []
    monkeypatch.setattr(heap, "_done", 0)
    monkeypatch.setattr(heap, "_usual", None)
    monkeypatch.setattr(heap, "EVERY", 100)
    monkeypatch.setattr(heap, "_malloc_trim", lambda: calls.append)
    return calls


def test_after_so_many_wordpieces_it_looks(given_back, resident):
    resident[:] = [800, 900, 700]
    looks = []
    for n in (60, 39, 1, 99, 300, 5):
        heap.note_work(n)
        looks.append(3 - len(resident))
    assert looks == [0, 0, 1, 1, 2, 2]


def test_it_gives_back_what_has_grown_since_the_first_work_after_the_last_time(given_back, resident):
    resident[:] = [800, 808, 809, 850, 858, 859, 840]
    found = []
    for _ in range(7):
        heap.note_work(100)
        found.append(len(given_back))
    assert found == [0, 0, 1, 1, 1, 2, 2]  # 809 is above 1.01 times 800; 850 is what is usual from then on
    assert given_back == [0, 0]  # how much glibc may keep, in bytes


def test_encoding_counts(given_back, resident, make_nlp):
    nlp = make_nlp()
    texts = ["a man is eating food"] * 9  # seven wordpieces each
    list(nlp.pipe(texts))
    assert heap._done == 63
    resident[:] = [800]
    nlp.get_pipe("sbert").encode(texts)
    assert heap._done == 0 and not resident


def test_systems_without(given_back, monkeypatch):
    monkeypatch.setattr(heap, "_malloc_trim", lambda: None)
    heap.note_work(1000)  # nothing to look at


def test_the_function_of_the_system():
    found = heap._malloc_trim()
    assert found is None or (sys.platform == "linux" and found(0) in (0, 1))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_resident_memory_is_that_of_the_process():
    before, held = heap._resident(), bytearray(64 * MB)
    held[::4096] = b"1" * len(held[::4096])
    assert 60 * MB < heap._resident() - before < 90 * MB
