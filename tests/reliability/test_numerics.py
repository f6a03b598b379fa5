"""Extreme numbers through all that is computed of vectors: no NaN, no warning, and what float64 or
more digits give.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy
import pytest
from helpers.counted_cases import parts
from helpers.made_views import unit
from helpers.pipelines import no_warnings
from scipy import special
from thinc.types import Ragged

from spacy_sbert import similarity
from spacy_sbert.losses import _common as distances
from spacy_sbert.losses._common import cross_entropy, log_sum_exp, softmax
from spacy_sbert.losses.contrastive import (
    BatchHardTripletLoss,
    ContrastiveLoss,
    OnlineContrastiveLoss,
    TripletLoss,
)
from spacy_sbert.losses.distillation import DistillationLoss, ProjectedDistillationLoss
from spacy_sbert.losses.ranking import (
    CachedMultipleNegativesRankingLoss,
    MultipleNegativesRankingLoss,
)
from spacy_sbert.losses.similarity import AnglELoss, CoSENTLoss, CosineSimilarityLoss, _rank_pairs
from spacy_sbert.losses.softmax import SoftmaxLoss
from spacy_sbert.losses.wrappers import MatryoshkaLoss
from spacy_sbert.models.heads import ACTIVATIONS, Dense, normalization
from spacy_sbert.models.poolings import make_pooling
from spacy_sbert.reranker.objectives import (
    binary_cross_entropy,
    label_cross_entropy,
    mean_squared_error,
)

PROMISE = "numbers of any size give no NaN and no overflow, but what float64 gives"
WIDTH = 6
EPS = float(numpy.finfo("float32").eps)
# of float32: squares of the outer ones are no numbers, and the first is none of full precision
# either
SCALES = (1e-40, 1e-36, 1e-30, 1e-20, 1e-10, 1.0, 1e4, 1e10, 1e18, 1e25, 1e30, 1e36)


@pytest.fixture(params=parts(20))
def rng(request):
    return numpy.random.default_rng(request.param)


def judged(cases, what, compute, expected, tolerance):
    """A case: what `compute` gives is finite, within the tolerance of what is expected, and NumPy
    does not warn.
    """
    try:
        with no_warnings():
            found = numpy.asarray(compute(), dtype="float64")
    except Exception as error:
        # The case is judged, not the test ended
        cases.wrong(f"{what}: {type(error).__name__}: {error}")
        return
    expected = numpy.asarray(expected, dtype="float64")
    near = found.shape == expected.shape and bool((abs(found - expected) <= tolerance).all())
    cases.check(
        numpy.isfinite(found).all() and near,
        f"{what}: {found.ravel()[:6]} is not {expected.ravel()[:6]}",
    )


def drawn(rng, n, scales=SCALES):
    """float32 (n, WIDTH): rows of any size, some with numbers of all sizes, some zero."""
    rows = rng.normal(size=(n, WIDTH)) * rng.choice(scales, size=(n, 1))
    mixed = rng.random(n) < 0.2
    rows[mixed] = (rng.normal(size=(n, WIDTH)) * rng.choice(scales, size=(n, WIDTH)))[mixed]
    rows[rng.random(n) < 0.05] = 0
    return rows.astype("float32")


def test_similarity(counted, rng):
    u, v = drawn(rng, 150), drawn(rng, 150)
    v[::3] = u[::3]
    with counted(PROMISE) as cases:
        for i in range(len(u)):
            one, other = u[i : i + 1], v[i : i + 1]
            wide = one.astype("float64") - other.astype("float64")
            exact, cos = unit(one), (unit(one) * unit(other)).sum(axis=1)
            euclidean, manhattan = numpy.sqrt((wide**2).sum(axis=1)), abs(wide).sum(axis=1)
            for name, compute, expected, near in (
                ("cosine", partial(similarity.cosine, one, other), cos, 8 * EPS),
                ("length", partial(similarity.unit_length, one), exact, 4 * EPS),
                ("layer", partial(normalization().predict, one), exact, 4 * EPS),
                (
                    "euclidean",
                    partial(similarity.euclidean, one, other),
                    euclidean,
                    8 * EPS * euclidean + 1e-44,
                ),
                (
                    "manhattan",
                    partial(similarity.manhattan, one, other),
                    manhattan,
                    8 * EPS * manhattan + 1e-44,
                ),
            ):
                judged(cases, f"{name} of {one} and {other}", compute, expected, near)


def test_poolings(counted, rng):
    with counted(PROMISE) as cases:
        for length in (1, 2, 17, 60):
            states = drawn(rng, length)
            wide, w = states.astype("float64"), numpy.arange(1, length + 1)[:, None]
            by_hand = {
                "mean": wide.mean(axis=0),
                "max": wide.max(axis=0),
                "cls": wide[0],
                "lasttoken": wide[-1],
                "mean_sqrt_len": wide.sum(axis=0) / length**0.5,
                "weightedmean": (w * wide).sum(axis=0) / w.sum(),
            }
            ragged = Ragged(states, numpy.array([length], dtype="i"))
            near = 8 * EPS * abs(wide).sum(axis=0) + 1e-44
            for name, expected in by_hand.items():
                pool = partial(make_pooling(name).predict, ragged)
                judged(cases, f"{name} of {length}", lambda p=pool: p()[0], expected, near)


def test_activations(counted, rng):
    right = {
        "identity": (lambda x: x, numpy.ones_like),
        "tanh": (numpy.tanh, lambda x: 1 - numpy.tanh(x) ** 2),
        "relu": (lambda x: numpy.maximum(x, 0), lambda x: (x > 0) * 1.0),
        "sigmoid": (special.expit, lambda x: special.expit(x) * special.expit(-x)),
    }
    with counted(PROMISE) as cases:
        for name in ACTIVATIONS:
            for scale in (1e-30, 1e-4, 1.0, 30.0, 100.0, 1000.0, 1e10, 1e30):
                for dtype in ("float32", "float64"):
                    x = (rng.normal(size=(8, 3)) * scale).astype(dtype)
                    layer = Dense(3, 3, activation=name, bias=False)
                    layer.set_param("W", numpy.eye(3, dtype=dtype))
                    value, slope = (of(x.astype("float64")) for of in right[name])
                    eps = float(numpy.finfo(dtype).eps)
                    what, near = f"{name} at {scale} in {dtype}", 8 * eps * abs(value) + 1e-37
                    judged(cases, what, lambda x=x, model=layer: model.predict(x), value, near)

                    def gradient(x=x, model=layer, dtype=dtype):
                        return model.begin_update(x)[1](numpy.ones((8, 3), dtype=dtype))

                    judged(cases, f"slope of {what}", gradient, slope, 8 * eps)


def test_scores(counted, rng):
    """Exponentials of scores; what a score has lost by its own rounding, eps of it, is no fault."""
    with counted(PROMISE) as cases:
        for scale in (0.0, 1e-30, 1e-3, 1.0, 20.0, 100.0, 1e3, 1e4, 1e10, 1e37):
            scores = (rng.normal(size=(7, 5)) * scale).astype("float32")
            targets, wide = rng.integers(5, size=7), scores.astype("float64")
            near = 8 * EPS * (1 + abs(wide).max())
            total, shares = (
                special.logsumexp(wide, axis=1, keepdims=True),
                special.softmax(wide, axis=1),
            )
            losses, slopes = total[:, 0] - wide[range(7), targets], shares - numpy.eye(5)[targets]
            gold = rng.random(7).astype("float32")
            first = scores[:, :1]
            binary = (numpy.logaddexp(0, wide[:, 0]) - gold * wide[:, 0]).mean()
            binary_slope = (special.expit(wide[:, :1]) - gold[:, None]) / 7
            squared, squared_slope = (
                ((wide[:, 0] - gold) ** 2).mean(),
                2 * (wide[:, :1] - gold[:, None]) / 7,
            )
            excess = [
                20 * (wide[j, 0] - wide[i, 0])
                for i in range(7)
                for j in range(7)
                if gold[i] > gold[j]
            ]
            ranks = special.logsumexp([0, *excess])
            # What is computed, what of it, what it should be, and how near
            judgements = [
                (partial(cross_entropy, scores, targets), 0, losses, near),
                (partial(cross_entropy, scores, targets), 1, slopes, near),
                (partial(log_sum_exp, scores), ..., total, near),
                (partial(softmax, scores), ..., shares, near),
                (partial(label_cross_entropy, scores, targets), 0, losses.mean(), near),
                (partial(binary_cross_entropy, first, gold), 0, binary, near),
                (partial(binary_cross_entropy, first, gold), 1, binary_slope, EPS),
                (partial(mean_squared_error, first, gold), 0, squared, 8 * EPS * (1 + squared)),
                (partial(mean_squared_error, first, gold), 1, squared_slope, near),
                (partial(_rank_pairs, None, scores[:, 0], gold, scale=20.0), 0, ranks, 20 * near),
            ]
            # Of cosines, which are never so large
            if scale > 1e30:
                judgements.pop()
            for compute, part_of, expected, tolerance in judgements:
                what = f"{compute.func.__name__}[{part_of}], scores of {scale}"
                judged(cases, what, lambda f=compute, at=part_of: f()[at], expected, tolerance)


class Kind(NamedTuple):
    """A loss to judge: of so many members, with these gold values.

    degree (int): its value grows with this power of the size of the vectors, from size 1 on.
    steep (float): its largest derivative by a cosine, a distance or a score, or more: what their
        rounding counts.
    sizes: of the vectors, those at which value and gradient are float32 numbers.
    """

    loss: Any
    n_members: int
    gold: Any
    degree: int = 0
    steep: float = 100.0
    sizes: tuple[float, ...] = (1e-40, 1e-30, 1e-15, 1.0, 1e15, 1e30)

    def tolerances(self, size):
        """Of the value and of the gradient."""
        if not self.degree:
            return EPS * self.steep, EPS * self.steep / size
        grown = max(size, 1.0) ** self.degree
        return EPS * self.steep * grown, EPS * self.steep * max(size, 1.0) ** (self.degree - 1)


LABELS = ["a", "a", "b", "b", "c"]
SCORES = numpy.array([0.1, 0.9, 0.5, 0.5, 1.0], dtype="float32")
BINARY = numpy.array([1, 0, 1, 0, 1], dtype="float32")
TEXTS = [[f"{role} {i}" for i in range(5)] for role in "apn"]
SQUARES = (1e-30, 1e-15, 1.0, 1e10, 1e18, 1e30)
PRODUCTS = (1e-40, 1e-30, 1e-15, 1e-3, 1.0, 1e3)


def losses():
    found = {
        "CosineSimilarity": Kind(CosineSimilarityLoss(), 2, SCORES),
        "CoSENT": Kind(CoSENTLoss(), 2, SCORES, steep=1e4),
        "CoSENT, sharp": Kind(CoSENTLoss(scale=1e4), 2, SCORES, steep=1e9),
        "AnglE": Kind(AnglELoss(), 2, SCORES, steep=1e4),
        "AnglE, sharp": Kind(AnglELoss(scale=1e4), 2, SCORES, steep=1e9),
        "Distillation": Kind(DistillationLoss(), 2, "vectors", 2, sizes=SQUARES),
        "ProjectedDistillation": Kind(
            ProjectedDistillationLoss(), 1, "vectors", 2, sizes=SQUARES[:-1]
        ),
        "Matryoshka": Kind(MatryoshkaLoss(CosineSimilarityLoss(), [2, 6]), 2, SCORES),
        "Softmax": Kind(SoftmaxLoss(), 2, LABELS, 1, sizes=(*PRODUCTS, 1e10)),
        "Softmax of products": Kind(SoftmaxLoss(["product"]), 2, LABELS, 2, sizes=PRODUCTS),
    }
    for symmetric in (False, True):
        for make in (MultipleNegativesRankingLoss, CachedMultipleNegativesRankingLoss):
            name = f"{make.__name__}, symmetric={symmetric}"
            found[name] = Kind(make(symmetric=symmetric), 2, TEXTS[:2], steep=1e4)
            found[f"{name}, triplets"] = Kind(
                make(symmetric=symmetric, scale=1e4), 3, TEXTS, steep=1e9
            )
            dot = make(symmetric=symmetric, similarity="dot", scale=1.0)
            found[f"{name}, dot"] = Kind(dot, 2, TEXTS[:2], 2, sizes=(*PRODUCTS[:-1], 1e10, 1e17))
    for distance in distances.DISTANCES:
        degree, sizes = (0, {}) if distance == "cosine" else (1, {"sizes": SQUARES})
        found[f"Triplet, {distance}"] = Kind(TripletLoss(distance), 3, None, degree, **sizes)
        found[f"BatchHardTriplet, {distance}"] = Kind(
            BatchHardTripletLoss(distance), 1, LABELS, degree, **sizes
        )
        found[f"Contrastive, {distance}"] = Kind(
            ContrastiveLoss(distance), 2, BINARY, 2 * degree, **sizes
        )
        found[f"OnlineContrastive, {distance}"] = Kind(
            OnlineContrastiveLoss(distance), 2, BINARY, 2 * degree, **sizes
        )
    return found


def wide(x):
    return x.astype("float64") if isinstance(x, numpy.ndarray) else x


def in_float64(layer):
    """A copy that computes in float64."""
    copied = layer.copy()
    for node in copied.walk():
        for name in node.param_names:
            if node.has_param(name):
                node.set_param(name, node.get_param(name).astype("float64"))
    return copied


def judge_loss(cases, rng, name, kind, size):
    loss, gold = kind.loss, kind.gold
    members = [
        (rng.normal(size=(5, WIDTH)) * size).astype("float32") for _ in range(kind.n_members)
    ]
    # Which of equal distances is hard, rounding decides
    if "Online" not in name and rng.random() < 0.3:
        # As near, or as far, as can be
        members[-1] = members[0] * numpy.float32(rng.choice([1, -1, 2]))
    if rng.random() < 0.3:
        members[0][2] = 0
    if isinstance(gold, str):
        gold = (rng.normal(size=(5, WIDTH)) * size).astype("float32")
    loss.initialize(X=(members, gold))
    reference, back = in_float64(loss)(([wide(x) for x in members], wide(gold)), True)
    of_value, of_gradient = kind.tolerances(size)
    of_value += 16 * EPS * abs(reference)
    judged(
        cases,
        f"value of {name} at {size}",
        lambda: loss((members, gold), True)[0],
        reference,
        of_value,
    )
    for k, slope in enumerate(back(1.0)):
        if not kind.degree and size < 1e-36:
            # That of float64 is no float32 number
            slope, of_gradient = slope * 0, 0.0
        compute = lambda k=k: loss((members, gold), True)[1](1.0)[k]  # noqa: E731
        judged(cases, f"gradient {k} of {name} at {size}", compute, slope, of_gradient)


def test_losses(counted, rng):
    """Value and gradient, each beside the same loss in float64, whose exponents reach eight times
    as far.
    """
    with counted(
        "losses of vectors of any size have the value and the gradient that float64 gives"
    ) as cases:
        for name, kind in losses().items():
            for size in kind.sizes:
                judge_loss(cases, rng, name, kind, size)
