"""Several forward passes at a time on a CPU, each on one thread: nobody waits for the slowest thread of a product."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

Task = TypeVar("Task")
Result = TypeVar("Result")
AHEAD = 2  # passes a thread may be ahead of who takes the results


def parallel_map(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """The map of Python, which works on as many tasks at a time as PyTorch has threads here.

    RETURNS (Iterator): the results, in the order of the tasks.
    """
    n_threads = torch.get_num_threads()
    if n_threads == 1:
        yield from map(function, tasks)
        return
    yield from map_ahead(_threads(os.getpid(), n_threads), function, tasks, AHEAD * n_threads)


def map_ahead(
    pool: Executor, function: Callable[[Task], Result], tasks: Iterable[Task], ahead: int
) -> Iterator[Result]:
    """The map of a pool, which takes no more tasks than it works on, and so many ahead of who takes the results.

    RETURNS (Iterator): the results, in the order of the tasks.
    """
    waiting: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(function, task))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@cache
def _threads(process: int, n_threads: int) -> ThreadPoolExecutor:
    """Threads of a process (they do not survive a fork) on each of which PyTorch computes on one thread."""
    started = threading.Barrier(n_threads + 1)

    def start() -> None:
        torch.get_num_threads()  # a thread takes over the latest number when it first asks: not later, in place of 1
        torch.set_num_threads(1)
        started.wait()

    pool = ThreadPoolExecutor(n_threads)
    for _ in range(n_threads):
        pool.submit(start)
    started.wait()
    torch.set_num_threads(n_threads)  # PyTorch hands the latest number to threads that are yet to come
    return pool
