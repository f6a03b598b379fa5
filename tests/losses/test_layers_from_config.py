"""Every loss is built from a config, with and without its settings; what it saves is not what the config sets."""

import pytest
from confection import ConfigValidationError
from spacy.util import registry
from thinc.api import Config, Model

COSINE = {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"}
SETTINGS = {
    "CosineSimilarityLoss": {},
    "SoftmaxLoss": {"concatenation": ["u", "v"], "learn_rate_factor": 10.0},
    "TripletLoss": {"distance": "cosine", "margin": 2.0},
    "MultipleNegativesRankingLoss": {"scale": 1.0, "similarity": "dot", "symmetric": True},
    "CachedMultipleNegativesRankingLoss": {"mini_batch_size": 4, "scale": 1.0, "similarity": "dot", "symmetric": True},
    "CoSENTLoss": {"scale": 1.0},
    "AnglELoss": {"scale": 1.0},
    "ContrastiveLoss": {"distance": "euclidean", "margin": 1.0},
    "OnlineContrastiveLoss": {"distance": "euclidean", "margin": 1.0},
    "BatchHardTripletLoss": {"distance": "cosine", "margin": 1.0},
    "MatryoshkaLoss": {"loss": COSINE, "dims": [4, 2], "weights": [1.0, 0.5]},
    "DistillationLoss": {},
    "MegaBatchMarginLoss": {"margin": 0.2},
    "MultiTaskLoss": {"objectives": {"one": COSINE, "two": COSINE}, "weights": {"one": 2.0}},
}
REQUIRED = {"MatryoshkaLoss": ["loss", "dims"], "MultiTaskLoss": ["objectives"]}


@pytest.mark.parametrize("name", SETTINGS)
def test_from_config(name):
    required = {key: SETTINGS[name][key] for key in REQUIRED.get(name, [])}
    for settings in (required, SETTINGS[name]):
        config = Config({"loss": {"@layers": f"spacy-sbert.{name}.v1", **settings}})
        filled = Config().from_str(registry.fill(config).to_str())
        assert filled["loss"].keys() >= SETTINGS[name].keys()
        layer = registry.resolve(filled)["loss"]
        assert isinstance(layer, Model) and layer.name == name
        assert layer.attrs.keys() <= {"labels", "concatenation", "objectives"}  # what was learned


def test_an_unknown_setting_is_refused():
    with pytest.raises(ConfigValidationError):
        registry.resolve(Config({"loss": {"@layers": "spacy-sbert.TripletLoss.v1", "margn": 1.0}}))
