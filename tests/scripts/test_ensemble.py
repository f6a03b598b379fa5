"""Ensembles of several kinds of encoders."""

import numpy
import pytest
import spacy
from helpers.pipelines import ROOT

from spacy_sbert.hub import export_folder

LENGTHS = ROOT / "tests" / "helpers" / "made_lengths.py"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["own", "shared", "listening"])
def test_an_ensemble_of_every_kind_of_member(
    run_script, make_nlp, tiny_bert, narrow_bert, tmp_path, kind
):
    export_folder(make_nlp("static"), tmp_path / "table")
    pipeline = make_nlp(kind)
    pipeline.to_disk(tmp_path / "pipeline")
    encoders = [
        f"wide={tiny_bert}",
        f"narrow={narrow_bert}",
        f"table={tmp_path}/table",
        f"own={tmp_path}/pipeline",
    ]
    given = ["--encoder", *encoders, "--function", "lengths=made_lengths.v2", "--code", LENGTHS]
    run_script("ensemble", *given, "--output", tmp_path / "ensemble")
    nlp = spacy.load(tmp_path / "ensemble")
    doc = nlp("A man is eating.")
    assert [one.name for one in nlp.get_pipe("sbert_meta").members] == [
        "wide",
        "narrow",
        "table",
        "own",
        "lengths",
    ]
    assert doc.vector.shape == (16 + 8 + 16 + 16 + 2,)
    assert doc._.own_vector == pytest.approx(pipeline("A man is eating.").vector, abs=1e-5)
    assert doc._.table_vector == pytest.approx(
        make_nlp("static")("A man is eating.").vector, abs=1e-6
    )
    assert doc._.wide_vector == pytest.approx(make_nlp()("A man is eating.").vector, abs=1e-5)
    assert doc.vector[-2:] == pytest.approx(numpy.array([5, 4]) / 41**0.5, abs=1e-6)


def test_poolings_share_a_transformer_beside_another_one(
    run_script, tiny_bert, narrow_bert, tmp_path
):
    given = ["--encoder", f"mean={tiny_bert}", f"other={narrow_bert}", "--pooling", "max=max"]
    run_script("ensemble", *given, "--output", tmp_path / "ensemble")
    nlp = spacy.load(tmp_path / "ensemble")
    assert nlp.pipe_names == ["transformer", "mean", "max", "other", "sbert_meta"]
    assert nlp("A man.").vector.shape == (40,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            ["--encoder", "a=x", "--trained", "a=y"],
            "given twice: a",
            id="one name of two encoders",
        ),
        pytest.param(
            ["--counts", "words.txt"], "take the first --encoder", id="counts without an encoder"
        ),
    ],
)
def test_ensembles_that_cannot_be(run_script, capsys, given, message):
    with pytest.raises(SystemExit):
        run_script("ensemble", *given, "--output", "nowhere")
    assert message in capsys.readouterr().err
