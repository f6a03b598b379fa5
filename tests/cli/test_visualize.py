"""`visualize`, and the files that it reads and writes."""

import os
from pathlib import Path

import pytest
from helpers.invoking import said
from helpers.made_pages import data_of

TEXTS = ["A man is eating.", "The cat sat.", "He cannot go.", "The dog ran fast."]
LINES = "\n".join(TEXTS)


@pytest.fixture(scope="module")
def pipeline(make_nlp, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipeline") / "nlp"
    make_nlp(unit="sent").to_disk(folder)
    return folder


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, loaded_once):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def draw(pipeline):
    """Draw a file with this content, and return the page and its data; with a code, what was
    said.
    """

    def call(content, *arguments, name="texts.txt", code=0):
        Path(name).write_text(content, encoding="utf8")
        output = said("visualize", pipeline, name, "out.html", "--overwrite", *arguments, code=code)
        page = Path("out.html").read_text(encoding="utf8") if code == 0 else ""
        return (page, data_of(page)) if code == 0 else output

    return call


def test_lines_make_a_heat_map(draw, pipeline, folder):
    page, data = draw("\n\n".join(TEXTS), "--limit", "3", "--title", "Three <b>lines", "--low", "0")
    assert ["".join(row["tokens"]) for row in data["rows"]] == TEXTS[:3]
    assert "<title>Three &lt;b&gt;lines</title>" in page
    assert "Colours from 0 to 1" in page
    assert "Saved the picture to sub/out.html" in said(
        "visualize", pipeline, "texts.txt", "sub/out.html"
    )
    assert os.listdir(folder / "sub") == ["out.html"]


def test_too_many_texts_for_a_heat_map(draw):
    output = draw("dog\n" * 65, code=1)
    assert "65 texts: expected at most 64" in output
    assert "--limit 64" in output
    assert "Encoding" not in output
    assert "Loading" not in output


def test_tokens_of_two_texts(draw):
    page, data = draw(LINES, "--style", "tokens", "--limit", "2", "--low", "0")
    assert ["".join(data[side][0]["tokens"]) for side in ("rows", "columns")] == TEXTS[:2]
    assert page.count("data-cosine") == 5 * 4
    assert "Colours from 0 to 1" in page
    output = draw(LINES, "--style", "tokens", code=1)
    assert "give two of them" in output.lower()
    assert "--limit 2" in output


def test_clusters_of_a_map_are_named(draw):
    pytest.importorskip("sklearn")
    _, data = draw(LINES, "--style", "map", "--clusters", "2", "--seed", "1")
    assert [name.split(":")[0] for name in data["names"]] == ["0", "1"]
    assert "use it with --style map" in draw(LINES, "--clusters", "2", code=1)


def test_the_name_of_an_encoder_is_enough(tiny_bert, folder):
    (folder / "texts.txt").write_text(LINES, encoding="utf8")
    said("visualize", tiny_bert, "texts.txt", "out.html")
    rows = data_of((folder / "out.html").read_text(encoding="utf8"))["rows"]
    assert ["".join(row["tokens"]) for row in rows] == TEXTS


def test_one_text_by_its_sentences(draw):
    assert len(draw(" ".join(TEXTS), "--sentences")[1]["rows"]) == 4
    assert "Cannot draw 1 texts: expected at least 2" in draw(" ".join(TEXTS), code=1)
    output = draw(" ".join(TEXTS), "--sentences", "--limit", "2", code=1)
    assert "leave --column, --no-header, --labels, --limit and --vectors out" in output


TABLE = "\n".join(["text\tkind", *(f"{text}\t{i % 2}" for i, text in enumerate(TEXTS))])


def test_a_table_makes_a_map(draw):
    _, data = draw(TABLE, "--style", "map", "--labels", "kind", name="table.tsv")
    assert (data["texts"], data["names"], data["group"]) == (TEXTS, ["0", "1"], [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--labels kind", "The style 'heatmap' has no option 'labels'"),
        ("--style map --column words", "expected a column 'words', got text, kind"),
    ],
)
def test_options_that_a_table_refuses(draw, arguments, message):
    assert message in draw(TABLE, *arguments.split(), name="table.tsv", code=1)
