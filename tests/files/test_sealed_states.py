"""Saved states and the digest behind them."""

import hashlib

import pytest
import spacy
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
    with pytest.raises(ValueError, match=r"the SHA-256 of its file 'model\.safetensors' is not"):
        shim.from_bytes(bytes(data))


@pytest.fixture
def training(make_nlp, tmp_path):
    """What spacy train leaves."""
    make_nlp().to_disk(tmp_path / "model-last")
    return tmp_path


def test_damaged_cfg(training):
    file = training / "model-last" / "sbert" / "cfg"
    for content in ("", "{", "[]"):
        file.write_text(content)
        with pytest.raises(ValueError, match="damaged") as caught:
            spacy.load(training / "model-last")
        assert str(file) in str(caught.value)


@pytest.mark.parametrize("part", ["model", "cfg"])
def test_bytes_without_a_part(make_nlp, part):
    pipe = make_nlp().get_pipe("sbert")
    parts = srsly.msgpack_loads(pipe.to_bytes(exclude=["vocab"]))
    del parts[part]
    with pytest.raises(ValueError, match=f"its part '{part}' is missing"):
        pipe.from_bytes(srsly.msgpack_dumps(parts), exclude=["vocab"])
    pipe.from_bytes(srsly.msgpack_dumps(parts), exclude=["vocab", part])
