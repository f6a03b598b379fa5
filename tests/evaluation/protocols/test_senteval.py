"""Transfer tasks are scikit-learn on the vectors, with SentEval's splits; their files are as
published.
"""

import sys
from pathlib import Path

import numpy
import pytest
from helpers import made_senteval
from helpers.made_senteval import (
    COARSE,
    FOLDS,
    GRID,
    Cued,
    bits,
    encoded,
    real_paths,
    search,
    write,
    write_paraphrases,
    write_polarity,
    write_questions,
    write_treebank,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from spacy_sbert.evaluation.protocols import classification
from spacy_sbert.evaluation.protocols.senteval import TASKS
from spacy_sbert.evaluation.task import MissingData

BY_NAME = {task.name: task for task in TASKS}
assert classification._C_GRID == (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(classification, "_C_GRID", tuple(GRID["C"]))


@pytest.fixture
def one_c(monkeypatch, few):
    monkeypatch.setattr(classification, "_C_GRID", (1.0,))


def run(name, root, source=None, **settings):
    return made_senteval.run(BY_NAME[name], root, source, **settings)


def test_cross_validation_is_that_of_scikit_learn(tmp_path):
    texts, labels = write_polarity(tmp_path)
    result = run("MR", tmp_path)
    rows = Cued().encode(texts)
    chosen = []
    expected = numpy.zeros(70, dtype=bool)
    for train, test in FOLDS.split(rows, labels):
        found = search().fit(rows[train], labels[train])
        chosen.append(found.best_params_["C"])
        expected[test] = found.predict(rows[test]) == labels[test]
    assert 0.6 < expected.mean() < 1
    assert result["predictions"]["right"] == bits(expected), "in the order of the data"
    assert result["variants"][0]["scores"] == {
        "lr": {"accuracy": pytest.approx(expected.mean(), abs=1e-12)}
    }
    assert result["variants"][0]["c"] == chosen
    assert len(set(chosen)) > 1
    low, high = result["intervals"]["lr.accuracy"]
    assert low < expected.mean() < high
    assert result["counts"] == {"all": 70}
    assert result["primary"] == "lr.accuracy"


def test_pairs_are_compared_by_difference_and_product(tmp_path):
    data = write_paraphrases(tmp_path)
    result = run("MRPC", tmp_path, trained_on=("mrpc-train", "stsb"))
    rows = {}
    labels = {}
    for split, found in data.items():
        labels[split], first, second = (list(column) for column in zip(*found, strict=True))
        u = Cued().encode(first)
        v = Cued().encode(second)
        rows[split] = numpy.hstack([abs(u - v), u * v])
    predicted = search().fit(rows["train"], labels["train"]).predict(rows["test"])
    scores = result["variants"][0]["scores"]["lr"]
    assert result["predictions"]["right"] == bits(predicted == labels["test"])
    assert scores["f1"] == pytest.approx(
        f1_score(labels["test"], predicted, pos_label="1"), abs=1e-12
    )
    assert 0 < scores["f1"] < 1
    assert "trained on mrpc-train, which" in result["notes"][-1]


def test_c_is_chosen_on_dev_where_there_is_one(tmp_path):
    data = write_treebank(tmp_path, "01234", "{1} {0}".format, train=60, dev=25, test=25)
    result = run("SST-5", tmp_path, trained_on=("mr",))
    (train, y), (dev, dev_y), (test, gold) = encoded(data)
    models = {c: LogisticRegression(C=c, max_iter=1000).fit(train, y) for c in GRID["C"]}
    accuracies = [model.score(dev, dev_y) for model in models.values()]
    best = GRID["C"][int(numpy.argmax(accuracies))]
    assert min(accuracies) < max(accuracies)
    assert result["variants"][0]["c"] == [best]
    assert result["predictions"]["right"] == bits(models[best].predict(test) == gold)
    assert result["counts"] == {"train": 60, "dev": 25, "test": 25, "all": 110}
    assert not any("trained on" in note for note in result["notes"])


def test_a_source_that_learns_is_shown_training_texts_alone(tmp_path, one_c):
    class Learning(Cued):
        learns = True

        def encode(self, texts, fit_on=()):
            shown.append(set(fit_on))
            return super().encode(texts)

    texts, labels = write_polarity(tmp_path)
    shown = []
    run("MR", tmp_path, Learning())
    assert shown == [{texts[i] for i in train} for train, _ in FOLDS.split(texts, labels)]


def test_blank_lines_count_officially_but_are_no_examples(tmp_path, one_c):
    write_polarity(tmp_path, 30, 30, "CR", ("custrev.pos", "custrev.neg"))
    with (tmp_path / "CR/custrev.neg").open("a", encoding="utf8") as file:
        file.write("\n \n")
    result = run("CR", tmp_path)
    assert result["counts"] == {"all": 60}
    assert "2 blank lines" in result["notes"][-1]
    assert result["notes"][0].startswith("CR: 62 examples, where the official data set has 3,775")
    with pytest.raises(ValueError, match=r"CR: 62 examples .* has 3775"):
        run("CR", tmp_path, any_count=False)


BROKEN = [
    ("MR", "MR/rt-polarity.neg", b"bad film\nna\xefve\n", "line 2: not UTF-8"),
    ("SST-5", "SST/fine/sentiment-test", b"5 fine\n", "line 1: unknown label '5'"),
    ("SST-5", "SST/fine/sentiment-test", b"4 fine\n4\n", "line 2: sentence is empty"),
    ("TREC", "TREC/TREC_10.label", b"WHO:ind Who ?\n", "line 1: unknown label 'WHO'"),
    (
        "MRPC",
        "MRPC/msr_paraphrase_test.txt",
        b"1\t2\t3\ta\tb\n",
        "line 1: expected a column 'Quality'",
    ),
    (
        "MRPC",
        "MRPC/msr_paraphrase_test.txt",
        b"Quality\t#1 String\t#2 String\n1\ta\n",
        "line 2: no column",
    ),
]


@pytest.mark.parametrize("name, file, content, message", BROKEN)
def test_broken_files_are_named_with_the_line(tmp_path, name, file, content, message):
    write_polarity(tmp_path)
    write_treebank(tmp_path, "01234", "{1} {0}".format, train=20, dev=10, test=10)
    write_questions(tmp_path)
    write_paraphrases(tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=f"{Path(file).name}, {message}"):
        run(name, tmp_path)


def test_one_class_and_too_few_examples_are_refused(tmp_path):
    write_questions(tmp_path, train=6 * 4)
    with pytest.raises(ValueError, match=r"TREC: .*'ABBR', 4 times"):
        run("TREC", tmp_path)
    write(tmp_path / "TREC/train_5500.label", ["HUM:ind Who ?"] * 20)
    with pytest.raises(ValueError, match=r"TREC: .* 1 labels, "):
        run("TREC", tmp_path)
    write_polarity(tmp_path, 20, 9)
    with pytest.raises(
        ValueError,
        match=r"'negative', 9 times",
    ):
        run("MR", tmp_path)


def test_missing_files_and_a_missing_scikit_learn_are_named(tmp_path, monkeypatch):
    for task in TASKS:
        with pytest.raises(
            MissingData, match="SICK_train" if task.name == "SICK-E" else "SentEval"
        ):
            task.find(tmp_path)
    write_polarity(tmp_path)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"MR needs scikit-learn.*spacy-sbert\[evaluation\]"):
        run("MR", tmp_path)


@pytest.mark.parametrize(
    "name, counts",
    [
        ("MR", [5331, 5331]),
        ("CR", [2407, 1368]),
        ("TREC", [5452, 500]),
        ("SST-2", [67349, 872, 1821]),
    ],
)
def test_the_official_files_are_read_whole(name, counts):
    files = zip(real_paths(BY_NAME[name]), BY_NAME[name].files, strict=True)
    rows = [list(read(path)) for path, (_, _, read) in files]
    assert list(map(len, rows)) == counts
    assert len({row.label for each in rows for row in each}) == {"TREC": 6}.get(name, 2)


def test_logistic_regression_learns_where_its_first_gradient_is_below_the_usual_tolerance():
    rng = numpy.random.default_rng(0)
    classes = numpy.repeat(numpy.arange(5), 20)
    labels = numpy.array(COARSE)[classes]
    rows = (1e-4 * (numpy.eye(5)[classes] + 0.1 * rng.normal(size=(100, 5)))).astype("float32")
    assert LogisticRegression().fit(rows, labels).n_iter_ == [0], "scikit-learn's own stops at once"
    first = abs((1 / 5 - numpy.eye(5)[classes]).T @ rows / 100).max()
    assert classification._tolerance(rows, labels) == pytest.approx(0.01 * first, rel=1e-6)
    assert classification._tolerance(1e4 * rows, labels) == 1e-4
    train = numpy.arange(0, 100, 2)
    test = numpy.arange(1, 100, 2)
    fold = classification.Fold(train, test, ((train, test),))
    predicted, accuracy, _ = classification.predict_lr(rows, labels, fold, compare=True)
    assert (predicted == labels[test]).all()
    assert accuracy == 1


def test_other_official_files_are_read(tmp_path, one_c):
    for name, files in {
        "SUBJ": ("subj.subjective", "subj.objective"),
        "MPQA": ("mpqa.pos", "mpqa.neg"),
    }.items():
        write_polarity(tmp_path / "senteval", 12, 10, name, files)
        assert [path.name for path in BY_NAME[name].find(tmp_path)] == list(files)
        assert [
            len(list(read(place.find(tmp_path)))) for _, place, read in BY_NAME[name].files
        ] == [12, 10]
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    labels = ("NEUTRAL", "ENTAILMENT", "CONTRADICTION")
    for file, size in (
        ("SICK_train.txt", 30),
        ("SICK_trial.txt", 9),
        ("SICK_test_annotated.txt", 12),
    ):
        lines = [
            f"{i}\t{labels[i % 3]} a {i}\t{labels[i % 3]} b {i}\t3.5\t{labels[i % 3]}"
            for i in range(size)
        ]
        write(tmp_path / "SICK" / file, [header, *lines])
    result = run("SICK-E", tmp_path)
    assert result["counts"] == {"train": 30, "dev": 9, "test": 12, "all": 51}
    assert len(result["predictions"]["right"]) == 12
