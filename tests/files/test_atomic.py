"""Files and folders that are there whole or not at all."""

import os
import sys

import pytest

from spacy_sbert.files.atomic import Lock, atomic_folder, atomic_write


def full(*arguments):
    raise OSError(28, "No space left on device")


def test_full_disk_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "made" / "page.html"
    with atomic_write(path) as file:
        file.write(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), atomic_write(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == ["page.html"]
    monkeypatch.undo()
    (path.parent / "temporary").write_text("of a killed process")
    with atomic_write(path, temporary=path.parent / "temporary") as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["page.html"]


def test_new_folder(tmp_path):
    path = tmp_path / "made" / "folder"
    with pytest.raises(OSError, match="No space left"), atomic_folder(path) as folder:
        (folder / "file").write_text("half")
        full()
    assert os.listdir(path.parent) == []
    with atomic_folder(path) as folder:
        (folder / "file").write_text("whole")
        assert not path.exists()
    assert (path / "file").read_text() == "whole"
    assert os.listdir(path.parent) == ["folder"]
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
        pytest.raises(
            OSError, match=r"Cannot write .*other\.html: No space left on device"
        ) as raised,
        atomic_write(path),
        atomic_write(tmp_path / "other.html"),
    ):
        full()
    assert str(raised.value).count("Cannot write") == 1
    assert raised.value.errno == 28
    with pytest.raises(FileNotFoundError, match=r"none\.txt'$"), atomic_write(path):
        # Another file, which the message must not call page.html
        (tmp_path / "none.txt").read_text()
    assert os.listdir(tmp_path) == []


def test_replace_folders_files_and_links(tmp_path):
    """What a link leads to stays."""
    path = tmp_path / "made"
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(other)
    for name in ("file", "link"):
        with atomic_folder(tmp_path / name, replace=True) as folder:
            (folder / "new").touch()
        assert os.listdir(tmp_path / name) == ["new"]
        assert not (tmp_path / name).is_symlink()
    for content in ("first", "second"):
        with atomic_folder(path, replace=True) as folder:
            (folder / content).write_text(content)
    with pytest.raises(OSError, match="No space"), atomic_folder(path, replace=True) as folder:
        (folder / "third").write_text("half")
        raise OSError("No space left on device")
    assert [file.name for file in path.iterdir()] == ["second"]
    assert sorted(os.listdir(tmp_path)) == ["file", "link", "made", "other"]
    assert os.listdir(other) == ["kept"]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_lock_of_a_dead_process(tmp_path):
    pid = os.fork()
    if not pid:
        _kept = Lock(tmp_path / "lock")
        os._exit(9)
    os.waitpid(pid, 0)
    assert (tmp_path / "lock").is_file()
    held = Lock(tmp_path / "lock")
    with pytest.raises(RuntimeError, match="Another process writes the same output"):
        Lock(tmp_path / "lock")
    held.release(remove=True)
    assert not (tmp_path / "lock").exists()
