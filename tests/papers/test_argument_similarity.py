"""The similarity of arguments: what each split trains on and scores, and a tiny run of the script."""

import json
from pathlib import Path

import numpy
import pytest
import spacy
from helpers.made_data import HashedSource
from helpers.paper_runs import read_rows, read_scores, refuse_training
from helpers.pipelines import ROOT, real_data
from protocols.argument_corpora import read_arguments
from protocols.arguments import _score_held_out

from spacy_sbert.evaluation import Settings
from spacy_sbert.evaluation.protocols.sts import GradedPairs
from spacy_sbert.evaluation.task import Run

SAMPLE = ROOT / "assets" / "arguments.tsv"


def keys(rows, indices):
    return {frozenset(rows[i].members) for i in indices}


def sentences(rows, indices):
    return {text for i in indices for text in rows[i].members}


def check_splits(rows, splits, apart):
    """apart: what is not on both sides, keys or sentences."""
    assert sorted(i for split in splits for i in split.test) == list(range(len(rows))), (
        "each pair is scored once"
    )
    for split in splits:
        scored = apart(rows, split.test)
        assert not apart(rows, split.train) & scored
        left_out = set(range(len(rows))) - {*split.train, *split.test}
        assert all(apart(rows, [i]) & scored for i in left_out), "nothing is left out in vain"


def test_folds_of_the_sample(load_script):
    script = load_script("argument_similarity")
    rows = read_arguments(SAMPLE, "ukp")
    folds = script.make_splits("folds", rows, 10)
    check_splits(rows, folds, keys)
    assert [len(split.test) for split in folds] == [16] * 10
    assert folds == script.make_splits("folds", rows, 10)
    assert script.make_splits("folds", rows, 10, ["fold 3"]) == folds[2:3]
    with pytest.raises(SystemExit, match="--only fold 11: expected some of fold 1, "):
        script.make_splits("folds", rows, 10, ["fold 11"])
    topics = script.make_splits("topics", rows, 10)
    check_splits(rows, topics, sentences)
    for split in topics:
        assert (
            {rows[i].topic for i in split.test}
            == {split.name}
            not in [{rows[i].topic for i in split.train}]
        )
    halves = script.make_splits("topic-folds", rows, 2)
    check_splits(rows, halves, sentences)
    for split in halves:
        scored, trained = ({rows[i].topic for i in part} for part in (split.test, split.train))
        assert len(scored) == len(trained) == 2
        assert not scored & trained
    with pytest.raises(SystemExit, match="5 folds of 4 topics: expected 2 to 4"):
        script.make_splits("topic-folds", rows, 5)


def test_folds_of_the_aspect_corpus(load_script):
    """In most pairs of random folds a sentence has been trained on; folds of whole groups cost no
    pair.
    """
    script = load_script("argument_similarity")
    rows = read_arguments(real_data() / "argument", "ukp")
    folds, apart, topics = (
        script.make_splits(protocol, rows, 10) for protocol in ("folds", "sentences", "topics")
    )
    topic_folds = script.make_splits("topic-folds", rows, 4)
    check_splits(rows, folds, keys)
    for splits in (apart, topics, topic_folds):
        check_splits(rows, splits, sentences)
    assert [len({rows[i].topic for i in split.test}) for split in topic_folds] == [7] * 4
    trained = [(sentences(rows, split.train), split.test) for split in folds]
    met = [texts & {*rows[i].members} for texts, test in trained for i in test]
    assert [len(rows), sum(map(bool, met)), sum(len(texts) == 2 for texts in met)] == [
        3595,
        3248,
        3018,
    ]
    assert len(load_script("argument_splits").connected([row.members for row in rows])) == 361
    assert {len(split.train) + len(split.test) for split in apart} == {3595}
    assert {len(split.test) for split in apart} == {359, 360}


def test_regression_of_the_script_is_that_of_the_suite(load_script):
    """Support vectors, by the script and by the task of the package: the same predictions of pairs
    held out.
    """
    script = load_script("argument_similarity")
    rows = read_arguments(SAMPLE, "ukp")
    source = HashedSource()
    splits = script.make_splits("folds", rows, 3)
    first, second = zip(*(row.members for row in rows), strict=True)
    pairs = GradedPairs(
        first, second, numpy.array([row.score for row in rows]), tuple(row.topic for row in rows)
    )
    run = Run(None, source.encode, Settings(bootstrap=0, seeds=(0,)), lambda items, _: items)
    expected = _score_held_out(pairs, splits, run)["predictions"]["predicted"]
    assert script.regressed(source, rows, splits) == pytest.approx(expected, abs=1e-6)


def test_the_table_is_over_splits_of_means_over_seeds(load_script):
    script = load_script("argument_similarity")
    scores = {
        ("topics", "bi-encoder", "one", "1"): {"pearson": 0.1, "spearman": 0.2},
        ("topics", "bi-encoder", "one", "2"): {"pearson": 0.3, "spearman": 0.4},
        ("topics", "bi-encoder", "two", "1"): {"pearson": 0.6, "spearman": 0.7},
        ("topics", "bi-encoder", "two", "2"): {"pearson": 0.6, "spearman": None},
        ("topics", "tf-idf"): {
            "one": {"pearson": 0.1, "spearman": 0.2},
            "two": {"pearson": 0.3, "spearman": 0.2},
        },
    }
    assert script.table(scores).splitlines()[2:] == [
        "| leave one topic out (2) | tf-idf | 20.00 | 14.14 | 20.00 | 0.00 | 2 | - |",
        "| leave one topic out (2) | vectors, trained | 40.00 | 28.28 | - | - | 2 | 2 |",
    ]


@pytest.fixture
def two_topics(tmp_path):
    lines = SAMPLE.read_text(encoding="utf8").splitlines()
    data = tmp_path / "arguments.tsv"
    data.write_text(
        "\n".join([lines[0], *(x for x in lines if x.startswith(("city", "night")))]),
        encoding="utf8",
    )
    return data


@pytest.mark.slow
def test_argument_similarity(load_script, run_script, tiny_bert, two_topics, tmp_path, monkeypatch):
    script = load_script("argument_similarity")
    trained = script.trained
    seen = []

    def look_and_train(folder, settings, config, args, overrides):
        records = [
            json.loads(line) for line in Path(overrides["paths.train"]).read_text().splitlines()
        ]
        seen.append(
            (config.stem, {frozenset((record["first"], record["second"])) for record in records})
        )
        return trained(folder, settings, config, args, overrides)

    monkeypatch.setattr(script, "trained", look_and_train)
    static = spacy.blank("xx")
    words = sorted(
        {
            word
            for row in read_arguments(SAMPLE, "ukp")
            for text in row.members
            for word in text.split()
        }
    )
    for i, word in enumerate(words):
        static.vocab.set_vector(word, numpy.random.default_rng(i).normal(size=8).astype("float32"))
    static.to_disk(tmp_path / "static")
    output = tmp_path / "out"
    options = [
        "--data",
        two_topics,
        "--encoder",
        tiny_bert,
        "--output",
        output,
        "--folds",
        2,
        "--steps",
        2,
    ]
    options += [
        "--limit",
        30,
        "--learn-rate",
        0.001,
        "--static",
        tmp_path / "static",
        "--protocols",
        "folds",
    ]
    run_script("argument_similarity", *options)
    rows = read_arguments(two_topics, "ukp")
    splits = script.make_splits("folds", rows, 2)
    assert [config for config, _ in seen] == ["sts", "reranker"] * 2
    assert [len(pairs) for _, pairs in seen] == [
        min(30, len(split.train)) for split in splits for _ in range(2)
    ]
    for split, (_, pairs) in zip([split for split in splits for _ in range(2)], seen, strict=True):
        assert pairs <= keys(rows, split.train)
        assert not pairs & keys(rows, split.test)
    (table,) = read_rows(output)
    assert [line[:2] for line in table] == [
        ["2-fold cross-validation over pairs", what] for what in script.TITLES.values()
    ]
    saved = read_scores(output)
    each = {f"folds-{row}-fold-{fold}-1" for row in script.TRAINED for fold in (1, 2)}
    assert set(saved) == {f"folds-{row}" for row in script.FIXED} | each
    spearman = [100 * saved[f"folds-bi-encoder-fold-{fold}-1"]["spearman"] for fold in (1, 2)]
    assert table[4][4:6] == [
        f"{sum(spearman) / 2:.2f}",
        f"{abs(spearman[0] - spearman[1]) / 2**0.5:.2f}",
    ]
    assert len({line[4] for line in table[:6]}) == 6, "each row has scores of its own"
    refuse_training(load_script, monkeypatch)
    run_script("argument_similarity", *options)
    assert read_rows(output) == [table]
