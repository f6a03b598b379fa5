"""Weights are scikit-learn's; strength and threshold are the best on what was left out."""

import numpy
import pytest
from scipy import stats
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from spacy_sbert.textcat import logistic_regression
from spacy_sbert.textcat.logistic_regression import STRENGTHS, fit

WIDTH = 6


def drawn(n_labels, n_each, seed=0, spread=0.7):
    """Return vectors around a center for each label, and the number of the label of each."""
    rng = numpy.random.default_rng(seed)
    centers = rng.normal(size=(n_labels, WIDTH))
    labels = numpy.repeat(numpy.arange(n_labels), n_each)
    vectors = centers[labels] + spread * rng.normal(size=(len(labels), WIDTH))
    return vectors.astype("float32"), labels


def one_hot(labels):
    return labels[:, None] == numpy.unique(labels)


def fit_labels(vectors, targets, **settings):
    return fit(vectors, targets, **{"multi_label": False, "with_threshold": False, **settings})


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_exclusive_labels_have_the_probabilities_of_scikit_learn(n_labels):
    vectors, labels = drawn(n_labels, 7)
    fitted = fit_labels(vectors, one_hot(labels))
    expected = LogisticRegression(C=fitted.strength, max_iter=1000).fit(
        vectors.astype("float64"), labels
    )
    logits = (vectors @ fitted.weights.T + fitted.bias) / fitted.scale
    found = softmax(logits, axis=1)
    numpy.testing.assert_allclose(found, expected.predict_proba(vectors), atol=1e-6)


def test_several_labels_have_the_weights_of_scikit_learn_each():
    vectors, labels = drawn(4, 8)
    targets = one_hot(labels)
    targets[:, 0] |= labels == 1
    fitted = fit_labels(vectors, targets, multi_label=True)
    for label, has_label in enumerate(targets.T):
        expected = LogisticRegression(C=fitted.strength, max_iter=1000).fit(
            vectors.astype("float64"), has_label
        )
        numpy.testing.assert_allclose(fitted.weights[label], expected.coef_[0], atol=1e-6)
        assert fitted.bias[label] == pytest.approx(expected.intercept_[0], abs=1e-6)


@pytest.mark.parametrize("spread", [0.3, 1.5, 3.0])
def test_the_strength_is_the_strongest_that_is_not_worse_by_three_standard_errors(spread):
    vectors, labels = drawn(6, 20, spread=spread)
    targets = one_hot(labels)
    fitted = fit_labels(vectors, targets)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    accuracies = {}
    probabilities = {}
    for strength in STRENGTHS:
        found = numpy.zeros(targets.shape)
        for learned, tested in folds.split(vectors, labels):
            model = LogisticRegression(C=strength, max_iter=1000)
            model.fit(vectors[learned].astype("float64"), labels[learned])
            found[tested] = model.predict_proba(vectors[tested])
        accuracies[strength] = found.argmax(axis=1) == labels
        probabilities[strength] = found
    best = max(accuracies.values(), key=numpy.mean)
    expected = None
    for strength in reversed(STRENGTHS):
        difference = best * 1.0 - accuracies[strength]
        if difference.mean() <= 3 * stats.sem(difference, ddof=0):
            expected = strength
    assert fitted.strength == expected
    assert fitted.scores["accuracy"] == pytest.approx(accuracies[expected].mean())
    assert fitted.scores["log_loss"] == pytest.approx(
        log_loss(labels, softmax(fitted.scale * numpy.log(probabilities[expected]), axis=1)),
        abs=1e-6,
    )


@pytest.mark.parametrize(("n_each", "n_folds"), [(2, 2), (4, 4), (9, 5)])
def test_there_are_no_more_folds_than_texts_of_a_label(n_each, n_folds):
    targets = one_hot(numpy.repeat([0, 1, 2], [n_each, 9, 12]))
    assert logistic_regression._n_folds(targets, multi_label=False) == n_folds
    # Nor than texts without a label
    assert logistic_regression._n_folds(~targets, multi_label=True) == n_folds


def test_without_two_examples_of_each_label_nothing_is_left_out():
    vectors, labels = drawn(3, 1)
    fitted = fit_labels(vectors, one_hot(labels))
    assert fitted.strength == STRENGTHS[0]
    assert fitted.scores == {}
    with pytest.raises(ValueError, match="two examples of each label"):
        fit_labels(vectors, one_hot(labels), with_threshold=True)


def test_the_threshold_divides_texts_with_a_label_from_those_without_best():
    rng = numpy.random.default_rng(0)
    known = rng.uniform(0.3, 1.0, 50)
    is_right = rng.uniform(size=50) < 0.8
    none = rng.uniform(0.1, 0.7, 30)
    threshold, scores = logistic_regression._best_threshold(known, is_right, none)

    def value(at):
        return (is_right & (known >= at)).mean() + (none < at).mean()

    candidates = numpy.linspace(0, 1, 5001)
    assert value(threshold) == pytest.approx(max(map(value, candidates)))
    assert scores["known_accuracy"] == pytest.approx((is_right & (known >= threshold)).mean())
    assert scores["none_accuracy"] == pytest.approx((none < threshold).mean())
    is_known = numpy.repeat([1, 0], [50, 30])
    expected = roc_auc_score(is_known, numpy.concatenate([known, none]))
    assert scores["none_auc"] == pytest.approx(expected)


def test_texts_of_left_out_labels_and_those_of_none_stand_for_none():
    vectors, labels = drawn(6, 10, spread=0.3)
    rng = numpy.random.default_rng(5)
    others = rng.normal(size=(40, WIDTH)).astype("float32") * 0.2
    fitted = fit_labels(vectors, one_hot(labels), with_threshold=True)
    assert fitted.scores["known_accuracy"] + fitted.scores["none_accuracy"] > 1.0
    # Of two labels none is left out
    two = labels < 2
    targets = one_hot(labels[two])
    with pytest.raises(ValueError, match="needs examples of none"):
        fit_labels(vectors[two], targets, with_threshold=True)
    both = numpy.concatenate([vectors[two], others])
    padded = numpy.concatenate([targets, numpy.zeros((40, 2), dtype=bool)])
    fitted = fit_labels(both, padded, with_threshold=True)
    assert fitted.scores["none_auc"] > 0.8
    alone = fit_labels(vectors[two], targets)
    numpy.testing.assert_allclose(fitted.weights / fitted.scale, alone.weights / alone.scale)


def test_the_scale_has_the_least_cross_entropy():
    rng = numpy.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    logits = rng.normal(size=(200, 3)) + 0.3 * one_hot(labels)
    scale = logistic_regression._best_scale(logits, one_hot(labels))
    smooth = numpy.where(one_hot(labels), 201 / 202, 1 / 404)

    def cross_entropy(at):
        return -(smooth * numpy.log(softmax(at * logits, axis=1))).sum(axis=1).mean()

    candidates = numpy.exp(numpy.linspace(-2.3, 4.6, 2000))
    assert cross_entropy(scale) <= min(map(cross_entropy, candidates)) + 1e-6


def test_the_mean_probability_of_what_is_given_is_the_accuracy():
    """On texts that were not seen, where the weights alone give far less."""
    vectors, labels = drawn(5, 240, spread=1.0)
    learn = numpy.arange(len(labels)) % 6 == 0
    fitted = fit_labels(vectors[learn] / 20, one_hot(labels[learn]))
    logits = vectors[~learn] / 20 @ fitted.weights.T + fitted.bias
    given = softmax(logits, axis=1)
    accuracy = (given.argmax(axis=1) == labels[~learn]).mean()
    assert given.max(axis=1).mean() == pytest.approx(accuracy, abs=0.08)
    plain = softmax(logits / fitted.scale, axis=1)
    assert plain.max(axis=1).mean() < accuracy - 0.2


def test_of_several_labels_the_strength_has_the_least_log_loss():
    vectors, labels = drawn(4, 12, spread=1.5)
    targets = one_hot(labels)
    targets[:6] = False
    fitted = fit_labels(vectors, targets, multi_label=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    losses = {}
    for strength in STRENGTHS:
        found = numpy.zeros(targets.shape)
        for label, has_label in enumerate(targets.T):
            for learned, tested in folds.split(vectors, has_label):
                model = LogisticRegression(C=strength, max_iter=1000)
                model.fit(vectors[learned].astype("float64"), has_label[learned])
                found[tested, label] = model.predict_proba(vectors[tested])[:, 1]
        losses[strength] = log_loss(targets.ravel(), found.ravel())
    assert fitted.strength == min(losses, key=losses.__getitem__)
    assert fitted.scale == 1.0
    assert fitted.scores["log_loss"] == pytest.approx(losses[fitted.strength], abs=1e-6)


def test_strength_is_chosen_on_a_part_of_many_examples(monkeypatch):
    vectors, labels = drawn(3, 40)
    monkeypatch.setattr(logistic_regression, "_MOST_VALIDATED", 60)
    validated = []
    held_out = logistic_regression._held_out

    def recorded(x, *settings):
        validated.append(len(numpy.unique(x, axis=0)))
        return held_out(x, *settings)

    monkeypatch.setattr(logistic_regression, "_held_out", recorded)
    fitted = fit_labels(vectors, one_hot(labels))
    expected = LogisticRegression(C=fitted.strength, max_iter=1000).fit(
        vectors.astype("float64"), labels
    )
    numpy.testing.assert_allclose(fitted.weights / fitted.scale, expected.coef_, atol=1e-6)
    assert validated == [60] * len(STRENGTHS)
