"""Several forward passes at a time on a CPU, each on one thread: nobody waits for the slowest thread of a product."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Task = TypeVar("Task")
Result = TypeVar("Result")
AHEAD = 2  # passes a thread may be ahead of who takes the results


@contextmanager
def parallel_map() -> Iterator[Callable[[Callable[[Task], Result], Iterable[Task]], Iterator[Result]]]:
    """A map that works on as many tasks at a time as PyTorch has threads here, and returns the results in order.

    The threads live as long as the context: they would not survive a fork. With one thread it is the map of Python.
    """
    n_threads = torch.get_num_threads()
    if n_threads == 1:
        yield map
        return
    started = threading.Barrier(n_threads + 1)

    def start() -> None:
        torch.set_num_threads(1)
        started.wait()

    with ThreadPoolExecutor(n_threads) as pool:
        for _ in range(n_threads):
            pool.submit(start)
        started.wait()
        torch.set_num_threads(n_threads)  # PyTorch hands the latest number to threads that are yet to come

        def run(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
            waiting: deque[Future[Result]] = deque()
            try:
                for task in tasks:
                    waiting.append(pool.submit(function, task))
                    if len(waiting) > AHEAD * n_threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

        yield run
