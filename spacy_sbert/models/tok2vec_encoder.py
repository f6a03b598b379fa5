"""A token-to-vector model of spaCy over rows of Docs: hash embeddings, convolutions, static vectors, and the like."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..errors import Errors
from ..validation import ConfiguredModel
from .curated_listener import SENTINEL, STATE, initialize, pieces_of, upstream_name
from .engine.concurrency import prepare_forks
from .span_batch import Array, EncodedSpans, TokenEmbeddings, borders_of, in_places, no_gradient, read_tokens, row_doc
from .spans import SpanGetter

Tok2Vec = Model[list[Doc], list[Floats2d]]
Tokens = tuple[Array, Callable[[Array], object]]  # float (tokens, width), and what takes their gradient


class Tok2VecEncoder(ConfiguredModel[list[Doc], list[Floats2d]]):
    """Encode the rows of Docs token by token; white space is left out.

    A model of its own reads each row as a Doc of its own, without white space. A listener hears of whole Docs: rows are
    slices in context.

    tok2vec (Model): from Docs to the vectors of their tokens, its own or a listener; a Ragged of them will do.
    get_spans (Callable): from Docs to the Spans that are its rows.
    RAISES (ValueError): for a listener that gives several vectors a token.
    """

    def __init__(self, tok2vec: Tok2Vec, get_spans: SpanGetter):
        dims: dict[str, int | None] = {"nO": None}
        for node in tok2vec.walk():
            if SENTINEL in node.attrs and "layers" in node.attrs:
                raise ValueError(
                    f"Cannot pool tokens with the listener '{node.name}', which gives a vector of each layer: "
                    "expected spacy-curated-transformers.LastTransformerLayerListener.v1 or "
                    "spacy-curated-transformers.ScalarWeightingListener.v1 as tok2vec of "
                    "spacy-sbert.Tok2VecSentenceEncoder.v1."
                )
        super().__init__("token_encoder", _forward, init=_init, layers=[tok2vec], dims=dims)
        self.attrs["get_spans"] = get_spans
        prepare_forks()  # it may be of PyTorch
        _note_width(self)

    @property
    def listener(self) -> Model | None:
        """What hears a component of the pipeline; None in a model of its own."""
        return next((node for node in self.walk() if upstream_name(node) is not None), None)

    @contextmanager
    def read(self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool) -> Iterator[EncodedSpans]:
        """Return the rows of Docs, and the states of their tokens.

        prompt (str): none can be put before them.
        with_pieces (bool): whether to say where the tokens stand. is_train (bool): whether a gradient will come.
        """
        if prompt:
            raise ValueError(Errors.TOKEN_PROMPT.format(prompt=prompt))
        spans = self.attrs["get_spans"](docs)
        if not any(spans):
            waiting = is_train and self.listener is not None
            yield EncodedSpans.none(len(docs), self._heard_for_nothing(docs) if waiting else no_gradient)
            return
        yield self.read_spans(docs, spans, with_pieces=with_pieces, is_train=is_train)

    def read_spans(
        self, docs: list[Doc], spans: list[list[Span]], *, with_pieces: bool, is_train: bool
    ) -> EncodedSpans:
        """Return the same of given rows of Docs, of which there is one at least."""
        flat, places, batch = read_tokens(docs, spans, with_pieces=with_pieces)
        windows = numpy.flatnonzero(batch.lengths)  # a row of white space alone has no states
        if self.listener is None:
            values, backprop = self._tokens_of([row_doc(flat[row]) for row in windows], is_train)
        else:
            values, backprop = self._tokens_in_context(docs, places, is_train)
        batch.states = [TokenEmbeddings(windows, batch.lengths[windows], values)]
        batch.backprop = lambda d_values: backprop(d_values[0])
        return batch

    def _tokens_of(self, docs: list[Doc], is_train: bool) -> Tokens:
        """Those of all Docs, one after another."""
        if not docs:
            return self.ops.alloc2f(0, self.get_dim("nO")), lambda d_tokens: docs
        given, backprop = self.layers[0](docs, is_train)
        if isinstance(given, Ragged):
            return given.dataXd, lambda d_tokens: backprop(Ragged(d_tokens, given.lengths))
        borders = borders_of(map(len, given))[1:-1]
        return self.ops.xp.concatenate(given), lambda d_tokens: backprop(self.ops.xp.split(d_tokens, borders))

    def _tokens_in_context(self, docs: list[Doc], places: numpy.ndarray, is_train: bool) -> Tokens:
        """Those in some places of what is heard of all Docs."""
        self._check_heard(docs, is_train)
        given, backprop = self._tokens_of(docs, is_train)
        tokens, backprop_places = in_places(given, places)  # rows may overlap
        return tokens, lambda d_tokens: backprop(backprop_places(d_tokens))

    def _heard_for_nothing(self, docs: list[Doc]) -> Callable[[list[Array]], object]:
        """Return what answers a component that waits for the gradient of Docs without rows: zeros."""
        given, backprop = self._tokens_of(docs, True)
        return lambda d_values: backprop(given * 0)

    def _check_heard(self, docs: list[Doc], is_train: bool) -> None:
        """Other packages' listeners make up zeros, or fail, where they were handed nothing.

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
                    _check_width(
                        node,
                        doc.tensor,
                        (
                            "The 'tok2vec' component of the pipeline gave vectors of {given} numbers (doc.tensor), "
                            "the sentence encoder listens for {expected}: set the width of "
                            "spacy.Tok2VecListener.v1 in its config to {given}."
                        ),
                    )
            elif SENTINEL in node.attrs and is_train:
                if node.attrs[STATE].batch_id is None:
                    raise ValueError(
                        "The listener of the sentence encoder got nothing from a 'curated_transformer' in "
                        "training: it is disabled, or in training.frozen_components, where listeners of "
                        "spacy-curated-transformers do not hear it. To keep its weights set frozen = true in "
                        "its own block, [components.transformer], and take it out of frozen_components, or use "
                        "spacy-sbert.SharedSentenceEncoder.v1."
                    )
            elif SENTINEL in node.attrs:
                for doc in docs:
                    _check_width(
                        node,
                        pieces_of(doc).dataXd,
                        (
                            "The 'curated_transformer' of the pipeline gave vectors of {given} numbers, the "
                            "sentence encoder listens for {expected}: set the width of the listener in its config "
                            "(tok2vec) to {given}."
                        ),
                    )


def _check_width(listener: Model, states: Array, message: str) -> None:
    given, expected = states.shape[1], listener.get_dim("nO")
    if given != expected:
        raise ValueError(message.format(given=given, expected=expected))


def _note_width(model: Tok2VecEncoder) -> None:
    """Take over the width of the states once the tok2vec knows it."""
    tok2vec = model.layers[0]
    if tok2vec.has_dim("nO"):
        model.set_dim("nO", tok2vec.get_dim("nO"))


def _init(model: Tok2VecEncoder, X: list[Doc] | None = None, Y: object = None) -> None:
    initialize(model.layers[0], X)
    _note_width(model)


def _forward(model: Tok2VecEncoder, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    return model.layers[0](docs, is_train)
