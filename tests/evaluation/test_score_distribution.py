"""SentEval's regressor: target distributions by hand, parity with PyTorch's own layers, and when it stops."""

import numpy
import pytest
import torch

from spacy_sbert.evaluation.protocols import learned_similarity
from spacy_sbert.evaluation.protocols.learned_similarity import _fit_distribution, _target_distribution


def test_target_distributions_by_hand():
    found = _target_distribution(numpy.array([1.0, 2.25, 4.9, 5.0]), (1, 5))
    expected = [[1, 0, 0, 0, 0], [0, 0.75, 0.25, 0, 0], [0, 0, 0, 0.1, 0.9], [0, 0, 0, 0, 1]]
    assert found == pytest.approx(numpy.array(expected), abs=1e-6) and found.dtype == "float32"
    gold = numpy.random.default_rng(0).uniform(0, 5, 50)
    found = _target_distribution(gold, (0, 5))
    assert found.sum(1) == pytest.approx(1, abs=1e-6) and found @ numpy.arange(6) == pytest.approx(gold, abs=1e-5)


def part(n, seed):
    rng = numpy.random.default_rng(seed)
    x = rng.normal(size=(n, 6))
    return x, numpy.clip(3 + x[:, 0] + 0.5 * rng.normal(size=n), 1, 5)


def test_it_is_a_linear_layer_of_pytorch(monkeypatch):
    monkeypatch.setattr(learned_similarity, "_PASSES", 3)
    monkeypatch.setattr(learned_similarity, "_MAX_PASSES", 0)  # one look
    train, held = part(150, 0), part(80, 1)
    generator = torch.Generator().manual_seed(4)
    drawn = (torch.rand((7, 5), generator=generator) * 2 - 1) * 6**-0.5
    network = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Softmax(dim=1))
    with torch.no_grad():
        network[0].weight.copy_(drawn[:6].T)
        network[0].bias.copy_(drawn[6])
    optimizer = torch.optim.Adam(network.parameters())
    x, targets = torch.from_numpy(train[0].astype("float32")), torch.from_numpy(_target_distribution(train[1], (1, 5)))
    for _ in range(3):
        for at in torch.randperm(150, generator=generator).split(64):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(network(x[at]), targets[at]).backward()
            optimizer.step()
    expected = network(torch.from_numpy(held[0].astype("float32"))).detach().numpy() @ numpy.arange(1, 6)
    assert _fit_distribution(train, held, (1, 5), 4)(held[0]) == pytest.approx(expected, abs=1e-5)


def test_the_weights_are_those_of_the_highest_correlation(monkeypatch):
    looks = iter([0.5, 0.8, None, 0.7, 0.8, 0.6, 0.9])
    seen, at = [], []

    def look(predicted, gold):
        seen.append(next(looks))
        at.append(predicted)
        return seen[-1]

    monkeypatch.setattr(learned_similarity, "_PASSES", 1)
    monkeypatch.setattr(learned_similarity, "pearson", look)
    held = part(20, 1)
    found = _fit_distribution(part(100, 0), held, (1, 5), 1)
    assert seen == [0.5, 0.8, None, 0.7, 0.8, 0.6], "three without a higher one, and one more"
    assert (found(held[0]) == at[1]).all()
