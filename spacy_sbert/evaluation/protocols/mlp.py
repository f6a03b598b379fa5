"""Multi-layer perceptrons after SentEval, one for each setting of a grid, all of them trained at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import NamedTuple

import numpy
import torch
from torch.nn import functional

HIDDEN = 50
BATCH = 64
PASSES = 4  # over the training data between two looks at the others
PATIENCE = 5  # looks without a lower cross-entropy after which one more ends the training
MAX_PASSES = 200
_Parameters = tuple[torch.Tensor, ...]  # weights and biases of two layers


class _Setting(NamedTuple):
    """The settings that are tuned. l2: times a weight, is added to its gradient. dropout: of hidden units."""

    l2: float
    dropout: float


GRID = tuple(_Setting(*values) for values in product((1e-4, 1e-3), (0.0, 0.5)))


@dataclass(frozen=True)
class _FittedMLP:
    """The best of the networks.

    setting, passes: with which setting, after how many passes. loss, accuracy: the cross-entropy in nats and the
        accuracy on what it was tuned on.
    """

    setting: _Setting
    passes: int
    loss: float
    accuracy: float
    parameters: _Parameters

    def predict(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Return the most likely classes, int64 (n,); rows (float32 (n, features))."""
        return _forward(self.parameters, torch.from_numpy(rows))[0].argmax(1).numpy()


def fit_mlp(
    train: tuple[numpy.ndarray, numpy.ndarray],
    held: tuple[numpy.ndarray, numpy.ndarray],
    classes: int,
    seed: int,
    grid: Sequence[_Setting] = GRID,
) -> _FittedMLP:
    """Train a perceptron for each setting, stop each early, and return the best.

    softmax(W_2 relu(W_1 x + b_1) + b_2), 50 hidden units; cross-entropy with Adam, rate 0.001, in batches of 64. After
    every fourth pass the mean cross-entropy of the held-out examples is taken; a network is as it was when that was
    lowest, and is left alone once it has not become lower six times, or after 200 passes. The setting is that of the
    lowest, too. Networks share batches, nothing else. Cross-entropy, as accuracy on a few hundred examples moves by
    chance.

    train, held (float32 (n, features), int (n,)): features and classes from 0: to fit to, and to stop and choose by.
        Of held, -1 is a class that train has not: no network predicts it, and none is chosen by it.
    classes (int): how many there are. seed (int): of weights, batches and dropout.
    grid (Sequence[_Setting]): of which the first of equally good ones is taken.
    RAISES (ValueError): if no loss of the held-out examples is a number.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3; its MLP, of which batches, passes and patience are taken.
        There hidden units are sigmoid, dropout comes before them and is not tuned, l2 goes from 1e-5 to 1e-2, and the
        accuracy stops and chooses.
    """
    generator, drops = (torch.Generator("cpu").manual_seed(seed) for _ in range(2))  # batches are those of any grid
    (x, y), (held_x, held_y) = ((torch.from_numpy(rows), torch.from_numpy(at).long()) for rows, at in (train, held))
    parameters = _drawn(len(grid), x.shape[1], classes, generator)
    kept = tuple(each.detach().clone() for each in parameters)
    l2, dropout = (torch.tensor(each, device="cpu").reshape(-1, 1, 1) for each in zip(*grid, strict=True))
    optimizer = torch.optim.Adam(parameters, fused=True)  # works number by number: networks do not touch
    best, at, failures = [inf] * len(grid), [0] * len(grid), [0] * len(grid)
    for done in range(PASSES, MAX_PASSES + PASSES, PASSES):
        for batch in _batches(len(x), generator):
            scores = _forward(parameters, x[batch], dropout, drops)  # (networks, batch, classes)
            total = functional.cross_entropy(scores.flatten(0, 1), y[batch].repeat(len(grid)), reduction="sum")
            optimizer.zero_grad()
            (total / len(batch)).backward()
            for each in parameters:
                each.grad.addcmul_(l2, each.detach())  # type: ignore[union-attr]
            optimizer.step()
        for number, loss in enumerate(_losses(parameters, held_x, held_y)):
            if failures[number] <= PATIENCE and loss < best[number]:
                best[number], at[number] = loss, done
                for copy, each in zip(kept, parameters, strict=True):
                    copy[number] = each[number].detach()
            else:
                failures[number] += 1
        if min(failures) > PATIENCE:
            break
    chosen = min(range(len(grid)), key=best.__getitem__)
    if best[chosen] == inf:
        raise ValueError(
            f"The perceptron has no finite cross-entropy on {len(held_y)} held-out examples, of which "
            f"{int((held_y >= 0).sum())} have a class of the training data. Check the labels and the vectors."
        )
    fitted = _FittedMLP(grid[chosen], at[chosen], best[chosen], 0.0, tuple(each[chosen : chosen + 1] for each in kept))
    return replace(fitted, accuracy=float((fitted.predict(held[0]) == held[1]).mean()))


def _losses(parameters: _Parameters, x: torch.Tensor, classes: torch.Tensor) -> list[float]:
    """Return the mean cross-entropy of each network over the examples whose class is known, NaN if there are none."""
    known = classes >= 0
    scores = _forward(parameters, x[known]).double()
    return [float(functional.cross_entropy(each, classes[known])) for each in scores]


def _drawn(networks: int, features: int, classes: int, generator: torch.Generator) -> _Parameters:
    """Draw uniformly within 1 / sqrt(inputs of the layer), as PyTorch's linear layers begin."""

    def draw(*shape: int, inputs: int) -> torch.Tensor:
        drawn = torch.rand(networks, *shape, generator=generator, device="cpu") * 2 - 1
        return (drawn * inputs**-0.5).requires_grad_()

    first = draw(features, HIDDEN, inputs=features), draw(1, HIDDEN, inputs=features)
    return *first, draw(HIDDEN, classes, inputs=HIDDEN), draw(1, classes, inputs=HIDDEN)


def _batches(n: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    for _ in range(PASSES):
        yield from torch.randperm(n, generator=generator, device="cpu").split(BATCH)


def _forward(
    parameters: _Parameters,
    x: torch.Tensor,
    dropout: torch.Tensor | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Compute float (n, features) -> float (networks, n, classes); without a graph if nothing is dropped out."""
    weights, biases, out_weights, out_biases = parameters
    with torch.set_grad_enabled(dropout is not None):
        hidden = (x @ weights + biases).relu()  # (networks, n, hidden)
        if dropout is not None:
            stays = torch.rand(hidden.shape, generator=generator, device="cpu") >= dropout
            hidden = hidden * stays / (1 - dropout)
        return hidden @ out_weights + out_biases
