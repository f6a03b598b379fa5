"""What a reranker notes of a pair, beside its members: the way that gold values travel, too."""

from collections.abc import Sequence
from functools import partial

import numpy
from spacy.tokens import Doc

from ..training.members import predicted_label, predicted_score


def note(doc: Doc, name: str, spans_key: str, scores: numpy.ndarray, labels: Sequence[str]) -> None:
    """Note the scores of a pair in doc.spans[spans_key].attrs, for the pipe "sbert_reranker" as
    "sbert_reranker_score", and the label of the highest of several as "sbert_reranker_label".

    scores (float32 (outputs,)): a single one is noted as a float, several as a list. labels: of the outputs.
    """
    attrs = doc.spans[spans_key].attrs
    attrs[predicted_score(name)] = float(scores[0]) if len(scores) == 1 else scores.tolist()
    if labels:
        attrs[predicted_label(name)] = labels[int(scores.argmax())]


def install_extension(name: str) -> None:
    """Register `doc._.sbert_reranker_score`, which reads what was noted; None on a Doc that is not a pair."""
    attribute = predicted_score(name)
    if not Doc.has_extension(attribute):
        Doc.set_extension(attribute, getter=partial(_noted, attribute))


def _noted(attribute: str, doc: Doc) -> float | list[float] | None:
    return next((group.attrs[attribute] for group in doc.spans.values() if attribute in group.attrs), None)
