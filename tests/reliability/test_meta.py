"""Meta-embeddings of members of odd ranks: right, or refused with a remedy that is tried here."""

import itertools
import re

import numpy
import pytest
from helpers.counted_cases import parts
from helpers.made_views import unit
from helpers.pipelines import no_warnings
from scipy import linalg

from spacy_sbert.meta import GCCA, SVD, Average, Concatenation, CrossViewAutoencoder
from spacy_sbert.meta.methods import estimator_from_bytes

PROMISE = "a meta-embedding of members of any rank is right, or refused with a remedy that works"
TAUS = (0.0, 1e-13, 1e-6, 0.1, 10.0, 1e6)


def made_member(rng, n, shared, views):
    """float64 (n, 1 to 9): one of many kinds of member."""
    width = int(rng.choice([1, 2, 3, 5, 9]))
    plain = (
        shared @ rng.normal(size=(3, width))
        + 0.3 * rng.normal(size=(n, width))
        + rng.normal(size=width)
    )
    kinds = [
        "plain",
        "plain",
        "twin",
        "multiple",
        "constant numbers",
        "few directions",
        "few texts",
        "zeros",
    ]
    kind = rng.choice(kinds)
    if kind == "twin" and views:
        return views[0].copy()
    if kind == "multiple" and views:
        # Exact
        return 4.0 * views[-1]
    if kind == "constant numbers":
        plain[:, : rng.integers(1, width + 1)] = rng.normal()
    if kind == "few directions" and width > 2:
        plain[:, 2:] = plain[:, :1]
    if kind == "few texts":
        plain = plain[rng.integers(2, size=n)]
    if kind == "zeros":
        plain[:: rng.integers(2, 5)] = 0.0
    return plain


def made_members(rng):
    n = int(rng.choice([2, 3, 6, 40, 200]))
    shared = rng.normal(size=(n, 3))
    views = []
    for _ in range(int(rng.integers(2, 5))):
        views.append(made_member(rng, n, shared, views))
    return views


def centred(views, normalize):
    rows = [unit(view) if normalize else view for view in views]
    return [view - view.mean(axis=0) for view in rows]


def judge_svd(fitted, views, normalize):
    """Which of its facts do not hold."""
    rows = numpy.hstack(centred(views, normalize))
    values = linalg.svdvals(rows) / max(len(rows) - 1, 1) ** 0.5
    rank = int((values > 1e-6 * values[0]).sum())
    C = fitted.components_
    found = fitted.transform(views)
    return {
        "width": fitted.width == (fitted.size or min(max(fitted.widths_), rank)),
        "values": numpy.allclose(fitted.values_, values[: fitted.width], atol=1e-7 * values[0]),
        "orthonormal": numpy.allclose(C @ C.T, numpy.eye(fitted.width), atol=1e-9),
        "variances": numpy.allclose(
            found.std(axis=0, ddof=1), fitted.values_, atol=1e-7 * values[0]
        ),
    }


def judge_gcca(fitted, views, normalize):
    """As eigenvectors in bases of the members' own directions, in which nothing is singular;
    elsewhere rho is 0.
    """
    rows = centred(views, normalize)
    n = len(views[0])
    bases = []
    ridges = []
    for view in rows:
        _, values, directions = linalg.svd(view, full_matrices=False)
        kept = values > 1e-6 * values[0]
        bases.append(directions[kept])
        ridges.append(fitted.tau * (values**2).sum() / (n - 1) / view.shape[1])
    reduced = [view @ basis.T for view, basis in zip(rows, bases, strict=True)]
    covariance = numpy.atleast_2d(numpy.cov(numpy.hstack(reduced).T))
    within = linalg.block_diag(*(numpy.atleast_2d(numpy.cov(view.T)) for view in reduced))
    ridge = numpy.concatenate(
        [numpy.full(len(basis), r) for basis, r in zip(bases, ridges, strict=True)]
    )
    rho = linalg.eigvalsh(covariance - within, within + numpy.diag(ridge))[::-1]
    total = sum(fitted.widths_)
    rho = numpy.sort(numpy.concatenate([rho, numpy.zeros(total - len(rho))]))[::-1]
    whole = numpy.cov(numpy.hstack(rows).T)
    blocks = linalg.block_diag(*(numpy.atleast_2d(numpy.cov(view.T)) for view in rows))
    ridge = numpy.concatenate(
        [numpy.full(view.shape[1], r) for view, r in zip(rows, ridges, strict=True)]
    )
    B = blocks + numpy.diag(ridge)
    theta = fitted.components_.T
    left = (whole - blocks) @ theta
    right = B @ theta * fitted.values_
    return {
        "width": fitted.width == (fitted.size or min(max(fitted.widths_), n - 1)),
        "values": numpy.allclose(
            fitted.values_, rho[: fitted.width], rtol=1e-4, atol=1e-5 * abs(rho).max()
        ),
        "constraint": numpy.allclose(theta.T @ B @ theta, numpy.eye(fitted.width), atol=1e-4),
        "equation": numpy.allclose(left, right, atol=1e-5 * max(abs(left).max(), abs(right).max())),
        "order": bool((numpy.diff(fitted.values_) <= 0).all() and fitted.values_[0] > 0),
    }


def facts_of(fitted, views, normalize):
    found = fitted.transform(views)
    again = estimator_from_bytes(fitted.to_bytes())
    facts = {
        "finite": numpy.isfinite(found).all(),
        "shape": found.shape == (len(views[0]), fitted.width) and fitted.width > 0,
        "saved": again.width == fitted.width and numpy.array_equal(again.transform(views), found),
    }
    if isinstance(fitted, SVD):
        return {**facts, **judge_svd(fitted, views, normalize)}
    if isinstance(fitted, GCCA):
        return {**facts, **judge_gcca(fitted, views, normalize)}
    return {**facts, "width": fitted.width == (fitted.size or max(fitted.widths_))}


def remedies(message, make, settings, views, names):
    """What a message says to do, as (estimator, views, names); none if it is not known."""
    default = make(**{**settings, "size": None})
    if "no direction to give by the method" in message and "Use the method svd" in message:
        return [(SVD(normalize=settings["normalize"]), views, names)]
    if found := re.search(
        r"have only (\d+) directions to give .* Set size to at most that, or leave it out", message
    ):
        return [
            (make(**{**settings, "size": int(found[1])}), views, names),
            (default, views, names),
        ]
    if "cannot be inverted with tau" in message and "such as 0.1" in message:
        return [(make(**{**settings, "tau": 0.1, "size": None}), views, names)]
    if found := re.search(
        r"member '(\d)' .* the same vector .* Take it out, or fit on sentences", message
    ):
        rng = numpy.random.default_rng(0)
        changed = [
            (
                default,
                [numpy.vstack([view, rng.normal(size=(20, view.shape[1]))]) for view in views],
                names,
            )
        ]
        rest = [i for i, name in enumerate(names) if name != found[1]]
        without = (
            [(default, [views[i] for i in rest], [names[i] for i in rest])] if len(rest) > 1 else []
        )
        return changed + without
    return []


def judge(cases, what, make, settings, views):
    """One case: right, or refused with a remedy that works; what check_size refuses, fit refuses,
    too.
    """
    names = [str(i) for i in range(len(views))]
    widths = [view.shape[1] for view in views]
    estimator = make(**settings)
    early = None
    try:
        estimator.check_size(widths, len(views[0]))
    except ValueError as error:
        early = str(error)
    try:
        with no_warnings():
            facts = facts_of(estimator.fit(views, names), views, settings["normalize"])
    except ValueError as error:
        judge_refusal(cases, what, str(error), make, settings, views, names)
        return
    except Exception as error:
        # The case is judged, not the test ended
        cases.wrong(f"{what}: {type(error).__name__}: {error}")
        return
    wrong = [name for name, holds in facts.items() if not holds]
    cases.check(not wrong and early is None, f"{what}: not {', '.join(wrong) or early}")


def judge_refusal(cases, what, message, make, settings, views, names):
    tried = remedies(message, make, settings, views, names)
    if not tried:
        cases.wrong(f"{what}: {message}")
        return
    for other, given, called in tried:
        try:
            other.fit(given, called)
        except ValueError as error:
            # the next member may have the same fault, which then is named with a remedy of its own
            if not remedies(str(error), make, settings, given, called) or str(error) == message:
                cases.wrong(f"{what}: {message} The remedy: {error}")
                return
    cases.refused()


@pytest.fixture(params=parts(80))
def rng(request):
    return numpy.random.default_rng(request.param)


def test_meta_embeddings(counted, rng):
    with counted(PROMISE) as cases:
        for number in range(3):
            views = made_members(rng)
            widths = [view.shape[1] for view in views]
            n = len(views[0])
            sizes = {
                None,
                1,
                max(widths),
                min(sum(widths), n - 1) or 1,
                sum(widths),
                sum(widths) + 1,
            }
            for normalize, size in itertools.product((True, False), sorted(sizes, key=str)):
                settings = {"normalize": normalize, "size": size}
                what = f"{number}, {n} sentences, widths {widths}, {settings}"
                judge(cases, f"svd, {what}", SVD, settings, views)
                for tau in TAUS:
                    judge(cases, f"gcca, tau {tau}, {what}", GCCA, {**settings, "tau": tau}, views)
            settings = {"normalize": True, "size": None, "epochs": 2, "seed": number}
            for hidden, size in ((0, None), (1, 4), (2, sum(widths) + 1)):
                given = {**settings, "hidden_layers": hidden, "size": size}
                judge(cases, f"ae, {number}, {given}", CrossViewAutoencoder, given, views)


@pytest.mark.parametrize("rng", parts(40), indirect=True)
def test_numbers_of_any_size(counted, rng):
    """What is brought to unit length does not depend on how long it was, in float32 and float64."""
    both = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 10)) + 0.1 * rng.normal(size=(60, 10))
    views = [both[:, :4], both[:, 4:]]
    methods = (
        SVD(size=3),
        GCCA(size=3),
        Average(),
        Concatenation(),
        CrossViewAutoencoder(size=3, epochs=2),
    )
    with counted(PROMISE) as cases:
        for estimator in methods:
            expected = estimator.fit(views).transform(views)
            for power, dtype in ((-120, "f4"), (60, "f4"), (110, "f4"), (-900, "f8"), (900, "f8")):
                scaled = [
                    (view.astype("f4").astype("f8") * 2.0**power).astype(dtype) for view in views
                ]
                found = estimator.fit(scaled).transform(scaled)
                near = numpy.isfinite(found).all() and numpy.allclose(found, expected, atol=1e-5)
                cases.check(near, f"{estimator.method} at 2**{power} in {dtype}")
