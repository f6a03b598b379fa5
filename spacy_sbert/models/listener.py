"""Layers that read what components upstream provide.

Listeners to a shared transformer, and encoders of tokens.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

import numpy
from spacy.attrs import LEMMA, MORPH, NORM, POS, TAG
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc, Span
from spacy.util import replace_model_node
from thinc.api import Model
from thinc.types import Floats2d, Ints2d, Ragged
from thinc.util import get_array_module, to_numpy

from ..errors import Errors
from ..validation import ConfiguredModel
from . import private_attributes
from .encoded_docs import EncodeSettings
from .encoder import STATES, TOKENS, Encoder, InPipe, listens_for
from .engine.concurrency import prepare_forks
from .pooling import SentencePooling
from .shared_transformer import TransformerTok2Vec, join_rows, take_states
from .span_batch import (
    Array,
    EncodedSpans,
    TokenEmbeddings,
    borders_of,
    in_places,
    no_gradient,
    read_tokens,
)
from .spans import SpanGetter
from .transformer import encoder_of, is_transformer_tok2vec

# Of each Doc a TransformerData of spacy-transformers, or the wordpieces of a curated transformer, a
# Ragged; or of all Docs the rows of an `sbert_transformer`
TransformerOutput: TypeAlias = list[Any] | EncodedSpans


class _ListenerState:
    """Where a `curated_transformer` leaves its output for a listener in training.

    A copy is empty.
    """

    batch_id: int | None = None
    outputs: Any = (
        # With last_hidden_layer_states, a Ragged of float (wordpieces, width) for each Doc
        None
    )
    backprop: Any = None

    def backprop_last_layer(self, d_pieces: list[Ragged]) -> object:
        return self.backprop([[d_doc] for d_doc in d_pieces], outputs_to_backprop=(-1,))

    def __reduce__(self) -> tuple[type, tuple]:
        return _ListenerState, ()


class SentenceListener(ConfiguredModel, Model):
    """Listener to the transformer before its pipe, of this package or another."""

    name = "sentence-listener"
    listens_for = STATES
    needs_states = True

    def __init__(self, upstream_name: str, grad_factor: float):
        attrs: dict[str, Any] = {
            private_attributes.SENTINEL: True,
            private_attributes.UPSTREAM_NAME: upstream_name,
            private_attributes.STATE: _ListenerState(),
        }
        attrs |= {private_attributes.READS_DOCS: True, private_attributes.ALL_LAYERS: False}
        Model.__init__(self, self.name, _listen, dims={"nO": None}, attrs=attrs)
        self.upstream_name = upstream_name
        self._batch_id: int | None = None
        self._outputs: Any = None
        self._backprop: Any = None
        # The model of the component, once the pipeline is known
        self.upstream: Model | None = None
        # No attr: those are saved, and would replace that of the config when loaded
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

    @classmethod
    def get_batch_id(cls, docs: list[Doc]) -> int:
        """Return the number of a batch, as a transformer computes it."""
        return sum(token.orth for doc in docs for token in doc)

    def receive(
        self,
        batch_id: int | None,
        outputs: TransformerOutput | EncodedSpans | None,
        backprop: Callable | None,
    ) -> None:
        """Take the output of a transformer in training; of several the last counts."""
        self.attrs[private_attributes.STATE] = _ListenerState()
        self._batch_id, self._outputs, self._backprop = batch_id, outputs, backprop

    def received(self, docs: list[Doc]) -> tuple[TransformerOutput | EncodedSpans, Callable] | None:
        """Return the output of a transformer that was not used yet, and its callback.

        None if there is none.
        """
        state: _ListenerState = self.attrs[private_attributes.STATE]
        if state.outputs is not None:
            self.receive(
                state.batch_id, state.outputs.last_hidden_layer_states, state.backprop_last_layer
            )
        if self._batch_id is not None and self._batch_id != self.get_batch_id(docs):
            raise ValueError(Errors.OTHER_BATCH.format(upstream=self.upstream_name))
        return None if self._batch_id is None else (self._outputs, self._backprop)


def _listen(model: Model, docs: list[Doc], is_train: bool) -> tuple[TransformerOutput, Callable]:
    listener = cast(SentenceListener, model)
    received = (
        listener.received(docs)
        if is_train or not listener.attrs[private_attributes.READS_DOCS]
        else None
    )
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
    if isinstance(d_output, Ragged):
        d_output.data *= factor
    elif private_attributes.is_a(d_output, "TransformerData"):
        d_output.model_output["last_hidden_state"] *= factor
    else:
        d_output *= factor


def _read_docs(listener: SentenceListener, docs: list[Doc]) -> TransformerOutput:
    """Return what the transformer left on Docs."""
    if not is_transformer_tok2vec(listener.upstream):
        return [_output_of(doc) for doc in docs]
    transformer = cast(TransformerTok2Vec, listener.upstream).transformer
    return join_rows(docs, take_states(docs, transformer, listener))


def _output_of(doc: Doc) -> Any:
    """Return what a transformer left on a Doc. RAISES (ValueError): if there is none."""
    data = doc._.get("trf_data") if doc.has_extension("trf_data") else None
    if data is None:
        raise ValueError(Errors.NOT_ENCODED.format(text=doc.text[:50]))
    output = (
        data
        if private_attributes.is_a(data, "TransformerData")
        else getattr(data, "last_hidden_layer_state", None)
    )
    if output is None:
        raise ValueError(
            f"The transformer left {type(data).__name__} on the Doc '{doc.text[:50]}' "
            "(doc._.trf_data): expected the output of the 'transformer' or 'curated_transformer' "
            "that the encoder listens to."
        )
    return output


def read_pieces(
    docs: list[Doc],
    spans: list[list[Span]],
    pieces: list[Ragged],
    backprop: Callable[[list[Ragged]], object],
    *,
    with_pieces: bool,
) -> EncodedSpans:
    """Return the rows of Docs in wordpieces that were encoded in context, see read_tokens."""
    xp = get_array_module(pieces[0].data)
    values = xp.concatenate([of_doc.dataXd for of_doc in pieces])

    def backprop_values(d_values: Array) -> object:
        borders = borders_of(len(of_doc.dataXd) for of_doc in pieces)[1:-1]
        parts = zip(xp.split(d_values, borders), pieces, strict=True)
        return backprop([Ragged(d_part, of_doc.lengths) for d_part, of_doc in parts])

    # It waits for a gradient all the same
    if not any(spans):
        return EncodedSpans.empty(
            len(docs), lambda d_states: backprop_values(xp.zeros(values.shape, dtype="f"))
        )
    of_docs: list[Array] = [of_doc.lengths for of_doc in pieces]
    # From a GPU at once
    counts = to_numpy(get_array_module(of_docs[0]).concatenate(of_docs)).astype("int64")
    _, places, batch = read_tokens(docs, spans, counts, with_pieces=with_pieces)
    # A row of white space has no states
    windows = numpy.flatnonzero(batch.lengths)
    # Half precision is for the transformer: sums over wordpieces would lose too much in it.
    states, backprop_states = in_places(
        values.astype("f") if values.dtype == xp.float16 else values, places
    )
    batch.states = [TokenEmbeddings(windows, batch.lengths[windows], states)]
    batch.backprop = lambda d_states: backprop_values(backprop_states(d_states[0]))
    return batch


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


# What models embed of a token beside its text
_FEATURES = [NORM, LEMMA, TAG, POS, MORPH]


class Tok2VecEncoder(ConfiguredModel[list[Doc], list[Floats2d]], Encoder):
    """Encode the rows of Docs token by token; white space is left out.

    A model of its own reads each row as a Doc of its own. A listener reads whole Docs: rows are
    slices in context.

    tok2vec (Model): from Docs to the vectors of their tokens, its own or a listener; a Ragged of
        them will do.
    get_spans (Callable): from Docs to the Spans that are its rows.
    """

    def __init__(self, tok2vec: Model[list[Doc], list[Floats2d]], get_spans: SpanGetter):
        for node in tok2vec.walk():
            if private_attributes.SENTINEL in node.attrs and "layers" in node.attrs:
                raise ValueError(
                    f"Cannot pool tokens with the listener '{node.name}', which gives a vector of "
                    "each layer: expected LastTransformerLayerListener.v1 or "
                    "ScalarWeightingListener.v1 of spacy-curated-transformers."
                )
        super().__init__("token_encoder", _forward, init=_init, layers=[tok2vec], dims={"nO": None})
        self.attrs["get_spans"] = get_spans
        # It may be of PyTorch
        prepare_forks()
        _copy_width(self)

    kind = "a token-to-vector model of spaCy"
    reads_tokens = True

    def text_encoder(
        self, pooling: SentencePooling, settings: EncodeSettings, pipe: InPipe | None
    ) -> Any:
        listeners = self.listeners
        if pipe is None or not all(listens_for(layer) == TOKENS for layer in listeners[:1]):
            return None
        from .text_encoders import Tok2VecTextEncoder  # noqa: PLC0415 (not needed for Docs)

        upstream = pipe.find_upstream(listeners[0]) if listeners else None
        return Tok2VecTextEncoder(
            self, pooling, settings, self, tokenizer=pipe.tokenizer, upstream=upstream
        )

    @contextmanager
    def read(
        self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool
    ) -> Iterator[EncodedSpans]:
        """Yield the rows of Docs, and the states of their tokens.

        with_pieces: whether to record their characters.
        """
        if prompt:
            raise ValueError(Errors.TOKEN_PROMPT.format(prompt=prompt))
        spans = self.attrs["get_spans"](docs)
        if any(spans):
            yield self.read_spans(docs, spans, with_pieces=with_pieces, is_train=is_train)
        elif (
            # A component that waits for the gradient gets zeros
            is_train and self.listeners
        ):
            tokens, backprop = self._tokens_of(docs, True)
            yield EncodedSpans.empty(len(docs), lambda d_values: backprop(tokens * 0))
        else:
            yield EncodedSpans.empty(len(docs), no_gradient)

    def read_spans(
        self,
        docs: list[Doc],
        spans: list[list[Span]],
        *,
        with_pieces: bool = False,
        is_train: bool = False,
    ) -> EncodedSpans:
        """Return the same for rows that are known."""
        n_tokens = sum(map(len, docs))
        flat, places, batch = read_tokens(
            docs, spans, numpy.ones(n_tokens, "int64"), with_pieces=with_pieces
        )
        # A row of white space has no states
        windows = numpy.flatnonzero(batch.lengths)
        if not self.listeners:
            values, backprop = self._tokens_of([_row_doc(flat[row]) for row in windows], is_train)
            batch.backprop = lambda d_values: backprop(d_values[0])
        else:
            self._check_upstream(docs, is_train)
            tokens, backprop_tokens = self._tokens_of(docs, is_train)
            # Rows may overlap
            values, backprop_places = in_places(tokens, places)
            batch.backprop = lambda d_values: backprop_tokens(backprop_places(d_values[0]))
        batch.states = [TokenEmbeddings(windows, batch.lengths[windows], values)]
        return batch

    def _tokens_of(
        self, docs: list[Doc], is_train: bool
    ) -> tuple[Array, Callable[[Array], object]]:
        """Return the vectors of all tokens, float (tokens, width), and their backprop."""
        if not docs:
            return self.ops.alloc2f(0, self.get_dim("nO")), lambda d_tokens: docs
        vectors, backprop = self.layers[0](docs, is_train)
        if isinstance(vectors, Ragged):
            return vectors.dataXd, lambda d_tokens: backprop(Ragged(d_tokens, vectors.lengths))
        borders = borders_of(map(len, vectors))[1:-1]
        return self.ops.xp.concatenate(vectors), lambda d_tokens: backprop(
            self.ops.xp.split(d_tokens, borders)
        )

    def _check_upstream(self, docs: list[Doc], is_train: bool) -> None:
        """Check that the component gave states of the right width.

        Other packages' listeners make up zeros, or fail.
        """
        for node in self.walk():
            if isinstance(node, Tok2VecListener) and not is_train:
                for doc in filter(len, docs):
                    if not doc.tensor.size:
                        raise ValueError(
                            f"The Doc '{doc.text[:50]}' carries no output of a 'tok2vec' component "
                            "(doc.tensor is empty). Process it with nlp(text), 'tok2vec' enabled "
                            "and before the encoder."
                        )
                    _check_width(node, doc.tensor, "tok2vec", "spacy.Tok2VecListener.v1")
            elif (
                private_attributes.SENTINEL in node.attrs
                and is_train
                and node.attrs[private_attributes.STATE].batch_id is None
            ):
                raise ValueError(
                    "The sentence encoder got nothing from a 'curated_transformer' in training: it "
                    "is disabled, or in training.frozen_components. To keep its weights set frozen "
                    "= true in its own block, [components.transformer], or use "
                    "spacy-sbert.SharedSentenceEncoder.v1."
                )
            elif private_attributes.SENTINEL in node.attrs and not is_train:
                for doc in docs:
                    _check_width(
                        node,
                        _output_of(doc).dataXd,
                        "curated_transformer",
                        "the listener (tok2vec)",
                    )


def _check_width(listener: Model, states: Array, component: str, layer: str) -> None:
    width, expected = states.shape[1], listener.get_dim("nO")
    if width != expected:
        raise ValueError(
            f"The '{component}' component of the pipeline gave vectors of {width} numbers, the "
            f"sentence encoder listens for {expected}: set the width of {layer} in its config to "
            f"{width}."
        )


def _row_doc(span: Span) -> Doc:
    """Return the tokens of a span without white space as a Doc.

    If they are all of their Doc, return that.
    """
    doc, kept = span.doc, [token for token in span if not token.is_space]
    if len(kept) == len(doc) and not kept[-1].whitespace_:
        return doc
    spaces = [*(bool(token.whitespace_) for token in kept[:-1]), False]
    row = Doc(doc.vocab, words=[token.text for token in kept], spaces=spaces)
    return row.from_array(
        _FEATURES, cast(Ints2d, doc.to_array(_FEATURES)[[token.i for token in kept]])
    )


def _copy_width(model: Model) -> None:
    """Set the width of the states once the tok2vec knows it."""
    if model.layers[0].has_dim("nO"):
        model.set_dim("nO", model.layers[0].get_dim("nO"))


def _init(model: Model, X: list[Doc] | None = None, Y: object = None) -> None:
    if not private_attributes.is_replaced(model.layers[0]):
        model.layers[0].initialize(X=X)
    _copy_width(model)


def _forward(
    model: Tok2VecEncoder, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    return model.layers[0](docs, is_train)
