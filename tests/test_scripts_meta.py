"""The scripts of meta-embeddings: ensembles of several kinds of encoders, and the paper's tables."""

import importlib
import json
import sys
from pathlib import Path

import numpy
import pytest
import spacy
from made_views import SENTENCES
from transformers import BertConfig, BertModel

ROOT = Path(__file__).parent.parent
CODE = """
import numpy
from spacy.util import registry

@registry.misc("made_lengths.v2")
def make_lengths():
    return lambda texts: numpy.array([[len(text), len(text.text) ** 0.5] for text in texts], dtype="f4")
"""


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module


@pytest.fixture
def call(load, monkeypatch):
    """Run a script in this process."""

    def run(script, *arguments):
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        load(script).main()

    return run


@pytest.fixture
def narrow_bert(tiny_bert, tmp_path):
    """Another BERT, width 8."""
    folder = tmp_path / "narrow"
    config = BertConfig.from_pretrained(tiny_bert, hidden_size=8, intermediate_size=16)
    BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_bytes((tiny_bert / "vocab.txt").read_bytes())
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tiny_bert / name).read_bytes())
    return folder


@pytest.fixture
def code(tmp_path):
    (tmp_path / "lengths.py").write_text(CODE, encoding="utf8")
    return tmp_path / "lengths.py"


@pytest.mark.parametrize("kind", ["own", "shared", "listening"])
def test_an_ensemble_of_every_kind_of_member(call, make_nlp, tiny_bert, narrow_bert, code, tmp_path, kind):
    from spacy_sbert.interchange import export_folder

    export_folder(make_nlp("static"), tmp_path / "table")
    pipeline = make_nlp(kind)
    pipeline.to_disk(tmp_path / "pipeline")
    encoders = [
        f"wide={tiny_bert}",
        f"narrow={narrow_bert}",
        f"table={tmp_path / 'table'}",
        f"own={tmp_path / 'pipeline'}",
    ]
    given = ["--encoder", *encoders, "--function", "lengths=made_lengths.v2", "--code", code]
    call("ensemble", *given, "--output", tmp_path / "ensemble")
    nlp = spacy.load(tmp_path / "ensemble")
    doc = nlp("A man is eating.")
    assert [member.name for member in nlp.get_pipe("sbert_meta").members] == [
        "wide",
        "narrow",
        "table",
        "own",
        "lengths",
    ]
    assert doc.vector.shape == (16 + 8 + 16 + 16 + 2,)
    assert doc._.own_vector == pytest.approx(pipeline("A man is eating.").vector, abs=1e-5)
    assert doc._.table_vector == pytest.approx(make_nlp("static")("A man is eating.").vector, abs=1e-6)
    assert doc._.wide_vector == pytest.approx(make_nlp()("A man is eating.").vector, abs=1e-5)
    assert doc.vector[-2:] == pytest.approx(numpy.array([5, 4]) / 41**0.5, abs=1e-6)


def test_poolings_share_a_transformer_beside_another_one(call, tiny_bert, narrow_bert, tmp_path):
    given = ["--encoder", f"mean={tiny_bert}", f"other={narrow_bert}", "--pooling", "max=max"]
    call("ensemble", *given, "--output", tmp_path / "ensemble")
    nlp = spacy.load(tmp_path / "ensemble")
    assert nlp.pipe_names == ["transformer", "mean", "max", "other", "sbert_meta"]
    assert nlp("A man.").vector.shape == (40,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--encoder", "a=x", "--trained", "a=y"), "a name of its own, given twice: a"),
        (("--counts", "words.txt"), "take the first --encoder"),
    ],
)
def test_ensembles_that_cannot_be(call, capsys, given, message):
    with pytest.raises(SystemExit):
        call("ensemble", *given, "--output", "nowhere")
    assert message in capsys.readouterr().err
