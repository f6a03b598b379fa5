"""Supervised STS, argument similarity, ablation: what is trained on and scored, and a tiny run of
each script.
"""

import argparse
import json
from pathlib import Path

import numpy
import pytest
import spacy
from helpers.made_data import HashedSource
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


def test_folds_that_keep_sentences_apart(load):
    """Pairs are linked by sentences, also through others: a-b, b-c and e-c are one group."""
    splitting = load("argument_splits")
    members = [tuple(pair) for pair in ("ab", "pq", "bc", "rs", "ec", "tq")]
    assert sorted(splitting.connected(members)) == [[0, 2, 4], [1, 5], [3]]
    splits = splitting.split_sentences(members, 2)
    assert [split.test for split in splits] == [(0, 2, 4), (1, 3, 5)]
    assert [split.train for split in splits] == [(1, 3, 5), (0, 2, 4)], "nothing is lost"
    with pytest.raises(
        ValueError, match="4 folds of 3 groups of pairs that share sentences: expected 2 to 3"
    ):
        splitting.split_sentences(members, 4)


def test_folds_of_the_sample(load):
    script = load("argument_similarity")
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
        assert len(scored) == len(trained) == 2 and not scored & trained
    with pytest.raises(SystemExit, match="5 folds of 4 topics: expected 2 to 4"):
        script.make_splits("topic-folds", rows, 5)


def test_folds_of_the_aspect_corpus(load):
    """In most pairs of random folds a sentence has been trained on; folds of whole groups cost no
    pair.
    """
    script = load("argument_similarity")
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
    assert len(load("argument_splits").connected([row.members for row in rows])) == 361
    assert {len(split.train) + len(split.test) for split in apart} == {3595}
    assert {len(split.test) for split in apart} == {359, 360}


def test_regression_of_the_script_is_that_of_the_suite(load):
    """Support vectors, by the script and by the task of the package: the same predictions of pairs
    held out.
    """
    script, rows = load("argument_similarity"), read_arguments(SAMPLE, "ukp")
    source, splits = HashedSource(), script.make_splits("folds", rows, 3)
    first, second = zip(*(row.members for row in rows), strict=True)
    pairs = GradedPairs(
        first, second, numpy.array([row.score for row in rows]), tuple(row.topic for row in rows)
    )
    run = Run(None, source.encode, Settings(bootstrap=0, seeds=(0,)), lambda items, _: items)
    expected = _score_held_out(pairs, splits, run)["predictions"]["predicted"]
    assert script.regressed(source, rows, splits) == pytest.approx(expected, abs=1e-6)


def read_rows(folder):
    """The lines of each table in table.md, as cells."""
    tables = (folder / "table.md").read_text(encoding="utf8").split("\n\n")
    return [[line.strip("| ").split(" | ") for line in part.splitlines()[2:]] for part in tables]


def read_scores(folder):
    return {
        name: run["scores"]
        for name, run in json.loads((folder / "scores.json").read_text())["runs"].items()
    }


@pytest.fixture(scope="module")
def dev(tmp_path_factory):
    """The first pairs of the sample that is scored."""
    path = tmp_path_factory.mktemp("dev") / "dev.csv"
    lines = (ROOT / "assets" / "pairs-dev.csv").read_text(encoding="utf8").splitlines(keepends=True)
    path.write_text("".join(lines[:40]), encoding="utf8")
    return path


def refuse_training(load, monkeypatch):
    def trained(*args):
        raise AssertionError("nothing is trained again")

    for name in ("ablation", "argument_similarity", "supervised_sts"):
        monkeypatch.setattr(load(name), "trained", trained)


def test_a_run_is_saved_and_not_made_again(load, tmp_path):
    """A setting holds the weights of a folder, not its place."""
    made = []

    def make():
        made.append(1)
        return {"spearman": 0.5 + len(made) / 10}

    for folder in "ab":
        (tmp_path / folder / "encoder").mkdir(parents=True)
        (tmp_path / folder / "encoder" / "weights").write_text(folder, encoding="utf8")
    first, second = ({"encoder": str(tmp_path / folder / "encoder")} for folder in "ab")
    # As two calls of a script
    for settings in (first, first):
        runs = load("runs").Runs(tmp_path / "new", {"seeds": [1]}, lambda scores: f"{scores}\n")
        assert runs("u,v", "1", settings=settings, make=make) == {"spearman": 0.6}
        assert (tmp_path / "new" / "table.md").read_text() == "{('u,v', '1'): {'spearman': 0.6}}\n"
    saved = (tmp_path / "new" / "scores.json").read_text()
    kept = json.loads(saved)
    assert made == [1] and str(tmp_path) not in saved
    assert kept["settings"] == {"seeds": [1]} and kept["runs"].keys() == {"u-v-1"}
    run = kept["runs"]["u-v-1"]
    assert run["scores"] == {"spearman": 0.6} and run["device"] == "cpu"
    assert run["seconds"] >= 0 and run["versions"]["spacy"]
    with pytest.raises(SystemExit, match=r"was made with .* not .*choose another --output"):
        runs("u,v", "1", settings=second, make=make)


def test_means_deviations_and_paired_differences(load):
    """By hand: d = 1, 2, 3; t = 2 / (1 / sqrt(3)); 4.3027 is the 97.5 % quantile of Student's t of
    2 degrees.
    """
    tables = load("runs")
    assert (
        tables.mean_and_deviation([0.5, 0.7]) == ("60.00", "14.14")
        and tables.in_one([0.5, 0.7]) == "60.00 ± 14.14"
    )
    assert tables.mean_and_deviation([0.5]) == ("50.00", "-") and tables.in_one([0.5]) == "50.00"
    assert tables.mean_and_deviation([0.5, None]) == tables.mean_and_deviation([]) == ("-", "-")
    assert (
        tables.mean_of([0.5, 0.7]) == pytest.approx(0.6)
        and tables.mean_of([0.5, None]) is tables.mean_of([]) is None
    )
    mean, interval, t, p = tables.paired_difference([0.81, 0.83, 0.82], [0.80, 0.80, 0.80])
    assert [mean, interval, t] == ["+2.00", "-0.48 to +4.48", f"{2 * 3**0.5:.2f}"] and float(
        p
    ) == pytest.approx(0.074)
    assert tables.paired_difference([0.8], [0.7]) == ["+10.00", "-", "-", "-"]
    assert tables.paired_difference([0.5, 0.5], [0.5, 0.5]) == ["+0.00", "-", "-", "-"]
    assert tables.paired_difference([0.5, None], [0.5, 0.4]) == ["-"] * 4


@pytest.mark.parametrize("of_classification", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_ablation(load, run_script, tiny_bert, tmp_path, monkeypatch, dev, of_classification):
    """Both columns of Table 6: the regression has poolings alone."""
    options = [
        "--encoder",
        tiny_bert,
        "--output",
        tmp_path,
        "--steps",
        1,
        "--limit",
        16,
        "--learn-rate",
        0.001,
    ]
    poolings = ["mean"] if of_classification else ["mean", "max"]
    options += ["--dev", dev, "--pooling", *poolings, "--concatenation", "u,v,abs_diff"]
    options += [] if of_classification else ["--config", "configs/sts.cfg"]
    run_script("ablation", *options)
    (rows,) = read_rows(tmp_path)
    written = "(u, v, \\|u-v\\|)" if of_classification else "-"
    assert [row[:2] for row in rows] == [[pooling, written] for pooling in poolings]
    saved = read_scores(tmp_path)
    name = "mean-u-v-abs_diff" if of_classification else "mean-none"
    scores = [100 * saved[f"{name}-{seed}"]["spearman"] for seed in (1, 2)]
    assert rows[0][2:] == [
        f"{sum(scores) / 2:.2f}",
        f"{abs(scores[0] - scores[1]) / 2**0.5:.2f}",
        "2",
    ]
    assert all(run["seconds"] > 0 for run in saved.values())
    refuse_training(load, monkeypatch)
    run_script("ablation", *options)


def test_the_table_is_over_splits_of_means_over_seeds(load):
    script = load("argument_similarity")
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
def test_argument_similarity(load, run_script, tiny_bert, two_topics, tmp_path, monkeypatch):
    script = load("argument_similarity")
    trained, seen = script.trained, []

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
        assert pairs <= keys(rows, split.train) and not pairs & keys(rows, split.test)
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
    refuse_training(load, monkeypatch)
    run_script("argument_similarity", *options)
    assert read_rows(output) == [table]


@pytest.fixture
def sts_options(tiny_bert, tmp_path, dev):
    nli = tmp_path / "nli.jsonl"
    nli.write_text(
        (ROOT / "assets" / "nli-train.jsonl").read_text(encoding="utf8"), encoding="utf8"
    )
    options = [
        "--encoder",
        tiny_bert,
        "--output",
        tmp_path / "out",
        "--steps",
        2,
        "--nli-steps",
        2,
        "--limit",
        32,
    ]
    options += ["--score", dev, "--learn-rate", 0.001]
    return [*options, "--nli", ROOT / "assets" / "nli-train.jsonl", nli]


def test_supervised_sts(load, run_script, sts_options, tmp_path, monkeypatch):
    """A second step goes on from the first; nothing is trained twice; vectors and cross-encoders
    are compared.
    """
    script, output = load("supervised_sts"), tmp_path / "out"
    trained, seen = script.trained, {}

    def look_and_train(folder, settings, config, args, overrides):
        if not folder.exists():
            assert folder.name not in seen
            seen[folder.name] = args, overrides
        return trained(folder, settings, config, args, overrides)

    monkeypatch.setattr(script, "trained", look_and_train)
    names = ["sts", "nli", "nli-sts", "cross-sts"]
    options = [*sts_options, "--seeds", 1, "--rows", *names]
    run_script("supervised_sts", *options, "--keep-models")
    assert sorted(seen) == sorted(f"{name}-1" for name in names), "NLI once"
    args, overrides = seen["nli-sts-1"]
    assert overrides["paths.checkpoint"] == str(output / "models" / "nli-1")
    pipe = spacy.load(output / "models" / "cross-sts-1").get_pipe("sbert_reranker")
    assert (pipe.objective, pipe.model.activation) == ("squared_error", "identity")
    with pytest.raises(
        SystemExit, match=r"models/nli-1/training.json was made with .* choose another --output"
    ):
        script.model_of(argparse.Namespace(**{**vars(args), "learn_rate": 0.5}), "nli", 1)

    rows, differences = read_rows(output)
    assert [row[0] for row in rows] == [script.TRAININGS[name].title for name in names]
    assert len({row[2] for row in rows}) == 4, "each training moves the scores"
    saved = read_scores(output)
    assert [row[2] for row in rows] == [
        f"{100 * saved[f'{name}-1']['files']['dev.csv']['spearman']:.2f}" for name in names
    ]
    assert list(saved["sts-1"]["seconds"]) == ["sts"] and list(saved["nli-sts-1"]["seconds"]) == [
        "nli",
        "nli-sts",
    ]
    assert rows[2][6] == f"{sum(saved['nli-sts-1']['seconds'].values()):.0f}"
    assert differences[0][0] == "NLI, then STS, less STS" and differences[0][-1] == "1"
    assert float(differences[0][2]) == pytest.approx(
        float(rows[2][2]) - float(rows[0][2]), abs=0.011
    )
    refuse_training(load, monkeypatch)
    run_script("supervised_sts", *options)
    assert read_rows(output) == [rows, differences] and not list((output / "models").iterdir())


@pytest.mark.slow
def test_supervised_sts_on_suites(run_script, sts_options, tmp_path, dev):
    """Table 1 from the same pipelines, with what was asked of the encoder and the head."""
    data = tmp_path / "data"
    (data / "STSBenchmark").mkdir(parents=True)
    (data / "STSBenchmark" / "sts-dev.csv").write_text(dev.read_text(encoding="utf8"))
    options = [
        *sts_options,
        "--seeds",
        1,
        "--rows",
        "untrained",
        "nli",
        "--suites",
        data,
        "--any-count",
    ]
    run_script(
        "supervised_sts", *options, "--precision", "bfloat16", "--head-factor", 1, "--keep-models"
    )
    _, suites = (tmp_path / "out" / "table.md").read_text().split("\n\n")
    lines = [line.strip("| ").split(" | ") for line in suites.splitlines()]
    assert lines[0] == ["trained on", "scored by", "STSb-dev", "mean", "seeds"]
    assert [line[0] for line in lines[2:]] == ["nothing", "nothing", "NLI", "NLI"]
    saved = read_scores(tmp_path / "out")["nli-1"]
    assert (
        lines[4][2] == lines[4][3] == f"{100 * saved['suites']['STSb-dev']['pooled']:.2f}"
        and lines[5][2] == "-"
    )
    of_file = saved["files"]["dev.csv"]["spearman"]
    assert saved["suites"]["STSb-dev"]["pooled"] == pytest.approx(of_file, abs=1e-6), (
        "the same pipeline"
    )
    config = spacy.load(tmp_path / "out" / "models" / "nli-1").config["components"]
    assert config["transformer"]["model"]["precision"] == "bfloat16"
    assert config["sbert"]["loss"]["learn_rate_factor"] == 1
    with pytest.raises(SystemExit, match="--rows nli: name the NLI pairs to train on, --nli FILE"):
        run_script("supervised_sts", "--rows", "nli")


def test_the_encoder_before_training_is_that_of_the_config(load, tiny_bert, make_nlp):
    args = argparse.Namespace(encoder=str(tiny_bert), precision=None, gpu_id=-1)
    nlp = load("runs").untrained(ROOT / "configs" / "sts.cfg", args)
    assert nlp("A man is eating.").vector == pytest.approx(
        make_nlp("own")("A man is eating.").vector, abs=1e-6
    )
