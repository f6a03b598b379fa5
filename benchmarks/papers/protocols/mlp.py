"""The MLP after SentEval: perceptrons trained together, stopped early, tuned on held-out data."""

from collections.abc import Sequence
from itertools import product
from math import inf
from typing import Any, NamedTuple

import numpy
import torch
from torch.nn import functional

from spacy_sbert.evaluation.protocols.classification import Fold, stratified

# Folds of training data without a dev split, of which the first stops the MLP: SentEval's 5 %
HELD = 20


def predict_mlp(
    rows: numpy.ndarray, labels: numpy.ndarray, fold: Fold, seed: int
) -> tuple[numpy.ndarray, float, Any]:
    """Fit an MLP; return the labels predicted, str (tests,), the accuracy in tuning, and the
    settings that were chosen.

    It is tuned on dev, or on a stratified 5 % of the training data, more if these would not hold
    each class.
    """
    names, counts = numpy.unique(labels[fold.train], return_counts=True)
    # -1 is never right
    classes = numpy.where(numpy.isin(labels, names), numpy.searchsorted(names, labels), -1)
    if len(fold.tuning) == 1:
        fit, held = fold.tuning[0]
    else:
        fit, held = stratified(fold.train, labels, min(HELD, *counts.tolist()), seed)[0]
    best = _fit_mlp((rows[fit], classes[fit]), (rows[held], classes[held]), len(names), seed)
    accuracy = float((best.predict(rows[held]) == classes[held]).mean())
    return (
        names[best.predict(rows[fold.test])],
        accuracy,
        {**best.setting._asdict(), "passes": best.passes},
    )


HIDDEN = 50
_BATCH = 64
# Over the training data between two looks at the others
_PASSES = 4
# Looks without a lower cross-entropy after which one more ends the training
_PATIENCE = 5
_MAX_PASSES = 200
# Weights and biases of two layers
_Parameters = tuple[torch.Tensor, ...]


class _Setting(NamedTuple):
    """The settings that are tuned. l2: times a weight, is added to its gradient. dropout: of hidden
    units.
    """

    l2: float
    dropout: float


_GRID = tuple(_Setting(*values) for values in product((1e-4, 1e-3), (0.0, 0.5)))


class _FittedMLP(NamedTuple):
    """A network: its setting, the passes over the training data, and the cross-entropy in tuning,
    in nats.
    """

    setting: _Setting
    passes: int
    loss: float
    parameters: _Parameters

    def predict(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Return the most likely classes, int64 (n,); rows (float32 (n, features))."""
        return _forward(self.parameters, torch.from_numpy(rows))[0].argmax(1).numpy()


def _fit_mlp(
    train: tuple[numpy.ndarray, numpy.ndarray],
    held: tuple[numpy.ndarray, numpy.ndarray],
    classes: int,
    seed: int,
    grid: Sequence[_Setting] = _GRID,
) -> _FittedMLP:
    """Train a perceptron for each setting, all at once, stop each early, and return the best.

    softmax(W_2 relu(W_1 x + b_1) + b_2), 50 hidden units; cross-entropy with Adam, rate 0.001, in
    batches of 64. After every fourth pass the mean cross-entropy of the held-out examples is taken;
    a network is as it was when that was lowest, and is left alone once it has not become lower six
    times, or after 200 passes. The setting is that of the lowest, too. Networks share batches,
    nothing else. Accuracy on a few hundred examples would move by chance.

    train, held (float32 (n, features), int (n,)): features and classes from 0: to fit to, and to
        stop and choose by. Of held, -1 is a class that train has not: no network predicts it, and
        none is chosen by it.
    classes (int): how many there are. seed (int): of weights, batches and dropout.
    RAISES (ValueError): if no loss of the held-out examples is a number.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3; its MLP, of which batches, passes and
        patience are taken. There hidden units are sigmoid, dropout comes before them and is not
        tuned, l2 goes from 1e-5 to 1e-2, and the accuracy stops and chooses.
    """
    # Batches are those of any grid
    generator, drops = (torch.Generator("cpu").manual_seed(seed) for _ in range(2))
    (x, y), (held_x, held_y) = (
        (torch.from_numpy(rows), torch.from_numpy(at).long()) for rows, at in (train, held)
    )
    parameters = _drawn(len(grid), x.shape[1], classes, generator)
    kept = tuple(each.detach().clone() for each in parameters)
    l2, dropout = (
        torch.tensor(each, device="cpu").reshape(-1, 1, 1) for each in zip(*grid, strict=True)
    )
    # Works number by number: networks do not touch
    optimizer = torch.optim.Adam(parameters, fused=True)
    best, at, failures = [inf] * len(grid), [0] * len(grid), [0] * len(grid)
    for done in range(_PASSES, _MAX_PASSES + _PASSES, _PASSES):
        permutations = (
            torch.randperm(len(x), generator=generator, device="cpu") for _ in range(_PASSES)
        )
        for batch in (batch for permutation in permutations for batch in permutation.split(_BATCH)):
            # (networks, batch, classes)
            scores = _forward(parameters, x[batch], dropout, drops)
            total = functional.cross_entropy(
                scores.flatten(0, 1), y[batch].repeat(len(grid)), reduction="sum"
            )
            optimizer.zero_grad()
            (total / len(batch)).backward()
            for each in parameters:
                each.grad.addcmul_(l2, each.detach())  # type: ignore[union-attr]
            optimizer.step()
        for number, loss in enumerate(_losses(parameters, held_x, held_y)):
            if failures[number] <= _PATIENCE and loss < best[number]:
                best[number], at[number] = loss, done
                for copy, each in zip(kept, parameters, strict=True):
                    copy[number] = each[number].detach()
            else:
                failures[number] += 1
        if min(failures) > _PATIENCE:
            break
    chosen = min(range(len(grid)), key=best.__getitem__)
    if best[chosen] == inf:
        raise ValueError(
            f"The perceptron has no finite cross-entropy on {len(held_y)} held-out examples, of "
            f"which {int((held_y >= 0).sum())} have a class of the training data. Check the labels "
            "and the vectors."
        )
    return _FittedMLP(
        grid[chosen], at[chosen], best[chosen], tuple(each[chosen : chosen + 1] for each in kept)
    )


def _losses(parameters: _Parameters, x: torch.Tensor, classes: torch.Tensor) -> list[float]:
    """Return the mean cross-entropy of each network over the examples whose class is known, NaN if
    there are none.
    """
    known = classes >= 0
    scores = _forward(parameters, x[known]).double()
    return [float(functional.cross_entropy(each, classes[known])) for each in scores]


def _drawn(networks: int, features: int, classes: int, generator: torch.Generator) -> _Parameters:
    """Draw uniformly within 1 / sqrt(inputs of the layer), as PyTorch's linear layers begin."""
    shapes = (features, HIDDEN), (1, HIDDEN), (HIDDEN, classes), (1, classes)
    drawn = [
        torch.rand(networks, *shape, generator=generator, device="cpu") * 2 - 1 for shape in shapes
    ]
    inputs = features, features, HIDDEN, HIDDEN
    return tuple((each * n**-0.5).requires_grad_() for each, n in zip(drawn, inputs, strict=True))


def _forward(
    parameters: _Parameters,
    x: torch.Tensor,
    dropout: torch.Tensor | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Compute float (n, features) -> float (networks, n, classes); without a graph if nothing is
    dropped out.
    """
    weights, biases, out_weights, out_biases = parameters
    with torch.set_grad_enabled(dropout is not None):
        # (networks, n, hidden)
        hidden = (x @ weights + biases).relu()
        if dropout is not None:
            stays = torch.rand(hidden.shape, generator=generator, device="cpu") >= dropout
            hidden = hidden * stays / (1 - dropout)
        return hidden @ out_weights + out_biases
