"""Sources of sentence vectors under evaluation."""

from collections.abc import Iterator, Sequence

import numpy
from spacy.language import Language
from thinc.util import to_numpy

from ..errors import Errors
from ..models.digests import pipeline_digest


class Source:
    """Vectors of texts: of a pipeline, or of a baseline.

    name (str): in results. digest (str): of everything that the vectors depend on, except the corpus.
    learns (bool): whether they also depend on a corpus, such as the idf of its words.
    nlp (Language): the pipeline that is evaluated, None for a baseline.
    """

    name: str
    digest: str
    learns: bool = False
    nlp: Language | None = None

    def encode(self, texts: Sequence[str], fit_on: Sequence[str]) -> numpy.ndarray:
        """Return the vectors of n texts, one or more, float32 (n, width).

        fit_on: the corpus, ignored if `learns` is False.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class PipelineSource(Source):
    """The vectors that a pipeline gives its Docs, whichever component makes them."""

    def __init__(self, nlp: Language, *, name: str | None = None, batch_size: int = 64):
        """Take the vectors of a pipeline.

        name (str): its name in results, by default that of its meta. batch_size (int): Docs in a batch.
        """
        self.nlp = self.pipeline = nlp
        self.name = name or "{lang}_{name}".format(**nlp.meta)
        self.batch_size = batch_size
        self.digest = pipeline_digest(nlp)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """Return the vectors of texts, float32 (n, width); fit_on is ignored.

        RAISES (ValueError): if the pipeline has no vectors, or one is not finite.
        """
        rows = list(self._vectors(texts))
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=min(widths), theirs=max(widths)))
        return numpy.stack(rows)

    def _vectors(self, texts: Sequence[str]) -> Iterator[numpy.ndarray]:
        for doc in self.pipeline.pipe(texts, batch_size=self.batch_size):
            vector = to_numpy(doc.vector).astype("float32", copy=False)
            if not vector.size:
                raise ValueError(
                    f"The pipeline {self.name} gives no vectors: doc.vector is empty. It has the pipes "
                    f'{self.pipeline.pipe_names}: add one that sets doc.vector, such as nlp.add_pipe("sbert"), or '
                    "static vectors."
                )
            if not numpy.isfinite(vector).all():
                raise ValueError(Errors.NOT_FINITE.format(text=doc.text[:50]))
            yield vector
