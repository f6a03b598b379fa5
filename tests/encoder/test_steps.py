"""Of two threads that begin a step at one moment, one goes on, and the other is refused."""

import sys
import threading

import pytest
import spacy

from spacy_sbert.encoder.listener import SentenceListener
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


def test_a_step_that_begins_as_another_ends_keeps_its_output():
    """The listener forgets what it heard before it hands back the gradient, not what it hears next."""
    doc = spacy.blank("en")("A man")
    listener = SentenceListener("*", 1.0)
    batch = listener.get_batch_id([doc])
    listener.receive(batch, ["first"], lambda d_datas: listener.receive(batch, ["second"], None))
    outputs, backprop = listener([doc], True)
    assert outputs == ["first"]
    backprop([])
    assert listener._outputs == ["second"] and listener._batch_id == batch
