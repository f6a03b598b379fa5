"""Encode texts in several processes."""

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import torch
from srsly import cloudpickle
from thinc.api import require_gpu

from .encoded_docs import Encoded, ProgressCallback
from .engine.concurrency import map_ahead


def encode_in_processes(
    encoder: Any,  # noqa: ANN401 (a TextEncoder, which imports this module)
    windows: Iterable[list[str]],
    n_workers: int,
    gpu_ids: Sequence[int],
    moved: ProgressCallback,
) -> Iterator[Encoded]:
    """Encode windows in turn in worker processes, a few ahead of the reader of the vectors.

    RAISES (RuntimeError): if a process ends by itself.
    """
    encoder.check_calibrated()
    context = multiprocessing.get_context("spawn")  # PyTorch's threads and CUDA do not survive a fork
    devices = context.SimpleQueue()
    for worker in range(n_workers):
        devices.put(gpu_ids[worker % len(gpu_ids)] if gpu_ids else None)
    n_threads = max(1, torch.get_num_threads() // n_workers)
    with TemporaryDirectory() as folder:
        # In a file: a pipe to a process that ends before it has read everything would block for ever.
        file = Path(folder) / "encoder"
        file.write_bytes(cloudpickle.dumps(encoder))
        settings = (file, devices, n_threads)
        with ProcessPoolExecutor(n_workers, mp_context=context, initializer=_start, initargs=settings) as pool:
            try:
                for vectors, n_cut in map_ahead(pool, _encode_window, windows, 2 * n_workers):
                    moved(len(vectors))
                    yield vectors, n_cut
            except BrokenProcessPool as error:
                raise RuntimeError(
                    f"One of {n_workers} processes that encode ended by itself: see its output above. "
                    "Each imports the main module: that must be a file or a notebook, not standard input, and "
                    'guarded by if __name__ == "__main__". It may also have run out of memory: take fewer, or '
                    "a smaller window."
                ) from error


_worker: Any  # of a process that encodes for another


def _start(encoder: Path, devices: "SimpleQueue[int | None]", n_threads: int) -> None:
    global _worker
    Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(n_threads)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false" if n_threads == 1 else "true")
    _worker = cloudpickle.loads(encoder.read_bytes())
    gpu_id = devices.get()
    if gpu_id is not None:
        require_gpu(gpu_id)
        _worker.to_gpu(gpu_id)


def _end_with_parent() -> None:
    """End this worker when its parent is killed, which cannot end it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _encode_window(texts: list[str]) -> Encoded:
    return _worker.encode(_worker.tokenize(texts))
