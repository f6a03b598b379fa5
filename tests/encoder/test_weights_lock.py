"""Readers together, a change alone; nobody waits for itself, and nothing is left held."""

import copy
import os
import pickle
import threading
import time

import pytest

from spacy_sbert.encoder.weights_lock import WeightsLock


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


def enter(held):
    with held:
        pass


@pytest.mark.parametrize("first", ["reading", "writing"])
@pytest.mark.parametrize("second", ["reading", "writing"])
def test_who_waits_for_whom(first, second):
    lock, together = WeightsLock(), first == second == "reading"
    with getattr(lock, first)():
        other = start(lambda: enter(getattr(lock, second)()))
        assert ends(other) if together else waits(other)
    assert ends(other)


def test_a_change_is_not_kept_waiting_by_those_who_come_after():
    lock, order = WeightsLock(), []

    def change():
        with lock.writing():
            order.append("change")

    def read():
        with lock.reading():
            order.append("read")

    with lock.reading():
        changing = start(change)
        assert waits(changing)
        reading = start(read)
        assert waits(reading)
        with lock.reading():
            order.append("the same thread")
    assert ends(changing) and ends(reading)
    assert order == ["the same thread", "change", "read"]


def test_nobody_waits_for_itself():
    lock = WeightsLock()
    with lock.reading(), lock.writing(), lock.reading(), lock.writing():
        pass
    with lock.writing():
        enter(lock.writing())
        assert waits(start(lambda: enter(lock.reading()))), "the outer one holds it still"


def test_an_error_lets_go():
    lock = WeightsLock()
    for held in (lock.reading, lock.writing):
        with pytest.raises(ZeroDivisionError), held():
            raise ZeroDivisionError
    assert ends(start(lambda: enter(lock.writing())))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda lock: pickle.loads(pickle.dumps(lock))])
def test_a_copy_is_held_by_nobody(copied):
    lock = WeightsLock()
    with lock.writing():
        other = copied(lock)
        assert other is not lock
        assert ends(start(lambda: enter(other.writing())))


def exit_code(child):
    """Of a forked process that does something, and is killed if it hangs."""
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(0)
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
def test_a_fork_waits_for_a_change_and_is_held_by_nobody():
    lock, weights, leave = WeightsLock(), [0, 0], threading.Event()

    def change():
        with lock.writing():
            weights[0] = 1
            time.sleep(0.3)
            weights[1] = 1

    def read():
        with lock.reading():
            leave.wait(10)

    reading = start(read)
    changing = start(change)
    assert waits(changing)
    leave.set()
    time.sleep(0.05)  # it is amid the change, or about to
    child = exit_code(lambda: os._exit(weights[0] != weights[1]) if not enter(lock.writing()) else None)
    assert child == 0
    assert ends(reading) and ends(changing)
    leave.clear()
    reading = start(read)
    assert exit_code(lambda: enter(lock.writing())) == 0, "a reader of the parent is none in the child"
    leave.set()
    assert ends(reading)
    enter(lock.writing())
