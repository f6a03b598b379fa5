"""From texts to vectors, without Docs: the bulk of the work of a pipe, and all of `encode`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy
from thinc.api import torch2xp
from thinc.types import Floats2d, Ragged

from ..encoder.rows import Rows
from ..encoder.runner import run
from ..encoder.transformer import EncoderModel, load
from ..encoder.wordpieces import Wordpieces
from .sentence_pooling import SentencePooling, vectors_of_windows


@dataclass
class EncodedTexts:
    """Texts that were encoded.

    windows: float32 (windows, width), the pooled vector of each, on the model's device.
    wordpieces: of the texts.
    states: float32 (wordpieces of the window, width) for each window; None unless asked for.
    """

    windows: Floats2d
    wordpieces: Wordpieces
    states: list[Floats2d] | None


def encode_windows(
    transformer: EncoderModel, pooling: SentencePooling, texts: Sequence[str], *, budget: int, keep_states: bool
) -> EncodedTexts:
    """Tokenise and encode texts, and pool their windows.

    transformer (EncoderModel): the encoder.
    pooling (Model): see sentence_pooling.
    texts: n strings, not none.
    budget (int): wordpieces in a forward pass, see run.
    keep_states (bool): whether to return the states of wordpieces, and what characters they cover.
    """
    shim = load(transformer)
    wordpieces = transformer.wordpiece_tokenizer(texts, offsets=keep_states)
    windows: Any = pooling.ops.alloc2f(len(wordpieces.lengths), transformer.get_dim("nO"))
    states: list[Any] = [None] * len(windows)
    for part in run(shim.inference_encoder(), wordpieces, budget=budget):
        of_part = cast(Floats2d, torch2xp(part.states))
        lengths = pooling.ops.asarray1i(cast(Any, part.lengths))
        windows[part.windows] = pooling.layers[0].predict(Ragged(of_part, lengths))
        if keep_states:
            borders = numpy.cumsum(part.lengths)
            for window, end, length in zip(part.windows.tolist(), borders.tolist(), part.lengths.tolist(), strict=True):
                states[window] = of_part[end - length : end]
    return EncodedTexts(windows, wordpieces, states if keep_states else None)


def encode_texts(
    transformer: EncoderModel, pooling: SentencePooling, texts: Sequence[str], *, normalize: bool, budget: int
) -> tuple[Floats2d, numpy.ndarray]:
    """The vector of each text, the same that a Doc of it gets.

    RETURNS (float32 (n, width), int64 (n,)): on the model's device; and the wordpieces of each that were cut off.
    """
    encoded = encode_windows(transformer, pooling, texts, budget=budget, keep_states=False)
    rows = rows_of_texts(encoded.wordpieces, numpy.zeros((len(texts), 2), dtype="int64"), transformer)
    (vectors,), _ = vectors_of_windows(pooling, encoded.windows, [rows], normalize=normalize, is_train=False)
    return vectors, rows.n_cut


def rows_of_texts(wordpieces: Wordpieces, spans: numpy.ndarray, transformer: EncoderModel) -> Rows:
    """Texts as rows: start and end token of each are spans, int64 (n, 2)."""
    n_text, text_of = wordpieces.n_text, wordpieces.text_of
    has_text = numpy.bincount(text_of, weights=n_text) > 0
    n_cut = numpy.bincount(text_of, weights=wordpieces.n_cut).astype("int64")
    return Rows(spans, text_of, n_text, has_text, n_cut, transformer.shim.settings)
