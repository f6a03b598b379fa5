"""The rehearsal can fail: what a GPU refuses is refused, and what it allows is not."""

import pytest
import torch
from gpu_rehearsal.strict_meta import META, Refused, strict_gpu
from torch.nn import functional

HERE = torch.ones(3)
THERE = torch.ones(3, device=META)
MASK = torch.ones(3, dtype=torch.bool)
INDEX = torch.tensor([2, 0])
LAYER = torch.ones(3, 3, device=META)
REFUSED = {
    "a sum of both": (lambda: HERE + THERE, "CPU and on the GPU"),
    "a change by the other": (lambda: THERE.clone().add_(HERE), "CPU and on the GPU"),
    "a choice": (lambda: torch.where(MASK.to(META), THERE, HERE), "CPU and on the GPU"),
    "an index": (lambda: THERE[INDEX], "CPU and on the GPU"),
    "an index into": (lambda: THERE.clone().index_put_((INDEX,), THERE[:2]), "CPU and on the GPU"),
    "a scalar index": (lambda: THERE.index_select(0, torch.tensor(1)), "CPU and on the GPU"),
    "a mask": (lambda: THERE[MASK.to(META)], "a mask as index"),
    "a mask on the CPU": (lambda: THERE[MASK], "a mask as index"),
    "a copy": (lambda: THERE.cpu(), "copy to the host"),
    "a number": (lambda: THERE[0].item(), "copy to the host"),
    "a condition": (lambda: bool((THERE > 0).any()), "copy to the host"),
    "a comparison": (lambda: torch.equal(THERE, THERE), "copy to the host"),
    "places": (lambda: THERE.nonzero(), "copy to the host"),
    "a product of two dtypes": (lambda: torch.mm(LAYER, LAYER.half()), "no kernel for"),
    "a mask of another dtype": (
        lambda: functional.scaled_dot_product_attention(
            *[LAYER[None, None].half()] * 3, attn_mask=LAYER
        ),
        "attention of torch.float16 with a mask of torch.float32",
    ),
}


@pytest.mark.parametrize("inference", [False, True])
def test_refused_and_allowed(inference):
    """Allowed are a scalar of the CPU in arithmetic, work on either side, and copies to the GPU,
    which count.
    """
    for work, message in REFUSED.values():
        with strict_gpu(), torch.inference_mode(inference), pytest.raises(Refused, match=message):
            work()
    with strict_gpu() as gpu, torch.inference_mode(inference):
        scaled = (THERE * torch.tensor(2.0)).add_(1.0)
        assert (HERE[MASK] + HERE).tolist() == [2.0, 2.0, 2.0]
        assert HERE.sum().item() == 3.0
        assert gpu.uploads == 0
        chosen = scaled[INDEX.to(META)]
        assert gpu.uploads == 1
        THERE.clone().copy_(HERE)
        assert gpu.uploads == 2
    assert chosen.shape == (2,)
    assert chosen.device == META
    assert [name for name in gpu.called if name in ("mul", "add_", "add", "index")] == [
        "mul",
        "add_",
        "index",
    ]


def test_autocast():
    with strict_gpu(torch.float16) as gpu:
        product = functional.linear(LAYER, LAYER, THERE)
        assert product.dtype == torch.float16
        assert functional.layer_norm(product, (3,), THERE, THERE).dtype == torch.float32
        attended = functional.scaled_dot_product_attention(
            *[LAYER[None, None]] * 3, attn_mask=LAYER[None, None]
        )
        assert attended.dtype == torch.float16
    assert gpu.uploads == 0
