"""Cross-view autoencoders: gradients by finite differences, losses by hand, training that trains."""

import numpy
import pytest
import torch
from gradients import finite_differences, relative_error
from made_views import make_views, unit

from spacy_sbert.meta.methods import LAYERS, LOSSES, CrossViewAutoencoder, _CrossViewNetwork

X, Y = torch.tensor([[3.0, 4.0], [1.0, 0.0]]), torch.tensor([[1.0, 4.0], [0.0, -1.0]])


def softmax(row):
    return numpy.exp(row) / numpy.exp(row).sum()


KL = numpy.mean(
    [(softmax(y) * numpy.log(softmax(y) / softmax(x))).sum() for x, y in zip(X.numpy(), Y.numpy(), strict=True)]
)
BY_HAND = {"mse": 6 / 4, "mae": 4 / 4, "cosine": ((1 - 19 / (5 * 17**0.5)) ** 2 + 1) / 2, "kld": KL}


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_by_hand(loss):
    assert float(LOSSES[loss](X, Y)) == pytest.approx(BY_HAND[loss], rel=1e-5)
    assert float(LOSSES[loss](X, X)) == pytest.approx(0, abs=1e-7)


def two_views(n):
    return [torch.from_numpy(view[:n, :width].astype("f8")) for view, width in zip(make_views(), (4, 3), strict=False)]


@pytest.mark.parametrize("hidden_layers", LAYERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients(loss, hidden_layers):
    torch.manual_seed(3)
    network = _CrossViewNetwork([4, 3], 3, hidden_layers).double()
    views = two_views(6)
    network.loss(views, loss).backward()
    for name, parameter in network.named_parameters():

        def value(x, parameter=parameter):
            with torch.no_grad():
                kept = parameter.clone()
                parameter.copy_(torch.from_numpy(x))
                found = float(network.loss(views, loss).detach())
                parameter.copy_(kept)
            return found

        expected = finite_differences(value, parameter.detach().numpy().copy())
        if abs(expected).max() < 1e-9:  # behind a ReLU that no row opens
            assert abs(parameter.grad.numpy()).max() < 1e-9, name
        else:
            assert relative_error(parameter.grad.numpy(), expected) < 1e-6, name


def test_the_loss_is_over_all_pairs_of_members_and_the_code_is_the_sum():
    torch.manual_seed(4)
    network = _CrossViewNetwork([4, 3], 2, 1).double()
    views = two_views(5)
    codes = [network.encoders[j](views[j]) for j in range(2)]
    expected = sum(((network.decoders[k](codes[j]) - views[k]) ** 2).mean() for j in range(2) for k in range(2))
    assert float(network.loss(views, "mse").detach()) == pytest.approx(float(expected.detach()), rel=1e-12)
    assert torch.equal(network(views), codes[0] + codes[1])


@pytest.mark.parametrize(("loss", "hidden_layers"), [("mse", 0), ("mae", 1), ("kld", 2), ("cosine", 0)])
def test_training_trains(loss, hidden_layers):
    settings = {"size": 5, "hidden_layers": hidden_layers, "loss": loss, "epochs": 40, "learn_rate": 0.02}
    views = make_views()
    fitted = CrossViewAutoencoder(**settings, batch_size=100).fit(views)
    assert fitted.losses_.shape == (40,)
    assert fitted.losses_[-5:].mean() < 0.7 * fitted.losses_[0]
    given = [torch.from_numpy(unit(view)).float() for view in views]
    assert float(fitted._network.loss(given, loss)) == pytest.approx(fitted.losses_[-1], rel=0.2)


def test_a_seed_decides_everything_and_nobody_elses_numbers_change():
    views = make_views()
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    one, same, other = (CrossViewAutoencoder(size=4, epochs=3, batch_size=64, seed=s).fit(views) for s in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert numpy.array_equal(one.transform(views), same.transform(views))
    assert not numpy.allclose(one.transform(views), other.transform(views))
    with pytest.raises(ValueError, match="not finite in epoch 1"):
        CrossViewAutoencoder(size=3, epochs=2, normalize=False).fit([1e20 * view for view in views])


def test_a_linear_autoencoder_finds_what_the_views_share():
    """Without hidden layers and with enough directions, each view is predicted as well as by least squares."""
    views = make_views(n=200)
    settings = {"size": 16, "epochs": 600, "learn_rate": 0.02, "batch_size": 200, "dtype": "float64"}
    fitted = CrossViewAutoencoder(**settings, normalize=False).fit(views)
    rows = [numpy.column_stack([view.astype("f8"), numpy.ones(200)]) for view in views]
    residuals = [y[:, :-1] - x @ numpy.linalg.lstsq(x, y[:, :-1], rcond=None)[0] for x in rows for y in rows]
    best = sum(float((residual**2).mean()) for residual in residuals)
    assert best <= fitted.losses_[-1] < 1.02 * best
