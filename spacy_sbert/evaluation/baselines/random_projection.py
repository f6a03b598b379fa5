"""Bags of words, projected at random: what vectors can do that know nothing."""

import hashlib
from collections.abc import Iterable, Sequence

import numpy
from spacy.language import Language

from ...errors.checks import Width, check
from ...files.digests import digest_of_parts
from ..named import Named
from .words import Words

WIDTH = 2048  # inner products of unit vectors are off by sqrt(2 / WIDTH) = 0.03 at most (one standard deviation)


class RandomProjection(Named):
    """Counts of words, each word a random direction.

    v(s) = sum_{w in s} r_w, where the numbers of r_w are 1 / sqrt(width) or -1 / sqrt(width), so that u . v is on
    average the inner product of the counts. Nothing is fitted: r_w follows from the word and the seed.

    SOURCE: Achlioptas 2003, Database-friendly random projections, theorem 1.1 (after Johnson and Lindenstrauss 1984);
        as a baseline for sentence encoders: Wieting and Kiela 2019, No Training Required, which projects word vectors
        instead of words.
    """

    learns = False
    nlp: Language | None = None

    def __init__(self, nlp: Language | None = None, width: int = WIDTH, seed: int = 0):
        """nlp (Language): whose tokenizer, by default the English one. width, seed (int): of the projection.

        RAISES (ValueError): if width is below 1.
        """
        check("width", width, Width)
        self.words, self.width, self.seed = Words(nlp), width, seed
        self.name = f"random-projection ({width}, seed {seed})"
        self.digest = digest_of_parts("random-projection", width, seed, self.words.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """texts (n strings); fit_on is not looked at. RETURNS (float32 (n, width))."""
        found = numpy.zeros((len(texts), self.width), dtype="float32")
        signs: dict[str, numpy.ndarray] = {}
        for row, text in zip(found, texts, strict=True):
            for word in self.words(text):
                if word not in signs:
                    signs[word] = word_signs(word, self.width, self.seed)
                row += signs[word]
        return found * numpy.float32(self.width**-0.5)


def projection(words: Iterable[str], width: int, seed: int) -> numpy.ndarray:
    """The matrix whose rows are the r_w of RandomProjection. RETURNS (float32 (words, width))."""
    return numpy.stack([word_signs(word, width, seed) for word in words]) * numpy.float32(width**-0.5)


def word_signs(word: str, width: int, seed: int) -> numpy.ndarray:
    """1 and -1, by the bits of SHAKE-256 of seed and word: the same on every machine, with every version of NumPy.

    RETURNS (int8 (width,)).
    """
    stream = hashlib.shake_256(f"{seed} {word}".encode("utf8", "surrogatepass")).digest((width + 7) // 8)
    bits = numpy.unpackbits(numpy.frombuffer(stream, dtype="uint8"), count=width)
    return (2 * bits.astype("int8") - 1).astype("int8", copy=False)
