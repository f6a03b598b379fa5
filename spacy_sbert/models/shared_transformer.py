"""The model of a shared transformer for spacy-transformers, and the listener that its component recognizes."""

from collections.abc import Callable
from typing import Any, cast

import torch
from spacy.tokens import Doc
from spacy_transformers.data_classes import FullTransformerBatch, WordpieceBatch
from spacy_transformers.layers import TransformerModel, split_trf_batch
from spacy_transformers.layers.listener import TransformerListener
from thinc.api import Model, chain, xp2torch
from thinc.types import Floats2d
from transformers.modeling_outputs import BaseModelOutputWithPooling

from .engine.packed_bert import is_packable
from .listener import SentenceListener
from .options import TransformerConfig
from .shared_batch import PaddedOutput, SharedBatch, UnpaddedBatch, pad_states
from .spans import SpanGetter
from .transformer import SpanTransformer, load


class SharedTransformer(SpanTransformer, TransformerModel):
    """A drop-in for the TransformerModel of spacy-transformers: several components listen to it.

    name, get_spans, options: see SpanTransformer.
    """

    def __init__(self, name: str, get_spans: SpanGetter, options: TransformerConfig):
        SpanTransformer.__init__(self, name, get_spans, options)
        self._func = _shared_forward
        self.attrs.update(replace_listener=replace_listener, _replace_listener_cfg=_replace_listener_cfg)


class TransformerSentenceListener(SentenceListener, TransformerListener):
    """A SentenceListener that a `transformer` component recognizes."""


def replace_listener(model: Model) -> Model:
    """Return a copy of the transformer, split by Doc, as listeners return it."""
    return chain(model, split_trf_batch())


def _replace_listener_cfg(transformer_cfg: dict[str, Any], listener_cfg: dict[str, Any]) -> dict[str, Any]:
    """Return the config of what stands where the listener stood, so that a saved pipeline is built the same.

    A sentence encoder takes the transformer's own config; a token-level component (ner, textcat), whose listener pools
    wordpieces to tokens, spacy-sbert.Tok2VecTransformer.v1.
    """
    config = dict(transformer_cfg)
    if "TransformerListener" in listener_cfg.get("@architectures", ""):
        config["@architectures"] = "spacy-sbert.Tok2VecTransformer.v1"
        config["pooling"] = listener_cfg["pooling"]
        config["grad_factor"] = listener_cfg.get("grad_factor", 1.0)
    return config


def _shared_forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[FullTransformerBatch, Callable]:
    """For the component `transformer`, to which others listen: padded, as they expect."""
    encoder = cast(SpanTransformer, model)
    shim = load(encoder)
    spans = model.attrs["get_spans"](docs)
    if not any(spans):
        return FullTransformerBatch.empty(len(docs)), lambda d_output: docs
    shared = SharedBatch(encoder.wordpiece_tokenizer, spans, encoder.prompt())
    nested = shared.nested(spans)
    if not is_train and is_packable(shim.network):
        with encoder.states(shared.wordpieces, False) as (states, _):
            shared.keep_states(states, shim.device, getattr(shim.network, "pooler", None))
        return UnpaddedBatch(nested, shared), lambda d_output: docs
    batch, align = shared.padded()
    if not is_train:
        with_types = shared.wordpieces.type_ids is not None  # some models take none, and zeros mean the same
        output = shim.whole_output(_hugging_face_inputs(batch, shim.device, with_types=with_types))
        return PaddedOutput(spans=nested, wordpieces=batch, model_output=output, align=align), lambda d_output: docs
    with encoder.states(shared.wordpieces, True) as (states, backprop_states):
        padded, backprop_padded = pad_states(shared.wordpieces, states, encoder.get_dim("nO"), shim.device)
    output = BaseModelOutputWithPooling(last_hidden_state=cast(torch.FloatTensor, padded))

    def backprop(d_output: FullTransformerBatch) -> list[Doc]:
        backprop_states(backprop_padded(next(iter(d_output.model_output.values()))))
        return docs

    return PaddedOutput(spans=nested, wordpieces=batch, model_output=output, align=align), backprop


def _hugging_face_inputs(batch: WordpieceBatch, device: torch.device, *, with_types: bool) -> dict[str, torch.Tensor]:
    """Return what a Hugging Face model takes of a padded batch."""
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    if with_types and batch.token_type_ids is not None:
        inputs["token_type_ids"] = batch.token_type_ids
    return {key: xp2torch(cast(Floats2d, value), device=device) for key, value in inputs.items()}
