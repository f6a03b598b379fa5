"""Commands that find out what a table has: what they choose, and what they refuse before anything
is encoded.
"""

import csv
import json

import numpy
import pytest
import spacy
from helpers.invoking import said as typed
from helpers.made_tables import NLI, cycle, text, write_rows
from helpers.made_tables import write_columns as write
from spacy.cli.train import train
from spacy.util import load_config

from spacy_sbert.cli.options import ColumnOptions
from spacy_sbert.readers import PairCorpus, convert
from spacy_sbert.readers.infer_schema import check_missing_labels, find_table
from spacy_sbert.training.quickstart_config import quickstart_config

NLP = spacy.blank("en")
LABELLED = ("premise", "hypothesis", "label")


def run(*arguments, code=0):
    return typed(*arguments, *([] if arguments[0] == "train" else ["-q"]), code=code)


def golds(name, *arguments, **settings):
    return [
        example.reference.spans["sbert"].attrs[name]
        for example in PairCorpus(*arguments, **settings)(NLP)
    ]


@pytest.fixture(scope="module")
def loaded(make_nlp):
    return make_nlp()


@pytest.fixture
def pipeline(loaded, tmp_path, monkeypatch):
    """The folder that `evaluate` is given, which stands for a pipeline that was loaded once."""
    monkeypatch.setattr("spacy_sbert.bulk.loading.load_pipeline", lambda *args, **settings: loaded)
    folder = tmp_path / "nlp"
    folder.mkdir()
    return folder


def test_chosen_columns_are_reported(tmp_path, pipeline):
    header = ("question1", "question2", "created_at", "is_duplicate")
    path = write(
        tmp_path / "d.csv", header, text, text, lambda i: f"2024-03-04 12:10:{i:02d}", cycle(0, 1)
    )
    found = "question1, question2, is_duplicate"
    line = f"Columns found: {found}, scores from 0 to 1; not used: created_at"
    assert line in run("evaluate", pipeline, path)
    assert line in run("convert", path, tmp_path / "d.spacy")
    said = run("init-config", path, path, "-o", tmp_path / "d.cfg")
    assert f"40 pairs with scores of 0 and 1 ({found})" in said
    assert "Columns not used: created_at" in said
    # From 0..1 to 0..1
    assert "scaled" not in said


def test_rows_without_gold(tmp_path, pipeline):
    path = write(tmp_path / "n.csv", LABELLED, text, text, cycle(-1, 0, 1, 2))
    marked = "10 rows without gold (-1) are skipped"
    assert marked in run("init-config", path, path, "-o", tmp_path / "n.cfg")
    corpora = load_config(tmp_path / "n.cfg")["corpora"]
    assert corpora["train"]["missing"] == corpora["dev"]["missing"] == ["-1"]
    for options in ((), ("--members", "premise,hypothesis", "--label", "label")):
        said = run("convert", path, tmp_path / "n.spacy", "--overwrite", *options)
        assert marked in said
        assert "Wrote 30 pairs" in said
        assert {*golds("label", tmp_path / "n.spacy")} == {"0", "1", "2"}
    # Labels without a head
    said = run("evaluate", pipeline, path, code=1)
    assert marked in said
    assert "no head for labels" in said


def test_seven_columns_need_not_be_sts(tmp_path, pipeline):
    path = tmp_path / "seven.tsv"
    sts = tmp_path / "sts.tsv"
    path.write_text(
        "7\tnews\ta b\tc d\t3\tDT NN a1\tDT NN b1\n8\tnews\tc\td\t1\tNN VB a2\tIN DT b2\n"
    )
    assert "STS" not in run("evaluate", pipeline, path, code=1)
    run("evaluate", pipeline, path, "--no-header", "--members", "5,6", code=1)
    named = ("--no-header", "--members", "5,6", "--score", "4")
    said = run("evaluate", pipeline, path, *named)
    assert "Columns found: 5, 6, 4, scores from 1 to 5; not used: 0, 1, 2, 3" in said
    assert "Spearman" in said
    sts.write_text(
        "".join(f"news\tMSR\t2012test\t{i}\t{i % 5}.0\t{text()}\t{text()}\n" for i in range(20))
    )
    assert "Layout found: the STS benchmark's" in run("evaluate", pipeline, sts)
    assert "20 pairs with scores (5, 6, 4)" in run(
        "init-config", sts, sts, "--output", tmp_path / "x.cfg", *named
    )


def test_texts_and_classes(tmp_path, tiny_bert, pipeline, loaded):
    path = write(tmp_path / "c.csv", ("text", "category"), text, lambda i: f"class_{i % 3}")
    options = ("--encoder", tiny_bert, "--epochs", 1)
    assert "40 texts with labels (text, category)" in run(
        "init-config", path, path, "-o", tmp_path / "c.cfg", *options
    )
    config = load_config(tmp_path / "c.cfg")
    assert config["components"]["sbert"]["loss"]["@layers"] == "spacy-sbert.BatchHardTripletLoss.v1"
    assert [name for name, weight in config["training"]["score_weights"].items() if weight] == [
        "cats_acc"
    ]
    train(
        tmp_path / "c.cfg", tmp_path / "trained", overrides={"training.logger.progress_bar": False}
    )
    assert 0 < spacy.load(tmp_path / "trained/model-best").meta["performance"]["cats_acc"] < 1
    run("evaluate", pipeline, path, "-o", tmp_path / "c.json")
    scores = json.loads((tmp_path / "c.json").read_text())
    with path.open(newline="") as file:
        texts, labels = zip(*[row.values() for row in csv.DictReader(file)], strict=True)
    vectors = numpy.stack([loaded(text).vector for text in texts])
    vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = (vectors @ vectors.T - 9 * numpy.eye(40)).argmax(axis=1)
    assert scores["knn_acc"] == pytest.approx(
        numpy.mean([labels[i] == labels[k] for i, k in enumerate(nearest)])
    )
    assert scores["pairs"] == 40
    assert scores["sts_spearman"] is None


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ((text, text, cycle(0.25)), "all gold scores are 0.25"),
        ((text, cycle("card")), "all labels of texts are 'card'"),
    ],
)
def test_constant_gold(tmp_path, pipeline, columns, reason):
    header = ("a", "b", "score") if len(columns) == 3 else ("text", "category")
    path = write(tmp_path / "const.csv", header, *columns)
    said = run("evaluate", pipeline, path, "-o", tmp_path / "s.json", code=1)
    assert reason in said
    assert not (tmp_path / "s.json").exists()
    assert "const.csv" in run("init-config", path, path, "-o", tmp_path / "x.cfg", code=1)
    # What other files of examples say
    if len(columns) == 3:
        convert(path, tmp_path / "c.spacy", format="table", members=["a", "b"], score="score")
        assert reason in run("evaluate", pipeline, tmp_path / "c.spacy", code=1)
        convert(path, tmp_path / "p.spacy", format="table", members=["a", "b"])
        assert "its examples have no gold" in run(
            "evaluate", pipeline, tmp_path / "p.spacy", code=1
        )


def test_undefined_scores_are_explained(tmp_path, pipeline):
    header = ("sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")
    path = write(tmp_path / "sick.csv", header, text, text, cycle(0, 1, 2, 3, 4), cycle("NEUTRAL"))
    options = ("--members", "sentence_A,sentence_B", "--score", header[2], "--label", header[3])
    said = run("evaluate", pipeline, path, *options, "-o", tmp_path / "s.json")
    assert "Spearman" in said
    assert "Other scores are not defined: the pipeline has no head for labels" in said
    assert json.loads((tmp_path / "s.json").read_text())["sts_spearman"] is not None


def test_train_and_dev_of_different_gold(tmp_path, tiny_bert):
    binary = write(tmp_path / "bin.csv", ("a", "b", "score"), text, text, cycle(0, 1))
    graded = write(tmp_path / "graded.csv", ("a", "b", "score"), text, text, lambda i: i / 40)
    said = run("init-config", binary, graded, "-o", tmp_path / "b.cfg", code=1)
    assert "graded.csv" in said
    assert not (tmp_path / "b.cfg").exists()
    reading = {"members": ["a", "b"], "score": "score"}
    paths = {"path": str(binary), **reading}, {"path": str(graded), **reading}
    config = quickstart_config(*paths, kind="binary", count=40, encoder=str(tiny_bert), epochs=1)
    config["training"]["logger"]["progress_bar"] = False
    config.to_disk(tmp_path / "b.cfg")
    assert "pair_ap" in run("train", tmp_path / "b.cfg", "--output", tmp_path / "out", code=1)
    assert not (tmp_path / "out/model-best").exists()
    config["training"]["logger"] = {"@loggers": "spacy.ConsoleLogger.v1"}
    # One that is defined
    config["training"]["score_weights"]["sts_spearman"] = 1.0
    config.to_disk(tmp_path / "d.cfg")
    assert "Training ended after step 1" in run(
        "train", tmp_path / "d.cfg", "--output", tmp_path / "out"
    )


def test_labels_with_decimals(tmp_path):
    paths = [
        write(tmp_path / f"{i}.csv", LABELLED, text, text, cycle(*labels))
        for i, labels in enumerate([(0, 1, 2), ("0.00", "1", "2.0")])
    ]
    assert "40 pairs with labels" in run("init-config", *paths, "-o", tmp_path / "x.cfg")
    reading = {
        key: value
        for key, value in load_config(tmp_path / "x.cfg")["corpora"]["dev"].items()
        if key[0] != "@"
    }
    for path in paths:
        assert golds("label", **reading | {"path": str(path)}) == (["0", "1", "2"] * 14)[:40]
    rows = "".join(
        json.dumps({"a": "x y", "b": "y z", "label": label}) + "\n"
        for label in (2.0, "2.0", 2, "2", "2.5")
    )
    (tmp_path / "j.jsonl").write_text(rows)
    assert golds("label", tmp_path / "j.jsonl", members=["a", "b"], label="label") == [
        "2",
        "2",
        "2",
        "2",
        "2.5",
    ]


def test_unknown_labels(tmp_path, tiny_bert):
    path, short, some = (
        write(tmp_path / f"{name}.csv", LABELLED, text, text, cycle(*labels))
        for name, labels in {"train": NLI, "short": "ENC", "some": (*NLI, "unsure")}.items()
    )
    said = run("init-config", path, short, "-o", tmp_path / "x.cfg", "--encoder", tiny_bert, code=1)
    assert not (tmp_path / "x.cfg").exists()
    assert "'E', 'N', 'C'" in said
    assert all(f"'{label}'" in said for label in NLI)
    said = run(
        "init-config", path, some, "-o", tmp_path / "x.cfg", "--encoder", tiny_bert, "--epochs", 1
    )
    assert "[sbert-unknown-init-labels] 10 examples" in said
    assert "does not have: 'unsure'." in said
    said = run("train", tmp_path / "x.cfg", "-o", tmp_path / "out", "--paths.dev", short, code=1)
    assert "'E', 'N', 'C'" in said
    assert "'neutral'" in said
    assert not (tmp_path / "out/model-best").exists()
    with pytest.warns(
        UserWarning,
        match=r"\[sbert-unknown-dev-labels\] 10 examples of \[corpora.dev\].*'unsure'; kn",
    ):
        run(
            "train",
            tmp_path / "x.cfg",
            "-o",
            tmp_path / "out",
            "--training.logger.progress_bar",
            "false",
        )
    said = run("evaluate", tmp_path / "out/model-best", short, code=1)
    assert "'E', 'N', 'C'" in said
    assert "'neutral'" in said
    with pytest.warns(
        UserWarning, match=r"\[sbert-unknown-evaluate-labels\] 10 examples of .*some.csv.*'unsure'"
    ):
        assert "Accuracy of labels" in run("evaluate", tmp_path / "out/model-best", some)


def test_marks_of_missing_labels(tmp_path, tiny_bert):
    config = tmp_path / "n.cfg"
    path = write(tmp_path / "n.csv", LABELLED, text, text, cycle(0, 1, 2))
    run("init-config", path, path, "-o", config, "--encoder", tiny_bert, "--epochs", 1)
    other = write(tmp_path / "o.csv", LABELLED, text, text, cycle(0, 1, 2, -1, "-"))
    said = run("train", config, "--corpora.dev.path", other, code=1)
    assert "o.csv: values of the column 'label' mark rows without a label (-, -1)" in said, said
    assert 'Set missing = ["-", "-1"] in [corpora.dev]' in said
    corpora = load_config(config)["corpora"]
    assert check_missing_labels(corpora) is None
    corpora["train"]["path"] = str(other)
    for missing in (["-", "-1"], []):
        assert check_missing_labels({"train": corpora["train"] | {"missing": missing}}) is None
    with pytest.raises(
        ValueError, match=r'missing = \["-", "-1"\] in \[corpora.train.corpora.nli\]'
    ):
        check_missing_labels({"train": {"corpora": {"nli": corpora["train"] | {"missing": ["-"]}}}})


@pytest.fixture
def scored_as(loaded, pipeline, monkeypatch):
    """Give the pipeline the reader that it was scored by in training, of columns with these
    names.
    """

    def give(path, **options):
        dev = {"@readers": "spacy-sbert.PairCorpus.v1", "path": str(path), "format": "table"}
        monkeypatch.setitem(
            loaded.config["corpora"], "dev", dev | find_table(path, **options).reading()
        )

    return give


def test_missing_labels_and_range_of_each_file(tmp_path, pipeline, scored_as):
    header = ("one", "two", "relation")
    scored_as(write(tmp_path / "dev.csv", header, text, text, cycle("x", "y", "z")))
    for mark in ("-", "-1"):
        path = write(tmp_path / "own.csv", header, text, text, cycle("x", "y", "z", mark))
        # As it has no head for labels
        said = run("evaluate", pipeline, path, code=1)
        assert (
            f"Columns as in its training: one, two, relation; 10 rows without gold ({mark}) are "
            "skipped" in said
        )
    path = write(tmp_path / "dev.csv", ("one", "two", "mine"), text, text, lambda i: i % 11 / 2)
    scored_as(path, score="mine")
    said = run(
        "evaluate",
        pipeline,
        write(tmp_path / "own.csv", ("one", "two", "mine"), text, text, cycle(0, 1)),
    )
    assert "Columns as in its training: one, two, mine, scores from 0 to 1" in said
    assert "Average precision" in said


def test_columns_without_names_or_with_commas(tmp_path, pipeline, scored_as):
    """Columns without names are those of the options: those of another table may mean something
    else.
    """
    rows = [(text(), text(), i % 7 / 2) for i in range(30)]
    scored_as(write_rows(tmp_path / "dev.csv", rows[0], rows[1:]), header=False)
    path = write_rows(tmp_path / "same.csv", rows[0], rows[1:20])
    run("evaluate", pipeline, path, code=1)
    said = run("evaluate", pipeline, path, "--no-header", "--members", "0,1", "--score", "2")
    assert "Columns found: 0, 1, 2, scores from 0 to 5" in said
    assert "Examples 20" in said
    path = tmp_path / "own.csv"
    named = ("--members", '"q,r", text2', "--score", "mine")
    write(path, ("q,r", "text2", "mine"), text, text, cycle(0, 1))
    assert "Columns found: q,r, text2, mine" in run("evaluate", pipeline, path, *named)
    run("init-config", path, path, "-o", tmp_path / "x.cfg", *named)
    assert load_config(tmp_path / "x.cfg")["corpora"]["train"]["members"] == ["q,r", "text2"]
    assert "--members" in run("evaluate", pipeline, path, "--members", '"q,r" text2', code=2)


def test_convert_needs_a_range_and_training_the_code_of_its_loss(tmp_path):
    path = write(tmp_path / "f.csv", ("a", "b", "score"), text, text, cycle(0.2, 4.8))
    out = tmp_path / "a.cfg"
    said = run("convert", path, tmp_path / "f.spacy", code=1)
    assert "expected a score from 0 to 1" not in said
    run(
        "convert",
        path,
        tmp_path / "f.spacy",
        *said[said.index("--min-score") :].rstrip(". ").split(),
    )
    assert golds("score", tmp_path / "f.spacy") == pytest.approx([0.04, 0.96] * 20)
    run("init-config", path, path, "--output", out)
    out.write_text(out.read_text().replace("spacy-sbert.CosineSimilarityLoss.v1", "nobody.v1"))
    said = run("train", out, code=1)
    assert "'nobody.v1'" in said
    assert "with --code." in said
    assert "CosineSimilarityLoss" not in said


@pytest.mark.parametrize("command", ["init-config", "convert", "evaluate"])
def test_commands_that_find_columns_stop_at_unread_texts(tmp_path, tiny_bert, command):
    path = write(tmp_path / "own.csv", ("message", "other", "same"), text, text, cycle(0, 1), n=20)
    arguments = {
        "init-config": (path, path, "--output", tmp_path / "own.cfg"),
        "convert": (path, tmp_path / "own.spacy"),
        "evaluate": (tiny_bert, path),
    }[command]
    told = typed(command, *arguments, code=1)
    assert "the column 'other' holds texts, and would not be read beside message" in told
    assert "--members message,other to read it" in told
    assert not (tmp_path / "own.cfg").exists()
    assert not (tmp_path / "own.spacy").exists()


def test_commands_that_read_one_column_warn_of_others(tmp_path, capsys):
    path = write(
        tmp_path / "own.csv", ("text", "other", "topic"), text, text, cycle("a", "b"), n=20
    )
    ColumnOptions().check(path)
    assert "[sbert-unread-texts]" in (told := capsys.readouterr().out)
    assert "not read: other." in " ".join(told.split())
    ColumnOptions(column="text").check(path)
    ColumnOptions().check(
        write(tmp_path / "one.csv", ("text", "topic"), text, cycle("a", "b"), n=20)
    )
    assert capsys.readouterr().out == ""
