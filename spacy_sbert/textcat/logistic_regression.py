"""Logistic regression on sentence vectors, its strength and threshold by cross-validation."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from scipy.stats import rankdata

from ..errors import import_extra

# C of scikit-learn, the inverse of the strength of regularisation; the first, its default, where
# there are too few examples for cross-validation
STRENGTHS = (1.0, 10.0, 100.0, 1000.0)
_FOLDS = 5
# Examples on which strength and threshold are chosen; the weights are fitted on all
_MOST_VALIDATED = 10_000
_MAX_ITERATIONS = 1000
# From 1/10 to 100
_LOG_SCALES = (-2.3, 4.6)
# As numpy.log of 0 is none
_SMALLEST = 1e-15


@dataclass(frozen=True)
class LogisticRegression:
    """Fitted weights of classes, and what cross-validation found out.

    weights: float64 (labels, width). bias: float64 (labels,).
    strength: C of scikit-learn. scale: by which its weights were multiplied.
    threshold: below which no class is meant, None if it was not fitted.
    scores: means over the folds, by name, see fit.
    """

    weights: numpy.ndarray
    bias: numpy.ndarray
    strength: float
    scale: float
    threshold: float | None
    scores: dict[str, float]


def fit(
    vectors: numpy.ndarray,
    targets: numpy.ndarray,
    *,
    multi_label: bool,
    with_threshold: bool,
    seed: int = 0,
) -> LogisticRegression:
    """Fit weights W and b of P(label | x) = softmax(W x + b), or sigmoid(W x + b) of each label.

    The strongest regularisation is taken whose accuracy in five-fold cross-validation is not below
    the best by more than two standard errors of the difference. W and b are then multiplied by the
    scale with the least log loss on the texts that were left out, which changes no label: strongly
    regularised weights give probabilities that are too even. With several labels, it is the
    strength with the least log loss, and the scale is 1.

    For the threshold, each fold also leaves out a fifth of the labels, whose texts stand for those
    of none. The threshold t has the highest

        1/2 P(the label is right and its probability is t or more | the text has a label)
        + 1/2 P(all probabilities are below t | the text has none).

    vectors (float32 (n, width)): of the examples.
    targets (bool (n, labels)): whether an example has a label. Examples of none of exclusive labels
        count for the threshold alone.
    multi_label (bool): whether a text may have several labels, or none.
    with_threshold (bool): whether a threshold is fitted, of exclusive labels.
    seed (int): of the order in which examples come into the folds.
    RETURNS: the weights of all examples; as scores "accuracy" (of texts whose labels are all
        right), "log_loss", and with a threshold "known_accuracy", "none_accuracy" and "none_auc",
        the area under the curve of texts with a label against those without.
    RAISES (ValueError): if a threshold cannot be fitted; (ImportError): without scikit-learn.
    SOURCE: after Breiman et al. 1984, Classification and Regression Trees, section 3.4.3, the rule
        of one standard error; Guo et al. 2017, On Calibration of Modern Neural Networks, section
        4.2, temperature scaling; Platt 1999, Probabilistic Outputs for Support Vector Machines,
        section 2.2, for targets that are not quite 0 and 1.
    """
    x = vectors.astype("float64")
    rows = _validated_rows(targets, seed)
    folds = _folds(targets[rows], seed)
    model = _Model(multi_label)
    strength = STRENGTHS[0]
    scale = 1.0
    scores: dict[str, float] = {}
    threshold = None
    if folds is not None:
        strength, scale, scores = _best_strength(model, x[rows], targets[rows], folds)
    if with_threshold:
        if folds is None:
            raise ValueError(
                "A threshold needs two examples of each label for cross-validation. Add examples, "
                "or set threshold to a number."
            )
        model.scale = scale
        threshold, found = _fit_threshold(model, x[rows], targets[rows], folds, strength, seed)
        scores |= found
    weights, bias = model.fit(x, targets, strength)
    return LogisticRegression(weights * scale, bias * scale, strength, scale, threshold, scores)


class _Model:
    """Logistic regression of exclusive labels, or of each label by itself.

    scale (float): factor on the logits of its probabilities.
    """

    def __init__(self, multi_label: bool):
        self.multi_label = multi_label
        self.scale = 1.0
        module = import_extra(
            "sklearn.linear_model", "Fitting classes needs scikit-learn", "evaluation"
        )
        self._estimator = module.LogisticRegression

    def fit(
        self, x: numpy.ndarray, targets: numpy.ndarray, strength: float
    ) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Return weights (labels, width) and bias (labels,) of examples, see `fit`."""
        if self.multi_label:
            fitted = [self._fit_one(x, has_label, strength) for has_label in targets.T]
            weights = numpy.concatenate([one.coef_ for one in fitted])
            return weights, numpy.concatenate([one.intercept_ for one in fitted])
        has_label = targets.any(axis=1)
        one = self._fit_one(x[has_label], targets[has_label].argmax(axis=1), strength)
        if len(one.classes_) > 2:
            return one.coef_, one.intercept_
        return halves(one.coef_, one.intercept_)

    def _fit_one(self, x: numpy.ndarray, y: numpy.ndarray, strength: float) -> Any:
        return self._estimator(C=strength, max_iter=_MAX_ITERATIONS).fit(x, y)

    def probabilities(
        self, x: numpy.ndarray, weights: numpy.ndarray, bias: numpy.ndarray
    ) -> numpy.ndarray:
        """Return the probability of each label, (n, labels)."""
        logits = self.scale * (x @ weights.T + bias)
        return expit(logits) if self.multi_label else softmax(logits, axis=1)

    def log_loss(self, probabilities: numpy.ndarray, targets: numpy.ndarray) -> float:
        """Return the mean negative logarithm of the probability of what is right."""
        right = numpy.where(targets, probabilities, 1.0 - probabilities)
        if not self.multi_label:
            right = probabilities[targets]
        return float(-numpy.log(numpy.maximum(right, _SMALLEST)).mean())

    def is_right(self, probabilities: numpy.ndarray, targets: numpy.ndarray) -> numpy.ndarray:
        """Return of which texts the label is right, or all labels if they may be several."""
        if self.multi_label:
            return ((probabilities >= 0.5) == targets).all(axis=1)
        return probabilities.argmax(axis=1) == targets.argmax(axis=1)


def halves(weights: numpy.ndarray, bias: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return weights (2, width) and bias (2,) of two exclusive labels, from those of the second.

    softmax((-z/2, z/2)) = (1 - sigmoid(z), sigmoid(z))

    weights (float (1, width)), bias (float (1,)): of scikit-learn, z = W x + b.
    """
    signs = numpy.array([[-0.5], [0.5]])
    return signs * weights, signs[:, 0] * bias


def _validated_rows(targets: numpy.ndarray, seed: int) -> numpy.ndarray:
    """Return the rows of the examples for cross-validation, in their order."""
    rows = numpy.arange(len(targets))
    if len(rows) <= _MOST_VALIDATED:
        return rows
    chosen = numpy.random.default_rng(seed).choice(rows, _MOST_VALIDATED, replace=False)
    return numpy.sort(chosen)


def _folds(targets: numpy.ndarray, seed: int) -> numpy.ndarray | None:
    """Return the fold of each example, int (n,), so that each label is in nearly all of them.

    None if a label has fewer than two examples, or none of its own.
    """
    counts = targets.sum(axis=0)
    if counts.min() < 2 or (counts == len(targets)).any():
        return None
    n_folds = min(_FOLDS, int(counts.min()))
    order = numpy.random.default_rng(seed).permutation(len(targets))
    # One label after the other, those without a label last
    first_label = numpy.where(targets.any(axis=1), targets.argmax(axis=1), targets.shape[1])
    order = order[numpy.argsort(first_label[order], kind="stable")]
    folds = numpy.empty(len(targets), dtype=int)
    folds[order] = numpy.arange(len(targets)) % n_folds
    return folds


def _splits(
    targets: numpy.ndarray, folds: numpy.ndarray
) -> Iterator[tuple[numpy.ndarray, numpy.ndarray]]:
    """Yield which examples are learned from, and which are tested on, bool (n,) each."""
    for fold in range(folds.max() + 1):
        learned = folds != fold
        in_training = targets[learned]
        n_labelled = in_training.sum(axis=0)
        if n_labelled.all() and (n_labelled < len(in_training)).all():
            yield learned, ~learned


def _best_strength(
    model: _Model, x: numpy.ndarray, targets: numpy.ndarray, folds: numpy.ndarray
) -> tuple[float, float, dict[str, float]]:
    """Return the strength and the scale, see `fit`, and the scores with both."""
    scores: dict[float, dict[str, float]] = {}
    is_right: dict[float, numpy.ndarray] = {}
    tested: dict[float, numpy.ndarray] = {}
    right = targets[:0]
    for strength in STRENGTHS:
        parts = []
        for learned, rest in _splits(targets, folds):
            weights, bias = model.fit(x[learned], targets[learned], strength)
            known = rest if model.multi_label else rest & targets.any(axis=1)
            parts.append((model.probabilities(x[known], weights, bias), targets[known]))
        if not parts:
            return STRENGTHS[0], 1.0, {}
        tested[strength] = numpy.concatenate([each for each, _ in parts])
        right = numpy.concatenate([each for _, each in parts])
        is_right[strength] = model.is_right(tested[strength], right)
        scores[strength] = {
            "accuracy": float(is_right[strength].mean()),
            "log_loss": model.log_loss(tested[strength], right),
        }
    if model.multi_label:
        chosen = min(STRENGTHS, key=lambda strength: scores[strength]["log_loss"])
        return chosen, 1.0, scores[chosen]
    best = max(is_right.values(), key=numpy.mean)
    chosen = next(each for each in STRENGTHS if not _is_better(best, is_right[each]))
    logits = numpy.log(numpy.maximum(tested[chosen], _SMALLEST))
    scale = _best_scale(logits, right)
    scaled = softmax(scale * logits, axis=1)
    return chosen, scale, {**scores[chosen], "log_loss": model.log_loss(scaled, right)}


def _best_scale(logits: numpy.ndarray, targets: numpy.ndarray) -> float:
    """Return the s with the least cross entropy of softmax(s logits), see `fit`.

    The label that is right has the target (n + 1) / (n + 2) for n texts, the others have the rest.
    """
    n_texts, n_labels = targets.shape
    rest = 1 / (n_texts + 2)
    smooth = numpy.where(targets, 1 - rest, rest / (n_labels - 1))

    def cross_entropy(log_scale: float) -> float:
        log_probabilities = log_softmax(numpy.exp(log_scale) * logits, axis=1)
        return -float((smooth * log_probabilities).sum(axis=1).mean())

    return float(numpy.exp(minimize_scalar(cross_entropy, bounds=_LOG_SCALES, method="bounded").x))


def _is_better(first: numpy.ndarray, second: numpy.ndarray) -> bool:
    """Return whether the first of two paired bool (n,) is right more often, by two standard errors.

    mean(d) > 2 sd(d) / sqrt(n), of the differences d.
    """
    difference = first.astype(float) - second.astype(float)
    return bool(difference.mean() > 2 * difference.std() / len(difference) ** 0.5)


def _fit_threshold(
    model: _Model,
    x: numpy.ndarray,
    targets: numpy.ndarray,
    folds: numpy.ndarray,
    strength: float,
    seed: int,
) -> tuple[float, dict[str, float]]:
    """Return the threshold, see `fit`, and its scores."""
    known: list[numpy.ndarray] = []
    is_right: list[numpy.ndarray] = []
    none: list[numpy.ndarray] = []
    n_labels = targets.shape[1]
    has_label = targets.any(axis=1)
    group = numpy.random.default_rng(seed).permutation(n_labels) % (folds.max() + 1)
    for fold in range(folds.max() + 1):
        kept = group != fold
        if kept.sum() < 2:
            # Of two labels none can be left out: only examples without one count
            kept = numpy.ones(n_labels, dtype=bool)
        of_kept = targets[:, kept]
        learned = of_kept.any(axis=1) & (folds != fold)
        if not of_kept[learned].any(axis=0).all():
            continue
        weights, bias = model.fit(x[learned], of_kept[learned], strength)
        tested = of_kept.any(axis=1) & (folds == fold)
        probabilities = model.probabilities(x[tested], weights, bias)
        known.append(probabilities.max(axis=1))
        is_right.append(probabilities.argmax(axis=1) == of_kept[tested].argmax(axis=1))
        left_out = (has_label & ~of_kept.any(axis=1)) | (~has_label & (folds == fold))
        none.append(model.probabilities(x[left_out], weights, bias).max(axis=1))
    of_known = numpy.concatenate(known) if known else numpy.zeros(0)
    of_none = numpy.concatenate(none) if none else numpy.zeros(0)
    if not len(of_known) or not len(of_none):
        raise ValueError(
            "A threshold for texts of none of two labels needs examples of none, given as the "
            "label ''. Add some, or set threshold to a number."
        )
    return _best_threshold(of_known, numpy.concatenate(is_right), of_none)


def _best_threshold(
    known: numpy.ndarray, is_right: numpy.ndarray, none: numpy.ndarray
) -> tuple[float, dict[str, float]]:
    """Return the threshold between texts with a label and those of none, and its scores.

    known, none (float (n,)): the highest probability of each text. is_right (bool (n,)): whether
        the label of a text is.
    """
    ordered = numpy.unique(numpy.concatenate([known, none]))
    candidates = numpy.append((ordered[1:] + ordered[:-1]) / 2, ordered[0])
    n_rejected = numpy.searchsorted(numpy.sort(known[is_right]), candidates)
    known_accuracy = (is_right.sum() - n_rejected) / len(known)
    none_accuracy = numpy.searchsorted(numpy.sort(none), candidates) / len(none)
    best = int(numpy.argmax(known_accuracy + none_accuracy))
    ranks = rankdata(numpy.concatenate([known, none]))[: len(known)]
    area = (ranks.sum() - len(known) * (len(known) + 1) / 2) / (len(known) * len(none))
    return _rounded(candidates[best]), {
        "known_accuracy": float(known_accuracy[best]),
        "none_accuracy": float(none_accuracy[best]),
        "none_auc": float(area),
    }


def _rounded(threshold: float) -> float:
    """Return a threshold with as many digits as spaCy writes to JSON."""
    return round(float(threshold), 9)
