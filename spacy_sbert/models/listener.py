"""Layers that listen to a transformer which several components share."""

from collections.abc import Callable
from typing import Any, TypeAlias, cast
from weakref import WeakSet

from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from spacy.util import replace_model_node
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..errors import Errors
from ..validation import ConfiguredModel
from . import private_attributes
from .doc_states import join_docs, join_merged, not_encoded, take_states
from .encoder import STATES, TOKENS
from .engine.concurrency import prepare_forks
from .shared_transformer import TransformerTok2Vec
from .span_batch import EncodedSpans, no_gradient
from .token_vectors import TokenPooling, init_pooling, pool_tokens
from .transformer import encoder_of, is_transformer_tok2vec

# Of each Doc a TransformerData of spacy-transformers, or the wordpieces of a curated transformer, a
# Ragged; or of all Docs the rows of an `sbert_transformer`
TransformerOutput: TypeAlias = list[Any] | EncodedSpans


class Listener(ConfiguredModel, Model):
    """Base of the layers that get the output of a component in training, and read Docs in use.

    upstream_name (str): of the component, "*" for any.
    grad_factor (float): factor on the gradient that goes to its model.
    """

    # Subclasses set these, and call Model.__init__: another package's listener may be a base, too
    upstream_name: str
    # No attr: those are saved, and would replace that of the config when loaded
    grad_factor: float
    # The model of the component, once the pipeline is known
    upstream: Model | None = None
    _batch_id: int | None = None
    _outputs: Any = None
    _backprop: Callable | None = None

    @classmethod
    def get_batch_id(cls, docs: list[Doc]) -> int:
        """Return the number of a batch, as the component computes it."""
        return Tok2VecListener.get_batch_id(docs)

    def receive(self, batch_id: int | None, outputs: Any, backprop: Callable | None) -> None:
        """Take the output for a batch in training, and the callback for its gradient.

        Of several outputs the last counts. None for each: forget the last one.
        """
        self._batch_id = batch_id
        self._outputs = outputs
        self._backprop = backprop

    def received(self, docs: list[Doc]) -> tuple[Any, Callable] | None:
        """Return the output for a batch that was not used yet, and its callback.

        None if there is none. RAISES (ValueError): if it is of other Docs.
        """
        if self._batch_id is None or self._backprop is None:
            return None
        if self._batch_id != self.get_batch_id(docs):
            raise ValueError(Errors.OTHER_BATCH.format(upstream=self.upstream_name))
        return self._outputs, self._backprop


# Vectors of tokens


class _DocsOfInitialize(WeakSet[Doc]):
    """Docs that a component is initialized with, which no transformer has processed.

    A copy is empty.
    """

    def __reduce__(self) -> tuple[type, tuple]:
        return _DocsOfInitialize, ()


class TransformerListener(Listener):
    """Listen for the vectors of tokens of the `sbert_transformer` before its component.

    upstream_name (str): of the component, "*" for any.
    pooling (Model): from the wordpieces of each token to its vector.
    grad_factor (float): factor on the gradient that goes to the transformer.
    """

    name = "sbert-transformer-listener"
    listens_for = TOKENS
    upstream: TransformerTok2Vec | None = None
    # Whether `doc.tensor` will not do, as it pools in another way than the component
    needs_states = False

    def __init__(self, upstream_name: str, pooling: TokenPooling, grad_factor: float = 1.0):
        Model.__init__(
            self, self.name, _listen_for_tokens, init=_init, layers=[pooling], dims={"nO": None}
        )
        self.upstream_name = upstream_name
        self.grad_factor = grad_factor
        self.initialized_with = _DocsOfInitialize()

    @property
    def pooling(self) -> TokenPooling:
        return self.layers[0]


def _init(model: Model, X: list[Doc] | None = None, Y: object = None) -> None:
    listener = cast(TransformerListener, model)
    listener.initialized_with = _DocsOfInitialize(X or [])
    if listener.upstream is not None:
        listener.set_dim("nO", listener.upstream.width, force=True)
        init_pooling(listener.pooling, listener.upstream.width)


def _listen_for_tokens(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    listener = cast(TransformerListener, model)
    received = listener.received(docs) if is_train else None
    # In use, or the transformer is frozen
    if received is None:
        return _vectors_on_docs(listener, docs, is_train)
    vectors, upstream = received

    def backprop(d_vectors: list[Floats2d]) -> list[Doc]:
        listener.receive(None, None, None)
        upstream([d_doc * listener.grad_factor for d_doc in d_vectors])
        # TextCatEnsemble adds it to that of another layer
        return docs

    return vectors, backprop


def _vectors_on_docs(
    listener: TransformerListener, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], object]]:
    """Return the vectors of tokens that a transformer left on Docs, and the pooling's backprop."""
    tok2vec = listener.upstream
    if tok2vec is None:
        raise ValueError(
            "A component listens to an 'sbert_transformer' (upstream = "
            f"'{listener.upstream_name}'), and none stands before it. Add one before it, or "
            "correct upstream."
        )
    is_processed = any(doc.tensor.size for doc in docs)
    if not is_processed and listener.initialized_with.issuperset(docs):
        return [listener.ops.alloc2f(len(doc), tok2vec.width) for doc in docs], no_gradient
    if listener.needs_states:
        batch = join_docs(take_states(docs, tok2vec.transformer, listener))
        return pool_tokens(listener.pooling, docs, batch, tok2vec.width, is_train=is_train)
    return [_tensor_of(doc, listener, tok2vec.width) for doc in docs], no_gradient


def _tensor_of(doc: Doc, listener: Model, width: int) -> Floats2d:
    """Return `doc.tensor`, float (tokens, width).

    RAISES (ValueError): if it is not that of a transformer.
    """
    if not len(doc):
        return listener.ops.alloc2f(0, width)
    if doc.tensor.shape != (len(doc), width):
        raise not_encoded(doc)
    return listener.ops.asarray2f(cast(Any, doc.tensor))


# States of wordpieces


class _CuratedState:
    """Where a `curated_transformer` leaves its output for a listener in training.

    A copy is empty.
    """

    batch_id: int | None = None
    # With last_hidden_layer_states, a Ragged of float (wordpieces, width) for each Doc
    outputs: Any = None
    backprop: Any = None

    def backprop_last_layer(self, d_pieces: list[Ragged]) -> object:
        return self.backprop([[d_doc] for d_doc in d_pieces], outputs_to_backprop=(-1,))

    def __reduce__(self) -> tuple[type, tuple]:
        return _CuratedState, ()


class SentenceListener(Listener):
    """Listener to the transformer before its pipe, of this package or another."""

    name = "sentence-listener"
    listens_for = STATES
    needs_states = True

    def __init__(self, upstream_name: str, grad_factor: float):
        attrs: dict[str, Any] = {
            private_attributes.SENTINEL: True,
            private_attributes.UPSTREAM_NAME: upstream_name,
            private_attributes.STATE: _CuratedState(),
            private_attributes.READS_DOCS: True,
            private_attributes.ALL_LAYERS: False,
        }
        Model.__init__(self, self.name, _listen_for_states, dims={"nO": None}, attrs=attrs)
        self.upstream_name = upstream_name
        self.grad_factor = grad_factor
        prepare_forks()

    def get_dim(self, name: str) -> int:
        """Return the width, None if it is unknown.

        It is, inside the copy of a curated transformer.
        """
        return super().get_dim(name) if self.has_dim(name) else None  # type: ignore[return-value]

    @property
    def transformer(self) -> Model | None:
        """The transformer upstream, once the pipeline is known."""
        return None if self.upstream is None else encoder_of(self.upstream)

    def receive(self, batch_id: int | None, outputs: Any, backprop: Callable | None) -> None:
        super().receive(batch_id, outputs, backprop)
        self.attrs[private_attributes.STATE] = _CuratedState()

    def received(self, docs: list[Doc]) -> tuple[Any, Callable] | None:
        state: _CuratedState = self.attrs[private_attributes.STATE]
        if state.outputs is not None:
            pieces = state.outputs.last_hidden_layer_states
            self.receive(state.batch_id, pieces, state.backprop_last_layer)
        return super().received(docs)


def _listen_for_states(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[TransformerOutput, Callable]:
    listener = cast(SentenceListener, model)
    # A part of a copy of a curated transformer gets its output in use, too
    is_given = is_train or not listener.attrs[private_attributes.READS_DOCS]
    received = listener.received(docs) if is_given else None
    # No gradient: the transformer is frozen, or in use
    if received is None:
        return _read_docs(listener, docs), no_gradient
    outputs, upstream = received

    def backprop(d_outputs: list[Any]) -> object:
        for d_output in d_outputs:
            _scale(d_output, listener.grad_factor)
        # Before the step ends: then another thread may begin one, whose output would be dropped.
        listener.receive(None, None, None)
        return upstream(d_outputs)

    if not is_train:
        listener.receive(None, None, None)
    return outputs, backprop


def _scale(d_output: Any, factor: float) -> None:
    """Multiply the gradient of a TransformerOutput by a factor, in place."""
    if isinstance(d_output, Ragged):
        d_output.data *= factor
    elif private_attributes.is_a(d_output, "TransformerData"):
        d_output.model_output["last_hidden_state"] *= factor
    else:
        d_output *= factor


def _read_docs(listener: SentenceListener, docs: list[Doc]) -> TransformerOutput:
    """Return what the transformer left on Docs."""
    if not is_transformer_tok2vec(listener.upstream):
        return [output_of(doc) for doc in docs]
    transformer = cast(TransformerTok2Vec, listener.upstream).transformer
    return join_merged(docs, take_states(docs, transformer, listener))


def output_of(doc: Doc) -> Any:
    """Return what the transformer of another package left on a Doc.

    RETURNS: a TransformerData, or the Ragged of a curated transformer's last layer.
    RAISES (ValueError): if there is none.
    """
    data = doc._.get("trf_data") if doc.has_extension("trf_data") else None
    if data is None:
        raise not_encoded(doc)
    if private_attributes.is_a(data, "TransformerData"):
        return data
    output = getattr(data, "last_hidden_layer_state", None)
    if output is None:
        raise ValueError(
            f"The transformer left {type(data).__name__} on the Doc '{doc.text[:50]}' "
            "(doc._.trf_data): expected the output of the 'transformer' or 'curated_transformer' "
            "that the encoder listens to."
        )
    return output


def with_own_listener(model: Model) -> Model:
    """Replace a listener of spacy-curated-transformers by a SentenceListener.

    That one pools no tokens.
    """
    for node in list(model.walk()):
        if private_attributes.UPSTREAM_NAME not in node.attrs or isinstance(node, SentenceListener):
            continue
        if node.attrs[private_attributes.ALL_LAYERS]:
            raise ValueError(
                f"Cannot pool wordpieces with the listener '{node.name}', which listens to all "
                "layers of a 'curated_transformer': expected spacy-sbert.SentenceListener.v1. To "
                "pool tokens, use spacy-sbert.Tok2VecSentenceEncoder.v1."
            )
        own = SentenceListener(
            node.attrs[private_attributes.UPSTREAM_NAME], node.attrs["grad_factor"]
        )
        own.set_dim("nO", node.get_dim("nO"))
        # It is a part of a copy of the transformer
        if private_attributes.SENTINEL not in node.attrs:
            del own.attrs[private_attributes.SENTINEL]
        own.attrs[private_attributes.READS_DOCS] = node.attrs[private_attributes.READS_DOCS]
        if node is model:
            return own
        replace_model_node(model, node, own)
    return model
