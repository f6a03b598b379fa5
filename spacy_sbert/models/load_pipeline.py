"""Pipelines that are loaded by their names, and those whose vectors are learned from."""

from functools import lru_cache
from pathlib import Path

import numpy
import spacy
from spacy.language import Language
from spacy.util import get_installed_models
from thinc.util import to_numpy

from ..errors import Errors, missing_packages
from ..validation import short_repr
from .resolve import find_local, suggestion


def load_pipeline(
    pipeline: str | Path, name: str | None = None, *, factory: str = "sbert"
) -> Language:
    """Load a folder or an installed package, or make a blank pipeline with an encoder.

    pipeline (str or Path): a folder or an installed package; or the name or folder of an encoder on
        this machine.
    name, factory (str): of the pipe of a blank pipeline.
    RAISES (OSError): if there is neither such a pipeline nor such an encoder. (TypeError): if it is
        neither a name nor a folder.
    """
    if not isinstance(pipeline, str | Path):
        raise TypeError(
            f"Cannot load {short_repr(pipeline)}: expected the name of an encoder or package, or "
            "the folder of a pipeline. Of a pipeline that is loaded, find_sbert(nlp) is the pipe; "
            "or save it: nlp.to_disk(folder)."
        )
    pipeline = str(pipeline)
    try:
        with missing_packages():
            return spacy.load(pipeline)
    except OSError as error:
        if not _is_encoder(pipeline):
            near = suggestion(pipeline, get_installed_models())
            raise OSError(
                Errors.BULK_NO_PIPELINE.format(given=pipeline, near=near, reason=error)
            ) from error
    return blank_pipeline(name, pipeline, factory)


def blank_pipeline(
    name: str | None, encoder: str | None = None, factory: str = "sbert"
) -> Language:
    """Return a blank pipeline with a pipe, with the default encoder if none is named."""
    nlp = spacy.blank("en")
    config = {}
    if encoder is not None:
        config["model"] = {"name": encoder}
    nlp.add_pipe(factory, name=name or factory, config=config)
    return nlp


def _is_encoder(name: str) -> bool:
    """Return whether there is an encoder of this name, or in this folder, on this machine."""
    try:
        return find_local(name) is not None
    except OSError:
        # A folder of something else
        return False


class Teacher:
    """A pipeline whose vectors are learned from, loaded with the first text.

    name (str or Path): see load_pipeline. batch_size (int): how many texts it gets at once.
    vectors (Callable): takes texts, tuple[str, ...], and returns their vectors, float32 (n, width);
        those of the last call are kept, as losses of several widths ask for them again. Raises
        ValueError if a text has none, and what load_pipeline does.
    """

    def __init__(self, name: str | Path, batch_size: int = 128):
        self.name = name
        self.batch_size = batch_size
        self.vectors = lru_cache(maxsize=1)(self._encode)
        self._nlp: Language | None = None

    def __reduce__(self) -> tuple[type, tuple]:
        # Copies in other processes load it themselves
        return type(self), (self.name, self.batch_size)

    def _encode(self, texts: tuple[str, ...]) -> numpy.ndarray:
        if self._nlp is None:
            self._nlp = load_pipeline(self.name)
        rows = []
        for doc in self._nlp.pipe(texts, batch_size=self.batch_size):
            vector = numpy.zeros(0)
            if doc.has_vector:
                vector = to_numpy(doc.vector)
            if not vector.any() or not numpy.isfinite(vector).all():
                raise ValueError(
                    f"The pipeline '{self.name}' has no vector for '{doc.text[:50]}' (none, "
                    "zero, or not finite). Use a pipeline whose doc.vector is set, such as one "
                    "with an 'sbert' pipe, or remove the text."
                )
            rows.append(vector)
        return numpy.array(rows, dtype="float32")
