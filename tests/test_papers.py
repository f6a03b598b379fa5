"""docs/papers.md says what is saved, and its plots draw it."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "papers"))
    return importlib.import_module("page")


def test_page_says_what_is_saved(page):
    text = page.PAGE.read_text(encoding="utf8")
    assert len(page.BLOCK.findall(text)) > 5
    assert page.filled(text) == text, "python benchmarks/papers/page.py writes it anew"
    assert page.drawn(text) == (page.HERE / "papers.html").read_text(encoding="utf8")


def test_a_changed_figure_is_noticed(page, monkeypatch, tmp_path):
    (tmp_path / "some.md").write_text("| | score |\n|---|---|\n| a\\|b | 1.25 ± 0.5 |\n| c | - |\n", encoding="utf8")
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    text = "# Title\n<!-- table some.md, plot score -->\n| stale |\n<!-- end -->\nafter\n"
    filled = page.filled(text)
    assert "stale" not in filled and "| a\\|b | 1.25 ± 0.5 |\n| c | - |\n<!-- end -->\nafter" in filled
    drawn = page.drawn(filled)
    assert "a|b" in drawn and "Title: score" in drawn and ">1.25<" in drawn


def test_several_tables_in_a_file(page, monkeypatch, tmp_path):
    """As scripts/sts_tables.py writes them: each is drawn, a note belongs to the one before, one has the column."""
    tables = "| what | n |\n|---|---|\n| one | 7 |\n", "| what | score |\n|---|---|\n| two | 1.25 |\n"
    (tmp_path / "some.md").write_text("\n".join([*tables, "Said of both.\n"]), encoding="utf8")
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    drawn = page.drawn(page.filled("# Title\n<!-- table some.md, plot score -->\n<!-- end -->\n"))
    assert drawn.count("<table") == 2 and drawn.count("Said of both.") == 1
    assert drawn.count("<figure") == 1 and "Title: score" in drawn and ">two<" in drawn and ">one<" in drawn
