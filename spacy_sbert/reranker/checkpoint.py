"""Where the training of a reranker goes on from: that of another pipeline, trained before on another objective."""

from pathlib import Path

from spacy.util import load_model

from .cross_encoder import CrossEncoder
from .errors import Errors


def state_of(checkpoint: str | Path, name: str) -> bytes:
    """The network of a trained reranker, its head and its tokenizer.

    checkpoint (str or Path): the folder or the name of a pipeline. name (str): of the pipe in it.
    RETURNS (bytes): see ClassifierShim.from_bytes.
    RAISES (OSError): if there is no such pipeline. (ValueError): if it has no cross-encoder under the name.
    """
    nlp = load_model(checkpoint)
    model = getattr(nlp.get_pipe(name), "model", None) if nlp.has_pipe(name) else None
    if not isinstance(model, CrossEncoder):
        pipes = ", ".join(nlp.pipe_names) or "none"
        raise ValueError(Errors.RERANKER_NO_CHECKPOINT.format(name=name, given=checkpoint, pipes=pipes))
    return model.shim.to_bytes()
