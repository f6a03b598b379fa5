"""Thinc's own CupyOps on strict arrays: its Python as it is, its CUDA kernels done again in NumPy."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import thinc.backends
import thinc.types
import thinc.util
import torch
from gpu_rehearsal.strict_arrays import LOOKS, Looks, StrictArray, xp
from thinc.api import NumpyOps, get_current_ops, set_current_ops
from thinc.backends import _custom_kernels, cupy_ops
from thinc.backends.cupy_ops import CupyOps

import spacy_sbert.models.engine.training


class StrictOps(CupyOps):
    """CupyOps, but for the arrays. What it has of CuPy stands in its module, see installed."""

    name = "strict"
    xp = xp
    _xp2 = SimpleNamespace(scatter_add=lambda table, indices, values: table.scatter_add(indices, values))


def reduce_sum(out: Any, X: Any, lengths: Any, B: int, T: int, O: int) -> None:  # noqa: E741
    for row, start, end in _rows(lengths):
        for state in X[start:end]:
            out[row] += state


def reduce_max(maxes: Any, which: Any, X: Any, lengths: Any, B: int, T: int, O: int) -> None:  # noqa: E741
    for row, start, end in _rows(lengths):
        maxes[row], which[row] = X[start:end].max(axis=0), X[start:end].argmax(axis=0)


def backprop_reduce_sum(out: Any, d_sums: Any, lengths: Any, *sizes: int) -> None:
    out[...] = numpy.repeat(d_sums, lengths, axis=0)


def backprop_reduce_mean(out: Any, d_means: Any, lengths: Any, *sizes: int) -> None:
    out[...] = numpy.repeat(d_means / numpy.maximum(lengths, 1)[:, None], lengths, axis=0)


def backprop_reduce_max(out: Any, d_maxes: Any, which: Any, lengths: Any, *sizes: int) -> None:
    for row, start, _ in _rows(lengths):
        out[start + which[row], numpy.arange(out.shape[1])] = d_maxes[row]


def hash_data(out: Any, ids: Any, out_size: int, in_size: int, n: int, seed: int) -> None:
    out[...] = NumpyOps().hash(ids, seed)


def gather_add(out: Any, table: Any, indices: Any, *sizes: int) -> None:
    out[...] = table[indices].sum(axis=1)


def maxout(best: Any, which: Any, X: Any, *sizes: int) -> None:
    best[...], which[...] = NumpyOps().maxout(X)


def backprop_maxout(out: Any, d_best: Any, which: Any, B: int, I: int, P: int) -> None:  # noqa: E741
    out[...] = NumpyOps().backprop_maxout(d_best, which, P)


def seq2col(out: Any, seq: Any, lengths: Any, nW: int, *sizes: int) -> None:
    out[...] = NumpyOps().seq2col(seq, nW, lengths=lengths)


def backprop_seq2col(out: Any, d_columns: Any, lengths: Any, nW: int, *sizes: int) -> None:
    out[...] = NumpyOps().backprop_seq2col(d_columns, nW, lengths=lengths)


def _rows(lengths: Any) -> Iterator[tuple[int, int, int]]:
    ends = numpy.cumsum(lengths)
    return zip(range(len(ends)), (ends - lengths).tolist(), ends.tolist(), strict=True)


KERNELS = (reduce_sum, reduce_max, backprop_reduce_sum, backprop_reduce_mean, backprop_reduce_max, gather_add)
KERNELS += (maxout, backprop_maxout, seq2col, backprop_seq2col)


def kernel(function: Callable) -> Callable:
    """A kernel knows where arrays begin, and takes it that they are contiguous: of a view it would read what it is a
    view of."""

    def launch(grid: tuple, block: tuple, given: tuple) -> None:
        for each in given:
            if not isinstance(each, StrictArray | int | float):
                raise TypeError(f"Unsupported type {type(each)}")
            if isinstance(each, StrictArray) and not each.flags.c_contiguous:
                raise ValueError("a kernel was given a view that is not contiguous")
        function(*(each._array if isinstance(each, StrictArray) else each for each in given))

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
    """Meanwhile Thinc works on a device whose arrays are strict, and every tensor of PyTorch lies on it.

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
        patch.setattr(thinc.backends, "CupyOps", StrictOps)  # of get_array_ops
        patch.setattr(cupy_ops, "CupyOps", type("Nobody", (), {}))  # its tensors would be sought on CUDA
        patch.setattr(cupy_ops, "cublas", SimpleNamespace(nrm2=frobenius_norm))
        patch.setattr(cupy_ops, "adam_kernel", adam_kernel)
        patch.setattr(_custom_kernels, "_values_within_range", within_range)
        patch.setattr(_custom_kernels, "hash_data_kernel", kernel(hash_data))
        for function in KERNELS:
            for dtype in ("float", "double"):
                patch.setattr(_custom_kernels, f"{function.__name__}_kernel_{dtype}", kernel(function))
        patch.setattr(spacy_sbert.models.engine.training, "can_fuse", lambda *args: False)  # it is for a CPU
        set_current_ops(StrictOps())
        LOOKS.clear()
        try:
            yield LOOKS
        finally:
            set_current_ops(former)
