"""The static vectors of a pipeline's words, and the mean of them: the plainest baseline of all."""

from collections.abc import Sequence

import numpy
from spacy.language import Language

from ...files.digests import digest_of_parts
from ...similarity.static_vectors import token_vectors, weighted_mean
from ...vectors.identity import pipeline_digest
from ..errors import Errors
from ..named import Named


class StaticVectors(Named):
    """Looks up the static vectors of the tokens of texts; tokens without one are left out."""

    def __init__(self, nlp: Language):
        """nlp (Language): a pipeline with static vectors; its components do not run.

        RAISES (ValueError): if it has none.
        """
        self.name = "{lang}_{name}".format(**nlp.meta)
        if not nlp.vocab.vectors.size:
            raise ValueError(Errors.NO_STATIC_VECTORS.format(name=self.name))
        self.pipeline = nlp
        self.width = nlp.vocab.vectors_length
        self.digest = pipeline_digest(nlp)

    def __call__(self, text: str) -> tuple[list[str], numpy.ndarray]:
        """text (str). RETURNS (n str, float32 (n, width)): the lower-cased tokens that have a vector, and those."""
        return token_vectors(self.pipeline.make_doc(text))


class AverageStaticVectors(Named):
    """The mean of the static vectors of the tokens that have one.

    v(s) = 1 / |s| sum_{w in s} v_w, and 0 where no token has a vector.

    SOURCE: Reimers and Gurevych 2019, section 4.1 (average of GloVe embeddings).
    """

    learns = False
    nlp: Language | None = None

    def __init__(self, nlp: Language):
        """nlp (Language): a pipeline with static vectors. RAISES (ValueError): if it has none."""
        self.vectors = StaticVectors(nlp)
        self.name = f"static ({self.vectors.name})"
        self.digest = digest_of_parts("static", self.vectors.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """texts (n strings); fit_on is not looked at. RETURNS (float32 (n, width))."""
        rows = [weighted_mean(self.vectors.pipeline.make_doc(text), {}) for text in texts]
        return numpy.stack(rows).astype("float32", copy=False)
