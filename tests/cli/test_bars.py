"""Whoever waits for a command sees that it goes on, or with --quiet nothing, and in the end what was written where."""

import json
import re
import shutil

import pytest
import typer
from made_results import graded, results
from typer.testing import CliRunner

from spacy_sbert.cli import app

BAR = re.compile(r"\d+%\|")
TEXTS = [
    "the cat sat on the mat",
    "a dog ran",
    "the dog ran",
    "food for the man",
    "the cat sat on a mat",
    "he cannot go",
]
PAIRS = [(a, b) for a in TEXTS for b in TEXTS if a < b]
# What is written, and the rest of the command
COMMANDS = {
    "mine": ("pairs.tsv", "nlp texts.txt pairs.tsv"),
    "cluster": ("c.jsonl", "nlp texts.txt c.jsonl --min-size 2"),
    "search": ("f.tsv", "nlp texts.txt man -o f.tsv"),
    "search --index": ("index", "nlp texts.txt man --index index --kind flat"),
    "encode": ("v.npy", "nlp texts.txt v.npy"),
    "visualize": ("p.html", "nlp texts.txt p.html"),
    "visualize --limit": ("p.html", "nlp texts.txt p.html --style tokens --limit 2"),
    "convert": ("t.spacy", "own.csv t.spacy --max-score 2"),
    "evaluate": ("s.json", "nlp own.csv --output s.json"),
    "benchmark": ("r.json", "nlp data --any-count --bootstrap 0 -o r.json"),
    "compare": ("d.json", "one.json two.json -o d.json"),
    "init-config": ("my.cfg", "own.csv own.csv -o my.cfg"),
    "card": ("nlp/README.md", "nlp --overwrite"),
    "import": ("new", "encoder new"),
    "export": ("new", "nlp new"),
    "distill-static": ("new", "nlp new -v texts.txt --size 2 --words 3"),
    "fit-meta": ("new", "two texts.txt new --method conc"),
}
SHOWN = {
    "mine": ["Loading", "Reading", "6/6", "Comparing"],
    "cluster": ["Loading", "Reading", "6/6", "Clustering"],
    "search": ["Loading", "Reading", "6/6", "Searching"],
    "search --index": ["Loading", "Reading", "6/6", "Saving", "Searching"],
    "encode": ["Loading", "Reading", "6/6"],
    "visualize": ["Loading", "Reading", "Encoding", "/6", "Drawing"],
    "visualize --limit": ["Loading", "Reading", "Encoding", "/2", "Drawing"],
    "convert": ["Finding the columns", "Reading", "Writing"],
    "evaluate": ["Loading", "Finding the columns", "Reading", "Encoding", "15/15"],
    "benchmark": ["Loading", "tasks", "encoding"],
    "compare": ["Comparing"],
    "init-config": ["Reading own.csv", "Writing"],
    "card": ["Loading"],
    "import": ["Loading", "Writing"],
    "export": ["Loading", "Writing"],
    "distill-static": ["Loading", "Counting words", "6/6", "Fitting"],
    "fit-meta": ["Loading", "Encoding", "Writing"],
}


@pytest.fixture
def folder(make_nlp, tiny_bert, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_nlp().to_disk(tmp_path / "nlp")
    two = make_nlp()
    two.add_pipe("sbert", name="other", config={"model": two.config["components"]["sbert"]["model"]})
    two.to_disk(tmp_path / "two")
    shutil.copytree(tiny_bert, tmp_path / "encoder")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    rows = [f"{a},{b},{i % 3}" for i, (a, b) in enumerate(PAIRS)]
    (tmp_path / "own.csv").write_text("\n".join(["first,second,score", *rows]) + "\n")
    (tmp_path / "data" / "STSBenchmark").mkdir(parents=True)
    rows = [f"g\tf\ty\t{i}\t{i % 6}\t{a}\t{b}\n" for i, (a, b) in enumerate(PAIRS)]
    (tmp_path / "data" / "STSBenchmark" / "sts-dev.csv").write_text("".join(rows))
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps(results({"STS12": graded(0.5)}, name)))
    return tmp_path


def run(command, *more):
    name, _, _ = command.partition(" ")
    return CliRunner().invoke(app, [name, *COMMANDS[command][1].split(), *more])


@pytest.mark.parametrize("command", COMMANDS)
def test_bars_of_a_command(folder, command):
    """On standard error, whether or not that is a terminal; the last lines name what was written."""
    if command == "search --index":
        pytest.importorskip("faiss")
    written = folder / COMMANDS[command][0]
    done = run(command)
    assert done.exit_code == 0, done.output
    assert BAR.search(done.stderr) and not BAR.search(done.stdout)
    assert [what for what in SHOWN[command] if what not in done.stderr] == []
    saved = rf"(Wrote|Saved) (.* to )?{COMMANDS[command][0]}"
    assert written.exists() and re.search(saved, done.stdout)
    shutil.rmtree(written) if written.is_dir() else written.unlink()
    for report in folder.glob("[rd].[mh]*"):  # of benchmark and compare
        report.unlink()
    done = run(command, "--quiet")
    assert done.exit_code == 0 and written.exists(), done.output
    assert not BAR.search(done.output) and re.search(saved, done.stdout)


def test_an_index_that_was_there_is_not_called_saved(folder):
    pytest.importorskip("faiss")
    assert "Saved the index" in run("search --index").stdout
    assert "Saved the index" not in run("search --index").stdout


def test_what_works_long_can_be_quiet():
    commands = typer.main.get_command(app).commands
    with_quiet = {name for name, command in commands.items() for one in command.params if "--quiet" in one.opts}
    assert with_quiet == set(commands) - {"train"}  # which has its log
