"""Perceptrons trained together are those that PyTorch trains alone, and stop before they know noise
by heart.
"""

import numpy
import pytest
import scipy.special
import torch
from protocols import mlp
from protocols.mlp import _GRID, _PASSES, _drawn, _fit_mlp, _forward, _Setting


def noisy(n, seed):
    """Classes that only the first two numbers tell, and not surely."""
    rng = numpy.random.default_rng(seed)
    rows = rng.normal(size=(n, 40)).astype("float32")
    return rows, ((rows[:, 0] + rows[:, 1] + 1.5 * rng.normal(size=n)) > 0).astype("int64")


def accuracy(network, held):
    return (network.predict(held[0]) == held[1]).mean()


def alone(place, grid, train, seed):
    """The same network in PyTorch's own layers, from the same weights and batches."""
    (rows, gold), generator = train, torch.Generator().manual_seed(seed)
    drawn = _drawn(len(grid), rows.shape[1], 2, generator)
    network = torch.nn.Sequential(
        torch.nn.Linear(rows.shape[1], 50), torch.nn.ReLU(), torch.nn.Linear(50, 2)
    )
    with torch.no_grad():
        for own, given in zip(network.parameters(), drawn, strict=True):
            own.copy_(given[place].T if own.dim() == 2 else given[place][0])
    optimizer = torch.optim.Adam(network.parameters(), weight_decay=grid[place].l2)
    for _ in range(_PASSES):
        for at in torch.randperm(len(rows), generator=generator).split(64):
            optimizer.zero_grad()
            scores = network(torch.from_numpy(rows[at]))
            torch.nn.functional.cross_entropy(scores, torch.from_numpy(gold[at])).backward()
            optimizer.step()
    return network


@pytest.mark.parametrize("place", [0, 1])
def test_networks_trained_together_are_those_trained_alone(monkeypatch, place):
    monkeypatch.setattr(mlp, "_MAX_PASSES", _PASSES)
    train = noisy(300, 0)
    held = noisy(200, 1)
    # Without dropout, which is drawn
    grid = (_Setting(1e-4, 0.0), _Setting(0.5, 0.0))
    networks = [alone(number, grid, train, 3) for number in range(2)]
    expected = networks[place](torch.from_numpy(held[0])).detach().numpy()
    # Whichever is better
    monkeypatch.setattr(mlp, "min", lambda *_, **__: place, raising=False)
    found = _fit_mlp(train, held, 2, 3, grid)
    scores = _forward(found.parameters, torch.from_numpy(held[0]))[0].numpy()
    assert scores == pytest.approx(expected, abs=2e-5)
    assert found.setting == grid[place]
    assert found.passes == 4
    log_likelihood = scipy.special.log_softmax(expected, axis=1)[range(200), held[1]]
    assert found.loss == pytest.approx(-log_likelihood.mean(), abs=1e-5)
    assert not torch.allclose(networks[0][0].weight, networks[1][0].weight, atol=1e-2)


def test_a_network_is_as_it_was_when_it_was_best():
    train = noisy(400, 0)
    held = noisy(400, 1)
    found = _fit_mlp(train, held, 2, 1)
    assert found.setting in _GRID
    assert found.passes % _PASSES == 0
    assert accuracy(found, held) > 0.65
    assert found.loss < 0.6
    scores = _forward(found.parameters, torch.from_numpy(held[0]))[0]
    assert float(
        torch.nn.functional.cross_entropy(scores, torch.from_numpy(held[1]))
    ) == pytest.approx(found.loss)
    again = _fit_mlp(train, held, 2, 1)
    assert all(
        torch.equal(one, other)
        for one, other in zip(found.parameters, again.parameters, strict=True)
    )


def test_training_ends_once_nothing_gets_better(monkeypatch):
    looks = iter([0.5, 0.3, *[0.4] * 30])
    seen = []

    def losses(parameters, x, classes):
        given = next(looks)
        seen.append(given)
        return [given] * len(parameters[0])

    monkeypatch.setattr(mlp, "_losses", losses)
    found = _fit_mlp(noisy(20, 1), noisy(10, 0), 2, 1)
    assert (found.loss, found.passes) == (0.3, 8)
    assert seen == [0.5, 0.3, *[0.4] * 6], "patience of five, and one more"


def test_classes_unknown_in_training_choose_nothing():
    train, (rows, gold) = noisy(60, 0), noisy(40, 1)
    found = _fit_mlp(train, (rows, gold), 2, 1)
    more = numpy.concatenate([rows, rows[:5]]), numpy.concatenate([gold, numpy.full(5, -1)])
    other = _fit_mlp(train, more, 2, 1)
    assert (other.passes, other.loss) == (found.passes, pytest.approx(found.loss))
    with pytest.raises(ValueError, match="5 held-out examples, of which 0"):
        _fit_mlp(train, (rows[:5], numpy.full(5, -1)), 2, 1)


def test_dropout_keeps_the_mean_of_hidden_units():
    generator = torch.Generator().manual_seed(0)
    parameters = _drawn(2, 8, 3, generator)
    rows = torch.ones(20_000, 8)
    dropout = torch.tensor([0.0, 0.5]).reshape(2, 1, 1)
    plain = _forward(parameters, rows)
    dropped = _forward(parameters, rows, dropout, generator)
    assert torch.equal(plain[0], dropped[0].detach())
    assert not plain.requires_grad
    assert dropped.requires_grad
    assert torch.allclose(dropped[1].mean(0), plain[1][0], atol=0.02)
    assert dropped[1].std(0).min() > 0.01
