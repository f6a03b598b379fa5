"""`evaluate`, `benchmark` and `compare`."""

import csv
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import pytest
import spacy
from typer import Option, Typer
from typer.testing import CliRunner

from spacy_sbert.cli import app
from spacy_sbert.cli.options import takes_options
from spacy_sbert.cli.reports import show
from spacy_sbert.component.sbert import SentenceBert
from spacy_sbert.readers import PairCorpus, read_sts
from spacy_sbert.render.document import Cell, Document, Table
from spacy_sbert.render.markdown import markdown
from spacy_sbert.render.terminal import terminal

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "assets"
FEW = ["--suite", "sts,triplets", "--any-count", "--bootstrap", 20]


@pytest.fixture
def folder(make_nlp, tmp_path):
    make_nlp().to_disk(tmp_path / "nlp")
    script = [sys.executable, ROOT / "scripts" / "evaluation_sample.py", tmp_path / "data", "--assets", SAMPLE]
    subprocess.run(list(map(str, script)), check=True)
    return tmp_path


def run(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_models_of_equal_vectors_are_told(folder):
    for name in "ab":
        options = [*FEW, "--baseline", "random-projection", "-o", folder / f"{name}.json"]
        assert run("benchmark", "blank:en", folder / "data", *options).exit_code == 0
        assert all((folder / f"{name}.{kind}").is_file() for kind in ("md", "html"))
    done = run("compare", folder / "a.json", folder / "b.json", "-o", folder / "both.json", "--quiet")
    assert done.exit_code == 0 and "one and the same model" in done.stdout and done.stderr == ""


def test_models_without_a_name_go_by_their_folders(folder):
    for name in ("sts", "nli"):
        shutil.copytree(folder / "nlp", folder / name / "model-best")
        pipeline = folder / name / "model-best"
        assert run("benchmark", pipeline, folder / "data", *FEW, "-o", folder / f"{name}.json").exit_code == 0
    done = run("compare", folder / "sts.json", folder / "nli.json")
    assert "# Comparison of sts/model-best, nli/model-best" in done.stdout
    assert run("benchmark", folder / "nlp", folder / "data", *FEW, "-o", folder / "sts-2.json").exit_code == 0
    assert json.loads((folder / "sts-2.json").read_text())["model"]["name"] == "nlp"
    again = run("compare", folder / "sts.json", shutil.copy(folder / "sts.json", folder / "again.json"))
    assert "# Comparison of sts/model-best (sts), sts/model-best (again)" in again.stdout


def test_a_terminal_gets_a_plain_table_and_a_file_markdown(monkeypatch):
    table = Table("STS", ("Model", "STS12"), [("mine", Cell("70.00", (1,)))])
    document = Document("Evaluation of mine", [], [table], ["Seen in training."])
    shown = []
    monkeypatch.setattr("spacy_sbert.cli.reports.echo", shown.append)
    for in_terminal in (False, True):
        monkeypatch.setattr("sys.stdout.isatty", lambda in_terminal=in_terminal: in_terminal)
        show(markdown(document), partial(terminal, document))
    assert shown[0] == markdown(document) and r"| 70.00 \[1\] |" in shown[0]
    assert "mine   70.00 [1]" in shown[1] and "|" not in shown[1]


def test_a_file_is_scored(folder):
    done = run("evaluate", folder / "nlp", SAMPLE / "pairs-dev.csv", "--quiet")
    assert done.exit_code == 0 and "Spearman" in done.stdout and done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["evaluate", "nlp"], 2, "data_path"),
        (["evaluate", "nlp", "data", "nlp"], 2, "nlp"),
        (["evaluate", "nlp", "nowhere"], 2, "nowhere"),
        (["evaluate", "nlp", "data"], 1, "data is a folder: give a file of examples"),
        (["benchmark", "nlp", "data", "--seeds", "0"], 2, "--seeds"),
        (["benchmark", "nlp", "data", "--suite", "x"], 1, "Unknown suite 'x'"),
        (["benchmark", "nlp", "nowhere"], 2, "nowhere"),
        (["benchmark", "nlp", "data", "-o", "a.md"], 1, "ends in .json"),
        (["benchmark", "nlp", "data", "--format", "sts"], 2, "--format"),
        (["compare", "nowhere.json"], 2, "nowhere.json"),
        (["compare", "data/STSBenchmark/sts-dev.csv"], 1, "Cannot compare"),
    ],
)
def test_what_cannot_be_done(folder, monkeypatch, arguments, code, said):
    monkeypatch.chdir(folder)
    done = run(*arguments)
    assert done.exit_code == code and said in re.sub(r"[│\s]+", " ", done.output)


def test_help_lists_what_belongs_to_a_command():
    shown = {name: run(name, "--help").output for name in ("evaluate", "benchmark", "compare")}
    assert "--format" in shown["evaluate"] and "--suite" not in shown["evaluate"]
    assert "--suite" in shown["benchmark"]
    assert "--format" not in shown["benchmark"] and "--output" in shown["compare"]


def test_options_reach_a_command_as_one_object():
    @dataclass(frozen=True)
    class Options:
        size: Annotated[int, Option("--size", "-s")] = 3
        loud: Annotated[bool, Option("--loud")] = False

    seen = []
    made = Typer()

    @made.command("shown")
    @takes_options
    def shown_cli(name: str, *, options: Options) -> None:
        seen.append((name, options))

    assert CliRunner().invoke(made, ["a", "-s", "5", "--loud"]).exit_code == 0
    assert CliRunner().invoke(made, ["a"]).exit_code == 0
    assert seen == [("a", Options(5, True)), ("a", Options())]
    assert "--size" in CliRunner().invoke(made, ["--help"]).output


# A table with columns of its own


def own_table(folder, header=("id", "left", "right", "grade"), scale=5.0):
    pairs = list(read_sts(SAMPLE / "pairs-dev.csv"))[:40]
    path = folder / "own.csv"
    with path.open("w", newline="", encoding="utf8") as file:
        rows = [(i, first, second, f"{scale * score:.2f}") for i, (first, second, score) in enumerate(pairs)]
        csv.writer(file).writerows([header, *rows])
    return path


def test_a_table_is_scored_before_any_training_by_what_is_found(folder):
    """The same scores as in the layout of the STS benchmark, and as with all options."""
    path = own_table(folder)
    done = run("evaluate", folder / "nlp", path, "-o", folder / "found.json")
    assert done.exit_code == 0, done.output
    assert "Columns found: left, right, grade, scores from 0 to 5" in " ".join(done.output.split())
    told = ["--members", "left,right", "--score", "grade", "--min-score", 0, "--max-score", 5]
    assert run("evaluate", folder / "nlp", path, *told, "-o", folder / "told.json").exit_code == 0
    lines = (SAMPLE / "pairs-dev.csv").read_text(encoding="utf8").splitlines(keepends=True)[:40]
    (folder / "sts.csv").write_text("".join(lines), encoding="utf8")
    done = run("evaluate", folder / "nlp", folder / "sts.csv", "-o", folder / "sts.json")
    assert done.exit_code == 0 and "Columns" not in done.output
    found, told, sts = (json.loads((folder / f"{name}.json").read_text()) for name in ("found", "told", "sts"))
    assert found == told == sts and found["pairs"] == 40 and found["sts_spearman"] is not None


def test_a_table_in_other_formats_is_scored(folder):
    with own_table(folder).open(encoding="utf8", newline="") as file:
        rows = [{**row, "grade": float(row["grade"])} for row in csv.DictReader(file)]
    (folder / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tabs = ["\t".join(map(str, row.values())) for row in rows]
    (folder / "own.tsv").write_text("\n".join(["\t".join(rows[0]), *tabs]) + "\n")
    for name in ("own.jsonl", "own.tsv"):
        done = run("evaluate", folder / "nlp", folder / name)
        assert done.exit_code == 0 and "Columns found: left, right, grade" in done.output, done.output


def test_a_table_is_converted_by_what_is_found(folder):
    """But for the range: another file of the data may show more of it."""
    done = run("convert", own_table(folder), folder / "own.spacy")
    assert done.exit_code == 1 and "--max-score" in done.output and not (folder / "own.spacy").exists()
    done = run("convert", folder / "own.csv", folder / "own.spacy", "--max-score", 5)
    assert done.exit_code == 0 and "Columns found: left, right, grade" in done.output, done.output
    scores = {name: folder / f"{name}.json" for name in ("spacy", "csv")}
    for kind, output in scores.items():
        assert run("evaluate", folder / "nlp", folder / f"own.{kind}", "-o", output).exit_code == 0
    assert scores["spacy"].read_bytes() == scores["csv"].read_bytes()
    assert run("convert", folder / "own.csv", folder / "pairs.spacy", "-m", "left,right").exit_code == 0
    (doc, *_) = PairCorpus(folder / "pairs.spacy")(spacy.blank("en"))
    assert "score" not in doc.reference.spans["sbert"].attrs  # as the options say: texts alone


def test_errors_of_a_table_speak_of_what_is_in_it(folder):
    path = own_table(folder)
    text = path.read_text(encoding="utf8")
    path.write_text(text.replace("\n7,", "\n7,A b c,D e f,oops\n99,"), encoding="utf8")
    done = run("evaluate", folder / "nlp", path)
    assert done.exit_code == 1 and "own.csv, line 9: expected a number" in " ".join(done.output.split())
    assert "genre" not in done.output and "'grade', got 'oops'" in " ".join(done.output.split())
    path.write_text("a,b\n1,2\n", encoding="utf8")
    done = run("evaluate", folder / "nlp", path)
    assert done.exit_code == 1 and "are none, of a, b" in " ".join(done.output.split()) and "genre" not in done.output
    path.write_text("", encoding="utf8")
    assert "sbert-no-pairs" in run("evaluate", folder / "nlp", path).output


def test_an_encoder_is_scored_before_any_training(folder, tiny_bert):
    own_table(folder)
    done = run("evaluate", tiny_bert, folder / "own.csv", "-o", folder / "before.json")
    assert done.exit_code == 0 and json.loads((folder / "before.json").read_text())["pairs"] == 40, done.output
    done = run("evaluate", "no-such-thing", folder / "own.csv")
    assert done.exit_code == 1 and "Cannot load no-such-thing" in done.output and "own.csv" not in done.output


def test_a_table_without_gold_is_refused(folder, monkeypatch):
    """Before anything is encoded: there is nothing to score by."""
    table = folder / "pairs.csv"
    table.write_text("first,second\n" + "".join(f"a cat {i},a dog {i}\n" for i in range(9)))
    monkeypatch.setattr(SentenceBert, "predict", None)
    done = run("evaluate", folder / "nlp", table)
    assert done.exit_code == 1 and "[sbert-evaluate-no-gold]" in done.output and "(first, second)" in done.output
    table.write_text("a,b,c\n" + "".join(f"a cat {i},a dog {i},a man eats {i}\n" for i in range(9)))
    monkeypatch.undo()
    assert "Accuracy of triplets" in run("evaluate", folder / "nlp", table).output
