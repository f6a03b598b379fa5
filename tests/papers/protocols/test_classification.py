"""Both classifiers on every variant of the vectors, the perceptron as a mean over seeds."""

import numpy
import pytest
from helpers import made_senteval
from helpers.made_senteval import (
    COARSE,
    GRID,
    Cued,
    bits,
    encoded,
    search,
    write_paraphrases,
    write_polarity,
    write_questions,
    write_treebank,
)
from protocols import classification as both
from protocols import mlp
from protocols.classification import TASKS
from protocols.mlp import _fit_mlp
from protocols.variants import Variant
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from spacy_sbert.evaluation.protocols import classification, senteval

BY_NAME = {task.name: task for task in TASKS}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(classification, "_C_GRID", tuple(GRID["C"]))
    monkeypatch.setattr(mlp, "_MAX_PASSES", 20)


def run(name, root, source=None, **settings):
    return made_senteval.run(BY_NAME[name], root, source, **settings)


@pytest.mark.parametrize("name", ["MR", "TREC", "MRPC"])
def test_plain_settings_give_what_the_package_gives(tmp_path, name):
    write_polarity(tmp_path)
    write_questions(tmp_path)
    write_paraphrases(tmp_path)
    (task,) = (task for task in senteval.TASKS if task.name == name)
    told = {"trained_on": ("mr", "trec", "stsb")}
    assert run(name, tmp_path, **told) == made_senteval.run(task, tmp_path, **told)


def perceptron(rows, labels, seed, dev=None):
    """What the MLP is, of training data alone or with others to stop it."""
    names, classes = numpy.unique(labels, return_inverse=True)
    if dev is not None:
        return _fit_mlp(
            (rows, classes), (dev[0], numpy.searchsorted(names, dev[1])), len(names), seed
        )
    folds = min(20, *numpy.bincount(classes))
    fit, held = next(StratifiedKFold(folds, shuffle=True, random_state=seed).split(rows, classes))
    return _fit_mlp((rows[fit], classes[fit]), (rows[held], classes[held]), len(names), seed)


def test_train_and_test_are_kept_apart_and_mlp_is_a_mean_over_seeds(tmp_path):
    data = write_questions(tmp_path)
    result = run("TREC", tmp_path, classifiers=("lr", "mlp"), seeds=(5, 6, 7, 8))
    (train, y), (test, gold) = encoded(data)
    lr = search().fit(train, y)
    assert result["predictions"]["right"] == bits(lr.predict(test) == gold)
    variant = result["variants"][0]
    assert variant["c"] == [lr.best_params_["C"]]
    best = [perceptron(train, y, seed) for seed in (5, 6, 7)]
    mlp = [(numpy.array(COARSE)[one.predict(test)] == gold).mean() for one in best]
    assert variant["networks"] == [{**best[0].setting._asdict(), "passes": best[0].passes}]
    assert variant["scores"]["mlp"]["accuracy"] == pytest.approx(numpy.mean(mlp), abs=1e-12)
    assert variant["deviation"]["mlp"]["accuracy"] == pytest.approx(
        numpy.std(mlp, ddof=1), abs=1e-12
    )
    assert variant["deviation"]["lr"]["accuracy"] is None
    assert "5, 6, 7" in result["protocol"]["mlp"]


class Small(Cued):
    """Numbers so small that regularized regression finds the cue only after z-scoring."""

    def vector(self, text):
        return 1e-4 * super().vector(text)


def test_each_classifier_has_a_normalization_of_its_own(tmp_path):
    """Moments are of training data; the normalization that is best on dev is tuned."""
    data = write_treebank(tmp_path, "01", "{0}\t{1}".format, train=60, dev=40, test=40)
    names = ("none", "zscore")
    result = run(
        "SST-2", tmp_path, Small(), normalizations=names, classifiers=("lr", "mlp"), seeds=(1, 2)
    )
    (train, y), (dev, dev_y), (test, gold) = encoded(data, Small())
    scaler = StandardScaler().fit(train.astype("float64"))
    on_dev = {"lr": {}, "mlp": {}}
    on_test = {"lr": {}, "mlp": {}}
    for name in names:
        scale = Variant(name).fit(train, 1)
        rows, others, tested = (scale(part).astype("float32") for part in (train, dev, test))
        if name == "zscore":
            assert rows == pytest.approx(scaler.transform(train.astype("float64")), abs=1e-5)
        tolerance = classification._tolerance(rows, y)
        models = [
            LogisticRegression(C=c, max_iter=1000, tol=tolerance).fit(rows, y) for c in GRID["C"]
        ]
        lr = max(models, key=lambda model: model.score(others, dev_y))
        networks = [perceptron(rows, y, seed, (others, dev_y)) for seed in (1, 2)]
        on_dev["lr"][name] = lr.score(others, dev_y)
        on_dev["mlp"][name] = numpy.mean(
            [(one.predict(others).astype(str) == dev_y).mean() for one in networks]
        )
        on_test["lr"][name] = lr.score(tested, gold)
        on_test["mlp"][name] = numpy.mean(
            [(one.predict(tested).astype(str) == gold).mean() for one in networks]
        )
    for classifier in ("lr", "mlp"):
        found = {
            entry["normalization"]: entry["scores"][classifier]["accuracy"]
            for entry in result["variants"]
        }
        assert found == pytest.approx(on_test[classifier], abs=1e-12)
        chosen = max(on_dev[classifier], key=on_dev[classifier].__getitem__)
        assert result["tuned"]["by_classifier"][classifier] == [chosen]
        assert result["tuned"]["scores"][classifier]["accuracy"] == found[chosen]
    assert result["tuned"]["normalization"] == result["tuned"]["by_classifier"]["lr"] == ["zscore"]


def test_with_much_to_train_one_network_is_enough(tmp_path, monkeypatch):
    write_questions(tmp_path)
    monkeypatch.setattr(both, "_MLP_ROWS", 59)
    result = run("TREC", tmp_path, classifiers=("mlp",))
    assert result["primary"] == "mlp.accuracy"
    assert list(result["variants"][0]["scores"]) == ["mlp"]
    assert result["protocol"]["mlp"].endswith("mean over the seeds 1")
    assert "deviation" not in result["variants"][0]
