"""Baselines of static vectors: their mean, their power means, and smooth inverse frequency."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy
from spacy.language import Language

from ...files.digests import digest_of_parts, file_digest
from ...files.word_counts import read_counts
from ...similarity.static_vectors import SMOOTHING, first_component, sif_weights, token_vectors, weighted_mean
from ...vectors.identity import pipeline_digest
from ..errors import Errors

POWERS = (-math.inf, 1, math.inf)


class StaticVectors:
    """The static vectors of a pipeline, whose components do not run; tokens without one are left out."""

    learns = False
    nlp: Language | None = None

    def __init__(self, nlp: Language):
        """nlp (Language): a pipeline with static vectors. RAISES (ValueError): if it has none."""
        self.name = "{lang}_{name}".format(**nlp.meta)
        if not nlp.vocab.vectors.size:
            raise ValueError(Errors.NO_STATIC_VECTORS.format(name=self.name))
        self.pipeline = nlp
        self.width = nlp.vocab.vectors_length
        self.digest = pipeline_digest(nlp)


class AverageStaticVectors(StaticVectors):
    """The mean of the static vectors of the tokens that have one.

    v(s) = 1 / |s| sum_{w in s} v_w, and 0 where no token has a vector.

    SOURCE: Reimers and Gurevych 2019, section 4.1 (average of GloVe embeddings).
    """

    def __init__(self, nlp: Language):
        """nlp (Language): a pipeline with static vectors. RAISES (ValueError): if it has none."""
        super().__init__(nlp)
        self.name, self.digest = f"static ({self.name})", digest_of_parts("static", self.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """texts (n strings); fit_on is not looked at. RETURNS (float32 (n, width))."""
        rows = [weighted_mean(self.pipeline.make_doc(text), {}) for text in texts]
        return numpy.stack(rows).astype("float32", copy=False)


class PowerMeans(StaticVectors):
    """Several power means of the static vectors of the tokens that have one, one after the other.

    H_p(x_1, ..., x_n) = (1/n sum_i x_i^p)^(1/p), number by number; the minimum for p = -inf, the mean for p = 1, the
    maximum for p = inf; 0 where no token has a vector.

    SOURCE: Rueckle et al. 2018, Concatenated Power Mean Word Embeddings as Universal Cross-Lingual Sentence
        Representations, section 3.
    """

    def __init__(self, nlp: Language, powers: Sequence[float] = POWERS):
        """nlp (Language): a pipeline with static vectors. powers (Sequence[float]): whole numbers above 0, and -inf and
        inf: only these have a real mean of numbers of either sign.

        RAISES (ValueError): if the pipeline has no static vectors, or for other powers, or none.
        """
        for power in powers:
            if not (math.isinf(power) or (power >= 1 and power == int(power))):
                raise ValueError(Errors.BAD_POWER.format(given=power))
        if not powers:
            raise ValueError(Errors.BAD_POWER.format(given="none"))
        super().__init__(nlp)
        self.powers = tuple(map(float, powers))
        given = "" if self.powers == POWERS else " " + ", ".join(f"{power:g}" for power in powers)
        self.name = f"power-means{given} ({self.name})"
        self.digest = digest_of_parts("power-means", self.powers, self.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """texts (n strings); fit_on is not looked at. RETURNS (float32 (n, powers x width))."""
        return numpy.stack([self._means(text) for text in texts]).astype("float32")

    def _means(self, text: str) -> numpy.ndarray:
        rows = token_vectors(self.pipeline.make_doc(text))[1].astype("float64")
        if not len(rows):
            return numpy.zeros(len(self.powers) * self.width)
        return numpy.concatenate([power_mean(rows, power) for power in self.powers])


def power_mean(rows: numpy.ndarray, power: float) -> numpy.ndarray:
    """One power mean, see PowerMeans.

    The root of a negative mean, which odd powers have, is the real one: -|m|^(1/p). (A complex power, as of NumPy's
    complex numbers, has another principal root, whose real part is positive for p = 3.)

    rows (float64 (n, width)): one or more. power (float): see PowerMeans.
    RETURNS (float64 (width,)).
    """
    if math.isinf(power):
        return rows.min(axis=0) if power < 0 else rows.max(axis=0)
    mean = (rows**power).mean(axis=0)
    return numpy.sign(mean) * numpy.abs(mean) ** (1 / power)


class SmoothInverseFrequency(StaticVectors):
    """Smooth inverse frequency (SIF): a weighted mean of static vectors, without its first principal component.

    v(s) = 1 / |s| sum_{w in s} a / (a + p(w)) v_w; then v(s) - u u^T v(s), where u is the first singular vector of the
    v(s) of the corpus, which is not centred. Tokens without a vector are left out; words without a count weigh 1, as in
    the authors' code; 0 where no token has a vector.

    SOURCE: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings, algorithm 1.
    """

    learns = True

    def __init__(self, nlp: Language, counts: Path, a: float = SMOOTHING):
        """nlp (Language): a pipeline with static vectors. counts (Path): see read_counts. a (float): the smoothing.

        RAISES (ValueError): if the pipeline has no static vectors, the file is not what it should be, or a is not above
            0.
        """
        super().__init__(nlp)
        self.weights = sif_weights(read_counts(counts), a)
        self.name, self.digest = f"sif ({self.name})", digest_of_parts("sif", a, file_digest(counts), self.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str]) -> numpy.ndarray:
        """texts (n strings); fit_on: the corpus whose principal component is removed. RETURNS (float32 (n, width))."""
        rows = self._means(texts)
        u = first_component(rows if list(fit_on) == list(texts) else self._means(fit_on))
        return (rows - numpy.outer(rows @ u, u)).astype("float32")

    def _means(self, texts: Sequence[str]) -> numpy.ndarray:
        rows = [weighted_mean(self.pipeline.make_doc(text), self.weights) for text in texts]
        return numpy.stack(rows) if rows else numpy.zeros((0, self.width))
