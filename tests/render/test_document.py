"""Documents and plots: what is escaped, what is refused, tables in a terminal, axes, and where
templates may lie.
"""

import importlib
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jinja2 import UndefinedError

import spacy_sbert
from spacy_sbert.render.document import Cell, Document, Table, escape_markdown, render_template
from spacy_sbert.render.plots import Axis, Bar, bars

EVIL = "</title><script>alert(1)</script> \"x\" 'y' & \u202e\ud83d\n"


def test_texts_are_cleaned_and_escaped():
    page = render_template("render/page.html", title=EVIL, lang=EVIL)
    page.encode("utf8")
    assert type(page) is str
    assert "<script" not in page
    assert "\u202e" not in page
    shown = "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; &#34;x&#34; &#39;y&#39; &amp;    "
    assert f"<title>{shown}</title>" in page
    assert f'<html lang="{shown}">' in page
    with pytest.raises(UndefinedError, match="lang"):
        render_template("render/page.html", title="A")
    assert escape_markdown("_a_ en_core_web *b* `c` #d") == r"\_a\_ en_core_web \*b\* \`c\` \#d"


def test_templates_in_a_zip_archive(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        archive.writestr("zipped/__init__.py", "")
        for file in (Path(spacy_sbert.__file__).parent / "render").glob("*.*"):
            archive.write(file, f"zipped/render/{file.name}")
    monkeypatch.syspath_prepend(tmp_path / "package.zip")
    document = importlib.import_module("zipped.render.document")
    assert ".zip" in document.__file__
    assert "<h1>A</h1>" in document.Document("A", [], []).html()


def test_plots():
    assert Axis(0, 10, 100, 200)(2.5) == 125
    assert Axis(3, 3, 100, 200)(3) == 100
    assert Axis(1, 100, 0, 50, log=True)(10) == pytest.approx(25)
    assert Axis.spanning(0.3, 9.2, 0, 1, wanted=5).marks == [0, 2, 4, 6, 8, 10]
    assert Axis.spanning(0.3, 9.2, 0, 1, wanted=5, inside=True).marks == [2, 4, 6, 8]
    shown = EVIL.replace("\u202e", " ").replace("\ud83d", " ").replace("\n", " ")
    root = ElementTree.fromstring(bars([Bar(EVIL[:20], 0.5)], "b", EVIL, EVIL).svg)
    assert [root.find("title").text, root.find("desc").text] == [shown] * 2
    assert shown[:20] in [text.text for text in root.iter("text")]
    assert root.get("aria-label") == f"{shown}. {shown}"


def lines_of(table, width=80):
    return Document("Title", [], [table]).terminal(width).splitlines()


def test_tables_in_a_terminal():
    rows = [("one", "x", Cell("1.00", ["Seen."]), "2.00"), ("two", "y", "-", "3.5")]
    assert lines_of(Table("Scores", ("Model", "Kind", "A", "Longer"), rows)) == [
        *("Title", "", "Scores", "======"),
        "Model  Kind         A  Longer",
        "-----  ----  --------  ------",
        "one       x  1.00 [1]    2.00",
        "two       y         -     3.5",
        *("", "Notes", "=====", "[1] Seen."),
    ]
    wide = Table(
        "Wide",
        ("Model", *(f"column {n}" for n in range(9))),
        [("one", *map(str, range(9)))],
        "Read it so.",
    )
    found = lines_of(wide, 40)
    assert found[4:7] == ["Model     one", "--------  ---", "column 0    0"], "transposed"
    assert found[-1] == "Read it so."
    assert max(map(len, found)) <= 40


def test_nothing_in_it_steers_the_terminal():
    table = Table("\x07", ("\x9b2J",), [("\x1b]0;title\x07",), (Cell("a", ["\x08"]),)])
    text = Document("\x1b[31mred", ["a\rb"], [table]).terminal(80)
    assert not [
        character for character in text if character != "\n" and not character.isprintable()
    ]
