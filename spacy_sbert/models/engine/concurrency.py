"""Locks and thread settings of encoders."""

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch

from ..surroundings import PROCESS_SETTINGS, undisturbed

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_TOKENIZERS = "TOKENIZERS_PARALLELISM"

# Held while an encoder is loaded or built: from_pretrained is not made for several threads
LOADING = threading.RLock()
# Guards the lists of every EncoderUse, and _CHANGING
_STATE = threading.Condition()
# Those that change the weights of an encoder
_CHANGING: list[threading.Thread] = []


class TrainedElsewhereError(RuntimeError):
    """Another thread trains this encoder."""


class _TrainingStep:
    """A forward pass of training whose gradient has not come yet; only its callback holds it."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()


class EncoderUse:
    """The threads that use an encoder.

    While one trains it, others get a TrainedElsewhereError; a copy has no users.
    """

    def __init__(self) -> None:
        self._encoding: list[threading.Thread] = []
        self._changing: list[threading.Thread] = []
        self._step: weakref.ref[_TrainingStep] | None = None

    def __reduce__(self) -> tuple[type, tuple]:
        return EncoderUse, ()

    @contextmanager
    def encoding(self, *, alone: bool = False) -> Iterator[None]:
        """Read the weights in a with block.

        alone (bool): whether to wait until no other thread encodes.
        """
        me = threading.current_thread()
        with _STATE:
            if alone:
                _STATE.wait_for(lambda: not _others(self._encoding))
            # What has begun continues
            if me not in self._encoding:
                _refuse(self._changing)
            self._encoding.append(me)
        try:
            with undisturbed():
                yield
        finally:
            with _STATE:
                self._encoding.remove(me)
                _STATE.notify_all()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Change the weights in a with block that waits until no other thread encodes."""
        me = threading.current_thread()
        with _STATE:
            self.check_trainer()
            # From now on others are refused
            self._changing.append(me)
            _CHANGING.append(me)
        try:
            with _STATE:
                _STATE.wait_for(lambda: not _others(self._encoding))
            with undisturbed():
                yield
        finally:
            with _STATE:
                self._changing.remove(me)
                _CHANGING.remove(me)
                _STATE.notify_all()

    def begin_step(self) -> object:
        """Keep other threads from training until end_step, or until nothing holds the step."""
        with _STATE:
            self.check_trainer()
            step = _TrainingStep()
            self._step = weakref.ref(step)
            return step

    def end_step(self, step: object) -> None:
        """End a step, unless another one has begun since."""
        if self.step is step:
            self._step = None

    @property
    def step(self) -> _TrainingStep | None:
        """The step that awaits its gradient."""
        return None if self._step is None else self._step()

    @property
    def is_trained_elsewhere(self) -> bool:
        return bool(_others(self._trainers))

    def check_trainer(self) -> None:
        """Raise a TrainedElsewhereError if another thread trains the encoder."""
        _refuse(self._trainers)

    @property
    def _trainers(self) -> list[threading.Thread]:
        step = self.step
        return [*self._changing] if step is None else [*self._changing, step.thread]


def _refuse(trainers: list[threading.Thread]) -> None:
    for thread in _others(trainers):
        raise TrainedElsewhereError(
            f"Another thread ('{thread.name}') trains this encoder. Use it in that thread alone "
            "while it is trained, or load the pipeline a second time."
        )


def _others(threads: list[threading.Thread]) -> list[threading.Thread]:
    """Return the other threads that are alive; in a forked process those of its parent are not."""
    me = threading.current_thread()
    return [thread for thread in threads if thread is not me and thread.is_alive()]


@cache
def prepare_forks() -> None:
    """Let forked processes encode: on one thread, as PyTorch's pool does not survive a fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_before_fork,
            after_in_parent=_release_in_parent,
            after_in_child=_release_in_child,
        )


def _before_fork() -> None:
    _STATE.acquire()
    _STATE.wait_for(lambda: not _others(_CHANGING))
    LOADING.acquire()
    # Tokenizers' own pool does not survive either: it stops by itself in a child, with a warning
    # unless it is set. Which hardly anyone sets by hand
    os.environ.setdefault(_TOKENIZERS, "off")


def _release_in_parent() -> None:
    if os.environ.get(_TOKENIZERS) == "off":
        del os.environ[_TOKENIZERS]
    LOADING.release()
    _STATE.release()


def _release_in_child() -> None:
    LOADING.release()
    _STATE.release()
    PROCESS_SETTINGS.release_in_child()
    torch.set_num_threads(1)
    # If not, tokenizers does so itself; it would wait for the threads
    if "TOKENIZERS_PARALLELISM" in os.environ:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"


def parallel_map(function: Callable[[_Task], _Result], tasks: Iterable[_Task]) -> Iterator[_Result]:
    """Map tasks in order, as many at a time as PyTorch has threads, each on one thread."""
    n_threads = torch.get_num_threads()
    if n_threads == 1:
        return map(function, tasks)
    try:
        pool = _threads(os.getpid(), n_threads)
    except RuntimeError:  # see submit
        return map(function, tasks)
    return map_ahead(pool, function, tasks, 2 * n_threads)


def submit(pool: Executor, function: Callable[..., _Result], *args: Any) -> Future[_Result]:
    """Start a task in a pool, or do it here if the pool cannot have a thread.

    None can be started once the main thread has ended, as in a thread that was not joined or in
    atexit, nor beyond a limit of the system.
    """
    try:
        return pool.submit(function, *args)
    except RuntimeError:
        if not isinstance(pool, ThreadPoolExecutor):
            raise
    done: Future[_Result] = Future()
    try:
        done.set_result(function(*args))
    except BaseException as error:
        done.set_exception(error)
    return done


def map_ahead(
    pool: Executor, function: Callable[[_Task], _Result], tasks: Iterable[_Task], ahead: int
) -> Iterator[_Result]:
    """Map tasks in order; the pool has no more than so many ahead of the reader of the results."""
    waiting: deque[Future[_Result]] = deque()
    try:
        for task in tasks:
            waiting.append(submit(pool, function, task))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@cache
def _threads(process: int, n_threads: int) -> ThreadPoolExecutor:
    """Return the threads of a process, on each of which PyTorch computes on one thread.

    RAISES (RuntimeError): if a thread cannot be started.
    """
    started = threading.Barrier(n_threads + 1)

    def start() -> None:
        # A thread takes over the latest number when it first asks: not later, in place of 1
        torch.get_num_threads()
        torch.set_num_threads(1)
        started.wait()

    pool = ThreadPoolExecutor(n_threads)
    try:
        for _ in range(n_threads):
            pool.submit(start)
    except RuntimeError:
        # Those that did start would wait for ever
        started.abort()
        raise
    started.wait()
    # PyTorch gives the latest number to threads that start later
    torch.set_num_threads(n_threads)
    return pool
