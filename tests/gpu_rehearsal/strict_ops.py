"""Thinc's own CupyOps on strict arrays: its Python as it is, its CUDA kernels done by NumpyOps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import thinc.backends
import thinc.types
import thinc.util
import torch
from gpu_rehearsal.strict_arrays import LOOKS, Looks, StrictArray, xp
from thinc.api import NumpyOps, get_current_ops, set_current_ops
from thinc.backends import _custom_kernels, cupy_ops
from thinc.backends.cupy_ops import CupyOps

import spacy_sbert.models.engine.fused_adam


class StrictOps(CupyOps):
    """CupyOps, but for the arrays. What it has of CuPy stands in its module, see strict_device."""

    name = "strict"
    xp = xp
    _xp2 = SimpleNamespace(
        scatter_add=lambda table, indices, values: table.scatter_add(indices, values)
    )


NUMPY = NumpyOps()
# By name: from what a kernel is given behind the arrays that it fills to what it fills them with
KERNELS = {
    "reduce_sum": lambda X, lengths, *sizes: NUMPY.reduce_sum(X, lengths),
    "reduce_max": lambda X, lengths, *sizes: NUMPY.reduce_max(X, lengths),
    "backprop_reduce_sum": lambda d_sums, lengths, *sizes: NUMPY.backprop_reduce_sum(
        d_sums, lengths
    ),
    "backprop_reduce_mean": lambda d_means, lengths, *sizes: NUMPY.backprop_reduce_mean(
        d_means, lengths
    ),
    "backprop_reduce_max": lambda d_maxes, which, lengths, *_: NUMPY.backprop_reduce_max(
        d_maxes, which, lengths
    ),
    "gather_add": lambda table, indices, *sizes: NUMPY.gather_add(table, indices),
    "maxout": lambda X, *sizes: NUMPY.maxout(X),
    "backprop_maxout": lambda d_best, which, n_rows, n_out, n_pieces: NUMPY.backprop_maxout(
        d_best, which, n_pieces
    ),
    "seq2col": lambda seq, lengths, nW, *sizes: NUMPY.seq2col(seq, nW, lengths=lengths),
    "backprop_seq2col": lambda d_cols, lengths, nW, *sizes: NUMPY.backprop_seq2col(
        d_cols, nW, lengths=lengths
    ),
    "hash_data": lambda ids, out_size, in_size, n, seed: NUMPY.hash(ids, seed),
}


def kernel(name: str) -> Callable:
    """A kernel takes arrays for contiguous: of a view it would read what it is a view of."""
    # With what is largest, and where that stands
    n_filled = 2 if name in ("reduce_max", "maxout") else 1

    def launch(grid: tuple, block: tuple, given: tuple) -> None:
        for each in given:
            if not isinstance(each, StrictArray | int | float):
                raise TypeError(f"Unsupported type {type(each)}")
            if isinstance(each, StrictArray) and not each.flags.c_contiguous:
                raise ValueError("a kernel was given a view that is not contiguous")
        bare = [each._array if isinstance(each, StrictArray) else each for each in given]
        found = KERNELS[name](*bare[n_filled:])
        for filled, values in zip(bare[:n_filled], found if n_filled > 1 else [found], strict=True):
            filled[...] = values

    return launch


def adam_kernel(
    g: Any, lr: float, one_minus_b1: float, one_minus_b2: float, eps: float, w: Any, m: Any, v: Any
) -> None:
    m += one_minus_b1 * (g - m)
    v += one_minus_b2 * (g * g - v)
    w -= lr * m / (xp.sqrt(v) + eps)


def frobenius_norm(vector: StrictArray) -> StrictArray:
    return xp.sqrt((vector * vector).sum())


def within_range(values: StrictArray, low: int, high: int) -> StrictArray:
    return ((values >= low) & (values < high)).all()


def from_dlpack(capsule: Any) -> StrictArray:
    return StrictArray(torch.utils.dlpack.from_dlpack(capsule).numpy())


@contextmanager
def strict_device() -> Iterator[Looks]:
    """Meanwhile Thinc works on a device whose arrays are strict, and every tensor of PyTorch lies
    on it.

    RETURNS (Looks): what the host has waited for.
    """
    former = get_current_ops()
    with pytest.MonkeyPatch.context() as patch:
        for module in (thinc.util, cupy_ops, _custom_kernels):
            patch.setattr(module, "cupy", xp)
        patch.setattr(thinc.util, "has_cupy", True)
        patch.setattr(thinc.types, "get_array_module", thinc.util.get_array_module)
        patch.setattr(thinc.util, "cupy_from_dlpack", from_dlpack)
        for module in (thinc.util, cupy_ops):
            patch.setattr(module, "is_torch_cuda_array", torch.is_tensor)
        # Of get_array_ops
        patch.setattr(thinc.backends, "CupyOps", StrictOps)
        # Its tensors would be sought on CUDA
        patch.setattr(cupy_ops, "CupyOps", type("Nobody", (), {}))
        patch.setattr(cupy_ops, "cublas", SimpleNamespace(nrm2=frobenius_norm))
        patch.setattr(cupy_ops, "adam_kernel", adam_kernel)
        patch.setattr(_custom_kernels, "_values_within_range", within_range)
        for name in KERNELS:
            for dtype in [""] if name == "hash_data" else ["_float", "_double"]:
                patch.setattr(_custom_kernels, f"{name}_kernel{dtype}", kernel(name))
        # It is for a CPU
        patch.setattr(spacy_sbert.models.engine.fused_adam, "can_fuse", lambda *args: False)
        set_current_ops(StrictOps())
        LOOKS.clear()
        try:
            yield LOOKS
        finally:
            set_current_ops(former)
