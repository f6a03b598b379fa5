"""Templates: what is escaped, what is refused, and where they may lie."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import spacy_sbert
from spacy_sbert.render.document import render

EVIL = "</title><script>alert(1)</script> \"x\" 'y' & \u202e\ud83d\n"
PACKAGE = Path(spacy_sbert.__file__).parent


def test_texts_are_cleaned_and_escaped():
    page = render("render/page.html", title=EVIL, lang=EVIL)
    page.encode("utf8")
    assert type(page) is str and "<script" not in page and "\u202e" not in page
    shown = "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; &#34;x&#34; &#39;y&#39; &amp;    "
    assert f"<title>{shown}</title>" in page and f'<html lang="{shown}">' in page


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError, match="lang"):
        render("render/page.html", title="A")


def test_templates_in_a_zip_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        for file in PACKAGE.rglob("*"):
            if file.suffix in (".py", ".html", ".css", ".js"):
                archive.write(file, file.relative_to(PACKAGE.parent))
    script = """
import numpy
from spacy_sbert.render.document import Document
from spacy_sbert.render.document import html
from spacy_sbert.visual.page import Picture
assert ".zip" in html.__code__.co_filename, html.__code__.co_filename
assert "<h1>A</h1>" in html(Document("A", [], [], []))
drawn = {"columns": [], "rows": [], "bar": [], "marks": [("0", 0.0)], "zero": "0", "below": False}
assert "pointerover" in Picture("visual/heatmap.html", "A", "B", "en", drawn, {}).page()
"""
    path = {"PYTHONPATH": str(tmp_path / "package.zip")}
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, env=path)
