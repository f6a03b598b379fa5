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
    """What to say where a component behind the encoder of a pipe sets the sentence boundaries of Docs, and none before,
    or those before it that would are disabled.

    docs (Iterable[Doc]): that the pipe was given. spans_key (str): of examples, whose members are their rows.
    RETURNS (str): the warning; None if boundaries are there in time, nobody sets any, or no row is to be a sentence.
    """
    pipes = nlp.pipeline  # without those that are disabled
    names = [given for given, _ in pipes]
    heard = [listener.transformer for listener in find_listeners(model)]
    shared = [node for node in heard if isinstance(node, RowTransformer)]  # others encode whole Docs
    encoder = next((given for given, pipe in pipes if getattr(pipe, "model", None) in shared), name)
    if name not in names or not any(map(wants_sentences, getters_of(model))):
        return None
    setters = [given for given in nlp.component_names if BOUNDARIES & set(nlp.get_pipe_meta(given).assigns)]
    in_time = nlp.component_names[: nlp.component_names.index(encoder)]
    if not setters or any(given in names for given in setters if given in in_time):
        return None
    late = [given for given in setters if given in names]
    disabled = [given for given in setters if given in in_time]
    if not late and not disabled:  # but one that is disabled, and would be late
        return None
    is_between = bool(late) and names.index(late[0]) < names.index(name)  # boundaries were not there for the encoder
    for doc in docs:
        has_boundaries = doc.has_annotation("SENT_START") and not is_between
        if len(doc) > 1 and not has_boundaries and not members(doc, spans_key):
            said, setter = (Warnings.LATE_SENTENCES, late[0]) if late else (Warnings.NO_SENTENCES, disabled[0])
            return said.format(name=name, encoder=encoder, setter=setter)
    return None
