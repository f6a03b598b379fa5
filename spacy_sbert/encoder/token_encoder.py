"""A token-to-vector model of spaCy over rows of Docs: hash embeddings, convolutions, static vectors, and the like."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..errors.configured import Configured
from ..spans import SpanGetter
from .concurrency import prepare_forks
from .curated import SENTINEL, STATE, initialize, pieces_of, upstream_name
from .errors import Errors
from .rows import RowStates, borders_of
from .states import Array, States, in_places, no_gradient
from .token_rows import read_tokens, row_doc

Tok2Vec = Model[list[Doc], list[Floats2d]]
Tokens = tuple[Array, Callable[[Array], object]]  # float (tokens, width), and what takes their gradient


class TokenEncoder(Configured[list[Doc], list[Floats2d]]):
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
                raise ValueError(Errors.MANY_LAYERS.format(given=node.name))
        super().__init__("token_encoder", forward, init=init, layers=[tok2vec], dims=dims)
        self.attrs["get_spans"] = get_spans
        prepare_forks()  # it may be of PyTorch
        note_width(self)

    @property
    def listener(self) -> Model | None:
        """What hears a component of the pipeline; None in a model of its own."""
        return next((node for node in self.walk() if upstream_name(node) is not None), None)

    @contextmanager
    def read(self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool) -> Iterator[RowStates]:
        """The rows of Docs, and the states of their tokens.

        prompt (str): none can be put before them.
        with_pieces (bool): whether to say where the tokens stand. is_train (bool): whether a gradient will come.
        """
        if prompt:
            raise ValueError(Errors.TOKEN_PROMPT.format(prompt=prompt))
        spans = self.attrs["get_spans"](docs)
        if not any(spans):
            waiting = is_train and self.listener is not None
            yield RowStates.none(len(docs), self._heard_for_nothing(docs) if waiting else no_gradient)
            return
        yield self.read_spans(docs, spans, with_pieces=with_pieces, is_train=is_train)

    def read_spans(self, docs: list[Doc], spans: list[list[Span]], *, with_pieces: bool, is_train: bool) -> RowStates:
        """The same of given rows of Docs, of which there is one at least."""
        tokens = read_tokens(docs, spans, with_pieces=with_pieces)
        batch = tokens.batch
        windows = numpy.flatnonzero(batch.lengths)  # a row of white space alone has no states
        if self.listener is None:
            values, backprop = self._tokens_of([row_doc(tokens.spans[row]) for row in windows], is_train)
        else:
            values, backprop = self._tokens_in_context(docs, tokens.places, is_train)
        batch.states = [States(windows, batch.lengths[windows], values)]
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
        """What answers a component that waits for the gradient of Docs without rows: zeros."""
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
                        raise ValueError(Errors.NO_TOK2VEC_OUTPUT.format(text=doc.text[:50]))
                    _check_width(node, doc.tensor, Errors.TOK2VEC_OUTPUT_WIDTH)
            elif SENTINEL in node.attrs and is_train:
                if node.attrs[STATE].batch_id is None:
                    raise ValueError(Errors.CURATED_NOT_TRAINED)
            elif SENTINEL in node.attrs:
                for doc in docs:
                    _check_width(node, pieces_of(doc).dataXd, Errors.CURATED_OUTPUT_WIDTH)


def _check_width(listener: Model, states: Array, message: str) -> None:
    given, expected = states.shape[1], listener.get_dim("nO")
    if given != expected:
        raise ValueError(message.format(given=given, expected=expected))


def note_width(model: TokenEncoder) -> None:
    """Take over the width of the states once the tok2vec knows it."""
    tok2vec = model.layers[0]
    if tok2vec.has_dim("nO"):
        model.set_dim("nO", tok2vec.get_dim("nO"))


def init(model: TokenEncoder, X: list[Doc] | None = None, Y: object = None) -> None:
    initialize(model.layers[0], X)
    note_width(model)


def forward(model: TokenEncoder, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    return model.layers[0](docs, is_train)
