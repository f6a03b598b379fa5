"""From what the encoder returned for a Doc to the record that is kept on it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from spacy.tokens import Doc
from thinc.util import get_array_module, is_cupy_array, to_numpy

from ..encoder.rows import borders_of, row_characters
from ..hooks.doc_vectors import Record
from ..vectors.cuts import n_rows_cut
from ..vectors.encoded import EncodedDoc


def on_cpu(scores: Sequence[EncodedDoc]) -> Sequence[EncodedDoc]:
    """What the encoder returned for a batch of Docs, with vectors in NumPy's arrays: those of a GPU come at once."""
    given: list[Any] = [encoded.vectors for encoded in scores]
    if not any(map(is_cupy_array, given)):
        return scores
    vectors, borders = to_numpy(get_array_module(given[0]).concatenate(given)), borders_of(map(len, given))
    parts = zip(scores, pairwise(borders), strict=True)
    return [replace(encoded, vectors=vectors[start:end]) for encoded, (start, end) in parts]


def make_record(doc: Doc, encoded: EncodedDoc, *, set_hooks: bool, fingerprint: str = "") -> Record:
    """The record of a Doc: NumPy arrays and scalars, places in characters, see doc_vectors.

    doc (Doc): the Doc that was encoded.
    encoded (EncodedDoc): its rows, on whatever device.
    set_hooks (bool): whether the pipe answers `doc.vector`.
    fingerprint (str): of the encoder; "" if it is not known.
    RETURNS (dict): rows int32 (rows, 2), vectors float32 (rows, width), has_text bool (rows,), width, pooling,
        normalize, set_hooks, truncated; text, if it is known; with token vectors also states float32 (wordpieces,
        width), special tokens left out, and characters int32 (wordpieces, 2); with a dense layer dense, which is True;
        fingerprint, if it is known and there are rows.
    """
    rows, places = encoded.rows, encoded.rows.characters
    if places is None:  # of a model that was asked without the pipe
        places = row_characters(spans := [doc[slice(*span)] for span in rows.spans], [span.text for span in spans])
    record: Record = {
        "rows": places.astype("int32"),
        "vectors": to_numpy(encoded.vectors),
        "has_text": rows.has_text,
        "width": encoded.vectors.shape[1],
        "pooling": encoded.pooling,
        "normalize": encoded.normalize,
        "set_hooks": set_hooks,
        "truncated": n_rows_cut(doc, rows) > 0,
    }
    if encoded.text is not None and rows.spans[0].tolist() == [0, len(doc)]:
        record["text"] = encoded.text  # a Doc puts it together anew each time
    if fingerprint and len(rows.spans):
        record["fingerprint"] = fingerprint
    if encoded.dense:
        record["dense"] = True
    if encoded.wordpieces is not None:
        record["states"], record["characters"] = encoded.wordpieces.states, encoded.wordpieces.characters
    return record
