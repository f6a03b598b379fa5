"""Weights of classes that come without examples: followed, saved, and never fitted again."""

import numpy
import pytest
import spacy
from scipy.special import expit, softmax
from spacy.training import Example

from spacy_sbert import find_sbert
from spacy_sbert.textcat import find_textcat

TEXTS = ["the cat sat on the mat", "a man is eating food", "the dog ran fast", "he cannot go"]
LABELS = ["b", "a", "c"]


@pytest.fixture
def make(make_nlp):
    """Build a pipeline whose classes have weights without examples, of a width of 16."""

    def make(weights=None, model=None, **config):
        nlp = make_nlp("own", lang="en", model=model or {})
        pipe = nlp.add_pipe("sbert_textcat", config=config)
        if weights is None:
            weights = numpy.random.default_rng(1).normal(size=(3, 16))
        pipe.set_coefficients(LABELS, weights, numpy.array([0.5, 0.0, -0.5]))
        return nlp

    return make


def cats(nlp):
    return [doc.cats for doc in nlp.pipe(TEXTS)]


@pytest.mark.parametrize("multi_label", [False, True])
def test_probabilities_are_those_of_the_formula(make, multi_label):
    weights = numpy.random.default_rng(1).normal(size=(3, 16))
    nlp = make(weights.tolist(), multi_label=multi_label)
    logits = find_sbert(nlp).encode(TEXTS).astype("float64") @ weights.T + [0.5, 0.0, -0.5]
    expected = expit(logits) if multi_label else softmax(logits, axis=1)
    found = [[values[label] for label in LABELS] for values in cats(nlp)]
    assert numpy.abs(found - expected).max() < 1e-6
    assert find_textcat(nlp).labels == tuple(LABELS)
    assert find_textcat(nlp).threshold == (0.5 if multi_label else 0.0)
    assert find_textcat(nlp).cross_validation == {}


def test_saved_and_in_other_processes(make, tmp_path):
    nlp = make()
    expected = cats(nlp)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert cats(loaded) == cats(make(numpy.zeros((3, 16))).from_bytes(nlp.to_bytes())) == expected
    assert [doc.cats for doc in loaded.pipe(TEXTS, n_process=2)] == expected
    with pytest.raises(ValueError, match="without examples"):
        find_textcat(loaded).add("a", ["a cat"])


def test_examples_are_not_added_to_them(make):
    nlp = make()
    expected = cats(nlp)
    with pytest.raises(
        ValueError, match=r"'sbert_textcat' have weights without examples.*fit\(texts, labels\)"
    ):
        find_textcat(nlp).add("a", ["a cat"])
    assert cats(nlp) == expected


def test_another_encoder_is_named(make, make_nlp, tmp_path):
    saved = make()
    other = make(model={"pooling": "cls"})
    find_textcat(other).from_bytes(find_textcat(saved).to_bytes())
    fingerprints = [find_sbert(nlp).fingerprint() for nlp in (saved, other)]
    message = f"fitted on the encoder {fingerprints[0]}; it is {fingerprints[1]} now"
    for use in (
        lambda: other(TEXTS[0]),
        lambda: find_textcat(other).threshold,
        lambda: other.to_disk(tmp_path / "other"),
        other.to_bytes,
    ):
        with pytest.raises(ValueError, match=message):
            use()


def test_fit_replaces_them(make, make_nlp):
    nlp = make()
    texts, labels = TEXTS * 2, ["cats", "men", "cats", "men"] * 2
    find_textcat(nlp).fit(texts, labels)
    find_textcat(nlp).add("cats", ["a cat"])
    fresh = make_nlp("own", lang="en")
    fresh.add_pipe("sbert_textcat").fit(texts, labels)
    find_textcat(fresh).add("cats", ["a cat"])
    assert cats(nlp) == cats(fresh)


def test_gold_replaces_them(make):
    nlp = make()
    examples = [
        Example.from_dict(nlp.make_doc(text), {"cats": {label: 1.0}})
        for text, label in zip(TEXTS, "xyzx", strict=True)
    ]
    find_textcat(nlp).initialize(lambda: examples, nlp=nlp)
    assert list(nlp(TEXTS[0]).cats) == ["x", "y", "z"]
    # Examples that are loaded over such weights are examples again
    given = make()
    find_textcat(given).from_bytes(find_textcat(nlp).to_bytes())
    find_textcat(given).add("x", ["a cat"])


@pytest.mark.parametrize(
    ("labels", "shape", "size", "message"),
    [
        (
            ["a", "b"],
            (3, 16),
            3,
            r"weights are \(3, 16\) and the bias is \(3,\): expected \(2, 16\)",
        ),
        (["a", "b"], (2, 8), 2, r"expected \(2, 16\) by the labels and the vectors of 'sbert'"),
        (["a", "b"], (2, 16), 3, r"and \(2,\)"),
        (["a", "a"], (2, 16), 2, "'a' is given twice"),
    ],
)
def test_shapes_and_labels_that_do_not_fit(make, labels, shape, size, message):
    pipe = find_textcat(make())
    with pytest.raises(ValueError, match=message):
        pipe.set_coefficients(labels, numpy.ones(shape), numpy.ones(size))


def test_numbers_that_are_not_finite(make):
    weights = numpy.ones((3, 16))
    weights[1, 2] = numpy.nan
    with pytest.raises(ValueError, match="Row 1 of the weights is not finite"):
        make(weights)
    with pytest.raises(ValueError, match="Row 0 of the bias is not finite"):
        find_textcat(make()).set_coefficients(["a"], numpy.ones((1, 16)), [numpy.inf])


def test_a_threshold_needs_examples(make):
    with pytest.raises(ValueError, match='threshold = "auto" needs'):
        make(threshold="auto")


def test_without_a_pipe_before_it():
    pipe = spacy.blank("en").add_pipe("sbert_textcat")
    with pytest.raises(ValueError, match="'sbert_textcat' reads the vectors of a pipe before it"):
        pipe.set_coefficients(["a"], [[1.0]], [0.0])
