"""From texts to vectors, without Docs: the bulk of the work of a pipe, and all of `encode`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy
from thinc.api import torch2xp
from thinc.types import Floats2d, Ragged

from ..encoder.engine.runner import Part, run
from ..encoder.engine.windows import spread
from ..encoder.rows import Rows
from ..encoder.transformer import EncoderModel, load
from ..encoder.wordpieces import Wordpieces
from ..layers.leading import without_leading
from .sentence_pooling import SentencePooling, vectors_of_windows


@dataclass(frozen=True)
class Call:
    """What one call asks for in place of what the config says.

    prompt: what is put before each text, "" for nothing; None for the config's.
    truncate_dim: how many dimensions of the vectors are kept; None for the config's.
    """

    prompt: str | None = None
    truncate_dim: int | None = None


AS_CONFIGURED = Call()


@dataclass
class EncodedTexts:
    """Texts that were encoded.

    vectors: float32 (texts, width), on the model's device.
    normalize: whether they have unit length.
    rows: the texts as rows, without spans.
    wordpieces: of the texts.
    states: float32 (wordpieces, width) for each window, NumPy arrays of their own, without special tokens where the
        tokenizer is fast; None for windows of which nobody asked for them, and empty if of none.
    """

    vectors: Floats2d
    normalize: bool
    rows: Rows
    wordpieces: Wordpieces
    states: list[numpy.ndarray | None]


def encode_texts(
    transformer: EncoderModel,
    pooling: SentencePooling,
    texts: Sequence[str],
    *,
    call: Call = AS_CONFIGURED,
    keep_states: numpy.ndarray | None = None,
) -> EncodedTexts:
    """The vector of each text: tokenise, encode, pool its windows, average and finish these.

    transformer (EncoderModel): the encoder.
    pooling (SentencePooling): the pooling.
    texts: n strings, not none.
    call (Call): what is not as the config says.
    keep_states (bool (n,)): of which texts to return the states of wordpieces, too, and what characters they cover;
        None for none.
    """
    load(transformer)
    offsets, prompt = keep_states is not None, transformer.prompt(call.prompt)
    wordpieces = transformer.wordpiece_tokenizer(texts, offsets=offsets, prompt=prompt)
    return encode_wordpieces(transformer, pooling, wordpieces, call=call, keep_states=keep_states)


def encode_wordpieces(
    transformer: EncoderModel,
    pooling: SentencePooling,
    wordpieces: Wordpieces,
    *,
    call: Call = AS_CONFIGURED,
    keep_states: numpy.ndarray | None = None,
) -> EncodedTexts:
    """The same of texts that are tokenised already."""
    shim = load(transformer)
    windows: Any = pooling.ops.alloc2f(len(wordpieces.lengths), pooling.pooled_width(transformer.get_dim("nO")))
    kept = None if keep_states is None else keep_states[wordpieces.text_of]  # (windows,)
    states: list[numpy.ndarray | None] = [] if kept is None else [None] * len(kept)
    with shim.encoding() as encoder:
        for part in run(encoder, wordpieces, budget=transformer.max_batch_items):
            of_part = cast(Floats2d, torch2xp(part.states))
            pooled, lengths, _ = without_leading(of_part, part.lengths, wordpieces.n_lead)
            ragged = Ragged(pooled, pooling.ops.asarray1i(cast(Any, lengths)))
            windows[part.windows] = pooling.layers[0].predict(ragged)
            if kept is not None:
                _keep(states, wordpieces, part, kept)
        rows = _rows_of(wordpieces, transformer)
        normalize = pooling.normalizes(shim.settings)
        finishing = pooling.finishing(shim.settings, normalize, call.truncate_dim)
        (vectors,), _ = vectors_of_windows(pooling, windows, [rows], finishing, is_train=False)
    return EncodedTexts(vectors, normalize, rows, wordpieces, states)


def _keep(states: list[numpy.ndarray | None], wordpieces: Wordpieces, part: Part, wanted: numpy.ndarray) -> None:
    """Copy the states of each window that is wanted, so that none keeps those of its whole batch in memory."""
    found = part.states.cpu().numpy()
    kept = numpy.ones(len(found), dtype=bool)
    if wordpieces.offsets is not None:
        kept = ~wordpieces.special[spread(wordpieces.starts[part.windows], part.lengths)]
    ends = numpy.cumsum(part.lengths)
    for window, start, end in zip(part.windows.tolist(), (ends - part.lengths).tolist(), ends.tolist(), strict=True):
        if wanted[window]:
            states[window] = found[start:end][kept[start:end]]


def _rows_of(wordpieces: Wordpieces, transformer: EncoderModel) -> Rows:
    n_text, text_of = wordpieces.n_text, wordpieces.text_of
    has_text = numpy.bincount(text_of, weights=n_text) > 0
    n_cut = numpy.bincount(text_of, weights=wordpieces.n_cut).astype("int64")
    no_spans = numpy.zeros((len(has_text), 2), dtype="int64")
    return Rows(no_spans, text_of, n_text, has_text, n_cut, transformer.shim.settings)
