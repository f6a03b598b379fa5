"""What is wrong with paths and options is said before the encoder's packages are imported, or anything is loaded."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from spacy_sbert.cli import app

HEAVY = ["spacy_sbert.component.sbert", "spacy_sbert.encoder", "spacy_sbert.search.texts", "spacy_sbert.bulk"]
# Of a folder with texts.txt, own.csv, vectors.npy and out.tsv; and what is said
WRONG = {
    "no pipeline to benchmark": (["benchmark", "nope", "."], "Can't find model 'nope'"),
    "no pipeline to export": (["export", "nope", "exported"], "Can't find model 'nope'"),
    "no teacher": (["distill-static", "nope", "out", "-v", "texts.txt"], "Can't find model 'nope'"),
    "no pipeline to fit": (["fit-meta", "nope", "texts.txt", "out"], "Can't find model 'nope'"),
    "no corpus": (["search", "nope", "none.txt", "a dog"], "'none.txt' does not exist"),
    "no query": (["search", "nope", "texts.txt"], "[sbert-no-query]"),
    "taken": (["mine", "nope", "texts.txt", "out.tsv"], "[sbert-output-exists]"),
    "another table": (["cluster", "nope", "texts.txt", "out.csv"], "[sbert-search-bad-output]"),
    "taken picture": (["visualize", "nope", "texts.txt", "out.tsv"], "[sbert-output-exists]"),
    "no texts": (["encode", "none.txt", "out.npy"], "[sbert-encode-no-input]"),
    "a column of lines": (["encode", "texts.txt", "out.npy", "-c", "text"], "no columns: leave --column out"),
    "a header of lines": (["search", "nlp", "texts.txt", "a dog", "--no-header"], "leave --no-header out"),
    "columns of lines": (
        ["cluster", "nlp", "texts.txt", "new.tsv", "-c", "a", "--no-header"],
        "leave --column and --no-header out",
    ),
    "a column to mine": (["mine", "nlp", "texts.txt", "new.tsv", "-c", "0"], "[sbert-no-columns-in-text]"),
    "no output": (["encode", "nope", "texts.txt"], "There is no OUTPUT beside nope and texts.txt"),
    "no output of a folder": (["encode", "folder", "texts.parquet"], "no OUTPUT beside folder and texts.parquet"),
    "vectors to search": (["search", "nope", "vectors.npy", "a dog"], "--vectors vectors.npy"),
    "vectors to mine": (["mine", "nope", "vectors.npy", "pairs.tsv"], "[sbert-vectors-not-texts]"),
    "vectors to draw": (["visualize", "nope", "vectors.npy", "map.html"], "[sbert-vectors-not-texts]"),
    "vectors to learn": (["distill-static", "nope", "out", "-v", "vectors.npy"], "[sbert-vectors-not-texts]"),
}
SCRIPT = """
import json, sys
from typer.testing import CliRunner
from spacy_sbert.cli import app
said = {name: CliRunner().invoke(app, given) for name, given in json.loads(sys.argv[1]).items()}
print(json.dumps([{name: [done.exit_code, done.output] for name, done in said.items()}, list(sys.modules)]))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("texts.txt", "texts.parquet", "out.tsv", "vectors.npy"):
        (tmp_path / name).write_text("a dog\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nlp").mkdir()
    return tmp_path


def test_before_anything_is_imported(folder):
    given = json.dumps({name: arguments for name, (arguments, _) in WRONG.items()})
    done = subprocess.run([sys.executable, "-c", SCRIPT, given], capture_output=True, text=True, check=True)
    said, modules = json.loads(done.stdout.splitlines()[-1])
    for name, (_, expected) in WRONG.items():
        code, output = said[name]
        flat = " ".join(output.replace("│", " ").split())
        assert code in (1, 2) and expected in flat, (name, flat)
    assert not set(HEAVY) & set(modules)
    assert sorted(os.listdir(folder)) == ["folder", "nlp", "out.tsv", "texts.parquet", "texts.txt", "vectors.npy"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["cluster", "texts.txt", "c.tsv", "--method", "dbscan"], "[sbert-search-bad-method]"),
        (["cluster", "texts.txt", "c.tsv", "--n-clusters", "3"], "[sbert-search-unused-options]"),
        (["search", "texts.txt", "a dog", "--kind", "tree", "--index", "index"], "[sbert-search-unknown-kind]"),
        (["mine", "texts.txt", "c.tsv", "--vectors", "vectors.npy"], "[sbert-bulk-no-record]"),
        (["visualize", "texts.txt", "p.html", "--style", "tree"], "[sbert-visual-style]"),
        (["visualize", "texts.txt", "p.html", "--order", "given", "--style", "map"], "[sbert-visual-option]"),
        (["encode", "texts.txt", "out.xyz"], "[sbert-bulk-unknown-output]"),
        (["encode", "texts.txt", "out.npy", "--dtype", "int8"], "[sbert-bulk-unknown-dtype]"),
        (["encode", "vectors.npy", "out.npy"], "[sbert-vectors-not-texts]"),
        (["benchmark", ".", "--suite", "sts,nope"], "[sbert-unknown-suite]"),
    ],
)
def test_before_anything_is_loaded(folder, arguments, expected):
    """The pipeline cannot be loaded, which would be said first."""
    (folder / "broken").mkdir()
    (folder / "broken" / "meta.json").write_text("{")
    done = CliRunner().invoke(app, [arguments[0], "broken", *arguments[1:]])
    assert done.exit_code == 1 and expected in " ".join(done.output.split()), done.output
