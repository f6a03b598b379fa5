"""Encoders under evaluation."""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy
from spacy.language import Language
from thinc.util import to_numpy

from ..errors import Errors
from ..models.digests import pipeline_digest


class HasName:
    """Something with a name, which stands for it where it is shown."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class Source(Protocol):
    """Something that gives vectors for texts: a pipeline, or a baseline.

    name: in results. digest: of everything its vectors depend on, but the corpus. learns: whether they also depend on a
        corpus, such as the idf of its words. nlp: the pipeline, where it is one.
    """

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def learns(self) -> bool: ...

    @property
    def nlp(self) -> Language | None: ...

    def encode(self, texts: Sequence[str], fit_on: Sequence[str]) -> numpy.ndarray:
        """texts (n strings, one or more); fit_on: the corpus. RETURNS (float32 (n, width))."""


@runtime_checkable
class OfPipeline(Protocol):
    """A source whose vectors are those that a pipeline gives its Docs."""

    pipeline: Language


class PipelineSource(HasName):
    """The vectors that a pipeline gives its Docs, whichever component makes them."""

    learns = False

    def __init__(self, nlp: Language, *, name: str | None = None, batch_size: int = 64):
        """nlp (Language): the pipeline. name (str): its name in results, by default that of its meta. batch_size (int):
        Docs in a batch."""
        self.nlp = self.pipeline = nlp
        self.name = name or "{lang}_{name}".format(**nlp.meta)
        self.batch_size = batch_size
        self.digest = pipeline_digest(nlp)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """The vectors of texts; fit_on is not looked at.

        RAISES (ValueError): if the pipeline has no vectors, or one is not finite.
        """
        rows = list(self._vectors(texts))
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=min(widths), theirs=max(widths)))
        return numpy.stack(rows)

    def _vectors(self, texts: Sequence[str]) -> Iterator[numpy.ndarray]:
        for doc in self.nlp.pipe(texts, batch_size=self.batch_size):
            vector = to_numpy(doc.vector).astype("float32", copy=False)
            if not vector.size:
                raise ValueError(
                    f"The pipeline {self.name} gives no vectors: doc.vector is empty. It has the pipes "
                    f'{self.nlp.pipe_names}: add one that sets doc.vector, such as nlp.add_pipe("sbert"), or '
                    "static vectors."
                )
            if not numpy.isfinite(vector).all():
                raise ValueError(Errors.NOT_FINITE.format(text=doc.text[:50]))
            yield vector
