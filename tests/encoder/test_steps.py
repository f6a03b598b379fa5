"""Of two threads that begin a step at one moment, one goes on, and the other is refused."""

import sys
import threading

import pytest

from spacy_sbert.encoder.steps import Steps


def test_a_second_thread_is_refused_where_it_begins():
    steps = Steps()
    awaited, refused = steps.begin(), []

    def begin():
        with pytest.raises(RuntimeError, match=f"'{threading.main_thread().name}'"):
            steps.begin()
        refused.append(True)

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    assert refused and steps.awaits_gradient
    steps.end(awaited)
    assert not steps.awaits_gradient


def test_one_of_two_that_begin_at_once():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(300):
            steps, barrier, held = Steps(), threading.Barrier(2), []

            def begin(steps=steps, barrier=barrier, held=held):
                barrier.wait()
                try:
                    held.append(steps.begin())
                except RuntimeError:
                    held.append(None)
                barrier.wait()  # both live until both have tried

            threads = [threading.Thread(target=begin) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sum(one is not None for one in held) == 1
    finally:
        sys.setswitchinterval(interval)
