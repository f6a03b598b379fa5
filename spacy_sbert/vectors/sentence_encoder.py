"""A sentence encoder with a transformer of its own."""

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy
from spacy.tokens import Doc, Span
from spacy_transformers.layers import split_trf_batch
from thinc.api import Model, chain
from thinc.types import Ragged

from ..encoder.align import among
from ..encoder.engine.batch import align_wordpieces, doc_characters, row_characters, row_text, span_places
from ..encoder.rows import Rows, outermost
from ..encoder.transformer import EncoderModel, load
from .encode_texts import AS_CONFIGURED, Call, EncodedTexts, encode_texts
from .encoded import EncodedDoc, WordpieceStates
from .errors import Errors
from .sentence_pooling import SentencePooling, pool_docs

SentenceEncoder = Model[list[Doc], list[EncodedDoc]]
Stretch = tuple[int, int]


def sentence_encoder(transformer: EncoderModel, pooling: SentencePooling) -> SentenceEncoder:
    """Encode the rows of Docs and pool them.

    A training batch is one batch, padded: its loss sees all of it at once. In use rows of any length are encoded in
    whatever batches are quick, without padding.
    """
    trained: SentenceEncoder = chain(transformer, split_trf_batch(), pooling)
    refs: dict[str, Model | None] = {"transformer": transformer, "pooling": pooling}
    return Model("sentence_encoder", forward, init=init, layers=[trained], refs=refs)


def init(model: SentenceEncoder, X: Any = None, Y: Any = None) -> None:
    model.layers[0].initialize()


def forward(model: SentenceEncoder, docs: list[Doc], is_train: bool) -> tuple[list[EncodedDoc], Callable]:
    if is_train:
        return model.layers[0](docs, is_train)
    return encode_docs(model, docs, AS_CONFIGURED), lambda d_vectors: []


def predict(model: SentenceEncoder, docs: list[Doc], call: Call) -> list[EncodedDoc]:
    """Encode the rows of Docs, as one call asks for.

    model (Model): with a transformer of its own, or one that listens to a shared one.
    RAISES (ValueError): for a prompt where the transformer is shared.
    """
    if model.has_ref("transformer"):
        return encode_docs(model, docs, call)
    if call.prompt is not None:
        raise ValueError(Errors.SHARED_PROMPT.format(prompt=call.prompt))
    source, pooling = model.layers[0], cast(SentencePooling, model.layers[1])
    datas = source.predict(docs)
    if not any("last_hidden_state" in data.model_output for data in datas):
        width = _shared_width(source, pooling, call.truncate_dim)
        return [pooling.without_rows(width) for _ in docs]
    return pool_docs(pooling, datas, False, truncate_dim=call.truncate_dim)[0]


def _shared_width(source: Model, pooling: SentencePooling, truncate_dim: int | None) -> int:
    """The width of vectors on a transformer that has encoded nothing yet; 0 where nobody knows that of its states."""
    for node in source.walk():
        encoder = getattr(node, "encoder", None) or node  # a listener knows whom it hears
        settings = load(encoder).settings if isinstance(encoder, EncoderModel) else None
        if encoder.has_dim("nO"):
            return pooling.width(encoder.get_dim("nO"), settings, truncate_dim=truncate_dim)
    return 0


def encode_docs(model: SentenceEncoder, docs: list[Doc], call: Call) -> list[EncodedDoc]:
    """Encode the rows of Docs with a transformer of its own; call (Call): what is not as the config says."""
    transformer = cast(EncoderModel, model.get_ref("transformer"))
    pooling = cast(SentencePooling, model.get_ref("pooling"))
    settings = load(transformer).settings
    width = pooling.width(transformer.get_dim("nO"), settings, truncate_dim=call.truncate_dim)
    spans = transformer.attrs["get_spans"](docs)
    flat = [span for doc_spans in spans for span in doc_spans]
    if not flat:
        return [pooling.without_rows(width) for _ in docs]
    texts, places = [row_text(span) for span in flat], span_places(flat)
    borders = [0, *accumulate(map(len, spans))]
    context = _read_in_context(places, borders) if pooling.attrs["token_vectors"] else None
    found = encode_texts(transformer, pooling, texts, call=call, keep_states=context)
    rows = replace(found.rows, spans=places, characters=row_characters(flat, texts))
    window_borders = numpy.searchsorted(rows.row_of, borders).tolist()
    wordpieces = _wordpieces(transformer, found, flat, texts, window_borders)
    encoded = []
    for row, window, own in zip(pairwise(borders), pairwise(window_borders), wordpieces, strict=True):
        if row[0] == row[1]:
            encoded.append(pooling.without_rows(width))
            continue
        vectors = found.vectors[slice(*row)]
        of_doc = _part(rows, row, window)
        dense = pooling.dense is not None
        encoded.append(EncodedDoc(of_doc, vectors, pooling.pooling_name, found.normalize, own, dense))
    return encoded


def _read_in_context(places: numpy.ndarray, borders: list[int]) -> numpy.ndarray:
    """bool (rows,): see outermost, for the rows of several Docs."""
    stretches = [places[start:end] for start, end in pairwise(borders) if end > start]
    return numpy.concatenate([outermost(own) for own in stretches])


def _part(rows: Rows, row: Stretch, window: Stretch) -> Rows:
    """Those of one Doc."""
    of_rows, of_windows = slice(*row), slice(*window)
    return Rows(
        rows.spans[of_rows],
        rows.row_of[of_windows] - row[0],
        rows.window_weights[of_windows],
        rows.has_text[of_rows],
        rows.n_cut[of_rows],
        rows.settings,
        cast(numpy.ndarray, rows.characters)[of_rows],
    )


def _wordpieces(
    transformer: EncoderModel, found: EncodedTexts, spans: list[Span], texts: list[str], window_borders: list[int]
) -> list[WordpieceStates | None]:
    """What the other Spans and the Tokens of each Doc need, if anybody asked for it."""
    stretches = list(pairwise(window_borders))
    if not found.states:
        return [None] * len(stretches)
    states = [_joined([own for own in found.states[start:end] if own is not None]) for start, end in stretches]
    pieces = found.wordpieces
    kept = numpy.array([own is not None for own in found.states])  # (windows,)
    characters = doc_characters(pieces, spans)
    if characters is None:
        aligns = _alignments(transformer, found, spans, texts, window_borders, kept)
        return [WordpieceStates(own, None, align) for own, align in zip(states, aligns, strict=True)]
    of_text = characters[~pieces.special & numpy.repeat(kept, pieces.lengths)]
    borders = numpy.append(0, numpy.cumsum(pieces.n_text * kept))[window_borders].tolist()
    parts = pairwise(borders)
    return [WordpieceStates(own, of_text[slice(*part)].copy(), None) for own, part in zip(states, parts, strict=True)]


def _joined(states: list[numpy.ndarray]) -> Any:
    return states[0] if len(states) == 1 else numpy.concatenate(states or [numpy.zeros((0, 0), dtype="float32")])


def _alignments(
    transformer: EncoderModel,
    found: EncodedTexts,
    spans: list[Span],
    texts: list[str],
    window_borders: list[int],
    kept: numpy.ndarray,
) -> list[Ragged]:
    """For a slow tokenizer: the alignment of each Doc to its wordpieces in the windows that were kept, special tokens
    among them."""
    numbers = {doc: number for number, doc in enumerate(dict.fromkeys(span.doc for span in spans))}
    doc_of = [numbers[span.doc] for span in spans]
    align = align_wordpieces(transformer.wordpiece_tokenizer, found.wordpieces, spans, doc_of, texts)
    align = among(align, numpy.repeat(kept, found.wordpieces.lengths))
    firsts = numpy.append(0, numpy.cumsum(found.wordpieces.lengths * kept))[window_borders].tolist()
    n_tokens = iter([len(doc) for doc in numbers])
    token_borders = [0, *accumulate(next(n_tokens) if end > start else 0 for start, end in pairwise(window_borders))]
    indices = numpy.append(0, numpy.cumsum(cast(Any, align.lengths)))[token_borders].tolist()
    return [
        Ragged(align.dataXd[slice(*index)] - first, align.lengths[slice(*token)])
        for token, index, first in zip(pairwise(token_borders), pairwise(indices), firsts, strict=False)
    ]
