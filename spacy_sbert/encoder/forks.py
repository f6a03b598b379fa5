"""Forked workers (`nlp.pipe(n_process=2)`) that do not hang."""

import os
from functools import cache


@cache
def use_one_thread_in_forks() -> None:
    """Let processes that are forked from now on compute on one thread.

    The thread pool of PyTorch does not survive a fork: once this process has run a forward pass on several threads, a
    child that asks for more than one waits for ever. Called when an encoder is made, not at import.
    """
    os.register_at_fork(after_in_child=_use_one_thread)


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the pool of tokenizers does not survive either
