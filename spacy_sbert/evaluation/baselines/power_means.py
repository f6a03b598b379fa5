"""Concatenated power means of static vectors."""

import math
from collections.abc import Sequence

import numpy
from spacy.language import Language

from ...files.digests import digest_of_parts
from ..errors import Errors
from ..named import Named
from .static_vectors import StaticVectors

POWERS = (-math.inf, 1, math.inf)


class PowerMeans(Named):
    """Several power means of the static vectors of the tokens that have one, one after the other.

    H_p(x_1, ..., x_n) = (1/n sum_i x_i^p)^(1/p), number by number; the minimum for p = -inf, the mean for p = 1, the
    maximum for p = inf; 0 where no token has a vector.

    SOURCE: Rueckle et al. 2018, Concatenated Power Mean Word Embeddings as Universal Cross-Lingual Sentence
        Representations, section 3.
    """

    learns = False
    nlp: Language | None = None

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
        self.powers = tuple(float(power) for power in powers)
        self.vectors = StaticVectors(nlp)
        given = "" if self.powers == POWERS else " " + ", ".join(f"{power:g}" for power in powers)
        self.name = f"power-means{given} ({self.vectors.name})"
        self.digest = digest_of_parts("power-means", self.powers, self.vectors.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """texts (n strings); fit_on is not looked at. RETURNS (float32 (n, powers x width))."""
        return numpy.stack([self._means(self.vectors(text)[1]) for text in texts]).astype("float32")

    def _means(self, rows: numpy.ndarray) -> numpy.ndarray:
        if not len(rows):
            return numpy.zeros(len(self.powers) * self.vectors.width)
        return numpy.concatenate([power_mean(rows.astype("float64"), power) for power in self.powers])


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
