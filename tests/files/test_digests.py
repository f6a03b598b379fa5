"""Digests of files and of what results depend on."""

import hashlib
import json

import pytest
from pydantic import BaseModel

from spacy_sbert.files.serialization import (
    checksummed_json,
    digest_of_parts,
    digest_of_stream,
    file_digest,
    parse_checksummed,
)


def test_file_digest(tmp_path):
    data = bytes(range(256)) * 10_000  # more than is read at once
    (tmp_path / "a").write_bytes(data)
    assert file_digest(tmp_path / "a") == hashlib.sha256(data).hexdigest()
    with pytest.raises(ValueError, match="is a folder: expected a file"):
        file_digest(tmp_path)
    with pytest.raises(FileNotFoundError):
        file_digest(tmp_path / "none")


def test_digests_of_parts_and_streams():
    assert digest_of_parts("a", {"b": 1, "c": None}) == digest_of_parts("a", {"c": None, "b": 1})
    assert digest_of_parts("a", "b") != digest_of_parts("ab")
    assert digest_of_stream(["ab", "c"]) == digest_of_stream(iter([b"ab", "c"])) != digest_of_stream(["a", "bc"])


class Said(BaseModel):
    n: int
    names: list[str]


def test_sealed_json():
    data = json.dumps(checksummed_json({"n": 1, "names": ["a"]})).encode()
    assert parse_checksummed(Said, data) == Said(n=1, names=["a"])
    for changed in (
        data.replace(b'"n": 1', b'"n": 2'),
        data.replace(b"sha256", b"sha257"),
        b'{"n": 1, "names": ["a"]}',
    ):
        with pytest.raises(ValueError, match="its SHA-256 is not the one"):
            parse_checksummed(Said, changed)
    for data, message in [
        (b'{"n": "1", "names": [2]}', r"^n: .* integer; names\.0: .* string$"),
        (b'{"n": 1}', "^names: Field required$"),
        (b"[", "^it: Invalid JSON"),
        (b"[" * 100_000, "^it: Invalid JSON"),
        (b"\xff", "^it: Invalid JSON"),
        (b"3", "^it: "),
    ]:
        with pytest.raises(ValueError, match=message):
            parse_checksummed(Said, data)
