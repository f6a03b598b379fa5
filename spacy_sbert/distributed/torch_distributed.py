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
from thinc.api import Model, PyTorchGradScaler, PyTorchShim, torch2xp, xp2torch
from thinc.types import Floats2d, FloatsXd
from torch import distributed

from ..training.batch_loss import DistributedContext

_TIMEOUT = timedelta(days=7)  # while rank 0 evaluates; torchrun ends a job of which a rank has died at once


class RankLost(RuntimeError):
    """Another rank has ended, or cannot be reached."""


class TorchDistributed(DistributedContext):
    """One of several processes that train together, each on every size-th example of a batch.

    Every rank reads the same batches, and encodes its part. The vectors of all are gathered, so that each computes the
    loss of the whole batch, and uses the gradient of its own rows. Without torch.distributed there is one rank, which
    sends nothing.

    gpu_id (int): the GPU of this rank, -1 for the CPU. rank, size (int): its number, and how many there are.
    device (torch.device): the device of tensors that are sent.
    """

    def __init__(self, gpu_id: int = -1) -> None:
        joined = distributed.is_available() and distributed.is_initialized()
        self.rank, self.size = (distributed.get_rank(), distributed.get_world_size()) if joined else (0, 1)
        self.gpu_id = gpu_id
        self.device = torch.device("cuda", gpu_id) if joined and gpu_id >= 0 else torch.device("cpu")
        self._batch: Sequence[Example] | None = None

    def __reduce__(self) -> tuple[type, tuple]:
        return type(None), ()  # a copy trains alone

    @property
    def is_first(self) -> bool:
        """Return whether this rank writes files and logs."""
        return self.rank == 0

    @contextmanager
    def sharing(self, batch: Sequence[Example]) -> Iterator[list[Example]]:
        """Share an update with a batch among the ranks; yield the examples of this rank."""
        self._batch = batch
        try:
            yield list(batch[self.rank :: self.size])
        finally:
            self._batch = None

    def batch(self, examples: Sequence[Example]) -> Sequence[Example]:
        """Return all examples of the batch that is shared."""
        return examples if self._batch is None else self._batch

    def gather(self, vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        """Return the vectors of all ranks, example by example, see DistributedContext."""
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
        """Return the rows of this rank."""
        if self._batch is None or self.size == 1:
            return d_vectors
        d_whole = xp2torch(d_vectors)
        return cast(Floats2d, torch2xp(d_whole[self._places(counts)[self.rank].to(d_whole.device)]))

    def _places(self, counts: Sequence[int]) -> list[torch.Tensor]:
        """Return the rows of each rank among those of the batch."""
        starts = [0, *accumulate(counts)]
        rows = [list(range(start, end)) for start, end in pairwise(starts)]
        return [
            torch.tensor([row for of_example in rows[rank :: self.size] for row in of_example], dtype=torch.long)
            for rank in range(self.size)
        ]

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum over ranks, bit for bit the same on all."""
        if self.size > 1:
            with self._communicating():
                distributed.all_reduce(values)
        return values

    def from_first(self, values: torch.Tensor) -> torch.Tensor:
        """Return the values of rank 0 on all ranks."""
        if self.size > 1:
            with self._communicating():
                distributed.broadcast(values, src=0)
        return values

    def broadcast_json(self, value: Any) -> Any:  # noqa: ANN401 (any JSON)
        """Return the value of rank 0, any JSON, on all ranks; the values of the others are ignored."""
        if self.size == 1:
            return value
        text = json.dumps(value, default=float).encode("utf8") if self.is_first else b""
        length = int(self.from_first(torch.tensor([len(text)], device=self.device)))
        sent = torch.zeros(length, dtype=torch.uint8, device=self.device)
        if self.is_first:
            sent[:] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        return json.loads(bytes(self.from_first(sent).tolist()))

    def agree(self, parts: Iterable[bytes]) -> bool:
        """Return whether all ranks have the same bytes, by their CRC-32."""
        checksum = 0
        for part in parts:
            checksum = crc32(part, checksum)
        checksums = self._of_all(torch.tensor([checksum], device=self.device))
        return all(int(other) == checksum for other in checksums)

    def bytes_of_all(self, data: bytes) -> list[bytes]:
        """Return the bytes of each rank, the same number of all."""
        values = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(self.device)
        return [bytes(of_rank.tolist()) for of_rank in self._of_all(values)]

    def _of_all(self, values: torch.Tensor) -> list[torch.Tensor]:
        """Return the values of each rank, of one shape."""
        if self.size == 1:
            return [values]
        received = [torch.empty_like(values) for _ in range(self.size)]
        with self._communicating():
            distributed.all_gather(received, values)
        return received

    @contextmanager
    def _communicating(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # of gloo and nccl, which do not name this rank
            reason = str(error).splitlines()[0].partition(". ")[0]
            raise RankLost(
                f"Rank {self.rank} of {self.size} lost the other ranks ({reason}): one of them has ended, or cannot be "
                "reached. See its own message; what was saved before is complete."
            ) from error


@contextmanager
def launched(gpu_id: int = -1) -> Iterator[TorchDistributed]:
    """Join the ranks that torchrun has started, if it has, and leave them at the end.

    gpu_id (int): the first GPU of each machine to train on, -1 for the CPU: the rank of local number i takes the i-th
        from there.
    YIELDS (TorchDistributed): this process.
    """
    if "RANK" not in os.environ or not distributed.is_available():
        yield TorchDistributed(gpu_id)
        return
    if gpu_id >= 0:
        gpu_id += int(os.environ["LOCAL_RANK"])
    # Imported after init_process_group (transformers does), its functions keep the process group as a default, so that
    # threads of gloo outlive destroy_process_group and may abort while Python ends. So it is imported before.
    from torch.distributed.nn import functional  # noqa: F401, PLC0415 (see above)

    distributed.init_process_group("nccl" if gpu_id >= 0 else "gloo", timeout=_TIMEOUT)
    try:
        yield TorchDistributed(gpu_id)
    finally:
        distributed.destroy_process_group()


@dataclass(frozen=True)
class _TorchParameter:
    """A parameter of a PyTorch model."""

    parameter: torch.nn.Parameter

    @property
    def weights(self) -> torch.Tensor:
        """Return the values."""
        return self.parameter.data

    @property
    def gradient(self) -> torch.Tensor | None:
        """Return the gradient, None if there is none."""
        return self.parameter.grad

    def set_gradient(self, gradient: torch.Tensor) -> None:
        """Replace the gradient."""
        self.parameter.grad = gradient.to(self.parameter)


@dataclass(frozen=True)
class _ThincParameter:
    """A parameter of a Thinc layer."""

    node: Model
    name: str

    @property
    def weights(self) -> torch.Tensor:
        """Return the values, on the same memory."""
        return xp2torch(self.node.get_param(self.name))

    @property
    def gradient(self) -> torch.Tensor | None:
        """Return the gradient, None if there is none."""
        return xp2torch(self.node.get_grad(self.name)) if self.node.has_grad(self.name) else None

    def set_gradient(self, gradient: torch.Tensor) -> None:
        """Replace the gradient."""
        self.node.set_grad(self.name, cast(FloatsXd, torch2xp(gradient.to(self.weights))))


def sum_gradients(models: Sequence[Model], ranks: TorchDistributed) -> None:
    """Give every rank the sum of the gradients of all, in one message.

    A parameter that has a gradient on some rank gets one on all; if the gradient of one overflowed in float16, none
    takes a step.

    models (Sequence[Model]): encoders, of the same shapes on all ranks.
    """
    parameters = [parameter for parameter in _parameters_of(models) if parameter.weights.is_floating_point()]
    nodes = (node for model in models for node in model.walk())
    scalers = [grad_scaler(shim) for node in nodes for shim in node.shims if isinstance(shim, PyTorchShim)]
    gradients = [parameter.gradient for parameter in parameters]
    flags = [float(gradient is not None) for gradient in gradients] + [float(scaler.found_inf) for scaler in scalers]
    parts = [
        torch.zeros(parameter.weights.numel()) if gradient is None else gradient.detach().flatten().float()
        for parameter, gradient in zip(parameters, gradients, strict=True)
    ]
    flat = ranks.sum(torch.cat([part.to(ranks.device) for part in (torch.tensor(flags), *parts)]))
    has_gradient, has_overflown, rest = flat.split([len(parameters), len(scalers), len(flat) - len(flags)])
    sums = rest.split([len(part) for part in parts])
    for parameter, total, has in zip(parameters, sums, has_gradient.tolist(), strict=True):
        if has:
            parameter.set_gradient(total.view(parameter.weights.shape))
    for scaler, has in zip(scalers, has_overflown.tolist(), strict=True):
        scaler._found_inf = bool(has)  # noqa: SLF001 (Thinc has no setter)


def broadcast_parameters(models: Sequence[Model], ranks: TorchDistributed) -> None:
    """Give every rank the weights of Thinc layers, such as heads, that rank 0 has drawn."""
    for parameter in _parameters_of(models):
        if isinstance(parameter, _ThincParameter):
            parameter.weights.copy_(ranks.from_first(parameter.weights.to(ranks.device)))


def bytes_of(models: Sequence[Model]) -> Iterator[bytes]:
    """Yield the bytes of all weights."""
    for parameter in _parameters_of(models):
        yield parameter.weights.cpu().contiguous().view(torch.uint8).numpy().tobytes()


def _parameters_of(models: Iterable[Model]) -> Iterator[_TorchParameter | _ThincParameter]:
    """Yield all parameters that are trained, in an order that is the same on all ranks."""
    for node in (node for model in models for node in model.walk()):
        for shim in node.shims:
            if isinstance(shim, PyTorchShim):
                weights = torch_model(shim).parameters()
                yield from (_TorchParameter(parameter) for parameter in weights if parameter.requires_grad)
        yield from (_ThincParameter(node, name) for name in node.param_names if node.has_param(name))


def grad_scaler(shim: PyTorchShim) -> PyTorchGradScaler:
    """Return the scaler of a shim's gradients in float16."""
    return shim._grad_scaler  # noqa: SLF001 (Thinc has no public name for it)


def torch_model(shim: PyTorchShim) -> torch.nn.Module:
    """Return the model of a shim, None if it is not loaded."""
    return shim._model  # noqa: SLF001 (Thinc has no public name for it)
