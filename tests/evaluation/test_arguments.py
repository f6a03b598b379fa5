"""Similarity of arguments without training, on made files."""

import csv

import numpy
import pytest
from scipy.stats import pearsonr, spearmanr

from spacy_sbert.evaluation.protocols.arguments import TASKS
from spacy_sbert.evaluation.task import MissingData, Run, Settings

AFS, ASPECT = TASKS
TOPICS = ("Big data", "Drones")


def vector(text):
    return numpy.random.default_rng(sum(map(ord, text))).normal(size=8).astype("float32")


def encode(texts, *, fit_on=None):
    return numpy.stack([vector(text) for text in texts])


def run(task, root, **settings):
    return task.run(Run(root, encode, Settings(bootstrap=20, **settings), lambda items, name: items))


@pytest.fixture
def aspects(tmp_path):
    labels = ["DTORCD", "NS", "SS", "HS"] * 6
    rows = [(TOPICS[i % 3 == 0], f"Argument {i}.", f"Other {i * i}.", label) for i, label in enumerate(labels)]
    (tmp_path / "argument").mkdir()
    lines = ["topic\tsentence_1\tsentence_2\tlabel", *("\t".join(row) for row in rows)]
    (tmp_path / "argument" / "UKP_ASPECT.tsv").write_text("\n".join(lines), encoding="utf8")
    return tmp_path, rows


def write_afs(folder, *topics):
    folder.mkdir(parents=True)
    for topic in topics:
        with (folder / f"ArgPairs_{topic}_1.csv").open("w", encoding="iso-8859-1", newline="") as file:
            records = [[i / 2, *"abcdefgh", f"{topic} one {i}", f"{topic} two {i * i}"] for i in range(11)]
            csv.writer(file).writerows([["regression_label", *"abcdefgh", "sentence_1", "sentence_2"], *records])


def test_topics_pooled_and_mean_equal_scipy(aspects):
    root, rows = aspects
    result = run(ASPECT, root, any_count=True)
    predicted = [float(u @ v / numpy.sqrt(u @ u * (v @ v))) for u, v in ((vector(r[1]), vector(r[2])) for r in rows)]
    gold = [{"SS": 0.5, "HS": 1.0}.get(row[3], 0.0) for row in rows]
    for name, measure in (("spearman", spearmanr), ("pearson", pearsonr)):
        scores = result["variants"][0]["scores"]["cosine"][name]
        assert scores["pooled"] == pytest.approx(measure(predicted, gold)[0], abs=1e-6)
        each = []
        for topic in TOPICS:
            at = [i for i, row in enumerate(rows) if row[0] == topic]
            each.append(measure([predicted[i] for i in at], [gold[i] for i in at])[0])
            assert scores["subsets"][topic] == pytest.approx(each[-1], abs=1e-6)
        assert scores["mean"] == pytest.approx(sum(each) / 2, abs=1e-6)
    assert result["counts"] == {"Big data": 16, "Drones": 8, "all": 24}
    assert result["predictions"]["gold"] == gold
    assert "24 examples, where the official data set has 3,595" in result["notes"][0]
    assert "DTORCD 0, NS 0, SS 1/2, HS 1" in result["notes"][1]


def test_aspects_are_counted_and_training_data_noted(aspects):
    with pytest.raises(ValueError, match="24 examples with a gold value, where the official data set has 3595"):
        run(ASPECT, aspects[0])
    notes = run(ASPECT, aspects[0], any_count=True, trained_on=("ukp-aspect", "nli"))["notes"]
    assert notes[2].startswith("The encoder was trained on ukp-aspect, which shares pairs or sources with this set")


@pytest.mark.parametrize("folder", ["argument/AFS", "argument"])
def test_afs_is_found_and_scored_as_graded(tmp_path, folder):
    write_afs(tmp_path / folder, "DP", "GC", "GM")
    assert [file.name for file in AFS.find(tmp_path)] == [f"ArgPairs_{topic}_1.csv" for topic in ("DP", "GC", "GM")]
    result = run(AFS, tmp_path)
    assert result["counts"] == {"death penalty": 11, "gun control": 11, "gay marriage": 11, "all": 33}
    assert result["predictions"]["gold"] == [i / 2 for i in range(11)] * 3
    assert set(result["variants"][0]["scores"]["cosine"]["spearman"]["subsets"]) == {*result["counts"]} - {"all"}


def test_missing_data_are_named(tmp_path):
    with pytest.raises(MissingData, match=r"UKP_ASPECT\.tsv not found below .*https://github\.com/UKPLab"):
        ASPECT.find(tmp_path)
    write_afs(tmp_path / "AFS", "GC")
    with pytest.raises(MissingData, match=r"ArgPairs_DP\*\.csv and ArgPairs_GM\*\.csv not found"):
        AFS.find(tmp_path)
