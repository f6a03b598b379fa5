"""Similarity of arguments on made files: without training, and learned from others, nothing from
the test.
"""

import csv

import numpy
import pytest
from helpers.made_data import HashedSource
from protocols import arguments
from protocols.arguments import (
    TASKS,
    Split,
    _score_held_out,
    fit_support_vectors,
    split_folds,
    split_topics,
)
from scipy.stats import pearsonr, spearmanr
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from spacy_sbert.evaluation.protocols.sts import GradedPairs
from spacy_sbert.evaluation.task import MissingData, Run, Settings

AFS, ASPECT, *LEARNED = TASKS
TOPICS = ("Big data", "Drones")
encode = HashedSource(width=5).encode


def run_of(root=None, encode=encode, **settings):
    return Run(root, encode, Settings(**{"bootstrap": 20, **settings}), lambda items, name: items)


@pytest.fixture
def aspects(tmp_path):
    labels = ["DTORCD", "NS", "SS", "HS"] * 6
    rows = [
        (TOPICS[i % 3 == 0], f"Argument {i}.", f"Other {i * i}.", label)
        for i, label in enumerate(labels)
    ]
    (tmp_path / "argument").mkdir()
    lines = ["topic\tsentence_1\tsentence_2\tlabel", *("\t".join(row) for row in rows)]
    (tmp_path / "argument" / "UKP_ASPECT.tsv").write_text("\n".join(lines), encoding="utf8")
    return tmp_path, rows


def write_afs(folder, *topics):
    folder.mkdir(parents=True, exist_ok=True)
    for topic in topics:
        with (folder / f"ArgPairs_{topic}_1.csv").open(
            "w", encoding="iso-8859-1", newline=""
        ) as file:
            records = [
                [i / 2, *"abcdefgh", f"{topic} one {i}", f"{topic} two {i * i}"] for i in range(11)
            ]
            csv.writer(file).writerows(
                [["regression_label", *"abcdefgh", "sentence_1", "sentence_2"], *records]
            )


def cosines(first, second):
    u = encode(first).astype("float64")
    v = encode(second).astype("float64")
    return (u * v).sum(1) / numpy.sqrt((u * u).sum(1) * (v * v).sum(1))


def test_topics_pooled_and_mean_equal_scipy(aspects):
    root, rows = aspects
    result = ASPECT.run(run_of(root, any_count=True))
    predicted = cosines([row[1] for row in rows], [row[2] for row in rows])
    gold = [{"SS": 0.5, "HS": 1.0}.get(row[3], 0.0) for row in rows]
    for name, measure in (("spearman", spearmanr), ("pearson", pearsonr)):
        scores = result["variants"][0]["scores"]["cosine"][name]
        assert scores["pooled"] == pytest.approx(measure(predicted, gold)[0], abs=1e-6)
        each = []
        for topic in TOPICS:
            at = [i for i, row in enumerate(rows) if row[0] == topic]
            each.append(measure(predicted[at], [gold[i] for i in at])[0])
            assert scores["subsets"][topic] == pytest.approx(each[-1], abs=1e-6)
        assert scores["mean"] == pytest.approx(sum(each) / 2, abs=1e-6)
    assert result["counts"] == {"Big data": 16, "Drones": 8, "all": 24}
    assert result["predictions"]["gold"] == gold
    assert "24 examples, where the official data set has 3,595" in result["notes"][0]
    with pytest.raises(ValueError, match=r"24 examples .* 3595"):
        ASPECT.run(run_of(root))
    note = ASPECT.run(run_of(root, any_count=True, trained_on=("ukp-aspect", "nli")))["notes"][2]
    assert note.startswith(
        "The encoder was trained on ukp-aspect, which shares pairs or sources with this set"
    )


@pytest.mark.parametrize("folder", ["argument/AFS", "argument"])
def test_afs_is_found_and_scored_as_graded(tmp_path, folder):
    with pytest.raises(
        MissingData, match=r"UKP_ASPECT\.tsv not found below .*https://github\.com/UKPLab"
    ):
        ASPECT.find(tmp_path)
    write_afs(tmp_path / folder, "GC")
    with pytest.raises(MissingData, match=r"ArgPairs_DP\*\.csv and ArgPairs_GM\*\.csv not found"):
        AFS.find(tmp_path)
    write_afs(tmp_path / folder, "DP", "GM")
    assert [file.name for file in AFS.find(tmp_path)] == [
        f"ArgPairs_{topic}_1.csv" for topic in ("DP", "GC", "GM")
    ]
    result = AFS.run(run_of(tmp_path))
    assert result["counts"] == {
        "death penalty": 11,
        "gun control": 11,
        "gay marriage": 11,
        "all": 33,
    }
    assert result["predictions"]["gold"] == [i / 2 for i in range(11)] * 3
    assert set(result["variants"][0]["scores"]["cosine"]["spearman"]["subsets"]) == {
        *result["counts"]
    } - {"all"}


def made(n=60):
    """Pairs whose score is how near they are in one number, in a way that is not linear."""
    first, second = (tuple(f"{side} {i}" for i in range(n)) for side in "ab")
    gold = numpy.exp(-((encode(first)[:, 0] - encode(second)[:, 0]) ** 2)).astype("float64")
    return GradedPairs(first, second, gold, tuple("xyz"[i % 3] for i in range(n)))


def members(pairs):
    return list(zip(pairs.first, pairs.second, strict=True))


def test_a_pair_that_is_scored_is_never_trained_on():
    pairs = [("a", "b"), ("c", "d"), ("b", "a"), ("e", "f"), ("a", "c"), ("g", "h")]
    # the third pair is the first in the other order, and the fifth has a sentence of it
    expected = [Split("x", (3, 5), (0, 1)), Split("y", (1, 5), (2, 3)), Split("z", (3,), (4, 5))]
    assert split_topics(pairs, ["x", "x", "y", "y", "z", "z"]) == expected
    for split in split_folds(pairs, 3):
        kept = {frozenset(pairs[i]) for i in split.train}
        scored = {frozenset(pairs[i]) for i in split.test}
        assert not kept & scored
        assert kept | scored == {frozenset(pair) for pair in pairs}
    with pytest.raises(ValueError, match="Cannot make 7 folds of 6 pairs: expected 2 to 6"):
        split_folds(pairs, 7)
    with pytest.raises(ValueError, match="All pairs are about x: expected two topics"):
        split_topics(pairs[:2], ["x", "x"])


def test_support_vectors_are_those_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(arguments, "_PENALTIES", (10.0,))
    monkeypatch.setattr(arguments, "_WIDTHS", (0.3,))
    rng = numpy.random.default_rng(0)
    x = rng.normal(3, 5, (60, 4))
    given = rng.normal(3, 5, (9, 4))
    gold = 2 + 3 * numpy.sin(x[:, 0])
    scaler = StandardScaler().fit(x)
    target = StandardScaler().fit(gold[:, None])
    plain = SVR(C=10.0, gamma=0.3 / 4).fit(
        scaler.transform(x), target.transform(gold[:, None])[:, 0]
    )
    expected = target.inverse_transform(plain.predict(scaler.transform(given))[:, None])[:, 0]
    assert fit_support_vectors((x, gold), 1)(given) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("protocol", ["folds", "topics"])
def test_scores_are_of_what_is_held_out(protocol):
    pairs = made()
    splits = (
        split_folds(members(pairs), 3)
        if protocol == "folds"
        else split_topics(members(pairs), pairs.subset)
    )
    result = _score_held_out(pairs, splits, run_of())
    scores = result["variants"][0]["scores"]
    predicted = numpy.array(result["predictions"]["predicted"])
    each = {
        split.name: spearmanr(predicted[[*split.test]], pairs.gold[[*split.test]])[0]
        for split in splits
    }
    found = scores["svr"]["spearman"]
    assert found["subsets"] == pytest.approx(each, abs=1e-12)
    assert found["mean"] == pytest.approx(numpy.mean(list(each.values())), abs=1e-12)
    assert scores["svr"]["pearson"]["pooled"] == pytest.approx(
        pearsonr(predicted, pairs.gold)[0], abs=1e-12
    )
    assert scores["svr"]["mse"] == pytest.approx(((predicted - pairs.gold) ** 2).mean(), rel=1e-12)
    assert set(scores) == {"svr", "learned", "cosine"}
    assert "mse" in scores["learned"]
    assert "mse" not in scores["cosine"]
    expected = spearmanr(cosines(pairs.first, pairs.second), pairs.gold)[0]
    assert scores["cosine"]["spearman"]["pooled"] == pytest.approx(expected, abs=1e-6)
    assert result["primary"] == "svr.spearman.mean"
    assert result["intervals"]["svr.spearman.mean"] is not None
    assert result["counts"]["all"] == 60
    assert len(result["counts"]) == len(splits) + 1


def test_nothing_is_learned_from_what_is_held_out():
    pairs = made(30)
    splits = split_topics(members(pairs), pairs.subset)
    shown = []

    def learning(texts, *, fit_on=None):
        shown.append(set(fit_on))
        return encode(texts)

    settings = {"normalizations": ("zscore",), "sizes": ("pca-3", "up-7"), "seeds": (1, 2)}
    result = _score_held_out(pairs, splits, run_of(encode=learning, **settings))
    for texts in shown:
        assert any(
            texts == {side[i] for side in (pairs.first, pairs.second) for i in split.train}
            for split in splits
        )
    assert "deviation" not in result["variants"][0]
    assert result["variants"][1]["deviation"]["svr"]["mse"] > 0
    other = GradedPairs(pairs.first, pairs.second, pairs.gold.copy(), pairs.subset)
    tested = list(splits[0].test)
    # Its own scores change nothing of what is predicted of it
    other.gold[tested] = 0.0
    again = _score_held_out(other, splits, run_of(encode=learning, **settings))
    one, two = (numpy.array(found["predictions"]["predicted"]) for found in (result, again))
    assert (one[tested] == two[tested]).all()
    assert not (one == two).all()


def test_tasks_read_the_corpora(aspects):
    assert [task.name for task in LEARNED] == [
        "AFS-folds",
        "AFS-topics",
        "UKP-ASPECT-folds",
        "UKP-ASPECT-topics",
    ]
    run = run_of(aspects[0], bootstrap=0, any_count=True)
    folds, topics = (task.run(run) for task in LEARNED[2:])
    assert set(topics["counts"]) == {*TOPICS, "all"}
    assert "fold 10" in folds["counts"]
    assert folds["predictions"]["gold"] == ASPECT.run(run)["predictions"]["gold"]
    assert "not zero-shot" in topics["notes"][-1]
    assert "24 examples" in topics["notes"][0]
