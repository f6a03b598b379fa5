"""What is private to PyTorch and used all the same, each with the plain way beside it where the operator is missing."""

import platform
from collections.abc import Callable

import torch
from torch.nn import functional

Linear = Callable[[torch.Tensor], torch.Tensor]
ACTIVATIONS: dict[str, tuple[str, str]] = {  # name in a config -> that of the fused kernel, and its algorithm
    "gelu": ("gelu", "none"),
    "gelu_new": ("gelu", "tanh"),
    "gelu_pytorch_tanh": ("gelu", "tanh"),
    "relu": ("relu", ""),
}


def linear(weight: torch.Tensor, bias: torch.Tensor, dtype: torch.dtype, activation: str | None = None) -> Linear:
    """x W' + b, and the activation of it.

    On CPUs that oneDNN has kernels for, the weight is laid out for them once, and the activation is part of the
    product.

    weight: (out, in); bias: (out,); activation: see ACTIVATIONS, None for none.
    """
    weight, bias = weight.detach().to(dtype), bias.detach().to(dtype)
    name, algorithm = ACTIVATIONS[activation] if activation else ("none", "")
    if has_packed_linear(weight):
        laid_out = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), None)
        return lambda x: torch.ops.mkldnn._linear_pointwise(x, laid_out, bias, name, [], algorithm)
    if activation is None:
        return lambda x: functional.linear(x, weight, bias)
    if name == "relu":
        return lambda x: functional.relu(functional.linear(x, weight, bias))
    return lambda x: functional.gelu(functional.linear(x, weight, bias), approximate=algorithm)


def has_packed_linear(weight: torch.Tensor) -> bool:
    """Whether oneDNN multiplies by a weight that is laid out for it."""
    operators = torch.ops.mkldnn
    if not weight.is_cpu or platform.machine() not in ("x86_64", "AMD64") or not torch.backends.mkldnn.is_available():
        return False
    if not (hasattr(operators, "_reorder_linear_weight") and hasattr(operators, "_linear_pointwise")):
        return False
    return weight.dtype == torch.float32 or (weight.dtype == torch.bfloat16 and operators._is_mkldnn_bf16_supported())


def add_each(tensors: list[torch.Tensor], others: list[torch.Tensor], factor: float) -> None:
    """t = t + factor o, in place, for each pair."""
    if hasattr(torch, "_foreach_add_"):
        torch._foreach_add_(tensors, others, alpha=factor)
        return
    for tensor, other in zip(tensors, others, strict=True):
        tensor.add_(other, alpha=factor)


def has_bfloat16_arithmetic() -> bool:
    """Whether a CPU has AVX-512 BF16 or AMX; False where PyTorch does not say."""
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, check, lambda: False)() for check in checks)


def version_of(weight: torch.Tensor) -> int:
    """How often a tensor was changed in place; 0 where PyTorch does not count."""
    return getattr(weight, "_version", 0)
