"""Whether sentence boundaries are set too late for a pipe whose rows are sentences."""

from collections.abc import Iterable

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model

from ..encoder.transformer import RowTransformer
from ..spans import members
from ..spans.sentence_spans import wants_sentences
from .errors import Warnings
from .upstream import find_listeners, getters_of

BOUNDARIES = {"doc.sents", "token.is_sent_start"}  # what components say that they assign


def late_sentences(nlp: Language, name: str, model: Model, docs: Iterable[Doc], spans_key: str) -> str | None:
    """What to say where a component behind the encoder of a pipe sets the sentence boundaries of Docs, and none before.

    docs (Iterable[Doc]): that the pipe was given. spans_key (str): of examples, whose members are their rows.
    RETURNS (str): the warning; None if boundaries are there in time, nobody sets any, or no row is to be a sentence.
    """
    pipes = nlp.pipeline  # without those that are disabled
    setters = [i for i, (given, _) in enumerate(pipes) if BOUNDARIES.intersection(nlp.get_pipe_meta(given).assigns)]
    own = next((i for i, (given, _) in enumerate(pipes) if given == name), len(pipes))
    heard = [listener.transformer for listener in find_listeners(model)]
    shared = [node for node in heard if isinstance(node, RowTransformer)]  # others encode whole Docs
    reader = next((i for i, (_, pipe) in enumerate(pipes) if getattr(pipe, "model", None) in shared), own)
    if not setters or setters[0] < reader or own == len(pipes) or not any(map(wants_sentences, getters_of(model))):
        return None
    is_between = setters[0] < own  # so that boundaries that are there by now were not there for the encoder
    for doc in docs:
        has_boundaries = doc.has_annotation("SENT_START") and not is_between
        if len(doc) > 1 and not has_boundaries and not members(doc, spans_key):
            encoder, setter = pipes[reader][0], pipes[setters[0]][0]
            return Warnings.LATE_SENTENCES.format(name=name, encoder=encoder, setter=setter)
    return None
