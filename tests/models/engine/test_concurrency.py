"""Threads that encode go on together, one that trains is alone, and nobody waits for ever, nor does
a fork.
"""

import contextlib
import copy
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import spacy

from spacy_sbert.models.engine import concurrency
from spacy_sbert.models.engine.concurrency import (
    LOADING,
    EncoderUse,
    TrainedElsewhereError,
    prepare_forks,
)
from spacy_sbert.models.listener import SentenceListener

REFUSED = f"Another thread \\('{threading.main_thread().name}'\\) trains this encoder"


def start(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def ends(thread):
    thread.join(timeout=10)
    return not thread.is_alive()


def waits(thread):
    thread.join(timeout=0.1)
    return thread.is_alive()


def enter(block):
    with block:
        pass


def elsewhere(function):
    """What a function raises in another thread, None if it returns."""
    raised = []

    def run():
        try:
            function()
        except TrainedElsewhereError as error:
            raised.append(error)

    assert ends(start(run)), "hangs"
    return raised[0] if raised else None


def all_ways(use):
    return {
        "encoding": lambda: enter(use.encoding()),
        "alone": lambda: enter(use.encoding(alone=True)),
        "changing": lambda: enter(use.changing()),
        "step": use.begin_step,
        "check": use.check_trainer,
    }


@pytest.mark.parametrize("way", ["changing", "step", "check"])
def test_others_may_not_train_until_the_gradient_has_come(way):
    use = EncoderUse()
    step = use.begin_step()
    error = elsewhere(all_ways(use)[way])
    with pytest.raises(RuntimeError, match=REFUSED):
        raise error
    # Not this thread
    all_ways(use)["changing"]()
    enter(use.changing())
    for harmless in ("encoding", "alone"):
        assert elsewhere(all_ways(use)[harmless]) is None
    use.end_step(step)
    assert use.step is None
    assert elsewhere(all_ways(use)[way]) is None


@pytest.mark.parametrize("way", all_ways(EncoderUse()))
def test_others_are_refused_while_weights_change(way):
    use = EncoderUse()
    with use.changing():
        enter(use.changing())
        assert elsewhere(all_ways(use)[way]) is not None, "the outer one changes them still"
        all_ways(use)[way]()
    assert elsewhere(all_ways(use)[way]) is None


def test_a_step_without_a_callback_or_of_a_thread_that_has_ended_is_over():
    use = EncoderUse()
    kept = []
    step = use.begin_step()
    del step
    assert elsewhere(lambda: kept.append(use.begin_step())) is None
    assert use.step is kept[0]
    enter(use.changing())


def test_training_waits_for_those_who_encode_and_refuses_those_who_come():
    use = EncoderUse()
    with use.encoding():
        assert elsewhere(lambda: enter(use.encoding())) is None
        alone = start(lambda: enter(use.encoding(alone=True)))
        assert waits(alone)
        enter(use.encoding(alone=True))
    assert ends(alone)
    with pytest.raises(ZeroDivisionError), use.encoding():
        training = start(lambda: enter(use.changing()))
        assert waits(training)
        # The same thread goes on
        enter(use.encoding())
        assert elsewhere(lambda: enter(use.encoding())) is not None
        # An error lets go
        raise ZeroDivisionError
    assert ends(training)
    with pytest.raises(ZeroDivisionError), use.changing():
        raise ZeroDivisionError
    assert elsewhere(lambda: enter(use.changing())) is None
    assert not concurrency._CHANGING
    step = use.begin_step()
    assert elsewhere(copy.deepcopy(use).begin_step) is None and use.step is step, (
        "nobody trains a copy"
    )


def test_one_of_two_that_begin_at_once():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            use = EncoderUse()
            barrier = threading.Barrier(2)

            def begin(_, use=use, barrier=barrier):
                barrier.wait()
                with contextlib.suppress(RuntimeError):
                    step = use.begin_step()
                    # Both live until both have tried
                    barrier.wait()
                    return step
                barrier.wait()
                return None

            with ThreadPoolExecutor(2) as pool:
                assert sum(step is not None for step in pool.map(begin, range(2))) == 1
    finally:
        sys.setswitchinterval(interval)


def test_a_step_that_begins_as_another_ends_keeps_its_output():
    """The listener forgets what it heard before it hands back the gradient, not what it hears
    next.
    """
    doc = spacy.blank("xx")("A man")
    listener = SentenceListener("*", 1.0)
    batch = listener.get_batch_id([doc])
    listener.receive(batch, ["first"], lambda d_datas: listener.receive(batch, ["second"], None))
    outputs, backprop = listener([doc], True)
    assert outputs == ["first"]
    backprop([])
    assert listener._outputs == ["second"]
    assert listener._batch_id == batch


def exit_code(child):
    """Of a forked process that does something, and is killed if it hangs."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = int(child() or 0)
        finally:
            os._exit(code)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked there")
@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize("block", ["changing", "loading"])
def test_a_fork_waits_for_a_change_and_is_used_by_nobody(block):
    prepare_forks()
    use = EncoderUse()
    weights = [0, 0]
    begun = threading.Event()
    leave = threading.Event()

    def change():
        with use.changing() if block == "changing" else LOADING:
            weights[0] = 1
            begun.set()
            time.sleep(0.3)
            weights[1] = 1

    def encode():
        with use.encoding():
            begun.set()
            leave.wait(10)

    changing = start(change)
    begun.wait(10)
    assert exit_code(lambda: weights[0] != weights[1]) == 0
    assert ends(changing)
    begun.clear()
    encoding = start(encode)
    begun.wait(10)
    assert exit_code(lambda: enter(use.changing())) == 0, (
        "a thread of the parent does not encode in the child"
    )
    leave.set()
    assert ends(encoding)
    step = use.begin_step()
    assert exit_code(lambda: enter(use.encoding()) or enter(LOADING)) == 0
    use.end_step(step)
    enter(use.changing())
