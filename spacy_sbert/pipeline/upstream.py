"""The component that a layer listens to: the nearest one before its pipe that fits."""

from __future__ import annotations

from typing import cast

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from thinc.api import Model

from ..models.encoder import STATES, listens_for
from ..models.private_attributes import ALL_LAYERS, is_a, is_curated, upstream_name
from ..models.transformer import is_transformer_tok2vec


def nearest_upstream(nlp: Language, name: str, listener: Model) -> TrainablePipe | None:
    """Return the last component before the pipe `name` that its listener may listen to.

    It may be disabled. None if there is none.
    """
    names = nlp.component_names
    if name in names:
        names = names[: names.index(name)]
    for pipe_name in reversed(names):
        pipe = nlp.get_pipe(pipe_name)
        if _accepts(listener, pipe) and upstream_name(listener) in ("*", pipe_name):
            return cast(TrainablePipe, pipe)
    return None


def _accepts(listener: Model, pipe: object) -> bool:
    """Return whether a component is of the kind that a listener listens to."""
    if isinstance(listener, Tok2VecListener):
        return isinstance(pipe, Tok2Vec)
    model = getattr(pipe, "model", None)
    if is_transformer_tok2vec(model):
        return hasattr(listener, "listens_for")
    is_stock_transformer = is_a(pipe, "Transformer") and listens_for(listener) == STATES
    return is_curated(model) or is_stock_transformer


def find_upstream(nlp: Language, name: str, listener: Model) -> TrainablePipe:
    """Return the component that a listener of the pipe `name` listens to.

    RAISES (ValueError): if there is none, or it does not fit.
    """
    pipe = nearest_upstream(nlp, name, listener)
    if pipe is None:
        raise ValueError(
            f"The 'sbert' pipe '{name}' listens to {_missing(listener)} stands before it; the "
            f"pipeline is {nlp.component_names}. Add one before it, correct upstream, or use an "
            "encoder of its own: spacy-sbert.SentenceEncoder.v1."
        )
    if listens_for(listener) != STATES:
        _check_tokens(name, listener, pipe)
    return pipe


def _missing(listener: Model) -> str:
    """Return which components a listener could listen to, for the message that none is there."""
    upstream = f'(upstream = "{upstream_name(listener)}")'
    kind = "tok2vec" if isinstance(listener, Tok2VecListener) else "curated_transformer"
    if listens_for(listener) == STATES:
        return f"a transformer {upstream}, and no 'sbert_transformer', 'transformer' or '{kind}'"
    return f"a '{kind}' component {upstream}, and none"


def _check_tokens(name: str, listener: Model, pipe: TrainablePipe) -> None:
    """Check that a component makes the vectors of tokens that a listener to it expects."""
    expected = listener.get_dim("nO")
    width = pipe.model.maybe_get_dim("nO")
    if width not in (None, expected):
        raise ValueError(
            f"The 'sbert' pipe '{name}' listens for vectors of {expected} numbers, and the "
            f"component '{pipe.name}' makes {width}: set width = {width} in its "
            f"[components.{name}.model.tok2vec]."
        )
    if listener.attrs.get(ALL_LAYERS) and not getattr(pipe, "all_layer_outputs", True):
        raise ValueError(
            f"The 'sbert' pipe '{name}' listens to all layers of the component '{pipe.name}', "
            "which gives the last one alone: set all_layer_outputs = true in "
            f"[components.{pipe.name}]."
        )
