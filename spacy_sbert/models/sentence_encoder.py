"""From Docs to vectors, in use and in training: rows, wordpieces, states, pooling."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy
from spacy.tokens import Doc
from thinc.api import Model, chain
from thinc.types import Ragged

from ..validation import ConfiguredModel
from .encoded_docs import DEFAULT_SETTINGS, EncodedDoc, EncodeSettings, WordpieceStates
from .pooling import SentencePooling
from .private_attributes import is_replaced
from .span_batch import Array, EncodedSpans, SpanBatch
from .spans import SpanGetter
from .surroundings import undisturbed
from .transformer import SpanTransformer, load

# These load what only their own architectures need
if TYPE_CHECKING:
    from .listener import SentenceListener, Tok2VecEncoder
    from .static_embedding import StaticEmbedding

# Takes the gradient of the vectors of each Doc
_Backprop = Callable[[list[Any]], Any]
# Beside "get_spans", which is that of a transformer
GET_SPANS = "get_spans_of_whole_docs"


def is_listener(node: Model) -> "TypeGuard[SentenceListener]":
    """Return whether a layer listens to a shared transformer."""
    return node.name == "sentence-listener"


def is_static_embedding(node: Model) -> "TypeGuard[StaticEmbedding]":
    """Return whether a layer is a table of wordpieces."""
    return node.name == "wordpiece_table"


def is_token_encoder(node: Model) -> "TypeGuard[Tok2VecEncoder]":
    """Return whether a layer encodes rows token by token."""
    return node.name == "token_encoder"


class SentenceEncoder(ConfiguredModel[list[Doc], list[EncodedDoc]]):
    """Encode the rows of Docs and pool them: an EncodedDoc for each.

    source (Model): an encoder, which reads rows by itself, or a listener to a shared transformer.
    pooling (SentencePooling): makes a vector of the states of a row.
    get_spans (Callable): the rows of Docs if the shared transformer encodes whole Docs, as a
        curated one does.
    """

    def __init__(
        self, source: Model, pooling: SentencePooling, get_spans: SpanGetter | None = None
    ):
        layers: list[Model] = [source, pooling]
        if hasattr(source, "read"):
            refs: dict[str, Model | None] = {"reader": source, "pooling": pooling}
            if isinstance(source, SpanTransformer):
                # As saved pipelines have it, whose weights go by position: the layer between has
                # none.
                layers = [chain(source, Model("split-trf-batch", _identity), pooling)]
                refs["transformer"] = source
            super().__init__("sentence_encoder", _forward, init=_init, layers=layers, refs=refs)
            return
        refs, attrs = {"pooling": pooling}, {GET_SPANS: get_spans}
        super().__init__(
            "sentence_encoder",
            _forward,
            init=_init,
            dims={"nO": None},
            layers=layers,
            refs=refs,
            attrs=attrs,
        )

    def encode(self, docs: list[Doc], settings: EncodeSettings) -> list[EncodedDoc]:
        """Return the rows of Docs and their vectors, with the settings of a call."""
        return _encode(self, docs, False, settings)[0]


def _identity(model: Model, X: object, is_train: bool) -> tuple[object, Callable]:
    return X, lambda dX: dX


def _init(model: SentenceEncoder, X: Any = None, Y: object = None) -> None:
    # X: Docs, of which a chain would encode them
    for layer in model.layers:
        # A copy of a curated transformer has its weights
        if not is_replaced(layer):
            layer.initialize(X=X if is_token_encoder(layer) else None)


def _forward(
    model: SentenceEncoder, docs: list[Doc], is_train: bool
) -> tuple[list[EncodedDoc], _Backprop]:
    return _encode(model, docs, is_train, DEFAULT_SETTINGS)


@undisturbed()
def _encode(
    model: SentenceEncoder, docs: list[Doc], is_train: bool, settings: EncodeSettings
) -> tuple[list[EncodedDoc], _Backprop]:
    pooling = cast(SentencePooling, model.get_ref("pooling"))
    with _read(model, docs, is_train, settings) as batch:
        if not len(batch.lengths):
            zero = pooling.ops.alloc2f(0, _width(model, pooling, settings.truncate_dim))
            encoded = [
                EncodedDoc(SpanBatch.empty(), zero, pooling.pooling_name, False, None) for _ in docs
            ]
            return encoded, lambda d_vectors: batch.backprop([])
        (vectors, states), backprop = pooling.pool_rows(batch, is_train, settings)
    encoded = _encoded_docs(pooling, batch, vectors, states)
    return encoded, lambda d_vectors: backprop(pooling.ops.xp.concatenate(d_vectors))


def _read(
    model: SentenceEncoder, docs: list[Doc], is_train: bool, settings: EncodeSettings
) -> AbstractContextManager[EncodedSpans]:
    with_pieces = settings.token_vectors and not is_train
    reader: Any = model.get_ref("reader") if model.has_ref("reader") else model.layers[0]
    if hasattr(reader, "read"):
        return reader.read(docs, prompt=settings.prompt, with_pieces=with_pieces, is_train=is_train)
    if settings.prompt is not None:
        raise ValueError(
            f"Cannot put the prompt '{settings.prompt}' before Docs: other components read the "
            "output of a shared "
            "transformer, too. Use spacy-sbert.SentenceEncoder.v1, or encode(texts)."
        )
    outputs, backprop = model.layers[0](docs, is_train)
    if isinstance(outputs, EncodedSpans):
        batch = replace(outputs, backprop=backprop)
        return nullcontext(batch if with_pieces else _without_pieces(batch))
    if outputs and isinstance(outputs[0], Ragged):
        from .listener import read_pieces  # noqa: PLC0415 (loaded by the listener)

        spans = model.attrs[GET_SPANS](docs)
        return nullcontext(read_pieces(docs, spans, outputs, backprop, with_pieces=with_pieces))
    from .spacy_transformers import spans_from_transformer_data  # noqa: PLC0415 (of spacy-transformers)

    batch = spans_from_transformer_data(outputs, docs, backprop)
    return nullcontext(batch if with_pieces else _without_pieces(batch))


def _without_pieces(batch: EncodedSpans) -> EncodedSpans:
    return replace(batch, characters=None, of_text=None, kept=None)


def _width(model: SentenceEncoder, pooling: SentencePooling, truncate_dim: int | None) -> int:
    """Return the width of vectors where there is no row.

    0 if that of a shared transformer's states is unknown.
    """
    for node in model.layers[0].walk():
        encoder = node.transformer if is_listener(node) else node
        folder = load(encoder).settings if isinstance(encoder, SpanTransformer) else None
        if encoder is not None and is_static_embedding(encoder):
            encoder.load()
            folder = encoder.settings
        if encoder is not None and encoder.has_dim("nO"):
            return pooling.width(encoder.get_dim("nO"), folder, truncate_dim=truncate_dim)
    return 0


def _encoded_docs(
    pooling: SentencePooling, batch: EncodedSpans, vectors: Array, states: list[numpy.ndarray]
) -> list[EncodedDoc]:
    """Return each Doc of a batch with its rows and their vectors."""
    name, normalize, is_dense = (
        pooling.pooling_name,
        pooling.normalizes(batch.rows.settings),
        pooling.dense is not None,
    )
    piece_borders = numpy.append(0, numpy.cumsum(batch.lengths))
    encoded = []
    for (start, end), (first, last) in zip(
        pairwise(batch.borders), pairwise(batch.window_borders), strict=True
    ):
        here = vectors[start:end]
        if start == end:
            encoded.append(EncodedDoc(SpanBatch.empty(), here, name, False, None))
            continue
        pieces = None
        if batch.kept is not None and batch.characters is not None:
            own = slice(piece_borders[first], piece_borders[last])
            joined = states[first] if last - first == 1 else numpy.concatenate(states[first:last])
            pieces = WordpieceStates(joined, batch.characters[own][batch.kept[own]])
        rows = batch.rows.part(slice(start, end), slice(first, last))
        text = batch.texts[start] if batch.texts else None
        encoded.append(EncodedDoc(rows, here, name, normalize, pieces, is_dense, text))
    return encoded
