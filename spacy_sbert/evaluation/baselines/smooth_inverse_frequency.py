"""Static vectors weighted by the rarity of their words, less what all sentences have in common."""

from collections.abc import Sequence
from pathlib import Path

import numpy
from spacy.language import Language

from ...files.digests import digest_of_parts, file_digest
from ...files.word_counts import read_counts
from ...similarity.static_vectors import SMOOTHING, first_component, sif_weights, weighted_mean
from ..named import Named
from .static_vectors import StaticVectors


class SmoothInverseFrequency(Named):
    """Smooth inverse frequency (SIF): a weighted mean of static vectors, without its first principal component.

    v(s) = 1 / |s| sum_{w in s} a / (a + p(w)) v_w; then v(s) - u u^T v(s), where u is the first singular vector of the
    v(s) of the corpus, which is not centred. Tokens without a vector are left out; words without a count weigh 1, as in
    the authors' code; 0 where no token has a vector.

    SOURCE: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings, algorithm 1.
    """

    learns = True
    nlp: Language | None = None

    def __init__(self, nlp: Language, counts: Path, a: float = SMOOTHING):
        """nlp (Language): a pipeline with static vectors. counts (Path): see read_counts. a (float): the smoothing.

        RAISES (ValueError): if the pipeline has no static vectors, the file is not what it should be, or a is not above
            0.
        """
        self.vectors = StaticVectors(nlp)
        self.weights = sif_weights(read_counts(counts), a)
        self.name = f"sif ({self.vectors.name})"
        self.digest = digest_of_parts("sif", a, file_digest(counts), self.vectors.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str]) -> numpy.ndarray:
        """texts (n strings); fit_on: the corpus whose principal component is removed. RETURNS (float32 (n, width))."""
        rows = self._means(texts)
        corpus = rows if list(fit_on) == list(texts) else self._means(fit_on)
        u = first_component(corpus)
        return (rows - numpy.outer(rows @ u, u)).astype("float32")

    def _means(self, texts: Sequence[str]) -> numpy.ndarray:
        docs = (self.vectors.pipeline.make_doc(text) for text in texts)
        rows = [weighted_mean(doc, self.weights) for doc in docs]
        return numpy.stack(rows) if rows else numpy.zeros((0, self.vectors.width))
