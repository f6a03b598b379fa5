"""A command never replaces what is there, unless it is told to; and says so before any work."""

import csv
import json

import pytest
import spacy
from spacy.language import Language
from typer.testing import CliRunner

from spacy_sbert.cli import app

TEXTS = [
    "the cat sat on the mat",
    "a dog ran",
    "the dog ran",
    "food for the man",
    "the cat sat on a mat",
    "he cannot go",
]
HAND = "written by hand\n"


def run(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, " ".join(done.output.split())


@pytest.fixture
def folder(make_nlp, tmp_path):
    make_nlp().to_disk(tmp_path / "nlp")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    with (tmp_path / "own.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("first", "second", "score"), *((a, b, i % 3) for i, (a, b) in enumerate(pairs()))])
    return tmp_path


def pairs():
    return [(a, b) for a in TEXTS for b in TEXTS if a < b]


COMMANDS = {
    "mine": lambda at: ("pairs.tsv", "mine", at / "nlp", at / "texts.txt", at / "pairs.tsv"),
    "cluster": lambda at: ("c.jsonl", "cluster", at / "nlp", at / "texts.txt", at / "c.jsonl", "--min-size", 2),
    "search": lambda at: ("f.tsv", "search", at / "nlp", at / "texts.txt", "a dog", "-o", at / "f.tsv"),
    "encode": lambda at: ("v.npy", "encode", at / "nlp", at / "texts.txt", at / "v.npy"),
    "visualize": lambda at: ("p.html", "visualize", at / "nlp", at / "texts.txt", at / "p.html"),
    "convert": lambda at: ("t.spacy", "convert", at / "texts.txt", at / "t.spacy", "-f", "text"),
    "init-config": lambda at: ("my.cfg", "init-config", at / "own.csv", at / "own.csv", "--output", at / "my.cfg"),
    "evaluate": lambda at: (
        *("s.json", "evaluate", at / "nlp", at / "own.csv", "--output", at / "s.json"),
        *("-f", "table", "-m", "first,second", "--score", "score", "--max-score", 2),
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_there_stays(folder, command, monkeypatch):
    name, *arguments = COMMANDS[command](folder)
    output = folder / name
    output.write_text(HAND)
    code, said = run(*arguments)
    assert code == 1 and str(output) in said.replace(" ", "") and "--overwrite" in said, said
    assert "-exists]" in said and output.read_text() == HAND
    code, said = run(*arguments, "--overwrite")
    assert code == 0 and output.read_bytes() != HAND.encode(), said
    written = output.read_bytes()
    assert run(*arguments)[0] == 1 and output.read_bytes() == written
    output.unlink()
    code, said = run(*arguments)
    assert code == 0 and output.is_file(), said


def test_benchmark_renews_results_alone(folder):
    """Not a comparison, which is JSON of tasks, too."""
    output = folder / "compared.json"
    output.write_text(json.dumps({"format": "spacy-sbert comparison 1", "tasks": {}}))
    code, said = run("benchmark", folder / "nlp", folder, "--output", output)
    assert code == 1 and "[sbert-output-not-results]" in said and "comparison 1" in output.read_text()


def test_it_is_said_before_any_work(folder):
    (folder / "pairs.tsv").write_text(HAND)
    code, said = run("mine", folder / "no pipeline", folder / "texts.txt", folder / "pairs.tsv")
    assert code == 1 and "[sbert-output-exists]" in said and "no pipeline" not in said


def test_a_link_that_leads_nowhere_is_there(folder):
    (folder / "pairs.tsv").symlink_to(folder / "elsewhere.tsv")
    code, said = run("mine", folder / "nlp", folder / "texts.txt", folder / "pairs.tsv")
    assert code == 1 and "[sbert-output-exists]" in said and not (folder / "elsewhere.tsv").exists()


def test_a_folder_that_holds_something(make_nlp, folder, monkeypatch):
    """fit-meta writes a folder: in place of an empty one, or with --overwrite of one that holds a pipeline."""
    nlp = make_nlp()
    nlp.add_pipe(
        "sbert", name="other", config={"model": nlp.config["components"]["sbert"]["model"] | {"pooling": "max"}}
    )
    nlp.initialize()
    nlp.to_disk(folder / "two")
    arguments = ["fit-meta", folder / "two", folder / "texts.txt", folder / "out", "--method", "conc", "--quiet"]
    (folder / "out").mkdir()
    assert run(*arguments)[0] == 0
    (folder / "out" / "notes.txt").write_text(HAND)
    code, said = run(*arguments)
    assert code == 1 and "[sbert-output-exists]" in said
    assert run(*arguments, "--overwrite")[0] == 0 and (folder / "out" / "notes.txt").read_text() == HAND
    before = {path.name: path.stat().st_ino for path in (folder / "out").iterdir()}

    def full(self, path, **_):
        (path / "meta.json").write_text("{")
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Language, "to_disk", full)
        code, said = run(*arguments, "--overwrite")
    assert code == 1 and "No space left" in said
    assert {path.name: path.stat().st_ino for path in (folder / "out").iterdir()} == before  # it is whole as it was
    arguments[3] = folder / "file"
    (folder / "file").write_text(HAND)
    assert run(*arguments)[0] == 1 and (folder / "file").read_text() == HAND
    assert run(*arguments, "--overwrite")[0] == 0 and "sbert_meta" in spacy.load(folder / "file").pipe_names
    assert sorted(path.name for path in folder.iterdir()) == ["file", "nlp", "out", "own.csv", "texts.txt", "two"]


@pytest.mark.parametrize("held", [{"a": 1}, ["tasks"], "text", None])
def test_benchmark_brings_its_own_results_up_to_date(folder, held):
    """It goes on with what it has kept; a file that holds something else stays."""
    (folder / "data" / "STSBenchmark").mkdir(parents=True)
    rows = "".join(f"g\tf\ty\t{i}\t{i % 6}\t{a}\t{b}\n" for i, (a, b) in enumerate(pairs()))
    (folder / "data" / "STSBenchmark" / "sts-dev.csv").write_text(rows)
    output = folder / "r.json"
    arguments = ["benchmark", folder / "nlp", folder / "data", "--any-count", "--bootstrap", 0, "-o", output]
    if held is not None:
        output.write_text(json.dumps(held) if held != "text" else HAND)
        before = output.read_bytes()
        code, said = run(*arguments)
        assert code == 1 and "[sbert-output-not-results]" in said and output.read_bytes() == before
        assert run(*arguments, "--overwrite")[0] == 0
    else:
        assert run(*arguments)[0] == 0
    assert list(json.loads(output.read_text())["tasks"]) == ["STSb-dev"]
    assert run(*arguments)[0] == 0  # again, as it was called
    code, said = run("compare", output, output, "-o", folder / "c.json")
    assert code == 0, said
    code, said = run("compare", output, output, "-o", folder / "c.json")
    assert code == 1 and "[sbert-output-exists]" in said
    assert run("compare", output, output, "-o", folder / "c.json", "--overwrite")[0] == 0


@pytest.mark.parametrize("suffix", [".md", ".html"])
def test_reports_beside_results_stay(folder, suffix):
    (folder / "r.json").with_suffix(suffix).write_text(HAND)
    (folder / "data").mkdir()
    code, said = run("benchmark", folder / "nlp", folder / "data", "-o", folder / "r.json")
    assert code == 1 and f"r{suffix} is there already" in said


def test_a_readme_written_by_hand(folder):
    """card keeps it without an error."""
    readme = folder / "nlp" / "README.md"
    readme.write_text(HAND)
    assert run("card", folder / "nlp")[0] == 0 and readme.read_text() == HAND
    assert run("card", folder / "nlp", "--overwrite")[0] == 0 and readme.read_text() != HAND
