"""What `nlp.replace_listeners` puts where a component listened to the shared transformer."""

from typing import Any

from spacy_transformers.layers import split_trf_batch
from thinc.api import Model, chain


def replace_listener(model: Model) -> Model:
    """A copy of the transformer, split by Doc, as listeners return it."""
    return chain(model, split_trf_batch())


def replace_listener_cfg(transformer_cfg: dict[str, Any], listener_cfg: dict[str, Any]) -> dict[str, Any]:
    """The config of what stands where the listener stood, so that a saved pipeline is built the same.

    A sentence encoder takes the transformer's own config; a token-level component (ner, textcat), whose listener pools
    wordpieces to tokens, spacy-sbert.Tok2VecTransformer.v1.
    """
    config = dict(transformer_cfg)
    if "TransformerListener" in listener_cfg.get("@architectures", ""):
        config["@architectures"] = "spacy-sbert.Tok2VecTransformer.v1"
        config["pooling"] = listener_cfg["pooling"]
        config["grad_factor"] = listener_cfg.get("grad_factor", 1.0)
    return config
