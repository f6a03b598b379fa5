"""SVD, GCCA, concatenation and average: values by hand, identities, parity with scikit-learn and classical CCA."""

import numpy
import pytest
import srsly
from made_views import make_views, unit
from scipy import linalg

from spacy_sbert.files.serialization import add_checksum
from spacy_sbert.meta import GCCA, SVD, Average, Concatenation, Moments
from spacy_sbert.meta.methods import METHODS, estimator_from_bytes, make_estimator

RNG = numpy.random.default_rng(1)
FITTED = ("svd", "gcca", "ae")


def joined(views):
    return numpy.hstack([unit(view) for view in views])


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
    views, other = make_views(), make_views(seed=3)
    rows = joined(views) if normalize else numpy.hstack(views).astype("float64")
    pca = decomposition.PCA(size, svd_solver="full").fit(rows)
    ours = SVD(size=size, normalize=normalize).fit(views)
    signs = numpy.sign((ours.components_ * pca.components_).sum(axis=1))
    assert ours.components_ == pytest.approx(pca.components_ * signs[:, None], abs=1e-6)
    assert ours.values_ == pytest.approx(pca.singular_values_ / (len(rows) - 1) ** 0.5, abs=1e-9)
    given = joined(other) if normalize else numpy.hstack(other).astype("float64")
    assert ours.transform(other) == pytest.approx(pca.transform(given) * signs, abs=1e-6)


def test_gcca_of_two_views_is_classical_cca():
    views = make_views(widths=(6, 4))
    ours = GCCA(size=4, tau=0.0, normalize=False).fit(views)
    x, y = (view - view.mean(axis=0) for view in (views[0].astype("f8"), views[1].astype("f8")))
    (qx, rx), (qy, ry) = linalg.qr(x, mode="economic"), linalg.qr(y, mode="economic")
    left, correlations, right = linalg.svd(qx.T @ qy)
    a, b = linalg.solve_triangular(rx, left[:, :4]), linalg.solve_triangular(ry, right.T[:, :4])
    assert ours.values_ == pytest.approx(correlations, abs=1e-10)
    for classical, part in ((a, ours.components_[:, :6]), (b, ours.components_[:, 6:])):
        classical, found = classical / linalg.norm(classical, axis=0), part.T / linalg.norm(part.T, axis=0)
        assert abs((classical * found).sum(axis=0)) == pytest.approx(numpy.ones(4), abs=1e-8)
    projected = x @ ours.components_[:, :6].T, y @ ours.components_[:, 6:].T
    for i in range(4):
        assert numpy.corrcoef(projected[0][:, i], projected[1][:, i])[0, 1] == pytest.approx(correlations[i], abs=1e-8)


@pytest.mark.parametrize(("size", "tau"), [(5, 0.0), (16, 0.01), (5, 1.0), (16, 100.0)])
@pytest.mark.parametrize("normalize", [True, False])
def test_gcca_satisfies_constraint_and_eigen_equation(tau, normalize, size):
    views = make_views()
    ours = GCCA(size=size, tau=tau, normalize=normalize).fit(views)
    rows = joined(views) if normalize else numpy.hstack(views).astype("float64")
    covariance = numpy.cov(rows.T)
    widths = [view.shape[1] for view in views]
    within = linalg.block_diag(*(numpy.cov(part.T) for part in numpy.split(rows, numpy.cumsum(widths)[:-1], axis=1)))
    between = covariance - within
    ridge = [numpy.full(width, tau * numpy.trace(covariance[i : i + width, i : i + width]) / width)
             for i, width in zip(numpy.cumsum(widths) - widths, widths, strict=True)]  # fmt: skip
    within += numpy.diag(numpy.concatenate(ridge))
    theta = ours.components_.T
    assert theta.T @ within @ theta == pytest.approx(numpy.eye(size), abs=1e-8)
    assert between @ theta == pytest.approx(within @ theta * ours.values_, abs=1e-8)
    assert ours.values_ == pytest.approx(linalg.eigh(between, within, eigvals_only=True)[::-1][:size], abs=1e-8)


def test_gcca_recovers_a_planted_signal():
    """Noise that is stronger than the signal, and of each view alone, fools SVD and not GCCA."""
    rng = numpy.random.default_rng(5)
    signal = rng.normal(size=(2000, 1))
    views = []
    for width in (6, 5, 4):
        noise = rng.normal(size=(2000, 1)) @ rng.normal(size=(1, width)) * 3
        views.append(signal @ rng.normal(size=(1, width)) + noise + 0.1 * rng.normal(size=(2000, width)))
    for method, low, high in ((GCCA, 0.99, 1.0), (SVD, 0.0, 0.9)):
        found = method(size=1, normalize=False, **({"tau": 1e-3} if method is GCCA else {})).fit(views)
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
        one, two = (small(method, **settings).fit(given).transform(views) for given in (views, mapped))
        assert numpy.array_equal(one, two)


@pytest.mark.parametrize("method", METHODS)
def test_bytes_keep_everything(method):
    views = make_views()
    fitted = small(method, **({"epochs": 2, "hidden_layers": 1} if method == "ae" else {})).fit(views, ["a", "b", "c"])
    again = estimator_from_bytes(fitted.to_bytes())
    assert (again.settings, again.names_, again.widths_) == (fitted.settings, ("a", "b", "c"), (7, 5, 4))
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
    estimator = small(method, **({"epochs": 1} if method == "ae" else {})).fit(make_views(), ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"member 'b' .* not finite"):
        estimator.transform(views)


def test_wrong_views_are_errors():
    views = make_views()
    with pytest.raises(ValueError, match="has not been fitted"):
        SVD().transform(views)
    ours = SVD(size=3).fit(views, ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"widths \[5, 7, 4\], but .* fitted on {'a': 7, 'b': 5, 'c': 4}"):
        ours.transform([views[1], views[0], views[2]])
    with pytest.raises(ValueError, match="'b' of a meta-embedding has 299 vectors, 'a' has 300"):
        SVD(size=3).fit([views[0], views[1][1:], views[2]], ["a", "b", "c"])
    views[2][:] = [1.0, 2.0, 3.0, 4.0]
    for method in ("svd", "gcca"):
        with pytest.raises(ValueError, match=r"member 'c' .* the same vector for all 300 sentences"):
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
