"""docs/papers.md says what is saved, its index what there is, and its plots draw it."""

import itertools
import re
import shlex
from collections import Counter

import pytest
from helpers.pipelines import ROOT, blocks


@pytest.fixture
def page(load_script):
    return load_script("page")


@pytest.fixture
def index(load_script):
    return load_script("paper_index")


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


def test_index_names_what_exists(page, index):
    """Results are saved, and sections are the paper's. What is missing has no results."""
    text = page.PAGE.read_text(encoding="utf8")
    sections = {}
    paper = ""
    for marks, heading in page.HEADING.findall(text):
        if len(marks) == 2:
            paper = heading
        sections.setdefault(paper, []).append(heading)
    for entry in index.ENTRIES:
        if entry.section:
            assert f"](#{index.anchor(entry.section)})" in "".join(index.row(entry))
        assert entry.state in index.STATES
        assert entry.why or entry.state == index.WHOLE, entry.what
        assert bool(entry.results) == (entry.state != index.MISSING), entry.what
        if entry.results:
            assert entry.section in sections[entry.paper], entry.what
        elif entry.section:
            assert entry.section in itertools.chain(*sections.values()), entry.what
        for name in entry.results:
            folder = ROOT if name.startswith("benchmarks/") else page.RESULTS
            assert (folder / name).is_file()


def test_index_leaves_out_no_result(page, index):
    """Each folder of results and each saved table of the page is named. A table that is made of
    saved scores is named by them.
    """
    named = {name for entry in index.ENTRIES for name in entry.results}
    folders = {path.name for path in page.RESULTS.iterdir()}
    assert folders - {name.split("/")[0] for name in named} == {"meta6"}, "no table of a paper"
    tables = {found["file"] for found in page.BLOCK.finditer(page.PAGE.read_text(encoding="utf8"))}
    assert {name for name in tables - named if not name.startswith("meta6/")} == set(page.TABLES)


def test_commands_of_the_index(page, index):
    """Scripts exist. What has a section has its whole command on the page."""
    text = page.PAGE.read_text(encoding="utf8")
    commands = " ".join(" ".join(block.split()) for block in blocks(text, "bash"))
    for entry in index.ENTRIES:
        command = entry.command
        script = shlex.split(command)[0]
        if script.endswith(".py"):
            assert (page.HERE / script).is_file(), entry.what
            command = f"python benchmarks/papers/{command}"
        if entry.section:
            assert command.removesuffix(" SEED") in commands, entry.what


def test_counts_of_the_index(page, index):
    """As stated, in the rows that are shown."""
    shown = page.OVERVIEW.search(page.PAGE.read_text(encoding="utf8"))[0]
    states = Counter(re.findall(r"^\| [^|]+ \| ([a-z ]+) \|", shown, re.M))
    del states["state"]
    n, *counts = map(int, re.findall(r"\d+", shown.splitlines()[1]))
    assert n == states.total() == len(index.ENTRIES)
    assert counts == [states[state] for state in index.STATES]


def test_tables_made_of_saved_scores(load_script):
    """Cosines and spreads agree with the tables that were saved with the scores."""
    scores = load_script("saved_scores")
    cosines = {row[0]: row[4] for row in rows(scores.other_similarities())}
    saved = (scores.RESULTS / "sts" / "table.md").read_text(encoding="utf8")
    assert cosines == {row[0]: row[7] for row in rows(saved)}
    *encoders, spread, _ = rows(scores.spread())
    normalizations = (scores.RESULTS / "pitfalls" / "normalizations.md").read_text(encoding="utf8")
    by_name = {row[0]: [row[1], row[3]] for row in rows(normalizations)}
    assert {row[0]: [row[2], row[4]] for row in encoders} == by_name
    spearman = [float(row[2]) for row in encoders]
    assert float(spread[2]) == pytest.approx(max(spearman) - min(spearman), abs=0.011)
    untrained, trained, _ = rows(scores.trained_triplets())
    difference = float(trained[1]) - float(untrained[1])
    assert float(trained[3]) == pytest.approx(difference, abs=0.011)


def rows(table):
    """The cells of a Markdown table without its header."""
    _, _, *lines = table.splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line]
