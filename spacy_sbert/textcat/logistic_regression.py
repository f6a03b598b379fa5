"""Logistic regression on sentence vectors, its strength and threshold by cross-validation."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from ..errors import import_extra

# C of scikit-learn, the inverse of the strength of regularisation; the first, its default, where
# there are too few examples for cross-validation
STRENGTHS = (1.0, 10.0, 100.0, 1000.0)
_FOLDS = 5
_STANDARD_ERRORS = 3
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
    scores: of texts that were left out, by name, see fit.
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
    the best by more than three standard errors of the difference. W and b are then multiplied by
    the scale with the least log loss on the texts that were left out, which changes no label:
    strongly regularised weights give probabilities that are too even. With several labels, it is
    the strength with the least log loss, and the scale is 1.

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
    chosen = numpy.sort(numpy.random.default_rng(seed).permutation(len(x))[:_MOST_VALIDATED])
    n_folds = _n_folds(targets[chosen], multi_label=multi_label)
    strength = STRENGTHS[0]
    scale = 1.0
    threshold = None
    scores: dict[str, float] = {}
    if n_folds > 1:
        folds = _sklearn("model_selection").StratifiedKFold(
            n_folds, shuffle=True, random_state=seed
        )
        validate = _validate_several if multi_label else _validate_exclusive
        strength, scale, scores = validate(x[chosen], targets[chosen], folds)
    if with_threshold:
        if n_folds < 2:
            raise ValueError(
                "A threshold needs two examples of each label for cross-validation. Add examples, "
                "or set threshold to a number."
            )
        threshold, found = _fit_threshold(x[chosen], targets[chosen], folds, strength, scale, seed)
        scores |= found
    weights, bias = _fit_weights(x, targets, strength, multi_label=multi_label)
    return LogisticRegression(weights * scale, bias * scale, strength, scale, threshold, scores)


def _sklearn(name: str) -> ModuleType:
    return import_extra(f"sklearn.{name}", "Fitting classes needs scikit-learn", "evaluation")


def _regression(strength: float) -> Any:
    return _sklearn("linear_model").LogisticRegression(C=strength, max_iter=_MAX_ITERATIONS)


def _fit_weights(
    x: numpy.ndarray, targets: numpy.ndarray, strength: float, *, multi_label: bool
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return weights (labels, width) and bias (labels,) of examples, see `fit`."""
    if multi_label:
        fitted = [_regression(strength).fit(x, has_label) for has_label in targets.T]
        weights = numpy.concatenate([one.coef_ for one in fitted])
        return weights, numpy.concatenate([one.intercept_ for one in fitted])
    known = targets.any(axis=1)
    one = _regression(strength).fit(x[known], targets[known].argmax(axis=1))
    if len(one.classes_) > 2:
        return one.coef_, one.intercept_
    return of_both(one.coef_), of_both(one.intercept_)


def of_both(coefficients: numpy.ndarray) -> numpy.ndarray:
    """Return the coefficients of two exclusive labels, from those of the second, (1, ...).

    softmax((0, z)) = (1 - sigmoid(z), sigmoid(z))
    """
    return numpy.concatenate([0.0 * coefficients, coefficients])


def _n_folds(targets: numpy.ndarray, *, multi_label: bool) -> int:
    """Return the number of folds that each have an example of each label; below 2 without any.

    With several labels each fold also has an example without each.
    """
    counts = targets.sum(axis=0)
    fewest = counts.min()
    if multi_label:
        fewest = min(fewest, (len(targets) - counts).min())
    return min(_FOLDS, int(fewest))


def _held_out(x: numpy.ndarray, y: numpy.ndarray, strength: float, folds: Any) -> numpy.ndarray:
    """Return the probabilities of classes by a model that has not seen the text, (n, classes)."""
    predict = _sklearn("model_selection").cross_val_predict
    return predict(_regression(strength), x, y, cv=folds, method="predict_proba")


def _validate_exclusive(
    x: numpy.ndarray, targets: numpy.ndarray, folds: Any
) -> tuple[float, float, dict[str, float]]:
    """Return the strength and the scale of exclusive labels, see `fit`, and the scores."""
    known = targets.any(axis=1)
    x = x[known]
    targets = targets[known]
    labels = targets.argmax(axis=1)
    held_out = {strength: _held_out(x, labels, strength, folds) for strength in STRENGTHS}
    is_right = {strength: each.argmax(axis=1) == labels for strength, each in held_out.items()}
    best = max(is_right.values(), key=numpy.mean)
    strength = next(each for each in STRENGTHS if not _is_better(best, is_right[each]))
    logits = numpy.log(numpy.maximum(held_out[strength], _SMALLEST))
    scale = _best_scale(logits, targets)
    scaled = log_softmax(scale * logits, axis=1)
    scores = {
        "accuracy": float(is_right[strength].mean()),
        "log_loss": -float(scaled[targets].mean()),
    }
    return strength, scale, scores


def _validate_several(
    x: numpy.ndarray, targets: numpy.ndarray, folds: Any
) -> tuple[float, float, dict[str, float]]:
    """Return the strength of labels of which a text may have several, 1, and the scores."""
    scores: dict[float, dict[str, float]] = {}
    for strength in STRENGTHS:
        columns = [_held_out(x, has_label, strength, folds)[:, 1] for has_label in targets.T]
        held_out = numpy.stack(columns, axis=1)
        of_right = numpy.where(targets, held_out, 1.0 - held_out)
        scores[strength] = {
            "accuracy": float(((held_out >= 0.5) == targets).all(axis=1).mean()),
            "log_loss": -float(numpy.log(numpy.maximum(of_right, _SMALLEST)).mean()),
        }
    best = min(STRENGTHS, key=lambda strength: scores[strength]["log_loss"])
    return best, 1.0, scores[best]


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
    """Return whether the first of two paired bool (n,) is right more often, beyond chance.

    mean(d) > 3 sd(d) / sqrt(n), of the differences d: of three other strengths one may be better by
    chance.
    """
    difference = first.astype(float) - second.astype(float)
    return bool(difference.mean() > _STANDARD_ERRORS * difference.std() / len(difference) ** 0.5)


def _fit_threshold(
    x: numpy.ndarray,
    targets: numpy.ndarray,
    folds: Any,
    strength: float,
    scale: float,
    seed: int,
) -> tuple[float, dict[str, float]]:
    """Return the threshold, see `fit`, and its scores."""
    known = targets.any(axis=1)
    without_label = x[~known]
    x = x[known]
    labels = targets[known].argmax(axis=1)
    n_labels = targets.shape[1]
    in_order = numpy.random.default_rng(seed).permutation(n_labels)
    of_known: list[numpy.ndarray] = []
    of_none: list[numpy.ndarray] = []
    is_right: list[numpy.ndarray] = []
    for fold, (learned, tested) in enumerate(folds.split(x, labels)):
        without = in_order[fold :: folds.n_splits]
        if n_labels - len(without) < 2:
            # Of two labels none can be left out: only examples without one count
            without = without[:0]
        is_left_out = numpy.isin(labels, without)
        learned = learned[~is_left_out[learned]]
        tested = tested[~is_left_out[tested]]
        model = _regression(strength).fit(x[learned], labels[learned])
        is_right.append(model.predict(x[tested]) == labels[tested])
        of_known.append(_highest(model, x[tested], scale))
        none = numpy.concatenate([x[is_left_out], without_label[fold :: folds.n_splits]])
        if len(none):
            of_none.append(_highest(model, none, scale))
    if not of_none:
        raise ValueError(
            "A threshold for texts of none of two labels needs examples of none, given as the "
            "label ''. Add some, or set threshold to a number."
        )
    return _best_threshold(*map(numpy.concatenate, (of_known, is_right, of_none)))


def _highest(model: Any, x: numpy.ndarray, scale: float) -> numpy.ndarray:
    """Return the highest probability of each text with the scale, (n,)."""
    logits = numpy.log(numpy.maximum(model.predict_proba(x), _SMALLEST))
    return softmax(scale * logits, axis=1).max(axis=1)


def _best_threshold(
    known: numpy.ndarray, is_right: numpy.ndarray, none: numpy.ndarray
) -> tuple[float, dict[str, float]]:
    """Return the threshold between texts with a label and those of none, and its scores.

    known, none (float (n,)): the highest probability of each text. is_right (bool (n,)): whether
        the label of a text is.
    """
    highest = numpy.concatenate([known, none])
    ordered = numpy.unique(highest)
    candidates = numpy.append((ordered[1:] + ordered[:-1]) / 2, ordered[0])
    n_rejected = numpy.searchsorted(numpy.sort(known[is_right]), candidates)
    known_accuracy = (is_right.sum() - n_rejected) / len(known)
    none_accuracy = numpy.searchsorted(numpy.sort(none), candidates) / len(none)
    best = int(numpy.argmax(known_accuracy + none_accuracy))
    is_known = numpy.arange(len(highest)) < len(known)
    area = _sklearn("metrics").roc_auc_score(is_known, highest)
    # With as many digits as spaCy writes to JSON
    threshold = round(float(candidates[best]), 9)
    return threshold, {
        "known_accuracy": float(known_accuracy[best]),
        "none_accuracy": float(none_accuracy[best]),
        "none_auc": float(area),
    }
