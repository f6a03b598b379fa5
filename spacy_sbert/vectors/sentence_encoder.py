"""The one way from Docs to vectors, in use and in training: rows, wordpieces, states, pooling."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from spacy.tokens import Doc
from spacy_transformers.layers import split_trf_batch
from thinc.api import Model, chain

from ..encoder.heard import row_states
from ..encoder.listener import SentenceListener
from ..encoder.rows import RowStates
from ..encoder.transformer import RowTransformer, load
from .call import AS_CONFIGURED, Call
from .encoded import EncodedDoc
from .errors import Errors
from .sentence_pooling import SentencePooling, encode_docs

SentenceEncoder = Model[list[Doc], list[EncodedDoc]]
Backprop = Callable[[list[Any]], Any]


def sentence_encoder(transformer: RowTransformer, pooling: SentencePooling) -> SentenceEncoder:
    """Encode the rows of Docs with a transformer of its own, and pool them."""
    # In a chain, as saved pipelines have it: weights are matched by position.
    held: Model = chain(transformer, split_trf_batch(), pooling)
    refs: dict[str, Model | None] = {"transformer": transformer, "pooling": pooling}
    return Model("sentence_encoder", forward, init=init, layers=[held], refs=refs)


def init(model: SentenceEncoder, X: Any = None, Y: Any = None) -> None:
    model.layers[0].initialize()


def forward(model: SentenceEncoder, docs: list[Doc], is_train: bool) -> tuple[list[EncodedDoc], Backprop]:
    return _encode(model, docs, is_train, AS_CONFIGURED)


def predict(model: SentenceEncoder, docs: list[Doc], call: Call) -> list[EncodedDoc]:
    """Encode the rows of Docs, as one call asks for.

    model (Model): with a transformer of its own, or one that listens to a shared one.
    RAISES (ValueError): for a prompt where the transformer is shared.
    """
    return _encode(model, docs, False, call)[0]


def _encode(model: SentenceEncoder, docs: list[Doc], is_train: bool, call: Call) -> tuple[list[EncodedDoc], Backprop]:
    pooling = cast(SentencePooling, model.get_ref("pooling"))
    with _rows(model, docs, is_train, call) as batch:
        width = 0 if batch else _width(model, pooling, call.truncate_dim)
        return encode_docs(pooling, batch, len(docs), is_train, call=call, width=width)


def _rows(
    model: SentenceEncoder, docs: list[Doc], is_train: bool, call: Call
) -> AbstractContextManager[RowStates | None]:
    """The rows and states of Docs, from the model's own transformer or the one it hears; None if there is no row."""
    if not model.has_ref("transformer"):
        if call.prompt is not None:
            raise ValueError(Errors.SHARED_PROMPT.format(prompt=call.prompt))
        return nullcontext(row_states(model.layers[0].predict(docs), docs if call.token_vectors else None))
    transformer = cast(RowTransformer, model.get_ref("transformer"))
    spans = transformer.attrs["get_spans"](docs)
    if not any(spans):
        return nullcontext()
    with_pieces = call.token_vectors and not is_train
    return transformer.read(spans, prompt=call.prompt, with_pieces=with_pieces, is_train=is_train)


def _width(model: SentenceEncoder, pooling: SentencePooling, truncate_dim: int | None) -> int:
    """The width of vectors where there is no row; 0 where nobody knows that of a shared transformer's states."""
    for node in model.layers[0].walk():
        encoder = node.transformer if isinstance(node, SentenceListener) else node
        settings = load(encoder).settings if isinstance(encoder, RowTransformer) else None
        if encoder is not None and encoder.has_dim("nO"):
            return pooling.width(encoder.get_dim("nO"), settings, truncate_dim=truncate_dim)
    return 0
