"""A sentence encoder with a transformer of its own."""

from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy
from spacy.tokens import Doc, Span
from spacy_transformers.layers import split_trf_batch
from thinc.api import Model, chain
from thinc.types import Ragged
from thinc.util import get_array_module

from ..encoder.batch import align_wordpieces
from ..encoder.rows import Rows
from ..encoder.transformer import EncoderModel, load
from .encode_texts import EncodedTexts, encode_windows, rows_of_texts
from .encoded import EncodedDoc, WordpieceStates
from .sentence_pooling import SentencePooling, follow_folder, vectors_of_windows, without_rows

SentenceEncoder = Model[list[Doc], list[EncodedDoc]]


def sentence_encoder(
    transformer: EncoderModel, pooling: SentencePooling, *, pooling_name: str, normalize: bool | None, budget: int
) -> SentenceEncoder:
    """Encode the rows of Docs and pool them.

    A training batch is one batch, padded: its loss sees all of it at once. In use rows of any length are encoded in
    whatever batches are quick, and never padded.

    transformer (EncoderModel): the encoder.
    pooling (Model), pooling_name, normalize: see sentence_pooling.
    budget (int): the most wordpieces in a forward pass in use, see run.
    """
    # No attr for settings: those are saved, and would win over the config when loaded.
    run = partial(forward, pooling_name=pooling_name, normalize=normalize, budget=budget)
    trained: SentenceEncoder = chain(transformer, split_trf_batch(), pooling)
    model: SentenceEncoder = Model("sentence_encoder", run, init=init, layers=[trained])
    model.set_ref("transformer", transformer)
    model.set_ref("pooling", pooling)
    return model


def init(model: SentenceEncoder, X: Any = None, Y: Any = None) -> None:
    model.layers[0].initialize()


def forward(
    model: SentenceEncoder,
    docs: list[Doc],
    is_train: bool,
    *,
    pooling_name: str,
    normalize: bool | None,
    budget: int,
) -> tuple[list[EncodedDoc], Callable]:
    if is_train:
        return model.layers[0](docs, is_train)
    transformer, pooling = cast(EncoderModel, model.get_ref("transformer")), model.get_ref("pooling")
    load(transformer)
    pooling.attrs["width"] = transformer.get_dim("nO")
    spans = transformer.attrs["get_spans"](docs)
    flat = [span for doc_spans in spans for span in doc_spans]
    encoded = [without_rows(pooling, pooling_name) for _ in docs]
    if not flat:
        return encoded, lambda d_vectors: []
    texts = [span.text for span in flat]
    found = encode_windows(transformer, pooling, texts, budget=budget, keep_states=pooling.attrs["token_vectors"])
    unit = follow_folder(pooling, transformer.shim.settings) if normalize is None else normalize
    rows = rows_of_texts(found.wordpieces, numpy.array([(span.start, span.end) for span in flat]), transformer)
    (vectors,), _ = vectors_of_windows(pooling, found.windows, [rows], normalize=unit, is_train=False)
    held = [i for i, doc_spans in enumerate(spans) if doc_spans]
    row_borders = [0, *accumulate(len(spans[i]) for i in held)]
    window_borders = numpy.searchsorted(rows.row_of, row_borders).tolist()
    wordpieces = _wordpieces_of_docs(transformer, found, flat, texts, window_borders)
    for i, row, window, own in zip(held, pairwise(row_borders), pairwise(window_borders), wordpieces, strict=True):
        encoded[i] = EncodedDoc(_part(rows, row, window), vectors[slice(*row)], pooling_name, unit, own)
    return encoded, lambda d_vectors: []


def _part(rows: Rows, row: tuple[int, int], window: tuple[int, int]) -> Rows:
    """Those of one Doc."""
    of_rows, of_windows = slice(*row), slice(*window)
    return Rows(
        rows.spans[of_rows],
        rows.row_of[of_windows] - row[0],
        rows.window_weights[of_windows],
        rows.has_text[of_rows],
        rows.n_cut[of_rows],
        rows.settings,
    )


def _wordpieces_of_docs(
    transformer: EncoderModel, found: EncodedTexts, spans: list[Span], texts: list[str], window_borders: list[int]
) -> list[WordpieceStates | None]:
    """What the Spans and Tokens of each Doc need, if anybody asked for it."""
    if found.states is None:
        return [None] * (len(window_borders) - 1)
    wordpieces, offsets = found.wordpieces, found.wordpieces.offsets
    piece_borders = numpy.cumsum([0, *wordpieces.lengths])[window_borders].tolist()
    aligns = (
        [None] * (len(window_borders) - 1)
        if offsets is not None
        else _alignments(transformer, found, spans, texts, piece_borders)
    )
    kept: list[WordpieceStates | None] = []
    for window, piece, align in zip(pairwise(window_borders), pairwise(piece_borders), aligns, strict=True):
        own = found.states[slice(*window)]
        states = own[0] if len(own) == 1 else get_array_module(own[0]).concatenate(own)
        own_offsets = None if offsets is None else offsets[slice(*piece)]
        kept.append(WordpieceStates(states, wordpieces.lengths[slice(*window)], own_offsets, align))
    return kept


def _alignments(
    transformer: EncoderModel, found: EncodedTexts, spans: list[Span], texts: list[str], piece_borders: list[int]
) -> list[Ragged]:
    """For a slow tokenizer: the alignment of each Doc that has rows."""
    align = align_wordpieces(transformer.wordpiece_tokenizer, found.wordpieces, spans, texts)
    n_tokens = [len(doc) for doc in dict.fromkeys(span.doc for span in spans)]
    token_borders = numpy.cumsum([0, *n_tokens])
    index_borders = numpy.cumsum([0, *align.lengths])[token_borders]
    return [
        Ragged(align.dataXd[slice(*index)] - first, align.lengths[slice(*token)])
        for token, index, first in zip(pairwise(token_borders), pairwise(index_borders), piece_borders, strict=False)
    ]
