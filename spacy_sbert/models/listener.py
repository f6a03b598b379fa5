"""Listeners of a shared transformer."""

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from spacy.tokens import Doc
from spacy.util import replace_model_node
from thinc.api import Model
from thinc.types import Ragged

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
from .spacy_transformers import is_a

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
        """Return the width, None if it is unknown, as for the copy of a curated transformer that is built around it."""
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


def _output_of(doc: Doc) -> object:
    data = output_of(doc)
    return data if is_a(data, "TransformerData") else pieces_of(doc)


def with_own_listener(model: Model) -> Model:
    """Replace the listener of spacy-curated-transformers in a model by a SentenceListener.

    Its pooling of wordpieces to tokens is left out: a sentence is pooled from wordpieces.

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
