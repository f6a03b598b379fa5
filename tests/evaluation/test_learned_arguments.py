"""Similarity of arguments learned from others: folds as the script has them, support vectors, nothing from the test."""

import numpy
import pytest

pytest.importorskip("sklearn")

from scipy.stats import pearsonr, spearmanr
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from spacy_sbert.evaluation.protocols import learned_arguments as support_vectors
from spacy_sbert.evaluation.protocols.arguments import UKP, Split, split_folds, split_topics
from spacy_sbert.evaluation.protocols.graded import GradedPairs
from spacy_sbert.evaluation.protocols.learned_arguments import TASKS, _score_held_out, fit_support_vectors
from spacy_sbert.evaluation.task import Run, Settings


def encode(texts, *, fit_on=None):
    rows = [numpy.random.default_rng([ord(letter) for letter in text]).normal(size=5) for text in texts]
    return numpy.stack(rows).astype("float32")


def made(n=60):
    """Pairs whose score is how near they are in one number, in a way that is not linear."""
    first, second = (tuple(f"{side} {i}" for i in range(n)) for side in "ab")
    gold = numpy.exp(-((encode(first)[:, 0] - encode(second)[:, 0]) ** 2)).astype("float64")
    return GradedPairs(first, second, gold, tuple("xyz"[i % 3] for i in range(n)))


def members(pairs):
    return list(zip(pairs.first, pairs.second, strict=True))


def run_of(encode=encode, **settings):
    return Run(None, encode, Settings(**{"bootstrap": 20, **settings}), lambda items, name: items)


def test_a_pair_that_is_scored_is_never_trained_on():
    pairs = [("a", "b"), ("c", "d"), ("b", "a"), ("e", "f"), ("a", "c"), ("g", "h")]
    splits = split_topics(pairs, ["x", "x", "y", "y", "z", "z"])
    assert splits == [
        Split(
            "x", (3, 5), (0, 1)
        ),  # the third pair is the first in the other order, and the fifth has a sentence of it
        Split("y", (1, 5), (2, 3)),
        Split("z", (3,), (4, 5)),
    ]
    for split in split_folds(pairs, 3):
        kept = {frozenset(pairs[i]) for i in split.train}
        scored = {frozenset(pairs[i]) for i in split.test}
        assert not kept & scored and kept | scored == {frozenset(pair) for pair in pairs}
    with pytest.raises(ValueError, match="Cannot make 7 folds of 6 pairs: expected 2 to 6"):
        split_folds(pairs, 7)
    with pytest.raises(ValueError, match="All pairs are about x: expected two topics"):
        split_topics(pairs[:2], ["x", "x"])


def test_support_vectors_are_those_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(support_vectors, "_PENALTIES", (10.0,))
    monkeypatch.setattr(support_vectors, "_WIDTHS", (0.3,))
    rng = numpy.random.default_rng(0)
    x, given = rng.normal(3, 5, (60, 4)), rng.normal(3, 5, (9, 4))
    gold = 2 + 3 * numpy.sin(x[:, 0])
    scaler, target = StandardScaler().fit(x), StandardScaler().fit(gold[:, None])
    plain = SVR(C=10.0, gamma=0.3 / 4).fit(scaler.transform(x), target.transform(gold[:, None])[:, 0])
    expected = target.inverse_transform(plain.predict(scaler.transform(given))[:, None])[:, 0]
    assert fit_support_vectors((x, gold), 1)(given) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("protocol", ["folds", "topics"])
def test_scores_are_of_what_is_held_out(protocol):
    pairs = made()
    splits = split_folds(members(pairs)) if protocol == "folds" else split_topics(members(pairs), pairs.subset)
    result = _score_held_out(pairs, splits, run_of())
    scores, predicted = result["variants"][0]["scores"], numpy.array(result["predictions"]["predicted"])
    tests = {split.name: list(split.test) for split in splits}
    each = {name: spearmanr(predicted[at], pairs.gold[at])[0] for name, at in tests.items()}
    found = scores["svr"]["spearman"]
    assert found["subsets"] == pytest.approx(each, abs=1e-12)
    assert found["mean"] == pytest.approx(numpy.mean(list(each.values())), abs=1e-12)
    assert scores["svr"]["pearson"]["pooled"] == pytest.approx(pearsonr(predicted, pairs.gold)[0], abs=1e-12)
    assert scores["svr"]["mse"] == pytest.approx(((predicted - pairs.gold) ** 2).mean(), rel=1e-12)
    assert set(scores) == {"svr", "learned", "cosine"} and "mse" in scores["learned"] and "mse" not in scores["cosine"]
    u, v = encode(pairs.first), encode(pairs.second)
    cosines = (u * v).sum(1) / numpy.sqrt((u * u).sum(1) * (v * v).sum(1))
    assert scores["cosine"]["spearman"]["pooled"] == pytest.approx(spearmanr(cosines, pairs.gold)[0], abs=1e-6)
    assert result["primary"] == "svr.spearman.mean" and result["intervals"]["svr.spearman.mean"] is not None
    assert result["counts"]["all"] == 60 and len(result["counts"]) == len(splits) + 1


def test_nothing_is_learned_from_what_is_held_out():
    pairs = made(30)
    splits, shown = split_topics(members(pairs), pairs.subset), []

    def learning(texts, *, fit_on=None):
        shown.append(set(fit_on))
        return encode(texts)

    settings = {"normalizations": ("zscore",), "sizes": ("pca-3", "up-7"), "seeds": (1, 2)}
    result = _score_held_out(pairs, splits, run_of(learning, **settings))
    for texts in shown:
        assert any(texts == {side[i] for side in (pairs.first, pairs.second) for i in split.train} for split in splits)
    assert "deviation" not in result["variants"][0] and result["variants"][1]["deviation"]["svr"]["mse"] > 0
    other = GradedPairs(pairs.first, pairs.second, pairs.gold.copy(), pairs.subset)
    other.gold[list(splits[0].test)] = 0.0  # its own scores change nothing of what is said of it
    again = _score_held_out(other, splits, run_of(learning, **settings))
    one, two = (numpy.array(found["predictions"]["predicted"]) for found in (result, again))
    assert (one[list(splits[0].test)] == two[list(splits[0].test)]).all() and not (one == two).all()


def test_tasks_read_the_corpora(tmp_path):
    lines = ["topic\tsentence_1\tsentence_2\tlabel"]
    lines += [f"{'xy'[i % 2]}\tone {i}\tother {i}\t{('NS', 'SS', 'HS')[i % 3]}" for i in range(30)]
    (tmp_path / "UKP_ASPECT.tsv").write_text("\n".join(lines))
    by_name = {task.name: task for task in TASKS}
    assert list(by_name) == ["AFS-folds", "AFS-topics", "UKP-ASPECT-folds", "UKP-ASPECT-topics"]
    run = Run(tmp_path, encode, Settings(bootstrap=0, any_count=True), lambda items, name: items)
    found = {name: by_name[f"UKP-ASPECT-{name}"].run(run) for name in ("folds", "topics")}
    assert set(found["topics"]["counts"]) == {"x", "y", "all"} and "fold 10" in found["folds"]["counts"]
    assert found["folds"]["predictions"]["gold"] == UKP.run(run)["predictions"]["gold"]
    assert "not zero-shot" in found["topics"]["notes"][-1] and "30 examples" in found["topics"]["notes"][0]
