"""docs/papers.md says what is saved, and its plots draw it."""

import re

import pytest


@pytest.fixture
def page(load_script):
    return load_script("page")


def test_page_says_what_is_saved(page):
    text = page.PAGE.read_text(encoding="utf8")
    assert len(page.BLOCK.findall(text)) > 5
    assert page.filled(text) == text, "python benchmarks/papers/page.py writes it"
    paths = [page.HERE / page.INDEX, *(page.HERE / page.FOLDER).glob("*.html")]
    saved = {
        path.relative_to(page.HERE).as_posix(): path.read_text(encoding="utf8") for path in paths
    }
    assert page.drawn(text) == saved


def test_a_page_for_each_section(page):
    """None is larger than a phone loads at once, the index leads to each, and each leads back."""
    pages = page.drawn(page.PAGE.read_text(encoding="utf8"))
    index = pages.pop(page.INDEX)
    assert re.findall(r'href="([^"#]+)"', index) == list(pages)
    assert len(pages) > 15
    assert index.count("<h2>") == 3
    assert "<table" not in index
    for path, text in pages.items():
        assert f'<a href="../{page.INDEX}">All tables</a>' in text and len(text) < 60_000, path
        assert text.count("<table") == text.count('<div class="wide"') > 0
    assert sum(text.count("<table") for text in pages.values()) > 20


def test_a_changed_figure_is_noticed(page, monkeypatch, tmp_path):
    (tmp_path / "some.md").write_text(
        "| | score |\n|---|---|\n| a\\|b | 1.25 ± 0.5 |\n| c | - |\n", encoding="utf8"
    )
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    text = "# Title\n<!-- table some.md, plot score -->\n| stale |\n<!-- end -->\nafter\n"
    filled = page.filled(text)
    assert "stale" not in filled
    assert "| a\\|b | 1.25 ± 0.5 |\n| c | - |\n<!-- end -->\nafter" in filled
    drawn = page.drawn(filled)["pages/title.html"]
    assert "a|b" in drawn
    assert "Title: score" in drawn
    assert ">1.25<" in drawn


def test_several_tables_in_a_file(page, monkeypatch, tmp_path):
    """As supervised_sts.py writes them: each is drawn, a note belongs to the one before, one has
    the column.
    """
    tables = (
        "| what | n |\n|---|---|\n| one | 7 |\n",
        "| what | score |\n|---|---|\n| two | 1.25 |\n",
    )
    (tmp_path / "some.md").write_text("\n".join([*tables, "Said of both.\n"]), encoding="utf8")
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    pages = page.drawn(page.filled("# Title\n<!-- table some.md, plot score -->\n<!-- end -->\n"))
    drawn = pages["pages/title.html"]
    assert drawn.count("<table") == 2
    assert drawn.count("Said of both.") == 1
    assert drawn.count("<figure") == 1
    assert "Title: score" in drawn
    assert ">two<" in drawn
    assert ">one<" in drawn
