"""From Docs to vectors, in use and in training: rows, wordpieces, states, pooling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, cast

import numpy
from spacy.tokens import Doc
from thinc.api import Model, chain
from thinc.util import to_numpy

from ..validation import ConfiguredModel
from .encoded_docs import DEFAULT_SETTINGS, EncodedDoc, EncodeSettings, WordpieceStates
from .encoder import Encoder
from .pooling import SentencePooling
from .private_attributes import is_replaced
from .span_batch import Array, EncodedSpans, SpanBatch, TokenEmbeddings
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
            # Saved pipelines have this chain, and their weights go by position
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
        layer = self.layers[0]
        if self.has_ref("reader"):
            layer = self.get_ref("reader")
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
    source = model.source
    for layer in model.layers:
        # A copy of a curated transformer has its weights
        if is_replaced(layer):
            continue
        # A chain would encode Docs to find its widths
        if layer is source:
            layer.initialize(X=X)
        else:
            layer.initialize()


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
            encoded = [_without_rows(zero, pooling.pooling_name) for _ in docs]
            return encoded, lambda d_vectors: batch.backprop([])
        copies: list[numpy.ndarray] = []
        if batch.kept is not None:
            kept = numpy.split(batch.kept, numpy.cumsum(batch.lengths)[:-1])
            batch.states = _copy_states(batch.states, kept, copies)
        vectors, backprop = pooling.pool_rows(batch, is_train, settings)
    encoded = _encoded_docs(pooling, batch, vectors, copies)
    return encoded, lambda d_vectors: backprop(pooling.ops.xp.concatenate(d_vectors))


def _width(source: Encoder, pooling: SentencePooling, truncate_dim: int | None) -> int:
    """Return the width of vectors if there is no row: 0 if that of the states is unknown."""
    width = source.width
    if width is None:
        return 0
    return pooling.width(width, source.folder, truncate_dim=truncate_dim)


def _copy_states(
    parts: Iterable[TokenEmbeddings], kept: list[numpy.ndarray], copies: list[numpy.ndarray]
) -> Iterator[TokenEmbeddings]:
    """Yield the states of windows, and copy those that Spans and Tokens need.

    A view would keep the states of all windows in memory.

    kept (list[bool (wordpieces,)]): which wordpieces of each window are needed.
    copies: is filled with the states of each window, float32 (wordpieces, width).
    """
    for part in parts:
        states = to_numpy(part.values)
        if not copies:
            copies += [numpy.zeros((0, states.shape[1]), "f")] * len(kept)
        start = 0
        for window, length in zip(part.windows.tolist(), part.lengths.tolist(), strict=True):
            copies[window] = states[start : start + length][kept[window]]
            start += length
        yield part


def _without_rows(vectors: Array, pooling: str) -> EncodedDoc:
    return EncodedDoc(SpanBatch.empty(), vectors, pooling, normalize=False, wordpieces=None)


def _encoded_docs(
    pooling: SentencePooling, batch: EncodedSpans, vectors: Array, copies: list[numpy.ndarray]
) -> list[EncodedDoc]:
    """Return each Doc of a batch with its rows and their vectors.

    copies: the states of each window that Spans and Tokens need; none if they need none.
    """
    normalize = pooling.normalizes(batch.rows.settings)
    piece_borders = numpy.append(0, numpy.cumsum(batch.lengths))
    encoded = []
    for (start, end), (first, last) in zip(
        pairwise(batch.borders), pairwise(batch.window_borders), strict=True
    ):
        here = vectors[start:end]
        if start == end:
            encoded.append(_without_rows(here, pooling.pooling_name))
            continue
        pieces = None
        if batch.kept is not None and batch.characters is not None:
            states = copies[first]
            if last - first > 1:
                states = numpy.concatenate(copies[first:last])
            own = slice(piece_borders[first], piece_borders[last])
            pieces = WordpieceStates(states, batch.characters[own][batch.kept[own]])
        text = None
        if batch.texts:
            text = batch.texts[start]
        encoded.append(
            EncodedDoc(
                batch.rows.part(slice(start, end), slice(first, last)),
                here,
                pooling.pooling_name,
                normalize=normalize,
                wordpieces=pieces,
                dense=pooling.dense is not None,
                text=text,
            )
        )
    return encoded
