"""torchrun: processes, collectives and synchronized parameters."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any, cast
from zlib import crc32

import torch
from spacy.training import Example
from thinc.api import Model, PyTorchGradScaler, PyTorchShim, torch2xp, xp2torch
from thinc.types import Floats2d
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
        self._batch: Sequence[Example] = ()

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
            self._batch = ()

    def batch(self, examples: Sequence[Example]) -> Sequence[Example]:
        """Return all examples of the batch that is shared."""
        return self._batch

    def gather(self, vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        """Return the vectors of all ranks, example by example, see DistributedContext."""
        places = self._places(counts)
        sent = xp2torch(vectors).to(self.device)
        padded = sent.new_zeros(max(map(len, places)), sent.shape[1])
        padded[: len(sent)] = sent
        whole = sent.new_empty(sum(counts), sent.shape[1])
        for rows, of_rank in zip(self.all_gather(padded), places, strict=True):
            whole[of_rank.to(self.device)] = rows[: len(of_rank)]
        return cast(Floats2d, torch2xp(whole))

    def own(self, d_vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        """Return the rows of this rank."""
        d_whole = xp2torch(d_vectors)
        return cast(Floats2d, torch2xp(d_whole[self._places(counts)[self.rank].to(d_whole.device)]))

    def _places(self, counts: Sequence[int]) -> list[torch.Tensor]:
        """Return the rows of each rank among those of the batch."""
        rows = [list(range(start, end)) for start, end in pairwise([0, *accumulate(counts)])]
        return [
            torch.tensor([*chain.from_iterable(rows[rank :: self.size])], dtype=torch.long) for rank in range(self.size)
        ]

    def all_gather(self, values: torch.Tensor) -> list[torch.Tensor]:
        """Return the values of each rank, of one shape."""
        received = [torch.empty_like(values) for _ in range(self.size)]
        return self._send(distributed.all_gather, received, values) if self.size > 1 else [values]

    def all_reduce(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum over ranks, bit for bit the same on all."""
        return self._send(distributed.all_reduce, values) if self.size > 1 else values

    def broadcast(self, values: torch.Tensor) -> torch.Tensor:
        """Return the values of rank 0 on all ranks."""
        return self._send(distributed.broadcast, values, src=0) if self.size > 1 else values

    def gather_objects(self, value: Any) -> list[Any]:  # noqa: ANN401 (any object)
        """Return the object of each rank."""
        received: list[Any] = [None] * self.size
        return self._send(distributed.all_gather_object, received, value) if self.size > 1 else [value]

    def broadcast_object(self, value: Any) -> Any:  # noqa: ANN401 (any object)
        """Return the object of rank 0 on all ranks; those of the others are ignored."""
        return self._send(distributed.broadcast_object_list, [value], src=0)[0] if self.size > 1 else value

    def agree(self, parts: Iterable[bytes]) -> bool:
        """Return whether all ranks have the same bytes, by their CRC-32."""
        checksum = 0
        for part in parts:
            checksum = crc32(part, checksum)
        return len(set(self.gather_objects(checksum))) == 1

    def _send(self, collective: Callable, values: Any, *args: object, **kwargs: object) -> Any:  # noqa: ANN401 (of torch)
        """Call a collective, and return its first argument, which it fills."""
        try:
            collective(values, *args, **kwargs)
        except RuntimeError as error:  # of gloo and nccl, which do not name this rank
            reason = str(error).splitlines()[0].partition(". ")[0]
            raise RankLost(
                f"Rank {self.rank} of {self.size} lost the other ranks ({reason}): one of them has ended, or cannot be "
                "reached. See its own message; what was saved before is complete."
            ) from error
        return values


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
        torch.cuda.set_device(gpu_id)  # where collectives of objects are
    # Imported after init_process_group (transformers does), its functions keep the process group as a default, so that
    # threads of gloo outlive destroy_process_group and may abort while Python ends. So it is imported before.
    from torch.distributed.nn import functional  # noqa: F401, PLC0415 (see above)

    distributed.init_process_group("nccl" if gpu_id >= 0 else "gloo", timeout=_TIMEOUT)
    try:
        yield TorchDistributed(gpu_id)
    finally:
        distributed.destroy_process_group()


def sum_gradients(models: Sequence[Model], ranks: TorchDistributed) -> None:
    """Give every rank the sum of the gradients of all, in one message.

    A parameter that has a gradient on some rank gets one on all; if the gradient of one overflowed in float16, none
    takes a step.

    models (Sequence[Model]): encoders, of the same shapes on all ranks.
    """
    parameters = [parameter for parameter in _parameters_of(models) if parameter[0].is_floating_point()]
    scalers = [grad_scaler(shim) for model in models for shim in _shims(model)]
    flags = [gradient is not None for _, gradient, _ in parameters] + [scaler.found_inf for scaler in scalers]
    parts = [
        torch.zeros(weights.numel()) if d is None else d.detach().flatten().float() for weights, d, _ in parameters
    ]
    parts = [part.to(ranks.device) for part in (torch.tensor([float(flag) for flag in flags]), *parts)]
    counts, *sums = ranks.all_reduce(torch.cat(parts)).split([len(part) for part in parts])
    has_some = counts.bool().tolist()
    for (weights, _, set_gradient), total, is_set in zip(parameters, sums, has_some, strict=False):
        if is_set:
            set_gradient(total.view(weights.shape).to(weights))
    for scaler, has_overflown in zip(scalers, has_some[len(parameters) :], strict=True):
        scaler._found_inf = has_overflown  # noqa: SLF001 (Thinc has no setter)


def broadcast_parameters(models: Sequence[Model], ranks: TorchDistributed) -> None:
    """Give every rank the weights of Thinc layers, such as heads, that rank 0 has drawn."""
    for node in (node for model in models for node in model.walk()):
        for name in node.param_names:
            if node.has_param(name):
                weights = xp2torch(node.get_param(name))  # on the same memory
                weights.copy_(ranks.broadcast(weights.to(ranks.device)))


def bytes_of(models: Sequence[Model]) -> Iterator[bytes]:
    """Yield the bytes of all weights."""
    for weights, *_ in _parameters_of(models):
        yield weights.cpu().contiguous().view(torch.uint8).numpy().tobytes()


_Parameter = tuple[torch.Tensor, torch.Tensor | None, Callable[[torch.Tensor], None]]


def _parameters_of(models: Iterable[Model]) -> Iterator[_Parameter]:
    """Yield the weights, the gradient or None, and what sets the gradient, of all parameters that are trained.

    The order is the same on all ranks.
    """
    for node in (node for model in models for node in model.walk()):
        for parameter in (
            parameter
            for shim in node.shims
            if isinstance(shim, PyTorchShim)
            for parameter in torch_model(shim).parameters()
            if parameter.requires_grad
        ):
            yield parameter.data, parameter.grad, partial(setattr, parameter, "grad")
        for name in node.param_names:
            if node.has_param(name):
                gradient = xp2torch(node.get_grad(name)) if node.has_grad(name) else None
                yield xp2torch(node.get_param(name)), gradient, partial(_set_gradient, node, name)


def _set_gradient(node: Model, name: str, gradient: torch.Tensor) -> None:
    node.set_grad(name, cast(Any, torch2xp(gradient)))


def _shims(model: Model) -> Iterator[PyTorchShim]:
    for node in model.walk():
        yield from (shim for shim in node.shims if isinstance(shim, PyTorchShim))


def grad_scaler(shim: PyTorchShim) -> PyTorchGradScaler:
    """Return the scaler of a shim's gradients in float16."""
    return shim._grad_scaler  # noqa: SLF001 (Thinc has no public name for it)


def torch_model(shim: PyTorchShim) -> torch.nn.Module:
    """Return the model of a shim, None if it is not loaded."""
    return shim._model  # noqa: SLF001 (Thinc has no public name for it)
