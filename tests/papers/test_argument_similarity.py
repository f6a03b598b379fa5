"""The similarity of arguments: what each split trains on and scores, and a tiny run of the
script.
"""

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


@pytest.fixture
def make_splits(load_script):
    return load_script("argument_similarity").make_splits


@pytest.fixture(scope="module")
def sample():
    return read_arguments(SAMPLE, "ukp")


def topics(rows, indices):
    return {rows[i].topic for i in indices}


def test_folds_of_the_sample(make_splits, sample):
    folds = make_splits("folds", sample, 10)
    check_splits(sample, folds, keys)
    assert [len(split.test) for split in folds] == [16] * 10
    assert folds == make_splits("folds", sample, 10)
    assert make_splits("folds", sample, 10, ["fold 3"]) == folds[2:3]
    with pytest.raises(SystemExit, match="--only fold 11: expected some of fold 1, "):
        make_splits("folds", sample, 10, ["fold 11"])


def test_topics_of_the_sample(make_splits, sample):
    splits = make_splits("topics", sample, 10)
    check_splits(sample, splits, sentences)
    for split in splits:
        assert topics(sample, split.test) == {split.name}
        assert split.name not in topics(sample, split.train)


def test_folds_of_topics_of_the_sample(make_splits, sample):
    halves = make_splits("topic-folds", sample, 2)
    check_splits(sample, halves, sentences)
    for split in halves:
        scored = topics(sample, split.test)
        trained = topics(sample, split.train)
        assert len(scored) == len(trained) == 2
        assert not scored & trained
    with pytest.raises(SystemExit, match="5 folds of 4 topics: expected 2 to 4"):
        make_splits("topic-folds", sample, 5)


@pytest.fixture(scope="module")
def aspect_corpus():
    rows = read_arguments(real_data() / "argument", "ukp")
    assert len(rows) == 3595
    return rows


def test_random_folds_of_the_aspect_corpus(make_splits, aspect_corpus):
    """In most pairs a sentence has been trained on."""
    rows = aspect_corpus
    folds = make_splits("folds", rows, 10)
    check_splits(rows, folds, keys)
    n_met = []
    for split in folds:
        trained = sentences(rows, split.train)
        n_met += [len(trained & {*rows[i].members}) for i in split.test]
    assert sum(n > 0 for n in n_met) == 3248
    assert n_met.count(2) == 3018


def test_folds_of_groups_of_the_aspect_corpus(load_script, make_splits, aspect_corpus):
    """They cost no pair."""
    rows = aspect_corpus
    splits = make_splits("sentences", rows, 10)
    check_splits(rows, splits, sentences)
    assert len(load_script("argument_splits").connected([row.members for row in rows])) == 361
    assert {len(split.train) + len(split.test) for split in splits} == {3595}
    assert {len(split.test) for split in splits} == {359, 360}


def test_topics_of_the_aspect_corpus(make_splits, aspect_corpus):
    check_splits(aspect_corpus, make_splits("topics", aspect_corpus, 10), sentences)
    folds = make_splits("topic-folds", aspect_corpus, 4)
    check_splits(aspect_corpus, folds, sentences)
    assert [len(topics(aspect_corpus, split.test)) for split in folds] == [7] * 4


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


@pytest.fixture
def static(tmp_path):
    """The folder of a pipeline with random static vectors of the words of the sample."""
    nlp = spacy.blank("xx")
    texts = [text for row in read_arguments(SAMPLE, "ukp") for text in row.members]
    for seed, word in enumerate(sorted({word for text in texts for word in text.split()})):
        vector = numpy.random.default_rng(seed).normal(size=8).astype("float32")
        nlp.vocab.set_vector(word, vector)
    nlp.to_disk(tmp_path / "static")
    return tmp_path / "static"


@pytest.fixture
def options(two_topics, tiny_bert, static, tmp_path):
    given = ["--data", two_topics, "--encoder", tiny_bert, "--static", static]
    given += ["--protocols", "folds", "--folds", 2, "--steps", 2, "--limit", 30]
    return [*given, "--learn-rate", 0.001, "--output", tmp_path / "out"]


@pytest.mark.slow
def test_each_model_trains_on_the_pairs_of_its_split(
    load_script, run_script, options, two_topics, monkeypatch
):
    script = load_script("argument_similarity")
    trained = script.trained
    seen = []

    def look_and_train(folder, settings, config, args, overrides):
        lines = Path(overrides["paths.train"]).read_text().splitlines()
        records = [json.loads(line) for line in lines]
        pairs = {frozenset((record["first"], record["second"])) for record in records}
        seen.append((config.stem, pairs))
        return trained(folder, settings, config, args, overrides)

    monkeypatch.setattr(script, "trained", look_and_train)
    run_script("argument_similarity", *options)
    rows = read_arguments(two_topics, "ukp")
    splits = script.make_splits("folds", rows, 2)
    assert [config for config, _ in seen] == ["sts", "reranker"] * 2
    for split, of_split in zip(splits, (seen[:2], seen[2:]), strict=True):
        for _, pairs in of_split:
            assert len(pairs) == min(30, len(split.train))
            assert pairs <= keys(rows, split.train)
            assert not pairs & keys(rows, split.test)


@pytest.mark.slow
def test_table_of_argument_similarity(load_script, run_script, options, tmp_path, monkeypatch):
    """It is made once."""
    script = load_script("argument_similarity")
    run_script("argument_similarity", *options)
    (table,) = read_rows(tmp_path / "out")
    assert {line[0] for line in table} == {"2-fold cross-validation over pairs"}
    assert [line[1] for line in table] == list(script.TITLES.values())
    assert len({line[4] for line in table[:6]}) == 6, "each row has scores of its own"
    saved = read_scores(tmp_path / "out")
    trained = {f"folds-{row}-fold-{fold}-1" for row in script.TRAINED for fold in (1, 2)}
    assert set(saved) == {f"folds-{row}" for row in script.FIXED} | trained
    first, second = (100 * saved[f"folds-bi-encoder-fold-{fold}-1"]["spearman"] for fold in (1, 2))
    mean = (first + second) / 2
    deviation = abs(first - second) / 2**0.5
    assert table[4][4:6] == [f"{mean:.2f}", f"{deviation:.2f}"]
    refuse_training(load_script, monkeypatch)
    run_script("argument_similarity", *options)
    assert read_rows(tmp_path / "out") == [table]
