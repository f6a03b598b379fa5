"""A learned similarity beside the cosine, on made vectors."""

from unittest.mock import Mock

import numpy
import pytest
import torch
from helpers.made_data import write_benchmark
from protocols import learned_similarity
from protocols.learned_similarity import (
    _STRENGTHS,
    TASKS,
    _fit_distribution,
    _score_learned,
    _squared_errors,
    _target_distribution,
    fit_ridge,
)
from protocols.variants import Variant
from scipy.stats import pearsonr, spearmanr

from spacy_sbert.evaluation.protocols.sts import GradedPairs
from spacy_sbert.evaluation.task import MissingData, Run, Settings
from spacy_sbert.losses.softmax import SYMMETRIC, concatenated

STSB, SICK = TASKS


@pytest.fixture(autouse=True)
def one_look(monkeypatch):
    monkeypatch.setattr(learned_similarity, "_PASSES", 1)
    monkeypatch.setattr(learned_similarity, "_MAX_PASSES", 0)


def encode(texts, *, fit_on=None):
    rows = [
        numpy.random.default_rng([ord(letter) for letter in text]).normal(size=6) for text in texts
    ]
    return numpy.stack(rows).astype("float32")


def make_pairs(name, n, gold=None):
    """Pairs whose gold score is how near they are in one number of six, which the cosine hardly
    sees.
    """
    first, second = (tuple(f"{name} {side} {i}" for i in range(n)) for side in "ab")
    u = encode(first)
    v = encode(second)
    given = -numpy.abs(u[:, 0] - v[:, 0]).astype("float64") if gold is None else numpy.array(gold)
    return GradedPairs(first, second, given, ("all",) * n)


def score(train, tune, test, encode=encode, **settings):
    run = Run(None, encode, Settings(bootstrap=20, **settings), lambda items, name: items)
    return _score_learned(train, tune, test, run, (0, 5))


def random_part(n, seed):
    rng = numpy.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) * [1, 10, 0.1, 1] + 3
    return x, x @ [1.0, 0.2, -5.0, 0.0] + rng.normal(size=n)


@pytest.mark.parametrize("strength", [0, 4, 7])
def test_ridge_is_the_least_mean_squared_error(strength, monkeypatch):
    monkeypatch.setattr(learned_similarity, "_STRENGTHS", _STRENGTHS[[strength]])
    (x, gold), (given, _) = random_part(40, 0), random_part(5, 1)
    z, z_given = ((rows - x.mean(0)) / x.std(0) for rows in (x, given))
    weights = numpy.linalg.solve(
        z.T @ z + _STRENGTHS[strength] * numpy.eye(4), z.T @ (gold - gold.mean())
    )
    expected = z_given @ weights + gold.mean()
    assert fit_ridge((x, gold), (x, gold), 0)[0](given) == pytest.approx(expected, rel=1e-9)
    assert fit_ridge((x, gold), None, 0)[0](given) == pytest.approx(expected, rel=1e-9)


def test_the_strength_is_tuned_on_other_data():
    train = random_part(8, 2)
    tune = random_part(60, 3)
    test = random_part(9, 4)
    errors = _squared_errors(train, tune)
    best, error = fit_ridge(train, tune, 0)
    assert error == _squared_errors(train, tune).min()
    assert ((best(tune[0]) - tune[1]) ** 2).mean() == pytest.approx(errors.min(), rel=1e-12)
    assert errors.min() < errors.max()
    assert fit_ridge(train, None, 1)[0](test[0]) == pytest.approx(
        fit_ridge(train, None, 1)[0](test[0]), abs=0
    )


def test_it_finds_what_the_cosine_does_not_show():
    train = make_pairs("train", 300)
    test = make_pairs("test", 80)
    result = score(train, None, test)
    scores = result["variants"][0]["scores"]
    assert scores["learned"]["spearman"] > 0.99 > 0.6 > scores["cosine"]["spearman"]
    predicted = result["predictions"]["predicted"]
    assert scores["learned"]["spearman"] == pytest.approx(
        spearmanr(predicted, test.gold)[0], abs=1e-12
    )
    assert scores["learned"]["pearson"] == pytest.approx(
        pearsonr(predicted, test.gold)[0], abs=1e-12
    )
    u = encode(test.first)
    v = encode(test.second)
    plain = (u * v).sum(1) / numpy.sqrt((u * u).sum(1) * (v * v).sum(1))
    assert scores["cosine"]["spearman"] == pytest.approx(spearmanr(plain, test.gold)[0], abs=1e-6)
    assert scores["learned"]["mse"] == pytest.approx(
        ((predicted - test.gold) ** 2).mean(), rel=1e-12
    )
    assert "mse" not in scores["cosine"]
    low, high = result["intervals"]["learned.spearman"]
    assert low <= scores["learned"]["spearman"] <= high
    assert result["primary"] == "learned.spearman"


@pytest.mark.parametrize(
    ("normalization", "size"), [("none", "own"), ("zscore_unit", "pca-4"), ("none", "up-9")]
)
def test_nothing_is_learned_from_the_test_pairs(normalization, size):
    train = make_pairs("train", 50)
    tune = make_pairs("tune", 20)
    test = make_pairs("test", 30)
    part = GradedPairs(test.first[:7], test.second[:7], -test.gold[:7], test.subset[:7])
    settings = {"normalizations": (normalization,), "sizes": (size,), "seeds": (1, 2)}
    seen = Mock(wraps=encode)
    whole = score(train, tune, test, seen, **settings)["predictions"]["predicted"]
    assert score(train, tune, part, **settings)["predictions"]["predicted"] == pytest.approx(
        whole[:7], rel=1e-9
    )
    assert [call.kwargs["fit_on"] for call in seen.call_args_list] == [
        [*train.first, *train.second]
    ] * 3


def test_a_constant_prediction_is_undefined():
    train = make_pairs("train", 20, gold=[1.0] * 20)
    test = make_pairs("test", 10)
    result = score(train, None, test)
    error = ((1.0 - test.gold) ** 2).mean()
    expected = {"spearman": None, "pearson": None, "mse": pytest.approx(error)}
    assert result["variants"][0]["scores"]["learned"] == expected
    assert result["intervals"]["learned.spearman"] is None
    assert result["variants"][0]["scores"]["cosine"]["spearman"] is not None


def test_the_regressor_of_distributions_is_beside_it(monkeypatch):
    monkeypatch.setattr(learned_similarity, "_PASSES", 50)
    monkeypatch.setattr(learned_similarity, "_MAX_PASSES", 300)
    sizes = {"train": 200, "tune": 60, "test": 60}
    # From 0 to 5
    graded = {name: 5 * numpy.exp(make_pairs(name, n).gold) for name, n in sizes.items()}
    train, tune, test = (make_pairs(name, n, gold=graded[name]) for name, n in sizes.items())

    whole, folds = (
        score(train, given, test)["variants"][0]["scores"]["softmax"] for given in (tune, None)
    )
    assert whole["pearson"] > 0.9
    assert 0 < whole["mse"] < 0.4
    assert folds["pearson"] > 0.85
    assert folds != whole


def run_task(task, root, **settings):
    return task.run(Run(root, encode, Settings(bootstrap=0, **settings), lambda items, name: items))


def test_splits_that_are_there_decide(tmp_path):
    with pytest.raises(MissingData, match=r"sts-train\.csv"):
        STSB.find(tmp_path)
    write_benchmark(tmp_path, "train", pairs=30)
    with pytest.raises(MissingData, match=r"sts-dev\.csv"):
        STSB.find(tmp_path)
    write_benchmark(tmp_path, pairs=12)
    result = run_task(STSB, tmp_path, any_count=True)
    assert result["splits"] == {"train": "train", "tune": "5 folds of train", "test": "dev"}
    assert result["predictions"]["gold"] == pytest.approx([5 * i / 12 for i in range(12)])
    assert (result["counts"], result["intervals"]) == ({"train": 30, "dev": 12}, {})
    write_benchmark(tmp_path, "test", pairs=13)
    assert [file.name for file in STSB.find(tmp_path)] == [
        "sts-train.csv",
        "sts-dev.csv",
        "sts-test.csv",
    ]
    result = run_task(STSB, tmp_path, any_count=True, trained_on=("STSb",))
    assert result["splits"] == {"train": "train", "tune": "dev", "test": "test"}
    assert len(result["predictions"]["gold"]) == 13
    assert "Learned on train, tuned on dev, scored on test" in result["notes"][-2]
    assert "trained on STSb" in result["notes"][-1]
    with pytest.raises(ValueError, match=r"30 examples .* 5749"):
        run_task(STSB, tmp_path)


def test_the_normalisation_can_be_tuned_on_what_is_tuned_on():
    train = make_pairs("train", 60)
    tune = make_pairs("tune", 30)
    test = make_pairs("test", 30)
    names = ("none", "zscore", "unit")
    found = score(train, tune, test, normalizations=names)
    errors = []
    for name in names:
        scale = Variant(name).fit(encode([*train.first, *train.second]), 1)
        parts = []
        for part in (train, tune):
            u, v = (scale(encode(side)) for side in (part.first, part.second))
            parts.append((concatenated(u, v, parts=SYMMETRIC), part.gold))
        errors.append(_squared_errors(*parts).min())
    best = int(numpy.argmin(errors))
    assert found["tuned"] == {
        "normalization": [names[best]],
        "scores": found["variants"][best]["scores"],
    }
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


def test_target_distributions_by_hand():
    found = _target_distribution(numpy.array([1.0, 2.25, 4.9, 5.0]), numpy.arange(1, 6))
    expected = [[1, 0, 0, 0, 0], [0, 0.75, 0.25, 0, 0], [0, 0, 0, 0.1, 0.9], [0, 0, 0, 0, 1]]
    assert found == pytest.approx(numpy.array(expected), abs=1e-6)
    assert found.dtype == "float32"
    gold = numpy.random.default_rng(0).uniform(0, 5, 50)
    found = _target_distribution(gold, numpy.arange(6))
    assert found.sum(1) == pytest.approx(1, abs=1e-6)
    assert found @ numpy.arange(6) == pytest.approx(gold, abs=1e-5)


def part(n, seed):
    rng = numpy.random.default_rng(seed)
    x = rng.normal(size=(n, 6))
    return x, numpy.clip(3 + x[:, 0] + 0.5 * rng.normal(size=n), 1, 5)


def test_it_is_a_linear_layer_of_pytorch(monkeypatch):
    monkeypatch.setattr(learned_similarity, "_PASSES", 3)
    train = part(150, 0)
    held = part(80, 1)
    generator = torch.Generator().manual_seed(4)
    drawn = (torch.rand((7, 5), generator=generator) * 2 - 1) * 6**-0.5
    network = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Softmax(dim=1))
    with torch.no_grad():
        network[0].weight.copy_(drawn[:6].T)
        network[0].bias.copy_(drawn[6])
    optimizer = torch.optim.Adam(network.parameters())
    x = torch.from_numpy(train[0].astype("float32"))
    targets = torch.from_numpy(_target_distribution(train[1], numpy.arange(1, 6)))
    for _ in range(3):
        for at in torch.randperm(150, generator=generator).split(64):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(network(x[at]), targets[at]).backward()
            optimizer.step()
    expected = network(torch.from_numpy(held[0].astype("float32"))).detach().numpy() @ numpy.arange(
        1, 6
    )
    assert _fit_distribution(train, held, (1, 5), 4)(held[0]) == pytest.approx(expected, abs=1e-5)


def test_the_weights_are_those_of_the_highest_correlation(monkeypatch):
    looks = iter([0.5, 0.8, None, 0.7, 0.8, 0.6, 0.9])
    seen = []
    at = []

    def look(predicted, gold):
        seen.append(next(looks))
        at.append(predicted)
        return seen[-1]

    monkeypatch.setattr(learned_similarity, "_MAX_PASSES", 1000)
    monkeypatch.setattr(learned_similarity, "pearson", look)
    held = part(20, 1)
    found = _fit_distribution(part(100, 0), held, (1, 5), 1)
    assert seen == [0.5, 0.8, None, 0.7, 0.8, 0.6], "three without a higher one, and one more"
    assert (found(held[0]) == at[1]).all()
