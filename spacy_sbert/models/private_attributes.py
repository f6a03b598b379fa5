"""Private attributes of other libraries, each with its reason, and optional packages."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import TypeGuard

import torch
from spacy.language import Language
from thinc.api import Model
from torch.nn import functional

Linear = Callable[[torch.Tensor], torch.Tensor]
# Of uint8 (n, in)
Int8Product = Callable[[torch.Tensor], torch.Tensor]
# Name in a config -> that of the fused kernel, and its algorithm
FUSED_ACTIVATIONS: dict[str, tuple[str, str]] = {
    "gelu": ("gelu", "none"),
    "gelu_new": ("gelu", "tanh"),
    "gelu_pytorch_tanh": ("gelu", "tanh"),
    "relu": ("relu", ""),
}


def linear(
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    dtype: torch.dtype,
    activation: str | None = None,
) -> Linear:
    """Return the function X W' + b, and the activation of it.

    Where oneDNN has kernels, the weight is laid out for them once, and the activation is part of
    the product.

    weight: (out, in); bias: (out,), None for none; activation: see ACTIVATIONS, None for none.
    """
    weight = weight.detach().to(dtype)
    bias = None if bias is None else bias.detach().to(dtype)
    name, algorithm = _kernel_of(activation)
    if _has_packed_linear(weight):
        laid_out = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), None)
        return lambda x: torch.ops.mkldnn._linear_pointwise(x, laid_out, bias, name, [], algorithm)
    if activation is None:
        return lambda x: functional.linear(x, weight, bias)
    if name == "relu":
        return lambda x: functional.relu(functional.linear(x, weight, bias))
    return lambda x: functional.gelu(functional.linear(x, weight, bias), approximate=algorithm)


def _kernel_of(activation: str | None) -> tuple[str, str]:
    """Return the name of a fused kernel, and its algorithm."""
    return ("none", "") if activation is None else FUSED_ACTIVATIONS[activation]


def _has_packed_linear(weight: torch.Tensor) -> bool:
    """Return whether oneDNN multiplies by a weight that is laid out for it."""
    if not weight.is_cpu or platform.machine() not in ("x86_64", "AMD64"):
        return False
    if not torch.backends.mkldnn.is_available():
        return False
    operators = torch.ops.mkldnn
    names = ("_reorder_linear_weight", "_linear_pointwise")
    if not all(hasattr(operators, name) for name in names):
        return False
    if weight.dtype == torch.bfloat16:
        return operators._is_mkldnn_bf16_supported()
    return weight.dtype == torch.float32


def int8_product(
    rounded: torch.Tensor,
    scales: torch.Tensor,
    bias: torch.Tensor,
    rounding: tuple[float, int],
    activation: str | None,
    output: tuple[torch.dtype, float, int],
) -> Int8Product:
    """Return the function s d (q - z) V' + b of q, and the activation of it.

    rounded: int8 (out, in), V. scales: float32 (out,), d. bias: (out,); activation: see
        ACTIVATIONS, None for none.
    rounding: s and z, see int8_linear.Quantizer. output: the dtype; for uint8 its own scale and
        zero, else 1 and 0.
    """
    operators = torch.ops.onednn
    packed = operators.qlinear_prepack(rounded, None)
    zeros = torch.zeros(len(scales), dtype=torch.int32)
    bias = bias.detach().float()
    name, algorithm = _kernel_of(activation)
    dtype, scale, zero = output

    def product(states: torch.Tensor) -> torch.Tensor:
        return operators.qlinear_pointwise(
            states,
            *rounding,
            packed,
            scales,
            zeros,
            bias,
            scale,
            zero,
            dtype,
            name,
            [],
            algorithm or "none",
        )

    return product


def has_int8_product() -> bool:
    """Return whether int8_product is there and exact: without VNNI, sums of products overflow."""
    if not torch.backends.mkldnn.is_available():
        return False
    names = ("qlinear_prepack", "qlinear_pointwise")
    has_operators = all(hasattr(torch.ops.onednn, name) for name in names)
    return has_operators and _cpu_has("_is_vnni_supported")


def _cpu_has(check: str) -> bool:
    """Return what a check of torch.cpu says; False if this version has no such check."""
    return hasattr(torch.cpu, check) and getattr(torch.cpu, check)()


def uses_amx() -> bool:
    """Return whether oneDNN multiplies by AMX: the CPU has it, and no variable forbids it."""
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", os.environ.get("DNNL_MAX_CPU_ISA", "ALL")).upper()
    is_allowed = limit in ("ALL", "DEFAULT") or "AMX" in limit
    return is_allowed and _cpu_has("_is_amx_tile_supported")


def has_bfloat16_arithmetic() -> bool | None:
    """Return whether a CPU has AVX-512 BF16 or AMX.

    None where PyTorch does not say, and on others than x86.
    """
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    if any(map(_cpu_has, checks)):
        return True
    is_x86 = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")
    return False if is_x86 and hasattr(torch.cpu, checks[0]) else None


def own_parameters(modules: Iterable[torch.nn.Module]) -> list[torch.nn.Parameter]:
    """Return the parameters of modules without those of their children.

    As module.parameters(recurse=False) does, ten times as fast.
    """
    return [
        parameter
        for module in modules
        for parameter in module._parameters.values()
        if parameter is not None
    ]


def version_of(weight: torch.Tensor) -> int:
    """Return how often a tensor was changed in place.

    0 where PyTorch does not count, as for tensors of inference mode.
    """
    return 0 if weight.is_inference() else getattr(weight, "_version", 0)


def versions_of(weights: Sequence[torch.Tensor]) -> list[int]:
    """Return how often each tensor was changed in place, see version_of."""
    try:
        # At each text: a call for each weight would take six times as long
        return [weight._version for weight in weights]
    except RuntimeError:
        return [version_of(weight) for weight in weights]


def saved_components(nlp: Language) -> tuple[str, ...]:
    """Return the components in meta.json, which spacy.load reads first.

    nlp.meta lists those that are there now.
    """
    return tuple(nlp._meta.get("components", ()))


def forward_settings(layer: Model) -> dict[str, object]:
    """Return the keyword arguments of a layer's forward function, which attrs would override."""
    return getattr(layer._func, "keywords", {})


# spacy-transformers and spacy-curated-transformers, which need not be installed

# The attrs by which the ListenerStateUtils of spacy-curated-transformers knows a listener, and
# passes it its output.
SENTINEL = "_TRANSFORMER_LISTENER"
UPSTREAM_NAME = "_upstream_name"
STATE = "_state"
READS_DOCS = "_USE_DOC_ANNOTATIONS_FOR_PREDICTION"
ALL_LAYERS = "_REQUIRES_ALL_LAYER_OUTPUTS"


def is_curated(model: object) -> TypeGuard[Model]:
    """Return whether a model is that of a `curated_transformer`, or a copy of it."""
    replacing = model.attrs.get("replace_listener") if isinstance(model, Model) else None
    return getattr(replacing, "__module__", "").startswith("spacy_curated_transformers.")


def upstream_name(layer: Model) -> str | None:
    """Return the component that a layer of any package listens to, "*" for any.

    None if to none (any more).
    """
    if UPSTREAM_NAME in layer.attrs:
        return layer.attrs[UPSTREAM_NAME] if SENTINEL in layer.attrs else None
    return getattr(layer, "upstream_name", None)


def is_replaced(layer: Model) -> bool:
    """Return whether a layer holds a copy of a curated transformer in place of a listener to it."""
    return any(UPSTREAM_NAME in node.attrs and SENTINEL not in node.attrs for node in layer.walk())


def is_installed() -> bool:
    """Return whether spacy-transformers is installed."""
    return find_spec("spacy_transformers") is not None


def is_a(value: object, name: str) -> bool:
    """Return whether an object is of a class of spacy-transformers, such as "Transformer".

    False unless imported.
    """
    kind = getattr(sys.modules.get("spacy_transformers"), name, None)
    return kind is not None and isinstance(value, kind)


def is_in_torch_func() -> bool:
    """Return whether a function of torch.func, such as vmap, runs this and wraps new tensors.

    PyTorch has no public function that tells.
    """
    return torch._C._functorch.peek_interpreter_stack() is not None


def outside_of_torch_func() -> AbstractContextManager[object]:
    """Compute in a with block as if no function of torch.func ran this."""
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack  # noqa: PLC0415 (seldom needed)

    return temporarily_clear_interpreter_stack()
