"""The encoder of tokens: a token-to-vector model of its own, or a listener to a component."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy
from spacy.attrs import LEMMA, MORPH, NORM, POS, TAG
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats2d, Ints2d, Ragged

from ..errors import Errors
from ..validation import ConfiguredModel
from . import private_attributes
from .encoded_docs import EncodeSettings
from .encoder import TOKENS, Encoder, InPipe, listens_for
from .engine.concurrency import prepare_forks
from .heads import Tok2VecModel
from .listener import output_of
from .pooling import SentencePooling
from .ragged import borders_of
from .span_batch import (
    Array,
    EncodedSpans,
    TokenEmbeddings,
    in_places,
    read_tokens,
)
from .spans import SpanGetter, SpansByDoc

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

    def __init__(self, tok2vec: Tok2VecModel, get_spans: SpanGetter):
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
        elif is_train and self.listeners:
            # The component waits for a gradient: it gets zeros
            tokens, backprop = self._tokens_of(docs, True)
            yield EncodedSpans.empty(len(docs), lambda d_values: backprop(tokens * 0))
        else:
            yield EncodedSpans.empty(len(docs))

    def read_spans(
        self,
        docs: list[Doc],
        spans: SpansByDoc,
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
        if self.listeners:
            self._check_upstream(docs, is_train)
            tokens, backprop_tokens = self._tokens_of(docs, is_train)
            # Rows may overlap
            values, backprop_places = in_places(tokens, places)
            batch.backprop = lambda d_values: backprop_tokens(backprop_places(d_values[0]))
        else:
            row_docs = [_row_doc(flat[row]) for row in windows]
            values, backprop_rows = self._tokens_of(row_docs, is_train)
            batch.backprop = lambda d_values: backprop_rows(d_values[0])
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
        xp = self.ops.xp
        borders = borders_of(map(len, vectors))[1:-1]
        return xp.concatenate(vectors), lambda d_tokens: backprop(xp.split(d_tokens, borders))

    def _check_upstream(self, docs: list[Doc], is_train: bool) -> None:
        """Check that the component gave states of the right width.

        Other packages' listeners make up zeros, or fail.
        """
        for node in self.walk():
            if isinstance(node, Tok2VecListener):
                if not is_train:
                    _check_tensors(node, docs)
            elif private_attributes.SENTINEL in node.attrs:
                if is_train:
                    _check_received(node)
                else:
                    _check_curated_outputs(node, docs)


def _check_tensors(listener: Model, docs: list[Doc]) -> None:
    """Check that a `tok2vec` left vectors of the listener's width on Docs."""
    for doc in filter(len, docs):
        if not doc.tensor.size:
            raise ValueError(
                f"The Doc '{doc.text[:50]}' carries no output of a 'tok2vec' component "
                "(doc.tensor is empty). Process it with nlp(text), 'tok2vec' enabled and before "
                "the encoder."
            )
        _check_width(listener, doc.tensor, "tok2vec", "spacy.Tok2VecListener.v1")


def _check_received(listener: Model) -> None:
    """Check that a `curated_transformer` gave a listener its output in training."""
    if listener.attrs[private_attributes.STATE].batch_id is None:
        raise ValueError(
            "The sentence encoder got nothing from a 'curated_transformer' in training: it is "
            "disabled, or in training.frozen_components. To keep its weights set frozen = true in "
            "its own block, [components.transformer], or use spacy-sbert.SharedSentenceEncoder.v1."
        )


def _check_curated_outputs(listener: Model, docs: list[Doc]) -> None:
    """Check that a `curated_transformer` left states of the listener's width on Docs."""
    for doc in docs:
        states = output_of(doc).dataXd
        _check_width(listener, states, "curated_transformer", "the listener (tok2vec)")


def _check_width(listener: Model, states: Array, component: str, layer: str) -> None:
    width = states.shape[1]
    expected = listener.get_dim("nO")
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
    doc = span.doc
    kept = [token for token in span if not token.is_space]
    if len(kept) == len(doc) and not kept[-1].whitespace_:
        return doc
    words = [token.text for token in kept]
    spaces = [*(bool(token.whitespace_) for token in kept[:-1]), False]
    features = cast(Ints2d, doc.to_array(_FEATURES)[[token.i for token in kept]])
    return Doc(doc.vocab, words=words, spaces=spaces).from_array(_FEATURES, features)


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
