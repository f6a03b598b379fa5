"""Saved states and the digest behind them."""

import hashlib

import pytest
import srsly

from spacy_sbert.files.serialization import MARK, _CorruptedState, add_checksum, verify_checksum

STATE = srsly.msgpack_dumps({"nodes": [1, 2]})


def test_a_state_ends_in_its_sha256():
    sealed = add_checksum(STATE)
    assert sealed == STATE + MARK + hashlib.sha256(STATE).digest()
    assert verify_checksum(sealed) == STATE


def test_every_flip_and_every_cut():
    sealed = add_checksum(STATE)
    for at in range(len(sealed)):
        for bit in range(8):
            with pytest.raises(_CorruptedState):
                verify_checksum(sealed[:at] + bytes([sealed[at] ^ 1 << bit]) + sealed[at + 1 :])
        with pytest.raises(_CorruptedState):
            verify_checksum(sealed[:at])  # also of nothing


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
    file, pipe = tmp_path / "sbert" / "cfg", nlp.get_pipe("sbert")
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
