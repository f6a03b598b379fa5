"""How far a reconstructed vector is from a member's: the losses of the cross-view autoencoder."""

from collections.abc import Callable

import torch
from torch.nn import functional


def kl_divergence(found: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """1 / n sum_i KL(softmax(y_i) || softmax(x_i)), of reconstructions x and members' vectors y, (n, d) each."""
    given, target = functional.log_softmax(found, dim=1), functional.log_softmax(wanted, dim=1)
    return functional.kl_div(given, target, reduction="batchmean", log_target=True)


def squared_cosine_distance(found: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """1 / n sum_i (1 - cos(x_i, y_i))^2, of reconstructions and members' vectors, (n, d) each."""
    return (1 - functional.cosine_similarity(found, wanted, dim=1)).square().mean()


# Of reconstructions x and members' vectors y, (n, d) each.
LOSSES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mse": functional.mse_loss,  # 1 / (n d) sum_i |x_i - y_i|^2
    "mae": functional.l1_loss,  # 1 / (n d) sum_i |x_i - y_i|_1
    "kld": kl_divergence,
    "cosine": squared_cosine_distance,
}
