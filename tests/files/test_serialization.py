"""Digests of files and of what results depend on, JSON with one, and saved states with the one
behind them.
"""

import hashlib
import json

import pytest
import srsly
from pydantic import BaseModel

from spacy_sbert.files.checksum import (
    MARK,
    CorruptedState,
    add_checksum,
    checksummed_json,
    digest_of_parts,
    digest_of_stream,
    file_digest,
    parse_checksummed,
    verify_checksum,
)

STATE = srsly.msgpack_dumps({"nodes": [1, 2]})


def test_file_digest(tmp_path):
    # More than is read at once
    data = bytes(range(256)) * 10_000
    (tmp_path / "a").write_bytes(data)
    assert file_digest(tmp_path / "a") == hashlib.sha256(data).hexdigest()
    with pytest.raises(ValueError, match="is a folder: expected a file"):
        file_digest(tmp_path)
    with pytest.raises(FileNotFoundError):
        file_digest(tmp_path / "none")


def test_digests_of_parts_and_streams():
    assert digest_of_parts("a", {"b": 1, "c": None}) == digest_of_parts("a", {"c": None, "b": 1})
    assert digest_of_parts("a", "b") != digest_of_parts("ab")
    assert (
        digest_of_stream(["ab", "c"])
        == digest_of_stream(iter([b"ab", "c"]))
        != digest_of_stream(["a", "bc"])
    )


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


def test_a_state_ends_in_its_sha256():
    sealed = add_checksum(STATE)
    assert sealed == STATE + MARK + hashlib.sha256(STATE).digest()
    assert verify_checksum(sealed) == STATE


def test_every_flip_and_every_cut():
    sealed = add_checksum(STATE)
    for at in range(len(sealed)):
        for bit in range(8):
            with pytest.raises(CorruptedState):
                verify_checksum(sealed[:at] + bytes([sealed[at] ^ 1 << bit]) + sealed[at + 1 :])
        with pytest.raises(CorruptedState):
            # Also of nothing
            verify_checksum(sealed[:at])


def test_weights_in_another_pipe(make_nlp):
    """replace_listeners leaves an encoder in a pipe of spaCy's, which seals nothing."""
    shim = make_nlp().get_pipe("sbert").model.get_ref("encoder").get_ref("transformer").shim
    data = bytearray(shim.to_bytes())
    data[data.index(b"model.safetensors") + 2000] ^= 1
    with pytest.raises(ValueError, match=r"the SHA-256 of a file is not"):
        shim.from_bytes(bytes(data))


def test_damaged_cfg_and_missing_parts(make_nlp, tmp_path):
    nlp = make_nlp()
    nlp.to_disk(tmp_path)
    file = tmp_path / "sbert" / "cfg"
    pipe = nlp.get_pipe("sbert")
    for content in ("", "{", "[]"):
        file.write_text(content)
        with pytest.raises(ValueError, match="damaged") as caught:
            pipe.from_disk(tmp_path / "sbert")
        assert str(file) in str(caught.value)
    for part in ("model", "cfg"):
        parts = srsly.msgpack_loads(pipe.to_bytes(exclude=["vocab"]))
        del parts[part]
        with pytest.raises(ValueError, match=f"its part '{part}' is missing"):
            pipe.from_bytes(srsly.msgpack_dumps(parts), exclude=["vocab"])
        pipe.from_bytes(srsly.msgpack_dumps(parts), exclude=["vocab", part])
