"""What is wrong with paths and options is said before the encoder's packages are imported, or
anything is loaded.
"""

import json
import os
import subprocess
import sys

import pytest
from helpers.invoking import said

HEAVY = [
    "spacy_sbert.pipeline.sbert",
    "spacy_sbert.models",
    "spacy_sbert.search.corpus_search",
    "spacy_sbert.search.searchable",
    "spacy_sbert.bulk",
]
# Of a folder with texts.txt, own.csv, vectors.npy and out.tsv; and what is said
WRONG = {
    "no corpus": (["search", "nope", "none.txt", "a dog"], "'none.txt' does not exist"),
    "no query": (["search", "nope", "texts.txt"], "--queries"),
    "taken": (["mine", "nope", "texts.txt", "out.tsv"], "out.tsv"),
    "another table": (["cluster", "nope", "texts.txt", "out.csv"], "out.csv"),
    "taken picture": (["visualize", "nope", "texts.txt", "out.tsv"], "out.tsv"),
    "no texts": (["encode", "none.txt", "out.npy"], "none.txt"),
    "a column of lines": (["encode", "texts.txt", "out.npy", "-c", "text"], "--column"),
    "a header of lines": (["search", "nlp", "texts.txt", "a dog", "--no-header"], "--no-header"),
    "columns of lines": (
        ["cluster", "nlp", "texts.txt", "new.tsv", "-c", "a", "--no-header"],
        "leave --column and --no-header out",
    ),
    "a column to mine": (["mine", "nlp", "texts.txt", "new.tsv", "-c", "0"], "--column"),
    "no output": (["encode", "nope", "texts.txt"], "There is no such file or folder"),
    "no output of a folder": (["encode", "folder"], "no OUTPUT"),
    "vectors to search": (["search", "nope", "vectors.npy", "a dog"], "--vectors vectors.npy"),
    "vectors to mine": (["mine", "nope", "vectors.npy", "pairs.tsv"], "vectors.npy"),
    "vectors to draw": (["visualize", "nope", "vectors.npy", "map.html"], "vectors.npy"),
    "vectors to learn": (["distill-static", "nope", "out", "-v", "vectors.npy"], "vectors.npy"),
}
SCRIPT = """
import json, sys
from typer.testing import CliRunner
from spacy_sbert.cli import app
said = {name: CliRunner().invoke(app, given) for name, given in json.loads(sys.argv[1]).items()}
outputs = {name: [done.exit_code, done.output] for name, done in said.items()}
print(json.dumps([outputs, list(sys.modules)]))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("texts.txt", "texts.parquet", "out.tsv", "vectors.npy"):
        (tmp_path / name).write_text("a dog\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nlp").mkdir()
    return tmp_path


def test_errors_before_heavy_imports(folder):
    given = json.dumps({name: arguments for name, (arguments, _) in WRONG.items()})
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, given], capture_output=True, text=True, check=True
    )
    answers, modules = json.loads(done.stdout.splitlines()[-1])
    for name, (_, expected) in WRONG.items():
        code, output = answers[name]
        flat = " ".join(output.replace("│", " ").split())
        assert code in (1, 2) and expected in flat, (name, flat)
    assert not set(HEAVY) & set(modules)
    assert sorted(os.listdir(folder)) == [
        "folder",
        "nlp",
        "out.tsv",
        "texts.parquet",
        "texts.txt",
        "vectors.npy",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["cluster", "texts.txt", "c.tsv", "--method", "dbscan"], "dbscan"),
        (["cluster", "texts.txt", "c.tsv", "--n-clusters", "3"], "takes no"),
        (["search", "texts.txt", "a dog", "--kind", "tree", "--index", "index"], "tree"),
        (["mine", "texts.txt", "c.tsv", "--vectors", "vectors.npy"], "vectors.npy"),
        (["visualize", "texts.txt", "p.html", "--style", "tree"], "Unknown style 'tree'"),
        (["visualize", "texts.txt", "p.html", "--order", "given", "--style", "map"], "order"),
        (["encode", "texts.txt", "out.xyz"], "out.xyz"),
        (["encode", "texts.txt", "out.npy", "--dtype", "int8"], "int8"),
        (["encode", "vectors.npy", "out.npy"], "vectors.npy"),
        (["benchmark", ".", "--suite", "sts,nope"], "nope"),
    ],
)
def test_errors_before_loading(folder, arguments, expected):
    """The pipeline cannot be loaded, which would be said first."""
    (folder / "broken").mkdir()
    (folder / "broken" / "meta.json").write_text("{")
    assert expected in said(arguments[0], "broken", *arguments[1:], code=1)
