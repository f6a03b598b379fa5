"""torchrun: processes, collectives and synchronized parameters."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import Any, cast
from zlib import crc32

import torch
from spacy.training import Example
from thinc.api import Model, PyTorchShim, torch2xp, xp2torch
from thinc.types import Floats2d, FloatsXd
from torch import distributed

from ..training.examples import DistributedContext

PATIENCE = timedelta(days=7)  # while rank 0 evaluates; torchrun ends a job of which a rank has died at once


class RankLost(RuntimeError):
    """Another rank has ended, or cannot be reached."""


class TorchDistributed(DistributedContext):
    """One of several processes that train together, each on every size-th example of a batch.

    Every rank reads the same batches, and encodes its part. The vectors of all are gathered, so that each computes the
    loss of the whole batch; the gradient of its own rows is what it takes back. Where torch.distributed was not begun,
    there is one rank, which tells nobody anything.

    gpu_id (int): the GPU of this rank, -1 for the CPU. rank, size (int): which it is, of how many.
    device (torch.device): where tensors are that are sent.
    """

    def __init__(self, gpu_id: int = -1) -> None:
        joined = distributed.is_available() and distributed.is_initialized()
        self.rank, self.size = (distributed.get_rank(), distributed.get_world_size()) if joined else (0, 1)
        self.gpu_id = gpu_id
        self.device = torch.device("cuda", gpu_id) if joined and gpu_id >= 0 else torch.device("cpu")
        self._batch: Sequence[Example] | None = None

    def __reduce__(self) -> tuple[type, tuple]:
        return DistributedContext, ()  # a copy is alone

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that writes and speaks."""
        return self.rank == 0

    # What Peers have

    @contextmanager
    def sharing(self, batch: Sequence[Example]) -> Iterator[list[Example]]:
        """While a batch is learned from; the rank's own examples."""
        self._batch = batch
        try:
            yield list(batch[self.rank :: self.size])
        finally:
            self._batch = None

    def batch(self, own: Sequence[Example]) -> Sequence[Example]:
        return own if self._batch is None else self._batch

    def gather(self, vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        if self._batch is None or self.size == 1:
            return vectors
        places = self._places(counts)
        sent = xp2torch(vectors).to(self.device)
        padded = sent.new_zeros(max(map(len, places)), sent.shape[1])
        padded[: len(sent)] = sent
        whole = sent.new_empty(sum(counts), sent.shape[1])
        for rows, of_rank in zip(self._of_all(padded), places, strict=True):
            whole[of_rank.to(self.device)] = rows[: len(of_rank)]
        return cast(Floats2d, torch2xp(whole))

    def own(self, d_vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        if self._batch is None or self.size == 1:
            return d_vectors
        d_whole = xp2torch(d_vectors)
        return cast(Floats2d, torch2xp(d_whole[self._places(counts)[self.rank].to(d_whole.device)]))

    def _places(self, counts: Sequence[int]) -> list[torch.Tensor]:
        """Of each rank, where the rows of its examples are among those of the batch."""
        starts = [0, *accumulate(counts)]
        rows = [list(range(start, end)) for start, end in pairwise(starts)]
        return [
            torch.tensor([row for own in rows[rank :: self.size] for row in own], dtype=torch.long)
            for rank in range(self.size)
        ]

    # What ranks tell each other

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """The sum over ranks, bit for bit the same on all."""
        if self.size > 1:
            with self._telling():
                distributed.all_reduce(values)
        return values

    def from_first(self, values: torch.Tensor) -> torch.Tensor:
        """What rank 0 has, on all."""
        if self.size > 1:
            with self._telling():
                distributed.broadcast(values, src=0)
        return values

    def said_by_first(self, said: Any) -> Any:
        """What rank 0 says, any JSON, on all; what the others say is not looked at."""
        if self.size == 1:
            return said
        text = json.dumps(said, default=float).encode("utf8") if self.is_first else b""
        length = int(self.from_first(torch.tensor([len(text)], device=self.device)))
        sent = torch.zeros(length, dtype=torch.uint8, device=self.device)
        if self.is_first:
            sent[:] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        return json.loads(bytes(self.from_first(sent).tolist()))

    def agree(self, parts: Iterable[bytes]) -> bool:
        """Whether all ranks have the same bytes, by their CRC-32."""
        found = 0
        for part in parts:
            found = crc32(part, found)
        each = self._of_all(torch.tensor([found], device=self.device))
        return all(int(one) == found for one in each)

    def bytes_of_all(self, data: bytes) -> list[bytes]:
        """The bytes of each rank, as many of all."""
        own = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(self.device)
        return [bytes(one.tolist()) for one in self._of_all(own)]

    def _of_all(self, values: torch.Tensor) -> list[torch.Tensor]:
        """Values of one shape, from each rank."""
        if self.size == 1:
            return [values]
        received = [torch.empty_like(values) for _ in range(self.size)]
        with self._telling():
            distributed.all_gather(received, values)
        return received

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # of gloo and nccl; others would not tell which rank is speaking
            reason = str(error).splitlines()[0].partition(". ")[0]
            raise RankLost(
                f"Rank {self.rank} of {self.size} waited in vain for the others ({reason}): one of them has "
                "ended, or cannot be reached. Its own message says why; what was saved before is whole."
            ) from error


@contextmanager
def launched(gpu_id: int = -1) -> Iterator[TorchDistributed]:
    """Join the ranks that torchrun has started, if it has; they part at the end.

    gpu_id (int): the first GPU of each machine to train on, -1 for the CPU: the rank of local number i takes the i-th
        from there.
    YIELDS (Ranks): what this process is.
    """
    if "RANK" not in os.environ or not distributed.is_available():
        yield TorchDistributed(gpu_id)
        return
    if gpu_id >= 0:
        gpu_id += int(os.environ["LOCAL_RANK"])
    # Its functions have the joined ranks as a default if it is imported later (transformers does), and keep them:
    # threads of gloo would outlive destroy_process_group, and may abort while Python ends. So it is imported before.
    from torch.distributed.nn import functional  # noqa: F401

    distributed.init_process_group("nccl" if gpu_id >= 0 else "gloo", timeout=PATIENCE)
    try:
        yield TorchDistributed(gpu_id)
    finally:
        distributed.destroy_process_group()


@dataclass(frozen=True)
class OfTorch:
    """A parameter of a PyTorch model."""

    parameter: torch.nn.Parameter

    @property
    def weights(self) -> torch.Tensor:
        return self.parameter.data

    @property
    def gradient(self) -> torch.Tensor | None:
        return self.parameter.grad

    def set_gradient(self, gradient: torch.Tensor) -> None:
        self.parameter.grad = gradient.to(self.parameter)


@dataclass(frozen=True)
class OfThinc:
    """A parameter of a layer of Thinc's."""

    node: Model
    name: str

    @property
    def weights(self) -> torch.Tensor:
        """On the same memory."""
        return xp2torch(self.node.get_param(self.name))

    @property
    def gradient(self) -> torch.Tensor | None:
        return xp2torch(self.node.get_grad(self.name)) if self.node.has_grad(self.name) else None

    def set_gradient(self, gradient: torch.Tensor) -> None:
        self.node.set_grad(self.name, cast(FloatsXd, torch2xp(gradient.to(self.weights))))


Parameter = OfTorch | OfThinc


def sum_gradients(models: Sequence[Model], ranks: TorchDistributed) -> None:
    """Give every rank the sum of the gradients of all, in one message.

    A parameter that has a gradient on some rank gets one on all; where the gradient of one has overflowed in float16,
    none makes a step.

    models (Sequence[Model]): encoders, of the same shapes on all ranks.
    """
    parameters = [one for one in parameters_of(models) if one.weights.is_floating_point()]
    scalers = [shim._grad_scaler for shim in shims_of(models)]
    found = [one.gradient for one in parameters]
    flags = [float(gradient is not None) for gradient in found] + [float(scaler.found_inf) for scaler in scalers]
    parts = [
        torch.zeros(one.weights.numel()) if gradient is None else gradient.detach().flatten().float()
        for one, gradient in zip(parameters, found, strict=True)
    ]
    flat = ranks.sum(torch.cat([part.to(ranks.device) for part in (torch.tensor(flags), *parts)]))
    has_gradient, has_overflown, rest = flat.split([len(parameters), len(scalers), len(flat) - len(flags)])
    sums = rest.split([len(part) for part in parts])
    for one, total, has in zip(parameters, sums, has_gradient.tolist(), strict=True):
        if has:
            one.set_gradient(total.view(one.weights.shape))
    for scaler, has in zip(scalers, has_overflown.tolist(), strict=True):
        scaler._found_inf = bool(has)


def broadcast_parameters(models: Sequence[Model], ranks: TorchDistributed) -> None:
    """Give every rank the weights of Thinc's layers, heads above all, that rank 0 has drawn."""
    for one in parameters_of(models):
        if isinstance(one, OfThinc):
            one.weights.copy_(ranks.from_first(one.weights.to(ranks.device)))


def bytes_of(models: Sequence[Model]) -> Iterator[bytes]:
    """All weights, to be compared."""
    for one in parameters_of(models):
        yield one.weights.cpu().contiguous().view(torch.uint8).numpy().tobytes()


def parameters_of(models: Iterable[Model]) -> Iterator[Parameter]:
    """All that learn, in an order that is the same on all ranks."""
    for node in (node for model in models for node in model.walk()):
        for shim in node.shims:
            if isinstance(shim, PyTorchShim):
                yield from (OfTorch(each) for each in shim._model.parameters() if each.requires_grad)
        yield from (OfThinc(node, name) for name in node.param_names if node.has_param(name))


def shims_of(models: Iterable[Model]) -> list[PyTorchShim]:
    nodes = (node for model in models for node in model.walk())
    return [shim for node in nodes for shim in node.shims if isinstance(shim, PyTorchShim)]
