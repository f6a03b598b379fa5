"""Ranks of a training: threads of one process, and processes forked of one that has imported
everything.
"""

import os
import signal
import socket
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import numpy
import spacy
import torch
from helpers import killing
from helpers.objectives import examples_of
from helpers.pipelines import finish_update
from thinc.api import SGD
from torch import distributed

from spacy_sbert.distributed.joint_training import JointTraining
from spacy_sbert.distributed.torch_distributed import TorchDistributed, _parameters_of, launched

# The last is uneven
SIZES = (6, 6, 6, 6, 5)


class Threads(TorchDistributed):
    """A rank that is a thread."""

    def __init__(self, rank, size, values, barrier):
        super().__init__()
        self.rank = rank
        self.size = size
        self.is_first = rank == 0
        self._values = values
        self._barrier = barrier

    def gather_objects(self, value):
        self._values[self.rank] = value
        self._barrier.wait()
        found = [self._values[rank] for rank in range(self.size)]
        self._barrier.wait()
        return found

    def all_reduce(self, values):
        return torch.stack(self.gather_objects(values)).sum(dim=0)


def in_threads(work, size=2):
    """Return what work(ranks) returns on each rank; its first error is raised."""
    values = {}
    barrier = Barrier(size, timeout=120)

    def run(rank):
        try:
            return work(Threads(rank, size, values, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        running = [pool.submit(run, rank) for rank in range(size)]
    for one in sorted(running, key=lambda one: isinstance(one.exception(), BrokenBarrierError)):
        one.result()
    return [one.result() for one in running]


def start(work, size=2) -> list[BaseProcess]:
    """Start ranks as torchrun does, that work(): can be pickled."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [killing.start(partial(_as_rank, work, rank, size, port)) for rank in range(size)]


def _as_rank(work, rank, size, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(size))
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    # Which a process in the background ignores
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)
    work()


def typed(log, *argv):
    """What `python -m spacy ...` does on a rank, and says in the file log-RANK."""
    from spacy.cli import app

    for number in (1, 2):
        os.dup2(
            os.open(f"{log}-{os.environ['RANK']}", os.O_CREAT | os.O_WRONLY | os.O_APPEND), number
        )
    app([str(argument) for argument in argv])


def batches(nlp, name):
    """Examples of five steps, no two of which see the same."""
    examples = examples_of(nlp, name, sum(SIZES) + len(SIZES))
    if name == "MultiTaskLoss":
        return [examples[i:] + examples[:i] for i in range(5)]
    # By one more, so that texts and gold values move
    starts = [sum(SIZES[:i]) + i for i in range(len(SIZES))]
    return [examples[start : start + size] for start, size in zip(starts, SIZES, strict=True)]


def descend(nlp, name, ranks):
    """Five steps of gradient descent: the gradients of the first, the weights after all, and the
    losses, by name.
    """
    optimizer = SGD(0.02)
    losses = []
    found = {}
    models = [pipe.model for _, pipe in nlp.pipeline]
    joint = JointTraining(nlp, ranks)
    for batch in batches(nlp, name):
        losses.append(joint.update(batch, sgd=False)["sbert"])
        if not found:
            gradients = enumerate(gradient for _, gradient, _ in _parameters_of(models))
            found = {f"gradient {i}": d.numpy().copy() for i, d in gradients if d is not None}
        finish_update(nlp, optimizer)
    joint.close()
    found |= {
        f"weights {i}": weights.numpy().copy()
        for i, (weights, *_) in enumerate(_parameters_of(models))
    }
    return {**found, "losses": numpy.array(losses)}


def descend_all(folder):
    """Descend with every pipeline in a folder, as one of the ranks."""
    with launched(-1) as ranks:
        assert ranks.size == int(os.environ["WORLD_SIZE"])
        joined = weakref.ref(distributed.group.WORLD)
        for path in sorted(Path(folder).iterdir()):
            numpy.savez(
                path / f"rank{ranks.rank}.npz",
                **descend(spacy.load(path), path.name.split(", ")[1], ranks),
            )
    # Else its threads go on while Python ends
    assert joined() is None
