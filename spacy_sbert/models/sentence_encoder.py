"""From Docs to vectors, in use and in training: rows, wordpieces, states, pooling."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import numpy
from spacy.tokens import Doc
from thinc.api import Model, chain

from ..validation import ConfiguredModel
from .encoded_docs import DEFAULT_SETTINGS, EncodedDoc, EncodeSettings, WordpieceStates
from .encoder import Encoder
from .pooling import SentencePooling
from .private_attributes import is_replaced
from .span_batch import Array, EncodedSpans, SpanBatch
from .spans import SpanGetter
from .surroundings import undisturbed
from .transformer import SpanTransformer

# Takes the gradient of the vectors of each Doc
_Backprop = Callable[[list[Any]], Any]
# Beside "get_spans", which is that of a transformer
GET_SPANS = "get_spans_of_whole_docs"


class SentenceEncoder(ConfiguredModel[list[Doc], list[EncodedDoc]]):
    """Encode the rows of Docs and pool them: an EncodedDoc for each.

    source (Model): an Encoder, or a listener to a shared transformer.
    pooling (SentencePooling): makes a vector of the states of a row.
    get_spans (Callable): the rows of Docs if the shared transformer encodes whole Docs, as a
        curated one does.
    """

    def __init__(
        self, source: Model, pooling: SentencePooling, get_spans: SpanGetter | None = None
    ):
        layers: list[Model] = [source, pooling]
        refs: dict[str, Model | None] = {}
        attrs: dict[str, Any] = {}
        dims: dict[str, int | None] = {}
        if isinstance(source, Encoder):
            refs["reader"] = source
        else:
            attrs[GET_SPANS] = get_spans
            dims["nO"] = None
        refs["pooling"] = pooling
        if isinstance(source, SpanTransformer):
            # As saved pipelines have it, whose weights go by position: the layer between has none.
            layers = [chain(source, Model("split-trf-batch", _identity), pooling)]
            refs["transformer"] = source
        super().__init__(
            "sentence_encoder",
            _forward,
            init=_init,
            dims=dims,
            layers=layers,
            refs=refs,
            attrs=attrs,
        )

    @property
    def source(self) -> Encoder:
        """The encoder; what took its place, after `nlp.replace_listeners`."""
        layer = self.get_ref("reader") if self.has_ref("reader") else self.layers[0]
        if isinstance(layer, Encoder):
            return layer
        from .shared_encoder import SharedEncoder  # noqa: PLC0415 (not needed for a first vector)

        return SharedEncoder(layer, self.attrs[GET_SPANS])

    def encode(self, docs: list[Doc], settings: EncodeSettings) -> list[EncodedDoc]:
        """Return the rows of Docs and their vectors, with the settings of a call."""
        return _encode(self, docs, False, settings)[0]


def _identity(model: Model, X: object, is_train: bool) -> tuple[object, Callable]:
    return X, lambda dX: dX


def _init(model: SentenceEncoder, X: Any = None, Y: object = None) -> None:
    for layer in model.layers:
        # A copy of a curated transformer has its weights
        if is_replaced(layer):
            continue
        # A chain would encode Docs to find its widths
        layer.initialize(X=X if layer is model.source else None)


def _forward(
    model: SentenceEncoder, docs: list[Doc], is_train: bool
) -> tuple[list[EncodedDoc], _Backprop]:
    return _encode(model, docs, is_train, DEFAULT_SETTINGS)


@undisturbed()
def _encode(
    model: SentenceEncoder, docs: list[Doc], is_train: bool, settings: EncodeSettings
) -> tuple[list[EncodedDoc], _Backprop]:
    pooling = cast(SentencePooling, model.get_ref("pooling"))
    source = model.source
    with_pieces = settings.token_vectors and not is_train
    with source.read(
        docs, prompt=settings.prompt, with_pieces=with_pieces, is_train=is_train
    ) as batch:
        if not len(batch.lengths):
            zero = pooling.ops.alloc2f(0, _width(source, pooling, settings.truncate_dim))
            encoded = [
                EncodedDoc(SpanBatch.empty(), zero, pooling.pooling_name, False, None) for _ in docs
            ]
            return encoded, lambda d_vectors: batch.backprop([])
        (vectors, states), backprop = pooling.pool_rows(batch, is_train, settings)
    encoded = _encoded_docs(pooling, batch, vectors, states)
    return encoded, lambda d_vectors: backprop(pooling.ops.xp.concatenate(d_vectors))


def _width(source: Encoder, pooling: SentencePooling, truncate_dim: int | None) -> int:
    """Return the width of vectors if there is no row: 0 if that of the states is unknown."""
    width = source.width
    return 0 if width is None else pooling.width(width, source.folder, truncate_dim=truncate_dim)


def _encoded_docs(
    pooling: SentencePooling, batch: EncodedSpans, vectors: Array, states: list[numpy.ndarray]
) -> list[EncodedDoc]:
    """Return each Doc of a batch with its rows and their vectors."""
    name = pooling.pooling_name
    normalize = pooling.normalizes(batch.rows.settings)
    is_dense = pooling.dense is not None
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
