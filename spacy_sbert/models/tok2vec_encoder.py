"""A token-to-vector model of spaCy over rows of Docs: hash embeddings, convolutions, static vectors, and the like."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import numpy
from spacy.attrs import LEMMA, MORPH, NORM, POS, TAG
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats2d, Ints2d, Ragged

from ..errors import Errors
from ..validation import ConfiguredModel
from .engine.concurrency import prepare_forks
from .listener import pieces_of
from .private import SENTINEL, STATE, is_replaced, upstream_name
from .span_batch import Array, EncodedSpans, TokenEmbeddings, borders_of, in_places, no_gradient, read_tokens
from .spans import SpanGetter

_Tokens = tuple[Array, Callable[[Array], object]]  # float (tokens, width), and what takes their gradient
_FEATURES = [NORM, LEMMA, TAG, POS, MORPH]  # what models embed of a token beside its text


class Tok2VecEncoder(ConfiguredModel[list[Doc], list[Floats2d]]):
    """Encode the rows of Docs token by token; white space is left out.

    A model of its own reads each row as a Doc of its own, without white space. A listener reads whole Docs: rows are
    slices in context.

    tok2vec (Model): from Docs to the vectors of their tokens, its own or a listener; a Ragged of them will do.
    get_spans (Callable): from Docs to the Spans that are its rows.
    RAISES (ValueError): for a listener that gives several vectors a token.
    """

    def __init__(self, tok2vec: Model[list[Doc], list[Floats2d]], get_spans: SpanGetter):
        for node in tok2vec.walk():
            if SENTINEL in node.attrs and "layers" in node.attrs:
                raise ValueError(
                    f"Cannot pool tokens with the listener '{node.name}', which gives a vector of each layer: "
                    "expected spacy-curated-transformers.LastTransformerLayerListener.v1 or "
                    "spacy-curated-transformers.ScalarWeightingListener.v1 as tok2vec of "
                    "spacy-sbert.Tok2VecSentenceEncoder.v1."
                )
        super().__init__("token_encoder", _forward, init=_init, layers=[tok2vec], dims={"nO": None})
        self.attrs["get_spans"] = get_spans
        prepare_forks()  # it may be of PyTorch
        _copy_width(self)

    @property
    def listener(self) -> Model | None:
        """The layer that listens to a component of the pipeline; None in a model of its own."""
        return next((node for node in self.walk() if upstream_name(node) is not None), None)

    @contextmanager
    def read(self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool) -> Iterator[EncodedSpans]:
        """Yield the rows of Docs, and the states of their tokens.

        prompt (str): refused, unless it is empty. with_pieces (bool): whether to record the characters of the tokens.
        is_train (bool): whether a gradient will come.
        """
        if prompt:
            raise ValueError(Errors.TOKEN_PROMPT.format(prompt=prompt))
        spans = self.attrs["get_spans"](docs)
        if any(spans):
            yield self.read_spans(docs, spans, with_pieces=with_pieces, is_train=is_train)
        elif is_train and self.listener is not None:  # a component that waits for the gradient gets zeros
            tokens, backprop = self._tokens_of(docs, True)
            yield EncodedSpans.empty(len(docs), lambda d_values: backprop(tokens * 0))
        else:
            yield EncodedSpans.empty(len(docs), no_gradient)

    def read_spans(
        self, docs: list[Doc], spans: list[list[Span]], *, with_pieces: bool, is_train: bool
    ) -> EncodedSpans:
        """Return the same for rows that are known, one at least."""
        n_tokens = sum(map(len, docs))
        flat, places, batch = read_tokens(docs, spans, numpy.ones(n_tokens, "int64"), with_pieces=with_pieces)
        windows = numpy.flatnonzero(batch.lengths)  # a row of white space has no states
        if self.listener is None:
            values, backprop = self._tokens_of([_row_doc(flat[row]) for row in windows], is_train)
        else:
            self._check_upstream(docs, is_train)
            tokens, backprop_tokens = self._tokens_of(docs, is_train)
            values, backprop_places = in_places(tokens, places)  # rows may overlap

            def backprop(d_values: Array) -> object:
                return backprop_tokens(backprop_places(d_values))

        batch.states = [TokenEmbeddings(windows, batch.lengths[windows], values)]
        batch.backprop = lambda d_values: backprop(d_values[0])
        return batch

    def _tokens_of(self, docs: list[Doc], is_train: bool) -> _Tokens:
        """Return the vectors of all Docs' tokens, one Doc after another."""
        if not docs:
            return self.ops.alloc2f(0, self.get_dim("nO")), lambda d_tokens: docs
        vectors, backprop = self.layers[0](docs, is_train)
        if isinstance(vectors, Ragged):
            return vectors.dataXd, lambda d_tokens: backprop(Ragged(d_tokens, vectors.lengths))
        borders = borders_of(map(len, vectors))[1:-1]
        return self.ops.xp.concatenate(vectors), lambda d_tokens: backprop(self.ops.xp.split(d_tokens, borders))

    def _check_upstream(self, docs: list[Doc], is_train: bool) -> None:
        """Check the output of the component: other packages' listeners make up zeros, or fail, without it.

        RAISES (ValueError): if there are no states, or they are of another width.
        """
        for node in self.walk():
            if isinstance(node, Tok2VecListener) and not is_train:
                for doc in filter(len, docs):
                    if not doc.tensor.size:
                        raise ValueError(
                            f"The Doc '{doc.text[:50]}' carries no output of a 'tok2vec' component (doc.tensor "
                            "is empty), to which the sentence encoder listens. Process it with the whole "
                            "pipeline: nlp(text), with 'tok2vec' before the encoder and enabled."
                        )
                    _check_width(node, doc.tensor, "tok2vec", "spacy.Tok2VecListener.v1")
            elif SENTINEL in node.attrs and is_train and node.attrs[STATE].batch_id is None:
                raise ValueError(
                    "The listener of the sentence encoder got nothing from a 'curated_transformer' in training: it is "
                    "disabled, or in training.frozen_components. To keep its weights set frozen = true in "
                    "its own block, [components.transformer], and take it out of frozen_components, or use "
                    "spacy-sbert.SharedSentenceEncoder.v1."
                )
            elif SENTINEL in node.attrs and not is_train:
                for doc in docs:
                    _check_width(node, pieces_of(doc).dataXd, "curated_transformer", "the listener (tok2vec)")


def _check_width(listener: Model, states: Array, component: str, layer: str) -> None:
    width, expected = states.shape[1], listener.get_dim("nO")
    if width != expected:
        raise ValueError(
            f"The '{component}' component of the pipeline gave vectors of {width} numbers, the sentence encoder "
            f"listens for {expected}: set the width of {layer} in its config to {width}."
        )


def _row_doc(span: Span) -> Doc:
    """Return the tokens of a span without white space as a Doc of their own, or the Doc itself if it is that."""
    doc, kept = span.doc, [token for token in span if not token.is_space]
    if len(kept) == len(doc) and not kept[-1].whitespace_:
        return doc
    spaces = [*(bool(token.whitespace_) for token in kept[:-1]), False]
    row = Doc(doc.vocab, words=[token.text for token in kept], spaces=spaces)
    return row.from_array(_FEATURES, cast(Ints2d, doc.to_array(_FEATURES)[[token.i for token in kept]]))


def _copy_width(model: Tok2VecEncoder) -> None:
    """Set the width of the states once the tok2vec knows it."""
    if model.layers[0].has_dim("nO"):
        model.set_dim("nO", model.layers[0].get_dim("nO"))


def _init(model: Tok2VecEncoder, X: list[Doc] | None = None, Y: object = None) -> None:
    if not is_replaced(model.layers[0]):
        model.layers[0].initialize(X=X)
    _copy_width(model)


def _forward(model: Tok2VecEncoder, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    return model.layers[0](docs, is_train)
