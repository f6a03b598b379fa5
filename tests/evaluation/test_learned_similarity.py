"""A learned similarity beside the cosine, on made vectors."""

import sys

import numpy
import pytest
from scipy.stats import pearsonr, spearmanr

pytest.importorskip("sklearn")

from spacy_sbert.evaluation.protocols.graded import GradedPairs
from spacy_sbert.evaluation.protocols.learned_similarity import (
    _STRENGTHS,
    TASKS,
    _score_learned,
    _squared_errors,
    fit_ridge,
)
from spacy_sbert.evaluation.task import MissingData, Run, Settings
from spacy_sbert.evaluation.vector_transforms import Variant
from spacy_sbert.losses.softmax import SYMMETRIC, concatenated

STSB, SICK = TASKS
WIDTH = 6


class Encoder:
    """Vectors by text; remembers what a source might have learned from."""

    def __init__(self):
        self.fit_on = []

    def __call__(self, texts, *, fit_on=None):
        self.fit_on.append(fit_on)
        rows = [numpy.random.default_rng([ord(letter) for letter in text]).normal(size=WIDTH) for text in texts]
        return numpy.stack(rows).astype("float32")


def make_pairs(name, n, gold=None):
    """Pairs whose gold score is how near they are in one number of WIDTH, which the cosine hardly sees."""
    first, second = (tuple(f"{name} {side} {i}" for i in range(n)) for side in "ab")
    u, v = Encoder()(first), Encoder()(second)
    given = -numpy.abs(u[:, 0] - v[:, 0]).astype("float64") if gold is None else numpy.array(gold)
    return GradedPairs(first, second, given, ("all",) * n)


def score(train, tune, test, encode=None, **settings):
    run = Run(None, encode or Encoder(), Settings(bootstrap=20, **settings), lambda items, name: items)
    return _score_learned(train, tune, test, run)


def random_part(n, seed):
    rng = numpy.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) * [1, 10, 0.1, 1] + 3
    return x, x @ [1.0, 0.2, -5.0, 0.0] + rng.normal(size=n)


@pytest.mark.parametrize("strength", [0, 4, 7])
def test_ridge_is_the_least_mean_squared_error(strength, monkeypatch):
    monkeypatch.setattr("spacy_sbert.evaluation.protocols.learned_similarity._STRENGTHS", _STRENGTHS[[strength]])
    (x, gold), (given, _) = random_part(40, 0), random_part(5, 1)
    z, z_given = ((rows - x.mean(0)) / x.std(0) for rows in (x, given))
    weights = numpy.linalg.solve(z.T @ z + _STRENGTHS[strength] * numpy.eye(4), z.T @ (gold - gold.mean()))
    expected = z_given @ weights + gold.mean()
    assert fit_ridge((x, gold), (x, gold), 0)[0](given) == pytest.approx(expected, rel=1e-9)
    assert fit_ridge((x, gold), None, 0)[0](given) == pytest.approx(expected, rel=1e-9)


def test_the_strength_is_tuned_on_other_data():
    train, tune, test = random_part(8, 2), random_part(60, 3), random_part(9, 4)
    errors = _squared_errors(train, tune)
    best, error = fit_ridge(train, tune, 0)
    assert error == _squared_errors(train, tune).min()
    assert ((best(tune[0]) - tune[1]) ** 2).mean() == pytest.approx(errors.min(), rel=1e-12)
    assert errors.min() < errors.max()
    assert fit_ridge(train, None, 1)[0](test[0]) == pytest.approx(fit_ridge(train, None, 1)[0](test[0]), abs=0)


def test_it_finds_what_the_cosine_does_not_show():
    train, test = make_pairs("train", 300), make_pairs("test", 80)
    result = score(train, None, test)
    scores = result["variants"][0]["scores"]
    assert scores["learned"]["spearman"] > 0.99 > 0.6 > scores["cosine"]["spearman"]
    predicted = result["predictions"]["predicted"]
    assert scores["learned"]["spearman"] == pytest.approx(spearmanr(predicted, test.gold)[0], abs=1e-12)
    assert scores["learned"]["pearson"] == pytest.approx(pearsonr(predicted, test.gold)[0], abs=1e-12)
    u, v = Encoder()(test.first), Encoder()(test.second)
    plain = (u * v).sum(1) / numpy.sqrt((u * u).sum(1) * (v * v).sum(1))
    assert scores["cosine"]["spearman"] == pytest.approx(spearmanr(plain, test.gold)[0], abs=1e-6)
    assert scores["learned"]["mse"] == pytest.approx(((predicted - test.gold) ** 2).mean(), rel=1e-12)
    assert "mse" not in scores["cosine"] and "softmax" not in scores
    low, high = result["intervals"]["learned.spearman"]
    assert low <= scores["learned"]["spearman"] <= high
    assert result["primary"] == "learned.spearman"


@pytest.mark.parametrize(("normalization", "size"), [("none", "own"), ("zscore_unit", "pca-4"), ("none", "up-9")])
def test_nothing_is_learned_from_the_test_pairs(normalization, size):
    train, tune, test = make_pairs("train", 50), make_pairs("tune", 20), make_pairs("test", 30)
    part = GradedPairs(test.first[:7], test.second[:7], -test.gold[:7], test.subset[:7])
    settings = {"normalizations": (normalization,), "sizes": (size,), "seeds": (1, 2)}
    encode = Encoder()
    whole = score(train, tune, test, encode, **settings)["predictions"]["predicted"]
    assert score(train, tune, part, **settings)["predictions"]["predicted"] == pytest.approx(whole[:7], rel=1e-9)
    assert encode.fit_on == [[*train.first, *train.second]] * 3


def test_a_constant_prediction_is_undefined():
    train, test = make_pairs("train", 20, gold=[1.0] * 20), make_pairs("test", 10)
    result = score(train, None, test)
    error = ((1.0 - test.gold) ** 2).mean()
    expected = {"spearman": None, "pearson": None, "mse": pytest.approx(error)}
    assert result["variants"][0]["scores"]["learned"] == expected
    assert result["intervals"]["learned.spearman"] is None
    assert result["variants"][0]["scores"]["cosine"]["spearman"] is not None


def test_the_regressor_of_distributions_is_beside_it():
    train, tune, test = (make_pairs(name, n, gold=graded(name, n)) for name, n in PARTS.items())
    found = score_of(train, tune, test, (0, 5))["softmax"]
    assert found["pearson"] > 0.9 and 0 < found["mse"] < 0.4
    folds = score_of(train, None, test, (0, 5))["softmax"]
    assert folds["pearson"] > 0.85 and folds != found


PARTS = {"train": 400, "tune": 80, "test": 100}


def graded(name, n):
    """From 0 to 5, by one number of each side."""
    pairs = make_pairs(name, n)
    return 5 * numpy.exp(pairs.gold)


def score_of(train, tune, test, scores):
    run = Run(None, Encoder(), Settings(bootstrap=0), lambda items, name: items)
    return _score_learned(train, tune, test, run, scores)["variants"][0]["scores"]


def write_stsb(root, **counts):
    for split, count in counts.items():
        lines = [f"g\tf\ty\t{i}\t{i % 6}\t{split} a {i}\t{split} b {i}" for i in range(count)]
        (root / f"sts-{split}.csv").write_text("\n".join(lines), encoding="utf8")


def run_task(task, root, **settings):
    return task.run(Run(root, Encoder(), Settings(bootstrap=0, **settings), lambda items, name: items))


def test_splits_that_are_there_decide(tmp_path):
    with pytest.raises(MissingData, match=r"sts-train\.csv"):
        STSB.find(tmp_path)
    write_stsb(tmp_path, train=30)
    with pytest.raises(MissingData, match=r"sts-dev\.csv"):
        STSB.find(tmp_path)
    write_stsb(tmp_path, dev=12)
    result = run_task(STSB, tmp_path, any_count=True)
    assert result["splits"] == {"train": "train", "tune": "5 folds of train", "test": "dev"}
    assert result["predictions"]["gold"] == [float(i % 6) for i in range(12)]
    assert (result["counts"], result["intervals"]) == ({"train": 30, "dev": 12}, {})
    write_stsb(tmp_path, test=13)
    assert [file.name for file in STSB.find(tmp_path)] == ["sts-train.csv", "sts-dev.csv", "sts-test.csv"]
    result = run_task(STSB, tmp_path, any_count=True, trained_on=("STSb",))
    assert result["splits"] == {"train": "train", "tune": "dev", "test": "test"}
    assert len(result["predictions"]["gold"]) == 13
    assert "Learned on train, tuned on dev, scored on test" in result["notes"][-2]
    assert "trained on STSb" in result["notes"][-1]
    with pytest.raises(ValueError, match="30 examples with a gold value, where the official data set has 5749"):
        run_task(STSB, tmp_path)


def test_the_normalisation_can_be_tuned_on_what_is_tuned_on():
    train, tune, test = make_pairs("train", 60), make_pairs("tune", 30), make_pairs("test", 30)
    names = ("none", "zscore", "unit")
    found = score(train, tune, test, normalizations=names)
    errors = []
    for name in names:
        rows = {key: Encoder()([*part.first, *part.second]) for key, part in (("train", train), ("tune", tune))}
        scale = Variant(name).fit(rows["train"], 1)
        parts = []
        for key, part in (("train", train), ("tune", tune)):
            u, v = numpy.split(scale(rows[key]), 2)
            parts.append((concatenated(u, v, parts=SYMMETRIC), part.gold))
        errors.append(_squared_errors(*parts).min())
    best = int(numpy.argmin(errors))
    assert found["tuned"] == {"normalization": [names[best]], "scores": found["variants"][best]["scores"]}
    assert "tuned" not in score(train, tune, test)


def test_sick_is_scored_from_1_to_5(tmp_path):
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    for split, count in (("train", 20), ("trial", 8)):
        lines = [f"{i}\t{split} a {i}\t{split} b {i}\t{1 + i % 5}\tNEUTRAL" for i in range(count)]
        (tmp_path / f"SICK_{split}.txt").write_text("\n".join([header, *lines]), encoding="utf8")
    result = run_task(SICK, tmp_path, any_count=True)
    assert result["splits"] == {"train": "train", "tune": "5 folds of train", "test": "trial"}
    assert result["predictions"]["gold"] == [float(1 + i % 5) for i in range(8)]
    assert result["variants"][0]["scores"]["softmax"]["mse"] < 4, "scores are from 1 to 5"


def test_random_sizes_are_means_over_seeds():
    parts = make_pairs("train", 50), make_pairs("tune", 20), make_pairs("test", 30)
    both = score(*parts, sizes=("up-9",), seeds=(1, 2))["variants"][0]
    each = [score(*parts, sizes=("up-9",), seeds=(seed,))["variants"][0]["scores"] for seed in (1, 2)]
    values = [one["learned"]["pearson"] for one in each]
    assert both["scores"]["learned"]["pearson"] == pytest.approx(sum(values) / 2)
    assert both["deviation"]["learned"]["pearson"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    assert "deviation" not in score(*parts)["variants"][0]


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.model_selection", None)
    with pytest.raises(ImportError, match=r"pip install 'spacy-sbert\[evaluation\]"):
        fit_ridge(random_part(9, 0), None, 0)
