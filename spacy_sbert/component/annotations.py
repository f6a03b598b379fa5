"""From what the encoder returned for a Doc to the record that is kept on it."""

from typing import Any, cast

import numpy
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc

from ..encoder.rows import Rows
from ..hooks.placed import Record
from ..similarity import as_numpy
from ..spans import trimmed
from ..vectors.cuts import was_cut
from ..vectors.encoded import EncodedDoc, WordpieceStates


def make_record(doc: Doc, encoded: EncodedDoc, *, set_hooks: bool) -> Record:
    """The record of a Doc: NumPy arrays and scalars, places in characters, see records.

    doc (Doc): the Doc that was encoded.
    encoded (EncodedDoc): its rows, on whatever device.
    set_hooks (bool): whether the pipe answers `doc.vector`.
    RETURNS (dict): rows int32 (rows, 2), vectors float32 (rows, width), has_text bool (rows,), width, pooling,
        normalize, set_hooks, truncated; with token vectors also states float32 (wordpieces, width), special tokens
        left out, and characters int32 (wordpieces, 2); with a dense layer dense, which is True.
    """
    rows = encoded.rows
    record: Record = {
        "rows": _row_characters(doc, rows),
        "vectors": as_numpy(encoded.vectors),
        "has_text": rows.has_text,
        "width": encoded.vectors.shape[1],
        "pooling": encoded.pooling,
        "normalize": encoded.normalize,
        "set_hooks": set_hooks,
        "truncated": bool(was_cut(doc, rows).any()),
    }
    if encoded.dense:
        record["dense"] = True
    if encoded.wordpieces is not None:
        states, characters = _states_and_characters(doc, encoded.wordpieces)
        record["states"], record["characters"] = states, characters
    return record


def _row_characters(doc: Doc, rows: Rows) -> numpy.ndarray:
    if rows.characters is not None:
        return rows.characters.astype("int32")
    spans = [doc[start:end] for start, end in rows.spans.tolist()]
    places = [trimmed(span.text, span.start_char) for span in spans]
    return numpy.array(places, dtype="int32").reshape(-1, 2)


def _states_and_characters(doc: Doc, wordpieces: WordpieceStates) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Of the wordpieces of text alone."""
    states = as_numpy(wordpieces.states)
    if wordpieces.characters is not None:
        return states, wordpieces.characters
    align = cast(Any, wordpieces.align)
    token_starts, token_lengths = doc.to_array([IDX, LENGTH]).astype("int32").T
    tokens, pieces = numpy.repeat(numpy.arange(len(align.lengths)), align.lengths), align.dataXd
    characters = numpy.zeros((len(states), 2), dtype="int32")
    characters[pieces[::-1], 0] = token_starts[tokens[::-1]]  # of several tokens the first
    characters[pieces, 1] = (token_starts + token_lengths)[tokens]  # and the last
    kept = numpy.unique(pieces)
    return states[kept], characters[kept]
