"""Messages about model cards."""

from .. import errors


class Errors(errors.Errors):
    CARD_NO_ENCODER = (
        "Nothing to write a card about: none of the pipes makes sentence vectors (given: {given}). Expected a pipeline "
        "with an 'sbert' or 'sbert_meta' pipe."
    )
    CARD_NO_PIPE = "The pipe '{name}' makes no sentence vectors: expected one of {given}."
