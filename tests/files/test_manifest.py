"""Manifests: what is read is what was written."""

import json

import pytest

from spacy_sbert.files.manifest import Manifest


class Vectors(Manifest):
    rows: int
    digest: str = ""


@pytest.fixture
def path(tmp_path):
    Vectors(rows=3, digest="abc").write(tmp_path / "vectors.json")
    return tmp_path / "vectors.json"


def test_round_trip(path):
    assert Vectors.read(path) == Vectors(rows=3, digest="abc")
    assert Vectors.from_json(path.read_bytes()).to_json() == path.read_bytes()


@pytest.mark.parametrize("change", [{"rows": 4}, {"digest": "abd"}, {"more": 1}])
def test_changed_one_is_refused(path, change):
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match="SHA-256 is not the one"):
        Vectors.read(path)


def test_cut_one_is_refused(path):
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match="line"):
        Vectors.read(path)
