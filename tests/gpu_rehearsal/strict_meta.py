"""A GPU that is not there: PyTorch's meta device, which refuses what CUDA refuses, or would wait
for.

Meta tensors have shape, dtype and device, and no numbers. PyTorch itself lets them be indexed with
tensors on the CPU.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

META = torch.device("meta")
# Each copies to the host and waits until the GPU is done: what it gives, or the shape of that,
# depends on the numbers.
WAITING = {
    "_local_scalar_dense",
    "is_nonzero",
    "item",
    "equal",
    "nonzero",
    "masked_select",
    "bincount",
    "_unique",
}
WAITING |= {
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "unique_dim_consecutive",
    "repeat_interleave",
}
# Kernels of CUDA that take one dtype of floats.
ONE_DTYPE = {"mm", "addmm", "bmm", "baddbmm", "native_layer_norm", "embedding_dense_backward"}
COPIES = {"_to_copy", "copy_"}


class Refused(RuntimeError):
    """What a GPU would refuse, or wait for."""


class StrictMeta(TorchDispatchMode):
    """In a with block: meta tensors stand for those on a GPU.

    Refused are operators on tensors of both devices, but for a CPU scalar in arithmetic, every copy
    to the host, and kernels that CUDA does not have for the dtypes given. uploads counts the copies
    from the host; called holds the operators on meta tensors, by name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.uploads = 0
        self.called: list[str] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            # In inference mode they come whole
            with self:
                return func.decompose(*args, **kwargs)
        name = func.overloadpacket.__name__
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        on_meta = [each for each in given if each.is_meta]
        if name in COPIES:
            self._copy(name, args, kwargs)
        elif on_meta:
            self._check(name, func._schema.is_mutable, args, given)
        if on_meta:
            self.called.append(name)
        return func(*args, **kwargs)

    def _copy(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = args[1] if name == "copy_" else args[0]
        to = (
            args[0].device
            if name == "copy_"
            else torch.device(kwargs.get("device") or given.device)
        )
        if given.is_meta and to.type != "meta":
            raise Refused(f"{name}: a copy to the host")
        self.uploads += to.type == "meta" and not given.is_meta

    def _check(
        self, name: str, is_mutable: bool, args: tuple[Any, ...], given: list[torch.Tensor]
    ) -> None:
        if name in WAITING:
            raise Refused(f"{name}: a copy to the host")
        indices = (
            [each for each in tree_leaves(args[1]) if each is not None]
            if name.startswith("index")
            else []
        )
        if any(
            isinstance(each, torch.Tensor) and each.dtype in (torch.bool, torch.uint8)
            for each in indices
        ):
            raise Refused(f"{name}: a mask as index is a copy to the host")
        is_arithmetic = not name.startswith(("index", "embedding", "gather"))
        for place, each in enumerate(given):
            is_changed = is_mutable and place == 0
            if not each.is_meta and (each.dim() or is_changed or not is_arithmetic):
                raise Refused(f"{name}: tensors on the CPU and on the GPU")
        dtypes = {each.dtype for each in given if each.is_floating_point()}
        if name in ONE_DTYPE and len(dtypes) > 1:
            raise Refused(f"{name}: no kernel for {sorted(map(str, dtypes))}")


class StrictCalls(TorchFunctionMode):
    """In a with block: what autocast does to meta tensors as it does to those on a GPU, in a
    precision.

    dtype: that of autocast; None for none. The dtype of an attention mask is checked, which the
        fused kernels want.
    SOURCE: https://docs.pytorch.org/docs/stable/amp.html, the operators of CUDA.
    """

    def __init__(self, dtype: torch.dtype | None = None):
        super().__init__()
        self.dtype = dtype

    def __torch_function__(
        self,
        func: Callable,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        to = self.dtype and {
            **dict.fromkeys(REDUCED, self.dtype),
            **dict.fromkeys(FULL, torch.float32),
        }.get(func)
        if to is not None:
            args, kwargs = _cast((args, kwargs), to)
        if func is functional.scaled_dot_product_attention:
            mask = (kwargs or {}).get("attn_mask")
            if mask is not None and mask.dtype not in (torch.bool, args[0].dtype):
                raise Refused(f"attention of {args[0].dtype} with a mask of {mask.dtype}")
        return func(*args, **(kwargs or {}))


REDUCED = (functional.linear, functional.scaled_dot_product_attention, torch.matmul, torch.bmm)
FULL = (functional.layer_norm, functional.softmax, torch.softmax, torch.Tensor.softmax)


def _cast(given: Any, dtype: torch.dtype) -> Any:
    return tree_map_only(
        torch.Tensor, lambda each: each.to(dtype) if each.is_floating_point() else each, given
    )


@contextmanager
def strict_gpu(dtype: torch.dtype | None = None) -> Iterator[StrictMeta]:
    """Both modes."""
    with StrictMeta() as found, StrictCalls(dtype):
        yield found
