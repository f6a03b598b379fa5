"""From a table of one's own to a config, to a trained and scored pipeline, without a setting by
hand.
"""

import csv
import json

import numpy
import pytest
import spacy
from helpers.invoking import said as run
from helpers.made_tables import cycle, text, write_classes, write_columns
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from spacy.cli.train import train
from spacy.util import load_config

from spacy_sbert import find_sbert
from spacy_sbert.readers.infer_schema import find_table
from spacy_sbert.textcat import find_textcat
from spacy_sbert.training.quickstart_config import quickstart_config

GRADES = [0, 1.5, 2.5, 4, 5, 3]
# header, columns, measure
TABLES = {
    "graded": (("id", "one", "two", "sim"), (int, text, text, cycle(*GRADES)), "sts_spearman"),
    "binary": (("id", "one", "two", "same"), (int, text, text, cycle(0, 1)), "pair_ap"),
    "labelled": (
        ("id", "one", "two", "relation"),
        (int, text, text, cycle("yes", "no", "maybe")),
        "nli_acc",
    ),
    "positives": (("one", "two"), (text, text), "pair_ap"),
    "triplets": (("a", "p", "n"), (text, text, text), "triplet_acc"),
}
# test_options trains on labels
QUICK = ("graded", "positives")


def table(path, name):
    header, columns, _ = TABLES[name]
    return write_columns(path, header, *columns, n=60)


def graded(path, scores=GRADES, bad=None, header=("one", "two", "sim")):
    """A table of these scores, with others in some lines of the file."""
    return write_columns(
        path, header, text, text, lambda i: (bad or {}).get(i + 2, scores[i % len(scores)]), n=60
    )


@pytest.mark.parametrize(
    ("scores", "ends"),
    [
        ([0, 0.3, 1], (0, 1)),
        ([1, 3, 5], (1, 5)),
        ([0, 5, 2.5], (0, 5)),
        ([0.5, 4.75, 0], (0, 5)),
        ([-0.5, 0.25, 1], (-1, 1)),
        ([7, 950.5, 2], (2, 950.5)),
    ],
)
def test_range_of_scores(tmp_path, scores, ends):
    found = find_table(graded(tmp_path / "own.csv", scores))
    assert (found.columns.min_score, found.columns.max_score) == ends
    found = find_table(tmp_path / "own.csv", min_score=-1000, max_score=1000)
    assert (found.columns.min_score, found.columns.max_score) == (-1000, 1000)


def weighted(config):
    return {
        name: weight
        for name, weight in config["training"]["score_weights"].items()
        if weight is not None
    }


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in TABLES]
)
def test_config_is_trained_and_scored(tmp_path, name, tiny_bert):
    header, _, measure = TABLES[name]
    paths = [table(tmp_path / "train.csv", name)]
    paths += [table(tmp_path / "dev.csv", "binary" if name == "positives" else name)]
    out = tmp_path / "own.cfg"
    said = run("init-config", *paths, "--output", out, "--encoder", tiny_bert, "--epochs", 2)
    assert f"python -m spacy sbert train {out} --output training/mine" in said
    assert "60 " in said
    config = load_config(out, interpolate=True)
    assert config["training"]["max_epochs"] == 2
    assert weighted(config) == {measure: 1.0}
    steps = 2 * -(-60 // config["training"]["batcher"]["size"])
    assert f"{steps} steps; {measure} every {config['training']['eval_frequency']}\x1b" in said
    assert f"--checkpoint-every {config['training']['eval_frequency']}, and then --resume" in said
    assert ("Columns not used: id" in said) == ("id" in header)
    assert config["training"]["eval_frequency"] == max(1, (steps - 1) // 10)
    # Two epochs at least
    assert config["training"]["patience"] == steps
    train(out, tmp_path / "training", overrides={"training.logger.progress_bar": False})
    nlp = spacy.load(tmp_path / "training/model-best")
    # And no mean with another
    assert measure in nlp.meta["performance"]
    assert weighted(nlp.config) == {measure: 1.0}
    assert nlp("the cat").vector.any()
    said = run("evaluate", tmp_path / "training/model-best", paths[1])
    assert "Columns as in its training" in said
    assert "Examples 60" in said.replace("  ", " ")


def read_classes(path):
    with path.open(newline="", encoding="utf8") as file:
        return zip(*[row.values() for row in csv.DictReader(file)], strict=True)


def test_classes_are_fitted_on_the_encoder_that_was_trained_for_them(tmp_path, tiny_bert):
    """In one command, whichever it is, and in one pipeline."""
    paths = [write_classes(tmp_path / "train.csv"), write_classes(tmp_path / "dev.csv", n=30)]
    out = tmp_path / "own.cfg"
    told = run("init-config", *paths, "--output", out, "--encoder", tiny_bert)
    assert "40 epochs, 40 steps; cats_acc every 9" in told
    config = load_config(out, interpolate=True)
    assert config["nlp"]["pipeline"] == ["sbert", "sbert_textcat"]
    assert config["training"]["batcher"] == {
        "@batchers": "spacy-sbert.batch_by_label.v1",
        "size": 64,
    }
    assert weighted(config) == {"cats_acc": 1.0}
    settings = {
        "training.logger.progress_bar": False,
        "training.batcher.size": 16,
        "training.max_epochs": 4,
        "training.optimizer.learn_rate.initial_rate": 2e-3,
        "training.eval_frequency": 5,
        "training.patience": 0,
    }
    options = [word for key, value in settings.items() for word in (f"--{key}", json.dumps(value))]
    train(out, tmp_path / "spacy", overrides=settings)
    run("train", out, "--output", tmp_path / "own", *options)
    # Each distinct text is an example; their order decides how weights are rounded
    labelled = dict(zip(*read_classes(paths[0]), strict=True))
    texts = sorted(labelled)
    labels = [labelled[text] for text in texts]
    dev_texts, dev_labels = read_classes(paths[1])
    found = []
    for name in ("spacy", "own"):
        nlp = spacy.load(tmp_path / name / "model-best")
        docs = list(nlp.pipe(dev_texts))
        found.append([list(doc.cats.values()) for doc in docs])
        right = [doc._.sbert_label == label for doc, label in zip(docs, dev_labels, strict=True)]
        performance = nlp.meta["performance"]
        assert performance["cats_acc"] == pytest.approx(numpy.mean(right))
        sbert = find_sbert(nlp)
        fitted = find_textcat(nlp).cfg
        model = LogisticRegression(C=fitted["strength"], max_iter=1000)
        model.fit(sbert.encode(texts).astype("float64"), labels)
        logits = model.decision_function(sbert.encode(dev_texts).astype("float64"))
        expected = softmax(fitted["scale"] * logits, axis=1)
        assert list(docs[0].cats) == model.classes_.tolist()
        numpy.testing.assert_allclose(found[-1], expected, atol=1e-5)
    assert found[0] == found[1]
    untrained = spacy.blank("en")
    untrained.add_pipe("sbert", config={"model": {"name": str(tiny_bert)}})
    assert abs(untrained(dev_texts[0]).vector - docs[0].vector).max() > 0.01


@pytest.mark.parametrize(
    ("kind", "count", "epochs", "trained"),
    [
        ("classes", 16, None, (40, 1e-4, 9, 40)),
        ("classes", 65, None, (20, 1e-4, 9, 40)),
        ("classes", 64 * 9, None, (5, 1e-4, 11, 45)),
        ("classes", 64 * 10, None, (4, 2e-5, 9, 40)),
        ("classes", 16, 4, (4, 2e-5, 1, 4)),
        ("positives", 16, None, (4, 2e-5, 1, 4)),
    ],
)
def test_few_texts_of_each_class_take_more_epochs(kind, count, epochs, trained):
    """All of them count: no early score, which is often the best one, ends the training."""
    table = {"path": "a.csv", "members": ["text"], "label": "label"}
    config = quickstart_config(table, table, kind=kind, count=count, epochs=epochs)["training"]
    rate = config["optimizer"]["learn_rate"]["initial_rate"]
    found = (config["max_epochs"], rate, config["eval_frequency"], config["patience"])
    assert found == trained


def test_labels_of_the_dev_table_that_no_class_has(tmp_path):
    header = ("text", "label")
    paths = [write_classes(tmp_path / "train.csv")]
    paths += [write_columns(tmp_path / "dev.csv", header, text, cycle("class 0", "other"))]
    told = run("init-config", *paths, "--output", tmp_path / "x.cfg")
    assert "20 examples" in told
    assert "'other'. They count as wrong" in told
    write_columns(paths[1], header, text, cycle("one", "other"))
    assert "dev.csv has the labels 'one', 'other'" in run(
        "init-config", *paths, "--output", tmp_path / "y.cfg", code=1
    )


SCORES = {
    "grades": GRADES,
    "whole": [0, 1, 2, 3],
    "fractions": [i / 59 for i in range(60)],
    "many": list(range(60)),
}


@pytest.mark.parametrize("given", [{}, {"score": "sim"}], ids=["found", "named"])
@pytest.mark.parametrize("bad", ["", "  ", "n/a", "3,5", "nan", "inf"])
@pytest.mark.parametrize("scores", SCORES)
def test_bad_score_is_named_and_never_drops_the_column(tmp_path, scores, bad, given):
    path = graded(tmp_path / "bad.csv", SCORES[scores], {41: bad})
    said = rf"(?s)bad\.csv, line 41: .*'sim', got '\s*{bad.strip()}\s*'"
    with pytest.raises(ValueError, match=said):
        find_table(path, **given)


@pytest.mark.parametrize(
    "options", [(), ("--score", "sim"), ("--members", "one,two")], ids=["found", "score", "members"]
)
@pytest.mark.parametrize("names", ["bad good", "good bad"])
@pytest.mark.parametrize("scores", SCORES)
def test_bad_score_in_either_table(tmp_path, scores, names, options):
    graded(tmp_path / "good.csv", SCORES[scores])
    graded(tmp_path / "bad.csv", SCORES[scores], {41: "inf"})
    paths = [tmp_path / f"{name}.csv" for name in names.split()]
    out = tmp_path / "x.cfg"
    assert "bad.csv, line 41" in run("init-config", *paths, "--output", out, *options, code=1)
    assert not out.exists()


def test_decimal_commas_are_not_labels(tmp_path):
    path = graded(tmp_path / "own.csv", ["0,5", "2,0", "4,5"])
    with pytest.raises(ValueError, match=r"line 2: expected a number.*'0,5' \(60 of its 60"):
        find_table(path)
    # Of which a third are numbers
    codes = ["12", "24a", "12b"]
    assert (
        find_table(graded(tmp_path / "codes.csv", codes, header=("one", "two", "verdict"))).kind
        == "labelled"
    )
    # Mostly numbers, under a name that says what they are
    labels = [1, 2, "none"]
    assert (
        find_table(graded(tmp_path / "labels.csv", labels, header=("one", "two", "label"))).kind
        == "labelled"
    )


def test_whole_scores_are_not_ids(tmp_path):
    found = find_table(
        graded(tmp_path / "own.csv", range(0, 100, 2), header=("one", "two", "grade"))
    )
    assert (found.kind, found.columns.score, found.columns.max_score) == ("graded", "grade", 100)
    found = find_table(graded(tmp_path / "ids.csv", range(60), header=("one", "two", "id")))
    assert (found.kind, found.unused) == ("positives", ("id",))


@pytest.mark.parametrize("missing", [0, 7])
def test_missing_json_field_is_a_blank_cell(tmp_path, missing):
    rows = [{"one": text(), "two": text(), "sim": GRADES[i % 6]} for i in range(60)]
    del rows[missing]["sim"]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(
        ValueError, match=rf"own.jsonl, line {missing + 1}: expected a number.*'sim', got ''"
    ):
        find_table(path)
    rows[missing]["sim"] = 1.5
    rows[5]["note"] = "x"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert find_table(path).unused == ("note",)


@pytest.mark.parametrize(
    ("scores", "given", "wide", "others"),
    [
        (GRADES, 35, "0 to 100", "0 to 5"),
        (GRADES, -1, "-1 to 5", "0 to 5"),
        ([0, 1], 2, "0 to 5", "0 to 1"),
        ([0.5, 0.25, 1], 7.5, "0 to 10", "0 to 1"),
        ([200, 950.5, 400], 99999, "200 to 99999", "200 to 950.5"),
        ([0, 0.25, 1], -0.02, "-1 to 1", "0 to 1"),
        ([0.5, 4.5, 4.75], -0.02, "-0.02 to 4.75", "0 to 5"),
    ],
)
def test_outlier_does_not_decide_the_range(tmp_path, scores, given, wide, others):
    """The range of all, which the error names, is that of a config to which it is given."""
    path = graded(tmp_path / "own.csv", scores, {33: given})
    out = tmp_path / "x.cfg"
    said = run("init-config", path, path, "--output", out, code=1)
    assert f"own.csv, line 33: the score {given:g} in the column 'sim'" in said
    assert f"1 of 60 are outside of {others}" in said
    assert f"scaled from {wide}" in said
    run(
        "init-config",
        path,
        path,
        "--output",
        out,
        *said[said.index("--min-score") :].rstrip(". ").split(),
    )
    reader = load_config(out)["corpora"]["train"]
    assert [reader["min_score"], reader["max_score"]] == list(map(float, wide.split(" to ")))


def test_many_far_scores_decide_the_range(tmp_path):
    """Far values are refused only where they are few; an end that was given is not doubted."""
    assert find_table(graded(tmp_path / "many.csv", bad={33: 35, 34: 70})).columns.max_score == 100
    one = graded(tmp_path / "one.csv", bad={33: 35})
    assert find_table(one, max_score=100).columns.min_score == 0
    with pytest.raises(ValueError, match="line 33"):
        find_table(one, min_score=0)
    half = graded(tmp_path / "half.csv", [1, 3, 5], {33: 0.5})
    # 0 to 5, which is little wider
    assert find_table(half).columns.min_score == 0


def test_wrong_tables_are_refused_before_training(tmp_path):
    path = table(tmp_path / "train.csv", "graded")
    out = tmp_path / "x.cfg"
    bad = write_columns(tmp_path / "dev.csv", ("one", "two", "sim"), text, text, cycle(9), n=1)
    other = write_columns(
        tmp_path / "other.csv", ("one", "three", "sim"), text, text, cycle(1), n=1
    )
    without = table(tmp_path / "own.csv", "positives")
    for paths, messages in (
        ((path, bad), ("dev.csv, line 2", "'9'")),
        ((path, other), ("'two'",)),
        ((without, without), ("gold",)),
    ):
        said = run("init-config", *paths, "--output", out, code=1)
        assert all(message in said for message in messages)
    assert not out.exists()
    with pytest.raises(ValueError, match=r"empty\.csv"):
        find_table(
            write_columns(tmp_path / "empty.csv", ("a", "b"), text, text, n=0), members=["a", "b"]
        )
