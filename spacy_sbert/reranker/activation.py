"""From the numbers that a classifier gives for a pair to its scores."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import torch
from pydantic import BaseModel, Field
from thinc.api import torch2xp, xp2torch
from thinc.types import Floats2d
from transformers import PretrainedConfig

from ..encoder.settings import TEXT, read_file
from ..layers.sigmoid import sigmoid
from ..losses.parts.cross_entropy import softmax
from .errors import Errors

Activation = Callable[[torch.Tensor], torch.Tensor]
# What makes the scores of n pairs of their k logits, float (n, k) each; softmax is over the k.
ACTIVATIONS: dict[str, Callable[[Floats2d], Floats2d]] = {
    "sigmoid": sigmoid,
    "identity": lambda logits: logits,
    "softmax": softmax,
}
CONFIG_FILE = "config_sentence_transformers.json"
OLD_KEY = "sbert_ce_default_activation_function"


def resolve_activation(activation: str, config: PretrainedConfig) -> str:
    """What "auto" stands for: what the folder says, else sigmoid for one output and identity for more.

    activation (str): what was asked for. config: of the Hugging Face model, see note_activation.
    RETURNS (str): one of ACTIVATIONS.
    RAISES (ValueError): if the folder names another one, or softmax was asked for of one output.
    """
    saved = activation_noted(config)
    if activation != "auto":
        found = activation
    elif saved is None:
        found = "sigmoid" if config.num_labels == 1 else "identity"
    else:
        found = saved.rsplit(".", 1)[-1].lower()
    if found not in ACTIVATIONS:
        raise ValueError(Errors.RERANKER_FOREIGN_ACTIVATION.format(given=saved, expected=", ".join(ACTIVATIONS)))
    if found == "softmax" and config.num_labels == 1:
        raise ValueError(Errors.RERANKER_SOFTMAX_OF_ONE)
    return found


class ActivationConfig(BaseModel):
    """The file beside a classifier that says its activation."""

    activation_fn: str | None = Field(None, description=TEXT)


def note_activation(config: PretrainedConfig, folder: Path) -> None:
    """Have the config of a model say what a file beside it says of its activation, so that it is saved with it."""
    file = folder / CONFIG_FILE
    saved = read_file(file, ActivationConfig).activation_fn
    if saved is not None and activation_noted(config) is None:
        config.sentence_transformers = {"activation_fn": saved}


def forget_activation(config: PretrainedConfig) -> None:
    """Take out of the config of a model what it says of its activation."""
    for key in ("sentence_transformers", OLD_KEY):
        if hasattr(config, key):
            delattr(config, key)


def activation_noted(config: PretrainedConfig) -> str | None:
    """The activation in the config of a cross-encoder of sentence-transformers, since version 4 and before."""
    newer = getattr(config, "sentence_transformers", None) or {}
    found = (newer.get("activation_fn") if isinstance(newer, dict) else newer) or getattr(config, OLD_KEY, None)
    return None if found is None else str(found)


def apply_activation(activation_fn: Activation, logits: Floats2d) -> Floats2d:
    """Return the scores that a function of PyTorch makes of logits. RAISES (ValueError): if their shape is another."""
    with torch.no_grad():
        found = activation_fn(xp2torch(logits))
    shape = tuple(found.shape) if torch.is_tensor(found) else type(found).__name__
    if shape != logits.shape:
        raise ValueError(Errors.RERANKER_ACTIVATION_SHAPE.format(given=shape, expected=logits.shape))
    return cast(Floats2d, torch2xp(found.float()))
