"""Forked workers (`nlp.pipe(n_process=2)`) that do not hang."""

import os
from functools import cache

import torch

PARALLELISM = "TOKENIZERS_PARALLELISM"
FOR_CHILDREN = "off"  # one of the values that tokenizers reads as no, and that hardly anyone sets by hand


@cache
def use_one_thread_in_forks() -> None:
    """Let processes that are forked from now on compute on one thread.

    The thread pool of PyTorch does not survive a fork: once this process has run a forward pass on several threads, a
    child that asks for more than one waits for ever. Called when an encoder is made, not at import.
    """
    os.register_at_fork(before=_announce, after_in_child=_use_one_thread, after_in_parent=_withdraw)


def _announce() -> None:
    """Tokenizers' own pool does not survive either: it stops by itself in a child, and says so unless told before."""
    if PARALLELISM not in os.environ:
        os.environ[PARALLELISM] = FOR_CHILDREN


def _withdraw() -> None:
    if os.environ.get(PARALLELISM) == FOR_CHILDREN:
        del os.environ[PARALLELISM]


def _use_one_thread() -> None:
    torch.set_num_threads(1)
