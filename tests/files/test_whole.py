"""Files and folders that are there whole or not at all."""

import os

import pytest

from spacy_sbert.files.atomic import atomic_folder, atomic_write


def full(*arguments):
    raise OSError(28, "No space left on device")


def test_full_disk_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "made" / "page.html"
    with atomic_write(path) as file:
        file.write(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), atomic_write(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old" and os.listdir(path.parent) == ["page.html"]
    monkeypatch.undo()
    with atomic_write(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new" and os.listdir(path.parent) == ["page.html"]


def test_new_folder(tmp_path):
    path = tmp_path / "made" / "folder"
    with pytest.raises(OSError, match="No space left"), atomic_folder(path) as folder:
        (folder / "file").write_text("half")
        full()
    assert os.listdir(path.parent) == []
    with atomic_folder(path) as folder:
        (folder / "file").write_text("whole")
        assert not path.exists()
    assert (path / "file").read_text() == "whole" and os.listdir(path.parent) == ["folder"]
    with pytest.raises(FileExistsError, match="There is something at"), atomic_folder(path):
        pass
    empty = tmp_path / "empty"
    empty.mkdir()
    with atomic_folder(empty) as folder:
        (folder / "file").touch()
    assert os.listdir(empty) == ["file"]


def test_error_names_the_file_once(tmp_path):
    path = tmp_path / "page.html"
    with (
        pytest.raises(OSError, match=r"Cannot write .*other\.html: No space left on device") as raised,
        atomic_write(path),
        atomic_write(tmp_path / "other.html"),
    ):
        full()
    assert str(raised.value).count("Cannot write") == 1 and raised.value.errno == 28
    with pytest.raises(FileNotFoundError, match=r"none\.txt'$"), atomic_write(path):
        (tmp_path / "none.txt").read_text()  # another file, which the message must not call page.html
    assert os.listdir(tmp_path) == []


def test_temporary_name(tmp_path):
    (tmp_path / "new").write_text("of a killed process")
    with atomic_write(tmp_path / "page.html", temporary=tmp_path / "new") as file:
        assert os.listdir(tmp_path) == ["new"]
        file.write(b"whole")
    assert os.listdir(tmp_path) == ["page.html"] and (tmp_path / "page.html").read_bytes() == b"whole"


def test_replace_a_folder(tmp_path):
    path = tmp_path / "made"
    for content in ("first", "second"):
        with atomic_folder(path, replace=True) as folder:
            (folder / content).write_text(content)
    with pytest.raises(OSError, match="No space"), atomic_folder(path, replace=True) as folder:
        (folder / "third").write_text("half")
        raise OSError("No space left on device")
    assert [file.name for file in path.iterdir()] == ["second"]
    assert [file.name for file in tmp_path.iterdir()] == ["made"]


def test_folder_replaces_files_and_links(tmp_path):
    """A file, and a link to a folder, of which what it leads to stays."""
    (tmp_path / "file").write_text("text")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").touch()
    (tmp_path / "link").symlink_to(tmp_path / "other")
    for name in ("file", "link"):
        with atomic_folder(tmp_path / name, replace=True) as folder:
            (folder / "new").touch()
        assert os.listdir(tmp_path / name) == ["new"] and not (tmp_path / name).is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["file", "link", "other"] and os.listdir(tmp_path / "other") == ["kept"]
