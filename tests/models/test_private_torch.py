"""What is private to PyTorch and the plain way beside it give the same."""

import pytest
import torch

from spacy_sbert.models import private as private_torch


@pytest.mark.parametrize("activation", [None, *private_torch.ACTIVATIONS])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products(monkeypatch, dtype, activation):
    if not private_torch._has_packed_linear(torch.ones(2, 2, dtype=dtype)):
        pytest.skip("needs oneDNN's kernels")
    generator = torch.Generator().manual_seed(1)
    weight, bias, x = (torch.randn(shape, generator=generator) for shape in ((48, 32), (48,), (7, 32)))
    fused = private_torch.linear(weight, bias, dtype, activation)(x.to(dtype))
    monkeypatch.delattr(torch.ops.mkldnn, "_linear_pointwise")
    monkeypatch.setattr(private_torch, "hasattr", lambda *given: False, raising=False)
    plain = private_torch.linear(weight, bias, dtype, activation)(x.to(dtype))
    assert plain.dtype == fused.dtype == dtype
    assert torch.allclose(plain.float(), fused.float(), atol=1e-5 if dtype == torch.float32 else 0.1)


def test_arithmetic_of_which_pytorch_does_not_tell(monkeypatch):
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    assert private_torch.has_bfloat16_arithmetic() is False


def test_changes_are_counted():
    weight = torch.zeros(3)
    before = private_torch.version_of(weight)
    weight.add_(1)
    assert private_torch.version_of(weight) > before
