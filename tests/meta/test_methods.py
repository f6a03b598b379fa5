"""The methods: values by hand, identities, parity with scikit-learn, classical CCA, least squares
and PyTorch.
"""

import numpy
import pytest
import srsly
import torch
from helpers.made_views import make_views, unit
from scipy import linalg

from spacy_sbert.files.checksum import add_checksum
from spacy_sbert.meta import GCCA, SVD, Average, Concatenation, CrossViewAutoencoder, Moments
from spacy_sbert.meta.autoencoder import LAYERS, LOSSES, _CrossViewNetwork
from spacy_sbert.meta.methods import METHODS, estimator_from_bytes, make_estimator

RNG = numpy.random.default_rng(1)
FITTED = ("svd", "gcca", "ae")


def joined(views, normalize):
    return numpy.hstack([unit(view) if normalize else view.astype("float64") for view in views])


def small(method, **settings):
    """An estimator of three directions, trained briefly."""
    return make_estimator(method, **({"size": 3} if method in FITTED else {}), **settings)


def test_concatenation_and_average_by_hand():
    views = [numpy.array([[3.0, 4.0, 0.0]]), numpy.array([[0.0, 2.0]])]
    assert Concatenation().transform(views).tolist() == [[0.6, 0.8, 0.0, 0.0, 1.0]]
    assert Average().transform(views)[0] == pytest.approx([0.3, 0.9, 0.0])
    assert Concatenation(normalize=False).transform(views).tolist() == [[3, 4, 0, 0, 2]]
    assert Average(normalize=False).transform(views)[0] == pytest.approx([1.5, 3.0, 0.0])


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("size", [1, 3, 16])
def test_svd_is_scikit_learns_pca_up_to_sign(normalize, size):
    decomposition = pytest.importorskip("sklearn.decomposition")
    views = make_views()
    other = make_views(seed=3)
    rows = joined(views, normalize)
    pca = decomposition.PCA(size, svd_solver="full").fit(rows)
    ours = SVD(size=size, normalize=normalize).fit(views)
    signs = numpy.sign((ours.components_ * pca.components_).sum(axis=1))
    assert ours.components_ == pytest.approx(pca.components_ * signs[:, None], abs=1e-6)
    assert ours.values_ == pytest.approx(pca.singular_values_ / (len(rows) - 1) ** 0.5, abs=1e-9)
    assert ours.transform(other) == pytest.approx(
        pca.transform(joined(other, normalize)) * signs, abs=1e-6
    )


def test_gcca_of_two_views_is_classical_cca():
    views = make_views(widths=(6, 4))
    ours = GCCA(size=4, tau=0.0, normalize=False).fit(views)
    x, y = (view - view.mean(axis=0) for view in (views[0].astype("f8"), views[1].astype("f8")))
    (qx, rx), (qy, ry) = linalg.qr(x, mode="economic"), linalg.qr(y, mode="economic")
    left, correlations, right = linalg.svd(qx.T @ qy)
    a = linalg.solve_triangular(rx, left[:, :4])
    b = linalg.solve_triangular(ry, right.T[:, :4])
    assert ours.values_ == pytest.approx(correlations, abs=1e-10)
    for classical, part in ((a, ours.components_[:, :6]), (b, ours.components_[:, 6:])):
        classical = classical / linalg.norm(classical, axis=0)
        found = part.T / linalg.norm(part.T, axis=0)
        assert abs((classical * found).sum(axis=0)) == pytest.approx(numpy.ones(4), abs=1e-8)
    projected = x @ ours.components_[:, :6].T, y @ ours.components_[:, 6:].T
    for i in range(4):
        assert numpy.corrcoef(projected[0][:, i], projected[1][:, i])[0, 1] == pytest.approx(
            correlations[i], abs=1e-8
        )


@pytest.mark.parametrize(("size", "tau"), [(5, 0.0), (16, 0.01), (5, 1.0), (16, 100.0)])
@pytest.mark.parametrize("normalize", [True, False])
def test_gcca_satisfies_constraint_and_eigen_equation(tau, normalize, size):
    views = make_views()
    ours = GCCA(size=size, tau=tau, normalize=normalize).fit(views)
    covariances = [numpy.cov(joined([view], normalize).T) for view in views]
    between = numpy.cov(joined(views, normalize).T) - linalg.block_diag(*covariances)
    within = linalg.block_diag(
        *(c + tau * numpy.trace(c) / len(c) * numpy.eye(len(c)) for c in covariances)
    )
    theta = ours.components_.T
    assert theta.T @ within @ theta == pytest.approx(numpy.eye(size), abs=1e-8)
    assert between @ theta == pytest.approx(within @ theta * ours.values_, abs=1e-8)
    assert ours.values_ == pytest.approx(
        linalg.eigh(between, within, eigvals_only=True)[::-1][:size], abs=1e-8
    )


def test_gcca_recovers_a_planted_signal():
    """Noise that is stronger than the signal, and of each view alone, fools SVD and not GCCA."""
    rng = numpy.random.default_rng(5)
    signal = rng.normal(size=(2000, 1))
    views = []
    for width in (6, 5, 4):
        noise = rng.normal(size=(2000, 1)) @ rng.normal(size=(1, width)) * 3
        views.append(
            signal @ rng.normal(size=(1, width)) + noise + 0.1 * rng.normal(size=(2000, width))
        )
    for method, low, high in ((GCCA, 0.99, 1.0), (SVD, 0.0, 0.9)):
        found = method(size=1, normalize=False, **({"tau": 1e-3} if method is GCCA else {})).fit(
            views
        )
        correlation = abs(numpy.corrcoef(found.transform(views)[:, 0], signal[:, 0])[0, 1])
        assert low <= correlation <= high


def test_streamed_moments_are_those_of_all_rows():
    rows = (RNG.normal(size=(50_000, 24)) @ RNG.normal(size=(24, 24)) + 100.0).astype("float32")
    moments = Moments(24)
    start = 0
    for size in [1, 7, 4096, 12_345, 3, 0, 50_000]:
        moments.update(rows[start : start + size])
        start += size
    exact = rows.astype("float64")
    assert moments.n == 50_000
    assert moments.mean == pytest.approx(exact.mean(axis=0), rel=1e-10, abs=1e-10)
    assert moments.covariance == pytest.approx(numpy.cov(exact.T), rel=1e-10, abs=1e-10)


def test_fitting_from_the_disk_is_the_same(tmp_path):
    views = make_views(n=5000)
    mapped = []
    for i, view in enumerate(views):
        numpy.save(tmp_path / f"{i}.npy", view)
        mapped.append(numpy.load(tmp_path / f"{i}.npy", mmap_mode="r"))
    for method in FITTED:
        settings = {"epochs": 2, "batch_size": 3000} if method == "ae" else {}
        one, two = (
            small(method, **settings).fit(given).transform(views) for given in (views, mapped)
        )
        assert numpy.array_equal(one, two)


@pytest.mark.parametrize("method", METHODS)
def test_bytes_keep_everything(method):
    views = make_views()
    fitted = small(method, **({"epochs": 2, "hidden_layers": 1} if method == "ae" else {})).fit(
        views, ["a", "b", "c"]
    )
    again = estimator_from_bytes(fitted.to_bytes())
    assert (again.settings, again.names_, again.widths_) == (
        fitted.settings,
        ("a", "b", "c"),
        (7, 5, 4),
    )
    assert numpy.array_equal(again.transform(views), fitted.transform(views))
    assert again.width == fitted.width == fitted.transform(views).shape[1]
    unfitted = estimator_from_bytes(small(method).to_bytes())
    assert unfitted.is_fitted == (method in ("conc", "avg"))
    with pytest.raises(ValueError, match="not a saved meta-embedding"):
        estimator_from_bytes(add_checksum(srsly.msgpack_dumps([1])))


@pytest.mark.parametrize("method", METHODS)
def test_views_that_cannot_be_fitted(method):
    views = make_views()
    with pytest.raises(ValueError, match="at least two members, given: only"):
        small(method).fit(views[:1], ["only"])
    with pytest.raises(ValueError, match="no sentence to fit"):
        small(method).fit([view[:0] for view in views])
    views[1][170, 2] = numpy.nan
    with pytest.raises(ValueError, match=r"member 'b' .* not finite in the vector of sentence 170"):
        small(method).fit(views, ["a", "b", "c"])
    estimator = small(method, **({"epochs": 1} if method == "ae" else {})).fit(
        make_views(), ["a", "b", "c"]
    )
    with pytest.raises(ValueError, match=r"member 'b' .* not finite"):
        estimator.transform(views)


def test_wrong_views_are_errors():
    views = make_views()
    with pytest.raises(ValueError, match="has not been fitted"):
        SVD().transform(views)
    ours = SVD(size=3).fit(views, ["a", "b", "c"])
    with pytest.raises(
        ValueError, match=r"widths \[5, 7, 4\], but .* fitted on {'a': 7, 'b': 5, 'c': 4}"
    ):
        ours.transform([views[1], views[0], views[2]])
    with pytest.raises(ValueError, match=r"'b' .* 299 vectors, 'a' has 300"):
        SVD(size=3).fit([views[0], views[1][1:], views[2]], ["a", "b", "c"])
    views[2][:] = [1.0, 2.0, 3.0, 4.0]
    for method in ("svd", "gcca"):
        with pytest.raises(ValueError, match=r"member 'c' .* the same vector"):
            small(method).fit(views, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("mean", {}, "Unknown method 'mean' .* conc, avg, svd, gcca, ae"),
        ("svd", {"tau": 1.0}, "'svd' has no setting tau: expected some of size, normalize"),
        ("conc", {"size": 4}, "size = 4, but the width of the method 'conc'"),
    ],
)
def test_bad_settings(method, settings, message):
    with pytest.raises(ValueError, match=message):
        make_estimator(method, **settings)


# Widths: what there is to have, and a remedy where more is asked for


def deficient():
    """Views 7 and 5 wide of 4 and 5 directions."""
    views = make_views()[:2]
    views[0] = (
        (views[0][:, :4] @ numpy.random.default_rng(0).normal(size=(4, 7)))
        .astype("f4")
        .astype("f8")
    )
    # exactly, whatever the rounding
    views[0][:, 4:] = views[0][:, :3]
    return views


def test_the_default_is_what_there_is_and_is_saved():
    views = deficient()
    for estimator, given in (
        (GCCA(normalize=False), views),
        (SVD(normalize=False), views),
        (GCCA(), make_views()[:2]),
    ):
        fitted = estimator.fit(given)
        assert fitted.width == fitted.size_ == 7
        assert fitted.size is None
        assert fitted.transform(views).shape == (300, 7)
        again = estimator_from_bytes(fitted.to_bytes())
        assert again.width == 7
        assert again.size is None
        assert numpy.array_equal(again.transform(views), fitted.transform(views))
    for kind in (SVD, GCCA):
        # Of 4 sentences, about their mean
        assert kind().fit([view[:4] for view in make_views()]).width == 3
    assert CrossViewAutoencoder(epochs=1).fit([view[:4] for view in make_views()]).width == 7


def test_the_remedies_of_messages_work():
    views = deficient()
    with pytest.raises(ValueError, match=r"size = 10: .* only 9 directions"):
        SVD(size=10, normalize=False).fit(views, ["a", "b"])
    assert SVD(size=9, normalize=False).fit(views).width == 9
    with pytest.raises(ValueError, match=r"tau = 0.0: .* 4 directions, of the 7"):
        GCCA(tau=0.0, normalize=False).fit(views, ["a", "b"])
    assert GCCA(tau=0.1, normalize=False).fit(views).width == 7
    with pytest.raises(ValueError, match=r"Set normalize = true"):
        SVD(size=3, normalize=False).fit([view.astype("f8") * 1e200 for view in views])


@pytest.mark.parametrize("normalize", [False, True])
def test_gcca_takes_the_largest_rho_whatever_their_sign(normalize):
    views = [rows[:, :width] for rows, width in zip(make_views(widths=(7, 7)), (7, 4), strict=True)]
    whole = GCCA(size=11, normalize=normalize).fit(views)
    # 4 pairs of canonical correlations
    assert whole.values_ == pytest.approx(-whole.values_[::-1], abs=1e-12)
    assert (whole.values_[:4] > 1e-4).all()
    assert whole.values_[4:7] == pytest.approx(numpy.zeros(3), abs=1e-12)
    for size in (4, 7, 9):
        narrow = GCCA(size=size, normalize=normalize).fit(views)
        assert narrow.values_ == pytest.approx(whole.values_[:size], abs=1e-12)
        assert (len(list(narrow.notes("it"))) > 0) == (size > 4)
    with pytest.raises(ValueError, match=r"size = 12: .* only 11 directions"):
        GCCA(size=12).fit(views)


# Cross-view autoencoders

X = torch.tensor([[3.0, 4.0], [1.0, 0.0]])
Y = torch.tensor([[1.0, 4.0], [0.0, -1.0]])
KL = (
    sum((y * (y / x).log()).sum() for x, y in zip(X.softmax(dim=1), Y.softmax(dim=1), strict=True))
    / 2
)
BY_HAND = {
    "mse": 6 / 4,
    "mae": 4 / 4,
    "cosine": ((1 - 19 / (5 * 17**0.5)) ** 2 + 1) / 2,
    "kld": float(KL),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_by_hand(loss):
    assert float(LOSSES[loss](X, Y)) == pytest.approx(BY_HAND[loss], rel=1e-5)
    assert float(LOSSES[loss](X, X)) == pytest.approx(0, abs=1e-7)


def two_views(n):
    return [
        torch.from_numpy(view[:n, :width].astype("f8"))
        for view, width in zip(make_views(), (4, 3), strict=False)
    ]


@pytest.mark.parametrize("hidden_layers", LAYERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients(loss, hidden_layers):
    torch.manual_seed(3)
    network = _CrossViewNetwork([4, 3], 3, hidden_layers).double()
    views = two_views(6)
    # Which are changed in their places
    parameters = tuple(network.parameters())
    assert torch.autograd.gradcheck(
        lambda *_: network.loss(views, loss), parameters, eps=1e-5, rtol=1e-6, atol=1e-8
    )


def test_the_loss_is_over_all_pairs_of_members_and_the_code_is_the_sum():
    torch.manual_seed(4)
    network = _CrossViewNetwork([4, 3], 2, 1).double()
    views = two_views(5)
    codes = [network.encoders[j](views[j]) for j in range(2)]
    expected = sum(
        ((network.decoders[k](codes[j]) - views[k]) ** 2).mean() for j in range(2) for k in range(2)
    )
    assert float(network.loss(views, "mse").detach()) == pytest.approx(
        float(expected.detach()), rel=1e-12
    )
    assert torch.equal(network(views), codes[0] + codes[1])


@pytest.mark.parametrize(
    ("loss", "hidden_layers"), [("mse", 0), ("mae", 1), ("kld", 2), ("cosine", 0)]
)
def test_training_trains(loss, hidden_layers):
    settings = {
        "size": 5,
        "hidden_layers": hidden_layers,
        "loss": loss,
        "epochs": 40,
        "learn_rate": 0.02,
    }
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
    one, same, other = (
        CrossViewAutoencoder(size=4, epochs=3, batch_size=64, seed=s).fit(views) for s in (1, 1, 2)
    )
    assert torch.equal(before, torch.random.get_rng_state())
    assert numpy.array_equal(one.transform(views), same.transform(views))
    assert not numpy.allclose(one.transform(views), other.transform(views))
    with pytest.raises(ValueError, match="not finite in epoch 1"):
        CrossViewAutoencoder(size=3, epochs=2, normalize=False).fit([1e20 * view for view in views])


def test_a_linear_autoencoder_finds_what_the_views_share():
    """Without hidden layers and with enough directions, each view is predicted as well as by least
    squares.
    """
    views = make_views(n=200)
    settings = {
        "size": 16,
        "epochs": 250,
        "learn_rate": 0.05,
        "batch_size": 200,
        "dtype": "float64",
    }
    fitted = CrossViewAutoencoder(**settings, normalize=False).fit(views)
    rows = [numpy.column_stack([view.astype("f8"), numpy.ones(200)]) for view in views]
    residuals = [
        y[:, :-1] - x @ numpy.linalg.lstsq(x, y[:, :-1], rcond=None)[0] for x in rows for y in rows
    ]
    best = sum(float((residual**2).mean()) for residual in residuals)
    assert best <= fitted.losses_[-1] < 1.02 * best
