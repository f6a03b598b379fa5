"""The one way from Docs to vectors, in use and in training: rows, wordpieces, states, pooling."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, cast

import numpy
from spacy.tokens import Doc, Span
from spacy_transformers.layers import split_trf_batch
from thinc.api import Model, chain
from thinc.types import Ragged

from ..encoder.align import align_wordpieces
from ..encoder.heard import row_states
from ..encoder.rows import (
    Pieces,
    RowStates,
    borders_of,
    doc_characters,
    row_characters,
    row_text,
    rows_of_texts,
    span_places,
)
from ..encoder.transformer import RowTransformer, load
from ..encoder.wordpieces import Wordpieces
from ..similarity import as_numpy
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
    if model.has_ref("transformer"):
        return _encode(model, docs, False, call)[0]
    if call.prompt is not None:
        raise ValueError(Errors.SHARED_PROMPT.format(prompt=call.prompt))
    source, pooling = model.layers[0], cast(SentencePooling, model.layers[1])
    batch = row_states(source.predict(docs))
    width = 0 if batch else _shared_width(source, pooling, call.truncate_dim)
    return encode_docs(pooling, batch, len(docs), False, call=call, width=width)[0]


def _encode(model: SentenceEncoder, docs: list[Doc], is_train: bool, call: Call) -> tuple[list[EncodedDoc], Backprop]:
    transformer = cast(RowTransformer, model.get_ref("transformer"))
    pooling = cast(SentencePooling, model.get_ref("pooling"))
    settings = load(transformer).settings
    width = pooling.width(transformer.get_dim("nO"), settings, truncate_dim=call.truncate_dim)
    with _row_states(transformer, transformer.attrs["get_spans"](docs), is_train, call) as batch:
        return encode_docs(pooling, batch, len(docs), is_train, call=call, width=width)


@contextmanager
def _row_states(
    transformer: RowTransformer, spans: list[list[Span]], is_train: bool, call: Call
) -> Iterator[RowStates | None]:
    """The rows of Docs, and their states from a transformer of its own; None if there is no row."""
    flat = [span for doc_spans in spans for span in doc_spans]
    if not flat:
        yield None
        return
    texts, row_borders = [row_text(span) for span in flat], borders_of(map(len, spans))
    with_tokens = call.token_vectors and not is_train
    wordpieces = transformer.wordpiece_tokenizer(texts, offsets=with_tokens, prompt=transformer.prompt(call.prompt))
    rows = replace(
        rows_of_texts(wordpieces, transformer.shim.load()),
        spans=span_places(flat),
        characters=row_characters(flat, texts),
    )
    window_borders = numpy.searchsorted(rows.row_of, row_borders).tolist()
    pieces = _pieces(transformer, wordpieces, flat, texts, window_borders) if with_tokens else None
    with transformer.states(wordpieces, is_train) as (states, backprop):
        yield RowStates(
            rows=rows,
            row_borders=row_borders,
            window_borders=window_borders,
            lengths=wordpieces.lengths,
            states=states,
            backprop=backprop,
            pieces=pieces,
            n_lead=wordpieces.n_lead,
        )


def _pieces(
    transformer: RowTransformer, wordpieces: Wordpieces, spans: list[Span], texts: list[str], window_borders: list[int]
) -> Pieces:
    """What is known of the wordpieces; of a slow tokenizer's only which tokens they are of."""
    characters = doc_characters(wordpieces, spans)
    if characters is not None:
        return Pieces(~wordpieces.special, characters, lambda: [None] * len(spans))
    nowhere = numpy.zeros((len(wordpieces.ids), 2), dtype="int32")
    aligns = partial(_aligns, transformer, wordpieces, spans, texts, window_borders)
    return Pieces(numpy.ones_like(wordpieces.special), nowhere, aligns)


def _aligns(
    transformer: RowTransformer, wordpieces: Wordpieces, spans: list[Span], texts: list[str], window_borders: list[int]
) -> list[Ragged]:
    """For a slow tokenizer: the alignment of each Doc to its wordpieces."""
    numbers = {doc: number for number, doc in enumerate(dict.fromkeys(span.doc for span in spans))}
    doc_of = [numbers[span.doc] for span in spans]
    align = align_wordpieces(transformer.wordpiece_tokenizer, wordpieces, spans, doc_of, texts)
    firsts = numpy.append(0, numpy.cumsum(wordpieces.lengths))[window_borders].tolist()
    firsts = [first for first, end in pairwise(firsts) if first < end]
    tokens = borders_of(map(len, numbers))
    indices = numpy.append(0, numpy.cumsum(as_numpy(align.lengths)))[tokens].tolist()
    return [
        Ragged(align.dataXd[slice(*index)] - first, align.lengths[slice(*token)])
        for token, index, first in zip(pairwise(tokens), pairwise(indices), firsts, strict=True)
    ]


def _shared_width(source: Model, pooling: SentencePooling, truncate_dim: int | None) -> int:
    """The width of vectors on a transformer that has encoded nothing yet; 0 where nobody knows that of its states."""
    for node in source.walk():
        encoder = getattr(node, "transformer", None) or node  # a listener knows whom it hears
        settings = load(encoder).settings if isinstance(encoder, RowTransformer) else None
        if encoder.has_dim("nO"):
            return pooling.width(encoder.get_dim("nO"), settings, truncate_dim=truncate_dim)
    return 0
