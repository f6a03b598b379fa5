"""The MLP after SentEval: perceptrons trained together, stopped early, tuned on held-out data."""

from collections.abc import Sequence
from dataclasses import dataclass
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
    chosen = {**best.setting._asdict(), "passes": best.passes}
    return names[best.predict(rows[fold.test])], accuracy, chosen


HIDDEN = 50
_BATCH = 64
# How many passes over the training data there are between two looks at the held-out examples
_PASSES = 4
# After so many looks without a lower cross-entropy, one more ends the training
_PATIENCE = 5
_MAX_PASSES = 200
# Weights and biases of two layers
_Parameters = tuple[torch.Tensor, ...]


class _Setting(NamedTuple):
    """Settings that are tuned.

    l2 (float): a weight times this is added to its gradient. dropout (float): of hidden units.
    """

    l2: float
    dropout: float


_GRID = tuple(_Setting(*values) for values in product((1e-4, 1e-3), (0.0, 0.5)))


class _FittedMLP(NamedTuple):
    """A network.

    passes (int): over the training data. loss (float): the cross-entropy in tuning, in nats.
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
    # Batches do not depend on the grid
    generator = torch.Generator("cpu").manual_seed(seed)
    drops = torch.Generator("cpu").manual_seed(seed)
    x, y = map(torch.from_numpy, train)
    held_x, held_y = map(torch.from_numpy, held)
    training = _Training(_drawn(len(grid), x.shape[1], classes, generator), grid, drops)
    networks = [_Network() for _ in grid]
    # The parameters with which each network was best
    kept = tuple(each.detach().clone() for each in training.parameters)
    for done in range(_PASSES, _MAX_PASSES + _PASSES, _PASSES):
        for _ in range(_PASSES):
            order = torch.randperm(len(x), generator=generator, device="cpu")
            for batch in order.split(_BATCH):
                training.step(x[batch], y[batch].long())
        losses = _losses(training.parameters, held_x, held_y.long())
        for number, network in enumerate(networks):
            if network.is_better(losses[number], done):
                training.copy_to(kept, number)
        if min(network.failures for network in networks) > _PATIENCE:
            break
    chosen = min(range(len(grid)), key=lambda number: networks[number].loss)
    best = networks[chosen]
    if best.loss == inf:
        raise ValueError(
            f"The perceptron has no finite cross-entropy on {len(held_y)} held-out examples, of "
            f"which {int((held_y >= 0).sum())} have a class of the training data. Check the labels "
            "and the vectors."
        )
    parameters = tuple(each[chosen : chosen + 1] for each in kept)
    return _FittedMLP(grid[chosen], best.passes, best.loss, parameters)


class _Training:
    """Training of several networks at once, which share batches and nothing else.

    parameters (tuple of tensors): of all networks, (networks, ...). grid: their settings.
    generator (torch.Generator): of dropout.
    """

    def __init__(
        self, parameters: _Parameters, grid: Sequence[_Setting], generator: torch.Generator
    ):
        self.parameters = parameters
        self._generator = generator
        self._l2 = _per_network([setting.l2 for setting in grid])
        self._dropout = _per_network([setting.dropout for setting in grid])
        # Works number by number: networks do not touch
        self._optimizer = torch.optim.Adam(parameters, fused=True)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """Learn from a batch. x (float32 (batch, features)), y (int64 (batch,)): its classes."""
        # (networks, batch, classes)
        scores = _forward(self.parameters, x, self._dropout, self._generator)
        targets = y.repeat(len(scores))
        total = functional.cross_entropy(scores.flatten(0, 1), targets, reduction="sum")
        self._optimizer.zero_grad()
        (total / len(x)).backward()
        for each in self.parameters:
            each.grad.addcmul_(self._l2, each.detach())  # type: ignore[union-attr]
        self._optimizer.step()

    def copy_to(self, kept: _Parameters, number: int) -> None:
        """Copy the parameters of a network to its place among others."""
        for copy, each in zip(kept, self.parameters, strict=True):
            copy[number] = each[number].detach()


def _per_network(values: Sequence[float]) -> torch.Tensor:
    """Return a number for each network, float32 (networks, 1, 1)."""
    return torch.tensor(values, device="cpu").reshape(-1, 1, 1)


@dataclass
class _Network:
    """How low the cross-entropy of a network became, after how many passes over the training data.

    failures (int): how often it did not become lower.
    """

    loss: float = inf
    passes: int = 0
    failures: int = 0

    def is_better(self, loss: float, passes: int) -> bool:
        """Note a cross-entropy, and return whether the network is to be kept as it is now."""
        if self.failures > _PATIENCE or not loss < self.loss:
            self.failures += 1
            return False
        self.loss = loss
        self.passes = passes
        return True


def _losses(parameters: _Parameters, x: torch.Tensor, classes: torch.Tensor) -> list[float]:
    """Return the mean cross-entropy of each network over the examples whose class is known, NaN if
    there are none.
    """
    known = classes >= 0
    scores = _forward(parameters, x[known]).double()
    return [float(functional.cross_entropy(each, classes[known])) for each in scores]


def _drawn(networks: int, features: int, classes: int, generator: torch.Generator) -> _Parameters:
    """Draw uniformly within 1 / sqrt(inputs of the layer), as PyTorch's linear layers begin."""
    # Inputs, and the shape of each parameter
    layers = [
        (features, (features, HIDDEN)),
        (features, (1, HIDDEN)),
        (HIDDEN, (HIDDEN, classes)),
        (HIDDEN, (1, classes)),
    ]
    parameters = []
    for inputs, shape in layers:
        drawn = torch.rand(networks, *shape, generator=generator, device="cpu") * 2 - 1
        parameters.append((drawn * inputs**-0.5).requires_grad_())
    return tuple(parameters)


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
