"""Texts to look at: files of lines and tables, and what is refused."""

import pytest

from spacy_sbert.cli.visualize import read_texts
from spacy_sbert.files.text_lines import read_lines


def test_files_without_columns(tmp_path):
    (tmp_path / "texts.txt").write_text("One.\nTwo.\n", encoding="utf8")
    assert read_texts(tmp_path / "texts.txt") == (["One.", "Two."], None)
    for columns in ({"column": "text"}, {"label": "kind"}):
        with pytest.raises(ValueError, match="line 1: expected a column 'text', got One"):
            read_texts(tmp_path / "texts.txt", **columns)
    (tmp_path / "table.txt").write_text("kind\ttext\nx\tOne.\ny\tTwo.\n", encoding="utf8")
    assert read_texts(tmp_path / "table.txt", column="text", label="kind") == (["One.", "Two."], ["x", "y"])
    (tmp_path / "bad.txt").write_bytes(b"One.\n\xff\n")
    with pytest.raises(ValueError, match=r"bad\.txt, line 2: not UTF-8"):
        list(read_lines(tmp_path / "bad.txt"))
