"""Runs that were broken off before there was one digest of an encoder go on."""

import hashlib
import json
from dataclasses import asdict

import numpy
import pytest

from spacy_sbert.bulk import encode_file
from spacy_sbert.bulk.vectors import VectorFile
from spacy_sbert.files.sealed_json import sealed
from spacy_sbert.vectors.identity import tokenizer_state

WINDOW = 4


def former_digest(sbert):
    """As version 0.1.0 had it first."""
    shim = sbert.text_encoder().transformer.shim
    network, tokenizer, settings = shim.network, shim.tokenizer, shim.settings
    found = hashlib.sha256()
    for name, weight in network.state_dict().items():
        found.update(f"{name} {weight.dtype} {tuple(weight.shape)} ".encode() + weight.numpy().tobytes())
    for layer in sbert.model.get_ref("pooling").layers:
        found.update(layer.to_bytes())
    pooling = ["mean", ["mean_pooling", {}], ["unit_length", {}]]
    described = [network.config.to_json_string(), asdict(settings), tokenizer_state(tokenizer), pooling]
    found.update(json.dumps(described, sort_keys=True).encode("utf8"))
    return found.hexdigest()


@pytest.fixture
def former_run(sbert, write_texts, tmp_path, monkeypatch):
    """Break a run off after three windows, and write run.json as it was; with a seal, or without as at the very first.

    RETURNS (Callable): from changes of what it is made of to the input and the output.
    """

    def make(is_sealed=True, **changes):
        given, output, whole = (
            write_texts("a.txt", [f"the cat ran {i}" for i in range(30)]),
            tmp_path / "out.npy",
            VectorFile.write,
        )

        def write(self, number, vectors, n_cut):
            if number == 3:
                raise KeyboardInterrupt
            whole(self, number, vectors, n_cut)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(VectorFile, "write", write)
            encode_file(sbert, given, output, window=WINDOW)
        path = tmp_path / "out.npy.partial" / "run.json"
        said = json.loads(path.read_text())
        del said["sha256"]
        made_of = {**said["made_of"], "weights (SHA-256)": former_digest(sbert), **changes}
        said = {"format": "spacy-sbert encode 1", "made_of": made_of, "kept": said["kept"]}
        path.write_text(json.dumps(sealed(said) if is_sealed else said, indent=2))
        return given, output

    return make


@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_former_run_goes_on(sbert, former_run, tmp_path, is_sealed):
    given, output = former_run(is_sealed)
    report = encode_file(sbert, given, output, window=WINDOW)
    assert (report.resumed, report.rows) == (3 * WINDOW, 30)
    encode_file(sbert, given, tmp_path / "whole.npy", window=WINDOW)
    assert numpy.array_equal(numpy.load(output), numpy.load(tmp_path / "whole.npy"))
    assert output.read_bytes() == (tmp_path / "whole.npy").read_bytes()


@pytest.mark.parametrize("changes", [{"weights (SHA-256)": "0" * 64}, {"precision": "bfloat16"}])
def test_another_former_run_is_refused(sbert, former_run, changes):
    given, output = former_run(**changes)
    with pytest.raises(ValueError, match=r"begun otherwise: (weights \(SHA-256\) was 0+|precision was bfloat16), now"):
        encode_file(sbert, given, output, window=WINDOW)


def test_a_former_run_that_was_changed(sbert, former_run, tmp_path):
    given, output = former_run()
    path = tmp_path / "out.npy.partial" / "run.json"
    path.write_text(path.read_text().replace('"width": 16', '"width": 17'))
    with pytest.raises(ValueError, match=r"run\.json cannot be read \(its SHA-256 is not the one"):
        encode_file(sbert, given, output, window=WINDOW)
