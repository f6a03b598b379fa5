"""Static vectors weighted by the rarity of their words, less what all sentences have in common."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy
from spacy.language import Language

from ...errors import Errors
from ...readers.rows import read_lines
from ..environment import digest_of_parts
from .static_vectors import StaticVectors

SMOOTHING = 1e-3  # the paper's a


class SmoothInverseFrequency:
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
        if not a > 0:
            raise ValueError(Errors.BAD_SMOOTHING.format(given=a))
        self.vectors = StaticVectors(nlp)
        found = read_counts(counts)
        total = sum(found.values())
        self.weights: Mapping[str, float] = {word: a / (a + count / total) for word, count in found.items()}
        self.name = f"sif ({self.vectors.name})"
        file = hashlib.sha256(counts.read_bytes()).hexdigest()
        self.digest = digest_of_parts("sif", a, file, self.vectors.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str]) -> numpy.ndarray:
        """texts (n strings); fit_on: the corpus whose principal component is removed. RETURNS (float32 (n, width))."""
        rows = self._means(texts)
        corpus = rows if list(fit_on) == list(texts) else self._means(fit_on)
        u = first_component(corpus)
        return (rows - numpy.outer(rows @ u, u)).astype("float32")

    def _means(self, texts: Sequence[str]) -> numpy.ndarray:
        found = numpy.zeros((len(texts), self.vectors.width))
        for row, text in zip(found, texts, strict=True):
            words, vectors = self.vectors(text)
            if words:
                row[:] = numpy.array([self.weights.get(word, 1.0) for word in words]) @ vectors / len(words)
        return found


def first_component(rows: numpy.ndarray) -> numpy.ndarray:
    """The first right singular vector of rows that are not centred; 0 where all rows are.

    rows (float64 (n, width)). RETURNS (float64 (width,)): of length 1; its sign does not matter.
    """
    squares = rows.T @ rows  # its eigenvectors are the singular vectors, at a size that does not grow with n
    return numpy.linalg.eigh(squares)[1][:, -1] if squares.any() else numpy.zeros(rows.shape[1])


def read_counts(path: Path) -> dict[str, int]:
    """Read the counts of words in a large corpus.

    path (Path): a lower-cased word, white space and its count on each line, such as enwiki_vocab_min200.txt of
        https://github.com/PrincetonML/SIF; blank lines are passed over.
    RETURNS (dict): counts by word.
    RAISES (ValueError): for a line that is not so or repeats a word, or if there is none; the message names file and
        line.
    """
    found: dict[str, int] = {}
    for line, text in read_lines(path):
        columns = text.split()
        if not columns:
            continue
        if len(columns) != 2 or not columns[1].isdecimal() or int(columns[1]) == 0:
            raise ValueError(Errors.BAD_WORD_COUNT.format(path=path, line=line, given=text.strip()[:50]))
        if columns[0] in found:
            raise ValueError(Errors.REPEATED_WORD.format(path=path, line=line, word=columns[0]))
        found[columns[0]] = int(columns[1])
    if not found:
        raise ValueError(Errors.NO_WORD_COUNTS.format(path=path))
    return found
