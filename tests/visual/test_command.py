"""`spacy sbert visualize`, and the files that it reads and writes."""

import os

import pytest
from made_pages import data_of
from typer.testing import CliRunner

from spacy_sbert.cli import app

TEXTS = ["A man is eating.", "The cat sat.", "He cannot go.", "The dog ran fast."]


@pytest.fixture
def visualize(make_nlp, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_nlp(unit="sent").to_disk("nlp")

    def call(*arguments):
        done = CliRunner().invoke(app, ["visualize", "nlp", *arguments])
        return done.exit_code, " ".join(done.output.split())

    return call


def test_lines_make_a_heat_map(visualize, tmp_path):
    (tmp_path / "texts.txt").write_text("\n\n".join(TEXTS), encoding="utf8")
    code, said = visualize("texts.txt", "sub/out.html", "--limit", "3", "--title", "Three <b>lines", "--low", "0")
    assert code == 0 and "Saved the picture to sub/out.html" in said
    page = (tmp_path / "sub" / "out.html").read_text(encoding="utf8")
    assert ["".join(row["tokens"]) for row in data_of(page)["rows"]] == TEXTS[:3]
    assert "<title>Three &lt;b&gt;lines</title>" in page and "Colours from 0 to 1" in page
    assert os.listdir(tmp_path / "sub") == ["out.html"]


def test_one_text_by_its_sentences(visualize, tmp_path):
    (tmp_path / "text.txt").write_text(" ".join(TEXTS), encoding="utf8")
    assert visualize("text.txt", "out.html", "--sentences")[0] == 0
    assert len(data_of((tmp_path / "out.html").read_text(encoding="utf8"))["rows"]) == 4
    code, said = visualize("text.txt", "other.html")
    assert code == 1 and "Cannot draw 1 texts: expected at least 2" in said
    code, said = visualize("text.txt", "out.html", "--sentences", "--limit", "2")
    assert code == 1 and "leave --column, --labels, --limit and --vectors out" in said


def test_a_table_makes_a_map(visualize, tmp_path):
    rows = [f"{text}\t{number % 2}" for number, text in enumerate(TEXTS)]
    (tmp_path / "table.tsv").write_text("\n".join(["text\tkind", *rows]), encoding="utf8")
    assert visualize("table.tsv", "out.html", "--style", "map", "--labels", "kind")[0] == 0
    data = data_of((tmp_path / "out.html").read_text(encoding="utf8"))
    assert (data["texts"], data["names"], data["group"]) == (TEXTS, ["0", "1"], [0, 1, 0, 1])
    for arguments, message in (
        (["--labels", "kind"], "The style 'heatmap' has no option 'labels'"),
        (["--style", "map", "--column", "words"], "expected a column 'words', got text, kind"),
        (["--style", "map", "--low", "0"], "The style 'map' has no option 'low'"),
        (["--style", "tree"], "Unknown style 'tree'"),
    ):
        code, said = visualize("table.tsv", "none.html", *arguments)
        assert code == 1 and message in said and not (tmp_path / "none.html").exists()
