"""SentEval's regressor of graded pairs: a distribution over whole scores, whose mean is the similarity."""

from collections.abc import Callable

import numpy
import torch

from ...similarity import pearson

BATCH = 64
EPOCHS = 50  # over the training data between two looks at the others
PATIENCE = 3  # looks without a higher correlation after which one more ends the training
MAX_EPOCHS = 1000
Part = tuple[numpy.ndarray, numpy.ndarray]  # features (n, 2 width) and gold scores (n,)
Predict = Callable[[numpy.ndarray], numpy.ndarray]


def fit_distribution(train: Part, held: Part, scores: tuple[int, int], seed: int) -> Predict:
    """Fit a distribution over whole scores to graded pairs.

    p = softmax(W x + b), the similarity r . p, r the whole scores; the mean squared error between p and the target
    distribution, with Adam, rate 0.001, in batches of 64. After every 50 passes Pearson's correlation with the held-out
    gold scores is taken; the weights are those with which it was highest, and training ends once it has not become
    higher four times, or after 1000 passes.

    train, held (Part): what it is fitted to, and what stops it. scores (int, int): the lowest and the highest.
    seed (int): of weights and batches.
    RETURNS (Callable): features, float (m, 2 width), to similarities, float64 (m,).
    SOURCE: Tai et al. 2015, section 4.2 (target distribution); Conneau and Kiela 2018, SentEval, section 3, whose code
        has the squared error in place of the divergence, these numbers, and scores 1 to 5 for the STS benchmark too.
    """
    generator = torch.Generator("cpu").manual_seed(seed)
    x, targets = torch.from_numpy(train[0].astype("float32")), torch.from_numpy(target_distribution(train[1], scores))
    shape, bound = (x.shape[1] + 1, targets.shape[1]), x.shape[1] ** -0.5  # the last row is b
    weights = ((torch.rand(shape, generator=generator, device="cpu") * 2 - 1) * bound).requires_grad_()
    optimizer = torch.optim.Adam([weights], fused=True)
    best, kept, failures = -1.0, weights.detach().clone(), 0
    for _ in range(0, MAX_EPOCHS + EPOCHS, EPOCHS):
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(x), generator=generator, device="cpu").split(BATCH):
                loss = (_probabilities(weights, x[batch]) - targets[batch]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        found = pearson(expected_scores(weights.detach(), held[0], scores), held[1])
        if found is not None and found > best:
            best, kept = found, weights.detach().clone()
        elif failures >= PATIENCE:
            break
        else:
            failures += 1
    return lambda rows: expected_scores(kept, rows, scores)


def target_distribution(gold: numpy.ndarray, scores: tuple[int, int]) -> numpy.ndarray:
    """The distribution over the two whole scores around a gold score whose mean it is.

    t_i = y - floor(y) for i = floor(y) + 1, floor(y) - y + 1 for i = floor(y), else 0

    gold (float (n,)): y. scores (int, int): the lowest and the highest.
    RETURNS (float32 (n, scores)).
    SOURCE: Tai et al. 2015, Improved Semantic Representations From Tree-Structured LSTM Networks, section 4.2.
    """
    whole = numpy.arange(scores[0], scores[1] + 1)
    return numpy.maximum(0.0, 1.0 - numpy.abs(gold[:, None] - whole)).astype("float32")


def expected_scores(weights: torch.Tensor, rows: numpy.ndarray, scores: tuple[int, int]) -> numpy.ndarray:
    """r . softmax(W x + b), float64 (n,); weights (float32 (features + 1, scores)), rows (float (n, features))."""
    probabilities = _probabilities(weights, torch.from_numpy(rows.astype("float32"))).double().numpy()
    return probabilities @ numpy.arange(scores[0], scores[1] + 1)


def _probabilities(weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ weights[:-1] + weights[-1], dim=1)
