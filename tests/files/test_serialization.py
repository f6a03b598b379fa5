"""Digests of files and of what results depend on, JSON with one, and saved states with the one
behind them.
"""

import hashlib
import json
import re

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


SAID = json.dumps(checksummed_json({"n": 1, "names": ["a"]})).encode()


def test_json_with_its_checksum():
    assert parse_checksummed(Said, SAID) == Said(n=1, names=["a"])


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(SAID.replace(b'"n": 1', b'"n": 2'), id="another value"),
        pytest.param(SAID.replace(b"sha256", b"sha257"), id="another key"),
        pytest.param(b'{"n": 1, "names": ["a"]}', id="no checksum"),
    ],
)
def test_json_with_another_checksum(changed):
    with pytest.raises(ValueError, match="its SHA-256 is not the one"):
        parse_checksummed(Said, changed)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(
            b'{"n": "1", "names": [2]}', r"^n: .* integer; names\.0: .* string$", id="types"
        ),
        pytest.param(b'{"n": 1}', "^names: Field required$", id="a missing key"),
        pytest.param(b"[", "^it: Invalid JSON", id="cut"),
        pytest.param(b"[" * 100_000, "^it: Invalid JSON", id="deep"),
        pytest.param(b"\xff", "^it: Invalid JSON", id="no UTF-8"),
        pytest.param(b"3", "^it: ", id="a number"),
    ],
)
def test_json_of_another_form(data, message):
    with pytest.raises(ValueError, match=message):
        parse_checksummed(Said, data)


def test_a_state_ends_in_its_sha256():
    sealed = add_checksum(STATE)
    assert sealed == STATE + MARK + hashlib.sha256(STATE).digest()
    assert verify_checksum(sealed) == STATE


@pytest.mark.parametrize("bit", range(8))
def test_every_flip(bit):
    sealed = add_checksum(STATE)
    for place in range(len(sealed)):
        flipped = bytearray(sealed)
        flipped[place] ^= 1 << bit
        with pytest.raises(CorruptedState):
            verify_checksum(bytes(flipped))


def test_every_cut():
    """Also the state of nothing."""
    sealed = add_checksum(STATE)
    for length in range(len(sealed)):
        with pytest.raises(CorruptedState):
            verify_checksum(sealed[:length])


def test_weights_in_another_pipe(make_nlp):
    """replace_listeners leaves an encoder in a pipe of spaCy's, which seals nothing."""
    shim = make_nlp().get_pipe("sbert").model.get_ref("encoder").get_ref("transformer").shim
    data = bytearray(shim.to_bytes())
    data[data.index(b"model.safetensors") + 2000] ^= 1
    with pytest.raises(ValueError, match=r"the SHA-256 of a file is not"):
        shim.from_bytes(bytes(data))


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_a_damaged_cfg(make_nlp, tmp_path, content):
    nlp = make_nlp()
    nlp.to_disk(tmp_path)
    file = tmp_path / "sbert" / "cfg"
    file.write_text(content)
    with pytest.raises(ValueError, match="damaged") as caught:
        nlp.get_pipe("sbert").from_disk(tmp_path / "sbert")
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("part", ["model", "cfg"])
def test_a_missing_part(make_nlp, part):
    pipe = make_nlp().get_pipe("sbert")
    parts = srsly.msgpack_loads(pipe.to_bytes(exclude=["vocab"]))
    del parts[part]
    with pytest.raises(ValueError, match=f"its part '{part}' is missing"):
        pipe.from_bytes(srsly.msgpack_dumps(parts), exclude=["vocab"])
    pipe.from_bytes(srsly.msgpack_dumps(parts), exclude=["vocab", part])


def test_settings_that_are_not_utf8_name_the_file(make_nlp, tmp_path):
    """srsly reads such bytes, and spaCy does not."""
    nlp = make_nlp()
    nlp.to_disk(tmp_path)
    file = tmp_path / "sbert" / "cfg"
    file.write_bytes(file.read_bytes().replace(b"{", b'{"\xb7": 1, ', 1))
    with pytest.raises(ValueError, match=f"{re.escape(str(file))} .* is damaged"):
        nlp.get_pipe("sbert").from_disk(file.parent, exclude=["vocab"])
