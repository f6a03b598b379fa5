"""The encoder that reads the output of a transformer which several components share."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Ragged
from thinc.util import get_array_module, to_numpy

from . import private_attributes
from .encoded_docs import EncodeSettings
from .encoder import Encoder, FindUpstream, InPipe
from .listener import SentenceListener
from .pooling import SentencePooling
from .ragged import borders_of
from .sbert_config import SentenceTransformersConfig
from .span_batch import Array, EncodedSpans, TokenEmbeddings, in_places, read_tokens
from .spans import SpanGetter, SpansByDoc
from .transformer import SpanTransformer


class SharedEncoder(Encoder):
    """The transformer of another component, of this package or another.

    layer (Model): the listener to it, or the copy of the transformer that took its place in
        `nlp.replace_listeners`.
    get_spans (Callable): from Docs to the Spans that are their rows, if the transformer encodes
        whole Docs.
    """

    def __init__(self, layer: Model, get_spans: SpanGetter | None):
        self.layer = layer
        self.get_spans = get_spans

    @property
    def nodes(self) -> Iterable[Model]:
        return self.layer.walk()

    @property
    def upstream(self) -> Model | None:
        """The transformer, its own copy or that of the component; None if it is not known yet."""
        return self.layer.transformer if isinstance(self.layer, SentenceListener) else self.layer

    @property
    def span_transformer(self) -> SpanTransformer | None:
        if isinstance(self.upstream, SpanTransformer):
            return self.upstream
        return super().span_transformer

    @property
    def reads_tokens(self) -> bool:  # type: ignore[override]
        return any(map(private_attributes.is_curated, [self.upstream, *self.nodes]))

    @property
    def takes_prompts(self) -> bool:  # type: ignore[override]
        return not self.reads_tokens

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "a curated_transformer" if self.reads_tokens else ""

    @property
    def width(self) -> int | None:
        if self.span_transformer is not None:
            return self.span_transformer.width
        known = (node for node in [self.upstream, *self.nodes] if node is not None)
        return next((node.get_dim("nO") for node in known if node.has_dim("nO")), None)

    @property
    def folder(self) -> SentenceTransformersConfig | None:
        return None if self.span_transformer is None else self.span_transformer.folder

    @contextmanager
    def read(
        self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool
    ) -> Iterator[EncodedSpans]:
        """Yield the rows of Docs, and the states that the transformer left for them."""
        if prompt is not None:
            raise ValueError(
                f"Cannot put the prompt '{prompt}' before Docs: other components read the output "
                "of a shared transformer, too. Use spacy-sbert.SentenceEncoder.v1, or "
                "encode(texts)."
            )
        outputs, backprop = self.layer(docs, is_train)
        if outputs and isinstance(outputs, list) and isinstance(outputs[0], Ragged):
            spans = cast(SpanGetter, self.get_spans)(docs)
            yield read_pieces(docs, spans, outputs, backprop, with_pieces=with_pieces)
            return
        if isinstance(outputs, EncodedSpans):
            batch = replace(outputs, backprop=backprop)
        else:
            from .spacy_transformers import spans_from_transformer_data  # noqa: PLC0415 (an optional extra)

            batch = spans_from_transformer_data(outputs, docs, backprop)
        if not with_pieces:
            batch = replace(batch, characters=None, of_text=None, kept=None)
        yield batch

    def models(self, find_upstream: FindUpstream, settings: object) -> list[Model]:
        """Return the transformer: of the component that is nearest now, or of the linked one.

        settings: only a transformer of this package that has these, if they are known.
        """
        if not self.listeners:
            return [self.layer]
        nearest = find_upstream(self.layer)
        candidates = [model for model in (nearest, self.upstream) if model is not None]
        if settings is not None:
            transformers = [model for model in candidates if isinstance(model, SpanTransformer)]
            candidates = [model for model in transformers if model.folder is settings]
        return candidates[:1]

    def text_encoder(
        self, pooling: SentencePooling, settings: EncodeSettings, pipe: InPipe | None
    ) -> Any:
        if self.span_transformer is not None:
            return self.span_transformer.text_encoder(pooling, settings, pipe)
        if not self.reads_tokens or pipe is None:
            return None
        from .text_encoders import Tok2VecTextEncoder  # noqa: PLC0415 (not needed for Docs)

        upstream = pipe.find_upstream(self.layer) if self.listeners else None
        return Tok2VecTextEncoder(
            self.layer, pooling, settings, self, tokenizer=pipe.tokenizer, upstream=upstream
        )

    def read_spans(self, docs: list[Doc], spans: SpansByDoc) -> EncodedSpans:
        """Return given rows, and the states that a transformer of whole Docs has for them."""
        outputs, backprop = self.layer(docs, False)
        return read_pieces(docs, spans, outputs, backprop, with_pieces=False)


def read_pieces(
    docs: list[Doc],
    spans: SpansByDoc,
    pieces: list[Ragged],
    backprop: Callable[[list[Ragged]], object],
    *,
    with_pieces: bool,
) -> EncodedSpans:
    """Return the rows of Docs in wordpieces that were encoded in context, see read_tokens.

    pieces (list[Ragged]): the wordpieces of the tokens of each Doc, float (wordpieces, width).
    """
    xp = get_array_module(pieces[0].data)
    values = xp.concatenate([of_doc.dataXd for of_doc in pieces])

    def backprop_values(d_values: Array) -> object:
        borders = borders_of(len(of_doc.dataXd) for of_doc in pieces)[1:-1]
        d_docs = xp.split(d_values, borders)
        return backprop(
            [Ragged(d_doc, of_doc.lengths) for d_doc, of_doc in zip(d_docs, pieces, strict=True)]
        )

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
    summed = values.astype("f") if values.dtype == xp.float16 else values
    states, backprop_states = in_places(summed, places)
    batch.states = [TokenEmbeddings(windows, batch.lengths[windows], states)]
    batch.backprop = lambda d_states: backprop_values(backprop_states(d_states[0]))
    return batch
