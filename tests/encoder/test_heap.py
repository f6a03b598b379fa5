"""Freed memory goes back after so many wordpieces, and where the system has a way."""

import sys

import pytest

from spacy_sbert.encoder.engine import heap


@pytest.fixture
def given_back(monkeypatch):
    calls = []
    monkeypatch.setattr(heap, "_done", 0)
    monkeypatch.setattr(heap, "_last", 0.0)
    monkeypatch.setattr(heap, "REST", 0.0)
    monkeypatch.setattr(heap, "EVERY", 100)
    monkeypatch.setattr(heap, "_malloc_trim", lambda: calls.append)
    return calls


def test_after_so_many_wordpieces(given_back):
    found = []
    for n in (60, 39, 1, 99, 300, 5):
        heap.note_work(n)
        found.append(len(given_back))
    assert found == [0, 0, 1, 1, 2, 2]
    assert given_back == [0, 0]  # how much glibc may keep, in bytes


def test_not_all_the_time(given_back, monkeypatch):
    monkeypatch.setattr(heap, "REST", 2.0)
    seconds = iter([10.0, 10.0, 11.0, 11.9, 12.1, 12.1])  # where memory is given back the clock is read twice
    monkeypatch.setattr(heap.time, "monotonic", lambda: next(seconds))
    found = []
    for _ in range(4):
        heap.note_work(100)
        found.append(len(given_back))
    assert found == [1, 1, 1, 2]


def test_encoding_counts(given_back, make_nlp):
    nlp = make_nlp()
    texts = ["a man is eating food"] * 9  # seven wordpieces each
    list(nlp.pipe(texts))
    assert heap._done == 63 and not given_back
    nlp.get_pipe("sbert").encode(texts)
    assert heap._done == 0 and len(given_back) == 1


def test_systems_without(given_back, monkeypatch):
    monkeypatch.setattr(heap, "_malloc_trim", lambda: None)
    heap.note_work(1000)
    assert heap._done == 0


def test_the_function_of_the_system():
    found = heap._malloc_trim()
    assert found is None or (sys.platform == "linux" and found(0) in (0, 1))
