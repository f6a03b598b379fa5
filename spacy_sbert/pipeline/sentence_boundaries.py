"""The warning about boundaries of sentences that an encoder of sentences does not see."""

from __future__ import annotations

from collections.abc import Iterable

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import Warnings
from ..models.spans import members
from ..models.transformer import SpanTransformer
from .sentence_model import SentenceModel

# What the components that set boundaries declare to assign
_BOUNDARIES = {"doc.sents", "token.is_sent_start"}


def boundaries_warning(
    model: SentenceModel, nlp: Language, name: str, docs: Iterable[Doc], spans_key: str
) -> str | None:
    """Return a warning if boundaries of sentences are set too late, or by a disabled pipe.

    model (SentenceModel): of the pipe `name`, which has encoded the Docs.
    RETURNS (str): None if the pipe encodes no sentences, or each Doc had its boundaries in time.
    """
    order = nlp.component_names
    setters = [
        pipe for pipe in order if not _BOUNDARIES.isdisjoint(nlp.get_pipe_meta(pipe).assigns)
    ]
    # The cheapest first: this is asked at each text
    if not setters or name not in nlp.pipe_names or not model.encodes_sentences:
        return None
    encoder = _encoding_component(model, nlp, name)
    before_encoder = order[: order.index(encoder)]
    in_time = [pipe for pipe in setters if pipe in before_encoder]
    enabled = [pipe for pipe in setters if pipe in nlp.pipe_names]
    if set(in_time) & set(enabled):
        return None
    if enabled:
        setter = enabled[0]
        message = Warnings.LATE_SENTENCES
        # Between the encoder and this pipe: what a Doc has now, it did not have when it was encoded
        runs_between = order.index(setter) < order.index(name)
    elif in_time:
        setter = in_time[0]
        message = Warnings.NO_SENTENCES
        runs_between = False
    else:
        return None
    if not _is_any_whole(docs, spans_key, ignore_boundaries=runs_between):
        return None
    return message.format(name=name, encoder=encoder, setter=setter)


def _is_any_whole(docs: Iterable[Doc], spans_key: str, *, ignore_boundaries: bool) -> bool:
    """Return whether a Doc was encoded as a whole, for lack of boundaries.

    Members of a pair are encoded as they are.
    """
    for doc in docs:
        has_boundaries = doc.has_annotation("SENT_START") and not ignore_boundaries
        if len(doc) > 1 and not has_boundaries and not members(doc, spans_key):
            return True
    return False


def _encoding_component(model: SentenceModel, nlp: Language, name: str) -> str:
    """Return the enabled component that encodes for a pipe: itself, or its upstream."""
    upstream = [
        listener.upstream
        for listener in model.sentence_listeners
        if isinstance(listener.transformer, SpanTransformer)
    ]
    for pipe_name, pipe in nlp.pipeline:
        if getattr(pipe, "model", None) in upstream:
            return pipe_name
    return name
