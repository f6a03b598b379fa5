"""torchrun: processes, collectives and synchronized parameters."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, cast
from zlib import crc32

import torch
from spacy.training import Example
from thinc.api import Model, PyTorchGradScaler, PyTorchShim, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import distributed

# While rank 0 evaluates; torchrun ends a job of which a rank has died at once
# By which torchrun tells a process its number
_RANK = "RANK"
_TIMEOUT = timedelta(days=7)
_Parameter = tuple[torch.Tensor, torch.Tensor | None, Callable[[torch.Tensor], None]]


class RankLost(RuntimeError):
    """Another rank has ended, or cannot be reached."""


class TorchDistributed:
    """One of several processes that train together, each on every size-th example of a batch.

    The vectors of all are gathered, so that each computes the loss of the whole batch, and uses the
    gradient of its own rows. Without torch.distributed there is one rank, which sends nothing.

    gpu_id (int): the GPU of this rank, -1 for the CPU. rank, size (int): its number, and how many
        there are.
    is_first (bool): whether this rank writes files and logs. device (torch.device): of tensors that
        are sent.
    """

    def __init__(self, gpu_id: int = -1) -> None:
        joined = distributed.is_available() and distributed.is_initialized()
        self.rank = distributed.get_rank() if joined else 0
        self.size = distributed.get_world_size() if joined else 1
        self.gpu_id = gpu_id
        self.is_first = self.rank == 0
        self.device = torch.device("cpu")
        if joined and gpu_id >= 0:
            self.device = torch.device("cuda", gpu_id)
        self.batch: Sequence[Example] = ()

    def __reduce__(self) -> tuple[type, tuple]:
        # A copy trains alone
        return type(None), ()

    def share(self, batch: Sequence[Example]) -> Sequence[Example]:
        """Share the next update with a batch among the ranks; return the examples of this rank."""
        self.batch = batch
        return batch[self.rank :: self.size]

    def gather(self, vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        """Return the vectors of all examples of the batch that is shared, example by example.

        vectors (float32 (rows, width)): of this rank. counts: how many rows each example of the
            batch has.
        """
        sent = xp2torch(vectors).to(self.device)
        whole = sent.new_zeros(sum(counts), sent.shape[1])
        whole[self._own_rows(counts)] = sent
        # This is exact: all but one rank add zeros to a row
        return cast(Floats2d, torch2xp(self.all_reduce(whole)))

    def own(self, d_vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        """Return the rows of this rank: the backprop of gather."""
        return d_vectors[self._own_rows(counts)]

    def _own_rows(self, counts: Sequence[int]) -> list[int]:
        """Return the rows of this rank among those of the batch."""
        borders = list(pairwise([0, *accumulate(counts)]))
        return [row for start, end in borders[self.rank :: self.size] for row in range(start, end)]

    def all_reduce(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum over ranks, bit for bit the same on all."""
        return self._send(distributed.all_reduce, values)

    def gather_objects(self, value: Any) -> list[Any]:
        """Return the object of each rank."""
        return self._send(distributed.all_gather_object, [value] * self.size, value)

    def agree(self, parts: Iterable[bytes]) -> bool:
        """Return whether all ranks have the same bytes, by their CRC-32."""
        checksum = 0
        for part in parts:
            checksum = crc32(part, checksum)
        return len(set(self.gather_objects(checksum))) == 1

    def _send(self, collective: Callable, values: Any, *args: object) -> Any:
        """Return the first argument of a collective, which fills it if there are several ranks."""
        try:
            if self.size > 1:
                collective(values, *args)
        except RuntimeError as error:
            # Of gloo and nccl, which do not name this rank
            reason = str(error).splitlines()[0].partition(". ")[0]
            raise RankLost(
                f"Rank {self.rank} of {self.size} lost the other ranks ({reason}): one of them has "
                "ended, or cannot be reached. See its own message; what was saved before is "
                "complete."
            ) from error
        return values

    def sum_gradients(self, models: Sequence[Model]) -> None:
        """Give every rank the sum of the gradients of all, in one message.

        A parameter that has a gradient on some rank gets one on all; if the gradient of one
        overflowed in float16, none takes a step.
        """
        parameters = list(_parameters_of(models))
        scalers = [scaler for _, _, scaler in torch_shims(models)]
        # Which parameters have a gradient, and which scalers have seen an overflow
        flags = [float(gradient is not None) for _, gradient, _ in parameters]
        flags += [float(scaler.found_inf) for scaler in scalers]
        sent = [torch.tensor(flags).to(self.device)]
        for weights, gradient, _ in parameters:
            if gradient is None:
                values = torch.zeros(weights.numel())
            else:
                values = gradient.detach().flatten().float()
            sent.append(values.to(self.device))
        received = self.all_reduce(torch.cat(sent))
        summed_flags, *sums = received.split([len(values) for values in sent])
        is_set = summed_flags.bool().tolist()
        has_gradient = is_set[: len(parameters)]
        has_overflown = is_set[len(parameters) :]
        for (weights, _, set_gradient), summed, has_sum in zip(
            parameters, sums, has_gradient, strict=True
        ):
            if has_sum:
                set_gradient(summed.view(weights.shape).to(weights))
        for scaler, found_inf in zip(scalers, has_overflown, strict=True):
            scaler._found_inf = found_inf  # noqa: SLF001 (Thinc has no setter)

    def broadcast_parameters(self, models: Sequence[Model]) -> None:
        """Give every rank the weights of rank 0."""
        for weights, *_ in _parameters_of(models):
            weights.copy_(self.all_reduce(weights.to(self.device) * self.is_first))

    def agree_on_weights(self, models: Sequence[Model]) -> bool:
        """Return whether all ranks have the same weights."""
        weights = (weights.cpu().contiguous() for weights, *_ in _parameters_of(models))
        return self.agree(one.view(torch.uint8).numpy().tobytes() for one in weights)


def check_launch(gpu_id: int) -> None:
    """Check that the environment has all that torchrun sets, or nothing of it.

    gpu_id (int): see launched.

    RAISES (ValueError): if another launcher has left a part of it.
    """
    needed = ["WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"]
    if gpu_id >= 0:
        needed.append("LOCAL_RANK")
    missing = [name for name in needed if name not in os.environ]
    if _RANK in os.environ and missing:
        raise ValueError(
            f"The environment has {_RANK}, and not {', '.join(missing)}. Start several processes "
            f"with torchrun, or unset {_RANK} for a single one."
        )


@contextmanager
def launched(gpu_id: int = -1) -> Iterator[TorchDistributed]:
    """Join the ranks that torchrun has started, if it has.

    Yield this process, and leave them at the end.

    gpu_id (int): the first GPU of each machine to train on, -1 for the CPU: the rank of local
        number i takes the i-th from there.
    """
    if _RANK not in os.environ or not distributed.is_available():
        yield TorchDistributed(gpu_id)
        return
    if gpu_id >= 0:
        gpu_id += int(os.environ["LOCAL_RANK"])
        # Where collectives of objects are
        torch.cuda.set_device(gpu_id)
    # Imported after init_process_group (transformers does), its functions keep the process group as
    # a default, so that threads of gloo outlive destroy_process_group and may abort while Python
    # ends. So it is imported before.
    from torch.distributed.nn import functional  # noqa: F401, PLC0415 (see above)

    distributed.init_process_group("nccl" if gpu_id >= 0 else "gloo", timeout=_TIMEOUT)
    try:
        yield TorchDistributed(gpu_id)
    finally:
        distributed.destroy_process_group()


def torch_shims(
    models: Iterable[Model],
) -> Iterator[tuple[PyTorchShim, torch.nn.Module, PyTorchGradScaler]]:
    """Yield each loaded PyTorch shim, its module, and the scaler of its gradients in float16."""
    for node in nodes(models):
        for shim in node.shims:
            if isinstance(shim, PyTorchShim) and shim._model is not None:  # noqa: SLF001 (Thinc has no public name)
                yield shim, shim._model, shim._grad_scaler  # noqa: SLF001 (Thinc has no public name)


def nodes(models: Iterable[Model]) -> Iterator[Model]:
    """Yield all layers of models."""
    for model in models:
        yield from model.walk()


def _parameters_of(models: Sequence[Model]) -> Iterator[_Parameter]:
    """Yield weights, gradient or None, and what sets the gradient, of all parameters.

    They come in the same order on all ranks.
    """
    for _, module, _ in torch_shims(models):
        for parameter in module.parameters():
            if parameter.requires_grad:
                yield parameter.detach(), parameter.grad, partial(setattr, parameter, "grad")
    for node in nodes(models):
        for name in filter(node.has_param, node.param_names):
            gradient = None
            if node.has_grad(name):
                gradient = xp2torch(node.get_grad(name))
            yield xp2torch(node.get_param(name)), gradient, partial(_set_gradient, node, name)


def _set_gradient(node: Model, name: str, gradient: torch.Tensor) -> None:
    node.set_grad(name, cast(Any, torch2xp(gradient)))
