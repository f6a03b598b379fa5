"""The digest of a pipeline."""

from spacy_sbert.pipeline.digest import pipeline_digest


def test_a_setting_of_a_later_version_keeps_the_digest(make_nlp):
    """A digest that was written before a setting existed still holds, unless it is used."""
    nlp = make_nlp("own")
    digest = pipeline_digest(nlp)
    model = nlp._pipe_configs["sbert"]["model"]
    assert model["backend"] == "torch"
    model["backend"] = "onnx"
    assert pipeline_digest(nlp) != digest
    del model["backend"]
    del model["backend_config"]
    assert pipeline_digest(nlp) == digest
