"""SentenceVectors passes scikit-learn's checks, and keeps its encoder."""

import pickle
import shutil
import subprocess
import sys
from typing import Any

import joblib
import numpy
import pandas
import pytest
import spacy
from helpers.pipelines import ROOT, one_pipe
from safetensors.torch import load_file, save_file
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import validate_data

from spacy_sbert import load_pipe, sklearn
from spacy_sbert.sklearn import SentenceVectors

TEXTS = [
    "a man is eating food",
    "the cat sat on the mat",
    "the dog ran fast",
    "someone is having a meal",
] * 2
LETTERS = str.maketrans("0123456789.-+e", "abcdefghij kl ")


class _OfNumbers(SentenceVectors):
    """Takes each row of numbers as a text, as scikit-learn's checks give arrays of numbers."""

    def fit(self, X: Any, y: Any = None) -> "_OfNumbers":
        validate_data(self, X)
        super().fit([], y)
        return self

    def transform(self, X: Any) -> numpy.ndarray:
        rows = validate_data(self, X, reset=False)
        return super().transform(
            [" ".join(f"{x:.3g}".translate(LETTERS) for x in row) for row in rows]
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = False
        tags.input_tags.two_d_array = True
        return tags


# Of estimators that compute on arrays of other libraries
LEFT_OUT = {"check_array_api_input"}
# Its bound of 1e-7 is below the rounding of float32: test_rows_alone_and_together has another
ROUNDING = {"check_methods_subset_invariance": "numbers up to 2 differ by 2e-7"}


def test_checks_of_scikit_learn(tiny_bert):
    results = check_estimator(
        _OfNumbers(str(tiny_bert)), on_fail=None, on_skip=None, expected_failed_checks=ROUNDING
    )
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
    skipped = {one["check_name"] for one in results if one["status"] == "skipped"}
    assert failed == {}, skipped
    assert skipped <= LEFT_OUT
    assert len(results) > 30
    # Of texts scikit-learn has no checks of its own
    with pytest.warns(
        SkipTestWarning,
        match="requires input",
    ):
        check_estimator(SentenceVectors(str(tiny_bert)))


def test_rows_alone_and_together(tiny_bert):
    rows = numpy.random.default_rng(0).normal(size=(20, 3)) * 10
    step = _OfNumbers(str(tiny_bert)).fit(rows)
    alone = numpy.concatenate([step.transform(row[None]) for row in rows])
    numpy.testing.assert_allclose(step.transform(rows), alone, rtol=0, atol=1e-6)


@pytest.fixture
def step(tiny_bert):
    return SentenceVectors(str(tiny_bert))


@pytest.fixture
def expected(tiny_bert):
    return load_pipe(str(tiny_bert)).encode(TEXTS)


def _write_others(folder):
    """Write weights that give other vectors into an encoder's folder."""
    weights = load_file(folder / "model.safetensors")
    changed = {
        name: -weight if "word_embeddings" in name else weight for name, weight in weights.items()
    }
    save_file(changed, folder / "model.safetensors", {"format": "pt"})


def test_works_before_fit(step, expected):
    assert numpy.array_equal(clone(step).transform(TEXTS), expected)
    assert clone(step).get_feature_names_out().tolist() == [f"v{column}" for column in range(16)]
    assert numpy.array_equal(pickle.loads(pickle.dumps(step)).transform(TEXTS), expected)


@pytest.mark.parametrize(
    "as_column", [list, tuple, iter, numpy.array, pandas.Series, pandas.DataFrame]
)
def test_columns(step, expected, as_column):
    assert numpy.array_equal(step.fit(TEXTS).transform(as_column(TEXTS)), expected)
    assert step.transform([]).shape == (0, 16)


@pytest.mark.parametrize(
    "given", ["one text", b"one text", spacy.blank("en")("one text"), {"a": "one text"}]
)
@pytest.mark.parametrize("method", ["fit", "transform", "fit_transform"])
def test_a_single_text_is_refused(step, given, method):
    with pytest.raises(
        ValueError, match=r"Iterable over raw text documents expected, .* object received"
    ):
        getattr(step, method)(given)


def test_keeps_its_encoder(step, expected, tmp_path):
    """After pickle, joblib and clone; clones load it once."""
    step.fit(TEXTS)
    data = pickle.dumps(step)
    joblib.dump(step, tmp_path / "step.joblib")
    for kept in (pickle.loads(data), joblib.load(tmp_path / "step.joblib"), clone(step)):
        assert numpy.array_equal(kept.transform(TEXTS), expected)
    assert len(data) < 1000
    assert clone(step).sbert is step.sbert
    other = clone(step).set_params(pipeline="no/such-encoder")
    with pytest.raises(OSError, match="no/such-encoder"):
        other.transform(TEXTS)


def test_cross_validation_loads_each_encoder_once(tiny_bert, tmp_path, monkeypatch):
    """Also if it begins before the encoder is loaded."""
    other = str(shutil.copytree(tiny_bert, tmp_path / "other"))
    loaded = []

    def load(name):
        loaded.append(name)
        return load_pipe(name)

    monkeypatch.setattr(sklearn, "load_pipe", load)
    model = make_pipeline(SentenceVectors(str(tiny_bert)), LogisticRegression())
    settings = {
        "logisticregression__C": [0.1, 1.0],
        "sentencevectors__pipeline": [str(tiny_bert), other],
    }
    GridSearchCV(model, settings, cv=2).fit(TEXTS, [0, 1, 1, 0] * 2)
    assert sorted(loaded) == sorted([str(tiny_bert), other])


def test_fit_reads_a_folder_again_that_was_written_since(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "encoder")
    step = SentenceVectors(str(folder)).fit(TEXTS)
    before = step.transform(TEXTS)
    _write_others(folder)
    # What is loaded stays until the next fit
    assert numpy.array_equal(step.transform(TEXTS), before)
    expected = load_pipe(str(folder)).encode(TEXTS)
    assert not numpy.allclose(expected, before)
    for again in (clone(step), step):
        assert numpy.array_equal(again.fit(TEXTS).transform(TEXTS), expected)


def test_refuses_another_encoder_after_fit(tiny_bert, tmp_path):
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_bert, folder)
    fitted = pickle.dumps(SentenceVectors(str(folder)).fit(TEXTS))
    unfitted = pickle.dumps(SentenceVectors(str(folder)))
    _write_others(folder)
    with pytest.raises(ValueError, match="has changed since fit: it gives other vectors"):
        pickle.loads(fitted).transform(TEXTS)
    assert (
        pickle.loads(unfitted).transform(TEXTS).shape
        == pickle.loads(fitted).fit(TEXTS).transform(TEXTS).shape
    )


def test_grid_search_and_tables(step, expected):
    labels = [0, 1, 1, 0] * 2
    model = make_pipeline(step, LogisticRegression())
    search = GridSearchCV(model, {"logisticregression__C": [0.1, 1.0]}, cv=2, n_jobs=2).fit(
        TEXTS, labels
    )
    assert search.predict(TEXTS).shape == (8,)
    assert search.best_score_ >= 0.5
    frame = pandas.DataFrame({"text": TEXTS, "n": range(8)}, index=[*range(10, 18)])
    for column in ("text", ["text"]):
        columns = ColumnTransformer([("text", step, column), ("numbers", StandardScaler(), ["n"])])
        table = columns.set_output(transform="pandas").fit_transform(frame)
        assert table.index.tolist() == frame.index.tolist()
        assert list(table)[:2] == [
            "text__v0",
            "text__v1",
        ]
        assert numpy.array_equal(table.iloc[:, :-1].to_numpy("float32"), expected)


def test_needs_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = sys.modules['sklearn.base'] = None; import "
        "spacy_sbert.sklearn"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (
        "SentenceVectors needs scikit-learn. Install it: pip install 'spacy-sbert[evaluation]'"
        in found.stderr
    )


@pytest.mark.parametrize(
    "change", [("normalize = false", "normalize = true"), ('"truncate"', '"windows"')]
)
def test_refuses_other_settings_after_fit(tiny_bert, tmp_path, change):
    nlp = one_pipe(tiny_bert, normalize=False)
    nlp.to_disk(tmp_path / "nlp")
    fitted = pickle.dumps(SentenceVectors(str(tmp_path / "nlp")).fit(TEXTS))
    assert pickle.loads(fitted).transform(TEXTS).any()
    config = tmp_path / "nlp" / "config.cfg"
    text = config.read_text(encoding="utf8")
    assert change[0] in text
    config.write_text(text.replace(*change), encoding="utf8")
    with pytest.raises(ValueError, match="has changed since fit"):
        pickle.loads(fitted).transform(TEXTS)
