"""A plugin for spacy-transformers' own tests: `-p in_place_of_stock` runs them on spacy-sbert.TransformerModel.v1."""

import os

import pytest
from spacy_transformers import architectures
from spacy_transformers.layers._util import replace_listener_cfg

from spacy_sbert.architectures import transformer_model

SETTINGS = ("tokenizer_config", "transformer_config", "mixed_precision", "grad_scaler_config")
CALLERS = ("test_model_wrapper",)  # that make the model themselves


def in_place_of_stock(name, get_spans, *args, **kwargs):
    """What the class TransformerModel is called with, in all versions of the architecture."""
    model = transformer_model(name, get_spans, **dict(zip(SETTINGS, args, strict=False)), **kwargs)
    model.attrs["replace_listener_cfg"] = replace_listener_cfg  # the tests look for the stock names in the config
    return model


def pytest_configure(config: pytest.Config) -> None:
    if os.environ["IN_PLACE_OF_STOCK"] == "yes":
        architectures.TransformerModel = in_place_of_stock


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        module = getattr(item, "module", None)
        if module.__name__.endswith(CALLERS) and os.environ["IN_PLACE_OF_STOCK"] == "yes":
            module.TransformerModel = in_place_of_stock
