"""Normalization and size of the input: moments, lengths, inner products; settings that
cannot be.
"""

import numpy
import pytest
from helpers.made_data import HashedSource, write_benchmark, write_year
from protocols.variants import TASKS, Variant, score_variants
from scipy import stats
from sklearn.decomposition import PCA

from spacy_sbert.evaluation.protocols import sts
from spacy_sbert.evaluation.task import Run, Settings
from spacy_sbert.similarity import cosine

ROWS = numpy.random.default_rng(1).normal(2.0, 3.0, (200, 8)).astype("float32")
OTHER = numpy.random.default_rng(2).normal(0.0, 1.0, (5, 8)).astype("float32")


def transform(normalization="none", size="own", rows=ROWS, seed=1):
    return Variant(normalization, size).fit(rows, seed)


def test_normalizations():
    scaled = transform("zscore")(ROWS)
    assert numpy.allclose(scaled.mean(axis=0), 0, atol=1e-12)
    assert numpy.allclose(scaled.std(axis=0), 1, atol=1e-12)
    exact = ROWS.astype("float64")
    expected = (OTHER - exact.mean(axis=0)) / exact.std(axis=0)
    assert numpy.allclose(transform("zscore")(OTHER), expected, atol=1e-12), (
        "moments are of the fitted rows"
    )
    both = transform("zscore_unit")(OTHER)
    assert numpy.allclose(
        both, expected / numpy.linalg.norm(expected, axis=1, keepdims=True), atol=1e-12
    )
    rows = numpy.vstack([OTHER, numpy.zeros((1, 8), dtype="float32")])
    lengths = numpy.linalg.norm(transform("unit")(rows), axis=1)
    assert numpy.allclose(lengths, [1, 1, 1, 1, 1, 0], atol=1e-12)
    constant = ROWS.copy()
    constant[:, 3] = 7.0
    centered = transform("zscore", rows=constant)(constant)[:, 3]
    assert numpy.array_equal(centered, numpy.zeros(len(constant))), (
        "a number that never varies is only centered"
    )


def test_pca_is_that_of_scikit_learn_up_to_sign():
    ours = transform(size="pca-3")(OTHER)
    theirs = PCA(3, svd_solver="full").fit(ROWS).transform(OTHER)
    assert ours.shape == (5, 3)
    assert numpy.allclose(numpy.abs(ours), numpy.abs(theirs), atol=1e-5)


def test_up_projection_is_uniform_seeded_and_of_the_size():
    # D x d_j
    matrix = transform(size="up-4000")(numpy.eye(8, dtype="float32")).T
    bound = 8**-0.5
    assert matrix.shape == (4000, 8)
    assert numpy.abs(matrix).max() <= bound
    # Of a uniform distribution
    assert matrix.std() == pytest.approx(bound / 3**0.5, rel=0.01)
    again = transform(size="up-4000")
    other = transform(size="up-4000", seed=2)
    assert numpy.array_equal(again(OTHER), transform(size="up-4000")(OTHER))
    assert not numpy.allclose(again(OTHER), other(OTHER))


@pytest.mark.parametrize("size", ["up-4", "pca-9"])
def test_sizes_that_cannot_be(size):
    with pytest.raises(ValueError, match=f"'{size}' .* 200 vectors of width 8"):
        transform(size=size)


@pytest.mark.parametrize("size", ["pca", "svd-3"])
def test_unknown_sizes(size):
    with pytest.raises(ValueError, match="Unknown size"):
        transform(size=size)


def test_random_variants_are_means_over_seeds():
    settings = Settings(sizes=("own", "up-9"), seeds=(1, 2, 3), normalizations=("none", "unit"))
    given = []

    def score(apply):
        given.append(float(apply(OTHER)[0, 0]))
        return {"a": {"b": given[-1], "undefined": None}}

    found = score_variants(settings, ROWS, score)
    keys = [(entry["size"], entry["normalization"]) for entry in found]
    assert keys == [("own", "none"), ("own", "unit"), ("up-9", "none"), ("up-9", "unit")]
    assert len(given) == 1 + 1 + 3 + 3
    assert found[2]["scores"]["a"] == {
        "b": pytest.approx(numpy.mean(given[2:5])),
        "undefined": None,
    }
    assert found[2]["deviation"]["a"]["b"] == pytest.approx(numpy.std(given[2:5], ddof=1))
    assert "deviation" not in found[0]


def measured(root, settings, name="STSb-dev"):
    """The result of a task in every variant."""
    (task,) = (task for task in TASKS if task.name == name)
    return task.run(
        Run(root, lambda texts, **_: HashedSource().encode(texts), settings, lambda items, _: items)
    )


def test_moments_are_of_all_rows_of_the_set(tmp_path):
    write_benchmark(tmp_path)
    settings = Settings(any_count=True, bootstrap=0, normalizations=("none", "zscore"))
    variants = measured(tmp_path, settings)["variants"]
    rows = (
        HashedSource()
        .encode([f"{side} {i}" for side in ("first", "second") for i in range(6)])
        .astype("float64")
    )
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    expected = stats.spearmanr(cosine(scaled[:6], scaled[6:]), numpy.arange(6)).statistic
    assert [entry["normalization"] for entry in variants] == ["none", "zscore"]
    assert variants[1]["scores"]["cosine"]["spearman"]["pooled"] == pytest.approx(
        expected, abs=1e-12
    )


def test_sizes_that_do_not_fit_are_left_out_with_a_note(tmp_path):
    write_benchmark(tmp_path)
    settings = Settings(any_count=True, bootstrap=0, sizes=("own", "pca-3", "pca-100", "up-4"))
    found = measured(tmp_path, settings)
    assert [entry["size"] for entry in found["variants"]] == ["own", "pca-3"]
    assert found["notes"][0] == "Not measured, of 12 vectors of width 6: pca-100, up-4."
    with pytest.raises(ValueError, match=r"pca-100 .* 12 vectors of width 6"):
        measured(tmp_path, Settings(any_count=True, sizes=("pca-100",)))


def test_plain_settings_give_what_the_package_gives(tmp_path):
    write_benchmark(tmp_path)
    write_year(tmp_path)
    settings = Settings(any_count=True, bootstrap=50, trained_on=("stsb",))
    for task in sts.TASKS[:6]:
        if task.name in ("STS12", "STSb-dev"):
            plain = task.run(Run(tmp_path, HashedSource().encode, settings, lambda items, _: items))
            assert measured(tmp_path, settings, task.name) == plain


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        pytest.param({"normalizations": ("l2",)}, "'l2': .* none, zscore", id="normalization"),
        pytest.param({"classifiers": ("svm",)}, "classifiers .*'svm'", id="classifier"),
        pytest.param({"sizes": ("pca-0",)}, "Unknown size", id="size 0"),
        pytest.param({"sizes": ("up-1000000000",)}, "Unknown size 'up-1000000000'", id="huge size"),
    ],
)
def test_settings_that_cannot_be(setting, message):
    with pytest.raises(ValueError, match=message):
        TASKS[0].check(Settings(**setting))


def test_settings_that_can_be():
    settings = Settings(normalizations=("unit",), sizes=("own", "pca-3"), classifiers=("mlp", "lr"))
    TASKS[0].check(settings)
