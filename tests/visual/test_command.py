"""`spacy sbert visualize`, and the files that it reads and writes."""

import os

import pytest
from made_pages import data_of
from typer.testing import CliRunner

from spacy_sbert.cli import app

TEXTS = ["A man is eating.", "The cat sat.", "He cannot go.", "The dog ran fast."]


@pytest.fixture(scope="module")
def pipeline(make_nlp, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipeline") / "nlp"
    make_nlp(unit="sent").to_disk(folder)
    return folder


@pytest.fixture
def visualize(pipeline, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        done = CliRunner().invoke(app, ["visualize", str(pipeline), *arguments])
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


def test_too_many_texts_for_a_heat_map(visualize, tmp_path):
    (tmp_path / "texts.txt").write_text("dog\n" * 65, encoding="utf8")
    code, said = visualize("texts.txt", "out.html")
    assert code == 1 and "65 texts on a side: expected at most 64" in said and "(--limit 64)" in said
    assert "Encoding" not in said and "Loading" not in said


def test_tokens_of_two_texts(visualize, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf8")
    assert visualize("texts.txt", "out.html", "--style", "tokens", "--limit", "2", "--low", "0")[0] == 0
    page = (tmp_path / "out.html").read_text(encoding="utf8")
    data = data_of(page)
    assert ["".join(data[side][0]["tokens"]) for side in ("rows", "columns")] == TEXTS[:2]
    assert page.count("data-cosine") == 5 * 4 and "Colours from 0 to 1" in page
    code, said = visualize("texts.txt", "none.html", "--style", "tokens")
    assert code == 1 and "give two of them" in said.lower() and "--limit 2" in said


def test_clusters_of_a_map_are_named(visualize, tmp_path):
    pytest.importorskip("sklearn")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf8")
    assert visualize("texts.txt", "out.html", "--style", "map", "--clusters", "2", "--seed", "1")[0] == 0
    names = data_of((tmp_path / "out.html").read_text(encoding="utf8"))["names"]
    assert [name.split(":")[0] for name in names] == ["0", "1"]
    code, said = visualize("texts.txt", "none.html", "--clusters", "2")
    assert code == 1 and "use it with --style map" in said


def test_the_name_of_an_encoder_is_enough(tmp_path, tiny_bert):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf8")
    given = [str(tmp_path / "texts.txt"), str(tmp_path / "out.html")]
    assert CliRunner().invoke(app, ["visualize", str(tiny_bert), *given]).exit_code == 0
    rows = data_of((tmp_path / "out.html").read_text(encoding="utf8"))["rows"]
    assert ["".join(row["tokens"]) for row in rows] == TEXTS
    done = CliRunner().invoke(app, ["visualize", "no-such-thing", *given, "--overwrite"])
    assert done.exit_code == 1 and "Cannot load 'no-such-thing'" in " ".join(done.output.split())


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
        (["--style", "tree"], "Unknown style 'tree'"),
    ):
        code, said = visualize("table.tsv", "none.html", *arguments)
        assert code == 1 and message in said and not (tmp_path / "none.html").exists()
