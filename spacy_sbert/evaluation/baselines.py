"""Baselines: untrained sentence embeddings."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy
import spacy
from spacy.language import Language

from ..errors import Errors
from ..files.serialization import digest_of_parts, file_digest
from ..files.text_lines import read_counts
from ..models.digests import pipeline_digest
from ..models.static_vectors import SMOOTHING, first_component, sif_weights, token_vectors, weighted_mean
from ..validation import NonNegative, Width, check
from .encoders import HasName, PipelineSource, Source
from .protocols.classifiers import sklearn_module


class StaticVectors(HasName):
    """Looks up the static vectors of the tokens of texts; tokens without one are left out."""

    def __init__(self, nlp: Language):
        """nlp (Language): a pipeline with static vectors; its components do not run.

        RAISES (ValueError): if it has none.
        """
        self.name = "{lang}_{name}".format(**nlp.meta)
        if not nlp.vocab.vectors.size:
            raise ValueError(
                f"The pipeline {self.name} has no static vectors, which this baseline needs. Use one that has "
                "them, such as en_core_web_md, or make one from a file of word vectors with 'python -m spacy "
                "init vectors'."
            )
        self.pipeline = nlp
        self.width = nlp.vocab.vectors_length
        self.digest = pipeline_digest(nlp)

    def __call__(self, text: str) -> tuple[list[str], numpy.ndarray]:
        """text (str). RETURNS (n str, float32 (n, width)): the lower-cased tokens that have a vector, and those."""
        return token_vectors(self.pipeline.make_doc(text))


class AverageStaticVectors(HasName):
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


BERT = "google-bert/bert-base-uncased"  # the paper's


class UntunedTransformer(HasName):
    """The mean of the states of a transformer's last layer, or the state of its CLS token; not scaled.

    SOURCE: Reimers and Gurevych 2019, section 4.1 (average of BERT embeddings, BERT CLS-vector).
    """

    learns = False
    nlp: Language | None = None

    def __init__(self, name: str = BERT, pooling: str = "mean", batch_size: int = 64):
        """name (str): any encoder: a folder, or a name as spacy-sbert.SentenceEncoder.v1 takes it. pooling (str):
        "mean", "cls" or "max". batch_size (int): texts in a batch.

        RAISES (OSError): if the encoder is not found. RAISES (ValueError): for an unknown pooling.
        """
        self.pipeline = spacy.blank("en")
        model = {"name": name, "pooling": pooling, "normalize": False}
        self.pipeline.add_pipe("sbert", config={"model": model, "token_vectors": False})
        self.name = f"untuned-{pooling} ({name})"
        self.source = PipelineSource(self.pipeline, name=self.name, batch_size=batch_size)
        self.digest = self.source.digest

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """texts (n strings); fit_on is not looked at. RETURNS (float32 (n, width))."""
        return self.source.encode(texts)


class Words:
    """Splits texts into lower-cased words with a pipeline's tokenizer; white space is left out."""

    def __init__(self, nlp: Language | None = None):
        """nlp (Language): whose tokenizer; by default the English one."""
        self.pipeline = spacy.blank("en") if nlp is None else nlp

    def __call__(self, text: str) -> list[str]:
        """The words of a text, in order."""
        return [token.lower_ for token in self.pipeline.make_doc(text) if not token.is_space]

    @property
    def digest(self) -> str:
        """The SHA-256 of the tokenizer's rules."""
        rules = self.pipeline.tokenizer.to_bytes(exclude=["vocab"])  # type: ignore[union-attr]
        return hashlib.sha256(str(self.pipeline.lang).encode("utf8") + rules).hexdigest()


POWERS = (-math.inf, 1, math.inf)


class PowerMeans(HasName):
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


WIDTH = 2048  # inner products of unit vectors are off by sqrt(2 / WIDTH) = 0.03 at most (one standard deviation)


class RandomProjection(HasName):
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


class SmoothInverseFrequency(HasName):
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


class TfIdf(HasName):
    """Term frequency times inverse document frequency, as scikit-learn's TfidfVectorizer has it, with spaCy's words.

    v(s)_w = tf(w, s) (ln((1 + n) / (1 + df(w))) + 1), scaled to unit length; n texts in the corpus, df(w) of them with
    w. Words that are not in the corpus do not count; 0 where none is.

    Where the corpus has more than `width` words, the vectors are projected to `width` numbers as RandomProjection does,
    which keeps their inner products on average: a matrix with all words would not fit into memory, and leaving the rare
    words out costs far more.

    SOURCE: Spaerck Jones 1972; Reimers and Gurevych 2019, section 4.3 (tf-idf on argument similarity).
    """

    learns = True
    nlp: Language | None = None

    def __init__(self, nlp: Language | None = None, width: int = WIDTH, seed: int = 0):
        """nlp (Language): whose tokenizer, by default the English one. width (int): of the vectors, at most; seed
        (int): of the projection.

        RAISES (ImportError): without scikit-learn. RAISES (ValueError): if width is below 1.
        """
        check("width", width, Width)
        self._vectorizer = sklearn_module("sklearn.feature_extraction.text", "The baseline 'tf-idf'").TfidfVectorizer
        self.words, self.width, self.seed = Words(nlp), width, seed
        self.name = f"tf-idf (at most {width}, seed {seed})"
        self.digest = digest_of_parts("tf-idf", width, seed, self.words.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str]) -> numpy.ndarray:
        """texts (n strings); fit_on: the corpus. RETURNS (float32 (n, size)): size is the number of words of
        the corpus, or width if that is smaller."""
        words = {text: self.words(text) for text in dict.fromkeys((*texts, *fit_on))}
        if not any(words[text] for text in fit_on):
            return numpy.zeros((len(texts), 1), dtype="float32")
        vectorizer = self._vectorizer(analyzer=words.__getitem__, dtype=numpy.float32).fit(fit_on)
        vectors = vectorizer.transform(texts)  # sparse, (n, words)
        vocabulary = vectorizer.get_feature_names_out()
        if len(vocabulary) <= self.width:
            return vectors.toarray()
        return vectors @ projection(vocabulary, self.width, self.seed)


__all__ = [
    "BASELINES",
    "AverageStaticVectors",
    "PowerMeans",
    "RandomProjection",
    "SmoothInverseFrequency",
    "TfIdf",
    "UntunedTransformer",
    "make_baseline",
]

BASELINES = ("static", "sif", "power-means", "tf-idf", "untuned-mean", "untuned-cls", "random-projection")
VECTORS = "a pipeline with static vectors (nlp), such as en_core_web_md"
COUNTS = (
    "word counts (counts): a file with a word and its count on each line, such as enwiki_vocab_min200.txt of "
    "https://github.com/PrincetonML/SIF"
)
GivenT = TypeVar("GivenT")


def make_baseline(
    name: str,
    *,
    nlp: Language | None = None,
    counts: Path | None = None,
    encoder: str | None = None,
    powers: Sequence[Any] = POWERS,
    width: Width = WIDTH,
    seed: NonNegative = 0,
) -> Source:
    """Make a baseline by its name.

    name (str): one of BASELINES.
    nlp (Language): the pipeline with static vectors of "static", "sif" and "power-means"; whose tokenizer "tf-idf" and
        "random-projection" use, by default the English one.
    counts (Path): the word counts of "sif", see read_counts.
    encoder (str): the transformer of "untuned-mean" and "untuned-cls", by default BERT base.
    powers (Sequence[float]): of "power-means". width, seed (int): of "tf-idf" and "random-projection".
    RAISES (ValueError): for an unknown name, or if something is missing that the baseline needs; (ImportError): if a
        package is.
    """
    if name not in BASELINES:
        raise ValueError(f"Unknown baseline '{name}': expected one of {', '.join(BASELINES)}.")
    if name.startswith("untuned"):
        return UntunedTransformer(encoder or BERT, name.removeprefix("untuned-"))
    if name in ("tf-idf", "random-projection"):
        return (TfIdf if name == "tf-idf" else RandomProjection)(nlp, width, seed)
    nlp = _needed(nlp, name, VECTORS)
    if name == "sif":
        return SmoothInverseFrequency(nlp, _needed(counts, name, COUNTS))
    return AverageStaticVectors(nlp) if name == "static" else PowerMeans(nlp, powers)


def _needed(given: GivenT | None, name: str, needs: str) -> GivenT:
    if given is None:
        raise ValueError(f"The baseline '{name}' needs {needs}.")
    return given
