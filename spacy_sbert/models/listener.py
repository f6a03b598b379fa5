"""Listeners of a shared transformer, and the transformer that shares."""

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import torch
from spacy.tokens import Doc
from spacy.util import replace_model_node
from spacy_transformers.data_classes import FullTransformerBatch, WordpieceBatch
from spacy_transformers.layers import TransformerModel, split_trf_batch
from spacy_transformers.layers.listener import TransformerListener
from thinc.api import Model, chain, xp2torch
from thinc.types import Floats2d, Ragged
from transformers.modeling_outputs import BaseModelOutputWithPooling

from ..validation import ConfiguredModel
from .curated_listener import (
    ALL_LAYERS,
    READS_DOCS,
    SENTINEL,
    STATE,
    UPSTREAM_NAME,
    ListenerState,
    listener_attrs,
    output_of,
    pieces_of,
)
from .engine.concurrency import prepare_forks
from .engine.packed_bert import is_packable
from .options import TransformerConfig
from .shared_batch import PaddedOutput, SharedBatch, UnpaddedBatch, pad_states
from .spacy_transformers import is_a
from .spans import SpanGetter
from .transformer import SpanTransformer, load

# Of each Doc: a TransformerData of spacy-transformers, or the wordpieces of a curated transformer, a Ragged
TransformerOutput: TypeAlias = list[Any]


class SentenceListener(ConfiguredModel, Model):
    """A listener to whichever transformer stands before its pipe, of spacy-transformers or spacy-curated-transformers.

    It never makes up output: where the transformer left none, it says so.

    upstream_name (str): the name of the transformer component, "*" for any.
    grad_factor (float): factor on the gradient that goes upstream; 0 keeps the transformer as it is.
    """

    name = "sentence-listener"

    def __init__(self, upstream_name: str, grad_factor: float):
        Model.__init__(self, self.name, _listener_forward, dims={"nO": None}, attrs=listener_attrs(upstream_name))
        self.upstream_name = upstream_name
        self._batch_id: int | None = None
        self._outputs: TransformerOutput | None = None
        self._backprop: Callable | None = None
        self.transformer: Model | None = None  # the transformer's model, once the pipeline is known
        self.grad_factor = grad_factor  # no attr: those are saved, and would win over the config when loaded
        prepare_forks()

    def get_dim(self, name: str) -> int:
        """The width, None if nobody knows it yet: a copy of a curated transformer that is built around it asks."""
        return super().get_dim(name) if self.has_dim(name) else None  # type: ignore[return-value]

    @classmethod
    def get_batch_id(cls, docs: list[Doc]) -> int:
        """Return the number of a batch, as a transformer computes it."""
        return sum(token.orth for doc in docs for token in doc)

    def receive(self, batch_id: int | None, outputs: TransformerOutput | None, backprop: Callable | None) -> None:
        """Take what a transformer hands out in training; of several the last counts."""
        self.attrs[STATE] = ListenerState()  # where a curated one leaves it
        self._batch_id, self._outputs, self._backprop = batch_id, outputs, backprop

    def forget(self) -> None:
        """Drop what was handed out."""
        self.receive(None, None, None)

    def has_received(self) -> bool:
        """Whether a transformer has handed out a batch since the last one was forgotten."""
        handed: ListenerState = self.attrs[STATE]
        if handed.outputs is not None:
            self.receive(handed.batch_id, handed.outputs.last_hidden_layer_states, handed.backprop_last_layer)
        return self._batch_id is not None

    def received(self, docs: list[Doc]) -> tuple[TransformerOutput, Callable]:
        """Return what a transformer handed out for Docs, and what takes its gradient.

        RAISES (ValueError): if that was for other Docs.
        """
        if self._batch_id != self.get_batch_id(docs):
            raise ValueError(
                f"The transformer (upstream = '{self.upstream_name}') handed out the output of another batch "
                "of Docs. Put it directly into the pipeline that is trained, before the sentence encoder."
            )
        return cast(TransformerOutput, self._outputs), cast(Callable, self._backprop)


def _listener_forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[TransformerOutput, Callable]:
    listener = cast(SentenceListener, model)
    if not listener.has_received() or (not is_train and listener.attrs[READS_DOCS]):
        # No gradient: the transformer is frozen, or in use.
        return cast(TransformerOutput, [_output_of(doc) for doc in docs]), lambda d_heard: []
    outputs, upstream = listener.received(docs)

    def backprop(d_heard: TransformerOutput) -> object:
        for d_doc in d_heard:
            if isinstance(d_doc, Ragged):
                d_doc.data *= listener.grad_factor
            else:
                d_doc.model_output["last_hidden_state"] *= listener.grad_factor
        # Before the step ends: then another thread may begin one, whose output would be forgotten.
        listener.forget()
        return upstream(d_heard)

    if not is_train:
        listener.forget()
    return outputs, backprop


def _output_of(doc: Doc) -> Any:
    data = output_of(doc)
    return data if is_a(data, "TransformerData") else pieces_of(doc)


def with_own_listener(model: Model) -> Model:
    """The same with a SentenceListener in place of a spacy-curated-transformers.LastTransformerLayerListener, whose
    pooling of wordpieces to tokens is left out: a sentence is pooled of wordpieces.

    model (Model): a listener, or what holds one in it.
    RAISES (ValueError): for a listener that hears more layers than the last.
    """
    for node in list(model.walk()):
        if UPSTREAM_NAME not in node.attrs or isinstance(node, SentenceListener):
            continue
        if node.attrs[ALL_LAYERS]:
            raise ValueError(
                f"Cannot pool wordpieces with the listener '{node.name}', which hears all layers of a "
                "'curated_transformer': expected spacy-sbert.SentenceListener.v1 or "
                "spacy-curated-transformers.LastTransformerLayerListener.v1 as tok2vec of "
                "spacy-sbert.SharedSentenceEncoder.v1. spacy-sbert.Tok2VecSentenceEncoder.v1 takes "
                "spacy-curated-transformers.ScalarWeightingListener.v1, and pools tokens."
            )
        own = SentenceListener(node.attrs[UPSTREAM_NAME], node.attrs["grad_factor"])
        own.set_dim("nO", node.get_dim("nO"))
        if SENTINEL not in node.attrs:  # it is a part of a copy of the transformer
            del own.attrs[SENTINEL]
        own.attrs[READS_DOCS] = node.attrs[READS_DOCS]
        if node is model:
            return own
        replace_model_node(model, node, own)
    return model


class SharedTransformer(SpanTransformer, TransformerModel):
    """A drop-in for the TransformerModel of spacy-transformers: several components listen to it.

    name, get_spans, options: see SpanTransformer.
    """

    def __init__(self, name: str, get_spans: SpanGetter, options: TransformerConfig):
        SpanTransformer.__init__(self, name, get_spans, options)
        self._func = _shared_forward
        self.attrs.update(replace_listener=replace_listener, replace_listener_cfg=replace_listener_cfg)


class TransformerSentenceListener(SentenceListener, TransformerListener):
    """A SentenceListener that a `transformer` component recognizes."""


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
    """What a Hugging Face model takes of a padded batch."""
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    if with_types and batch.token_type_ids is not None:
        inputs["token_type_ids"] = batch.token_type_ids
    return {key: xp2torch(cast(Floats2d, value), device=device) for key, value in inputs.items()}
