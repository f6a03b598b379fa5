"""Baselines: untrained sentence embeddings."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy
import spacy
from spacy.language import Language

from ..errors import Errors
from ..files.serialization import digest_of_parts, file_digest
from ..files.text_lines import read_counts
from ..models.digests import pipeline_digest
from ..models.word_layers import SMOOTHING, first_component, sif_weights, token_vectors, weighted_mean
from ..validation import NonNegative, Width, check
from .encoders import PipelineSource, Source
from .task import sklearn_module


class _StaticVectors:
    """The static vectors of the tokens of texts; tokens without one are left out."""

    def __init__(self, nlp: Language):
        """Take the vectors of a pipeline, nlp (Language); its components do not run.

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

    def means(self, texts: Sequence[str], weights: Mapping[str, float]) -> numpy.ndarray:
        """Return the weighted means of the vectors of the tokens of each text, float (n, width)."""
        rows = [weighted_mean(self.pipeline.make_doc(text), weights) for text in texts]
        return numpy.stack(rows) if rows else numpy.zeros((0, self.width))


class _AverageStaticVectors(Source):
    """The mean of the static vectors of the tokens that have one.

    v(s) = 1 / |s| sum_{w in s} v_w, and 0 where no token has a vector.

    SOURCE: Reimers and Gurevych 2019, section 4.1 (average of GloVe embeddings).
    """

    def __init__(self, nlp: Language):
        """Take the vectors of a pipeline, nlp (Language). RAISES (ValueError): if it has none."""
        self.vectors = _StaticVectors(nlp)
        self.name = f"static ({self.vectors.name})"
        self.digest = digest_of_parts("static", self.vectors.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """Return the vectors of n texts, float32 (n, width); fit_on is ignored."""
        return self.vectors.means(texts, {}).astype("float32", copy=False)


_BERT = "google-bert/bert-base-uncased"  # the paper's


class _UntunedTransformer(Source):
    """The mean of the states of a transformer's last layer, or the state of its CLS token; not scaled.

    SOURCE: Reimers and Gurevych 2019, section 4.1 (average of BERT embeddings, BERT CLS-vector).
    """

    def __init__(self, name: str = _BERT, pooling: str = "mean", batch_size: int = 64):
        """Make a pipeline of the encoder.

        name (str): any encoder: a folder, or a name as spacy-sbert.SentenceEncoder.v1 takes it. pooling (str): "mean",
            "cls" or "max". batch_size (int): texts in a batch.

        RAISES (OSError): if the encoder is not found. RAISES (ValueError): for an unknown pooling.
        """
        self.pipeline = spacy.blank("en")
        model = {"name": name, "pooling": pooling, "normalize": False}
        self.pipeline.add_pipe("sbert", config={"model": model, "token_vectors": False})
        self.name = f"untuned-{pooling} ({name})"
        self.source = PipelineSource(self.pipeline, name=self.name, batch_size=batch_size)
        self.digest = self.source.digest

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """Return the vectors of n texts, float32 (n, width); fit_on is ignored."""
        return self.source.encode(texts)


class _Words:
    """The lower-cased words of texts, by a pipeline's tokenizer; white space is left out."""

    def __init__(self, nlp: Language | None = None):
        """Use the tokenizer of nlp (Language), by default the English one."""
        self.pipeline = spacy.blank("en") if nlp is None else nlp

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text, in order."""
        return [token.lower_ for token in self.pipeline.make_doc(text) if not token.is_space]

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the tokenizer's rules."""
        rules = self.pipeline.tokenizer.to_bytes(exclude=["vocab"])  # type: ignore[union-attr]
        return hashlib.sha256(str(self.pipeline.lang).encode("utf8") + rules).hexdigest()


_POWERS = (-math.inf, 1, math.inf)


class _PowerMeans(Source):
    """Several power means of the static vectors of the tokens that have one, one after the other.

    H_p(x_1, ..., x_n) = (1/n sum_i x_i^p)^(1/p), number by number; the minimum for p = -inf, the mean for p = 1, the
    maximum for p = inf; 0 where no token has a vector.

    SOURCE: Rueckle et al. 2018, Concatenated Power Mean Word Embeddings as Universal Cross-Lingual Sentence
        Representations, section 3.
    """

    def __init__(self, nlp: Language, powers: Sequence[float] = _POWERS):
        """Take the vectors of a pipeline.

        nlp (Language): with static vectors. powers (Sequence[float]): whole numbers above 0, and -inf and inf: only
            these have a real mean of numbers of either sign.

        RAISES (ValueError): if the pipeline has no static vectors, or for other powers, or none.
        """
        for power in powers:
            if not (math.isinf(power) or (power >= 1 and power == int(power))):
                raise ValueError(Errors.BAD_POWER.format(given=power))
        if not powers:
            raise ValueError(Errors.BAD_POWER.format(given="none"))
        self.powers = tuple(float(power) for power in powers)
        self.vectors = _StaticVectors(nlp)
        listed = "" if self.powers == _POWERS else " " + ", ".join(f"{power:g}" for power in powers)
        self.name = f"power-means{listed} ({self.vectors.name})"
        self.digest = digest_of_parts("power-means", self.powers, self.vectors.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """Return the vectors of n texts, float32 (n, powers x width); fit_on is ignored."""
        docs = map(self.vectors.pipeline.make_doc, texts)
        return numpy.stack([self._means(token_vectors(doc)[1]) for doc in docs]).astype("float32")

    def _means(self, rows: numpy.ndarray) -> numpy.ndarray:
        if not len(rows):
            return numpy.zeros(len(self.powers) * self.vectors.width)
        return numpy.concatenate([_power_mean(rows.astype("float64"), power) for power in self.powers])


def _power_mean(rows: numpy.ndarray, power: float) -> numpy.ndarray:
    """Return one power mean, see _PowerMeans.

    The root of a negative mean, which odd powers have, is the real one: -|m|^(1/p). (A complex power, as of NumPy's
    complex numbers, has another principal root, whose real part is positive for p = 3.)

    rows (float64 (n, width)): one or more. power (float): see _PowerMeans.
    RETURNS (float64 (width,)).
    """
    if math.isinf(power):
        return rows.min(axis=0) if power < 0 else rows.max(axis=0)
    mean = (rows**power).mean(axis=0)
    return numpy.sign(mean) * numpy.abs(mean) ** (1 / power)


_WIDTH = 2048  # inner products of unit vectors are off by sqrt(2 / width) = 0.03 at most (one standard deviation)


class _RandomProjection(Source):
    """Counts of words, each word a random direction.

    v(s) = sum_{w in s} r_w, where the numbers of r_w are 1 / sqrt(width) or -1 / sqrt(width), so that u . v is on
    average the inner product of the counts. Nothing is fitted: r_w follows from the word and the seed.

    SOURCE: Achlioptas 2003, Database-friendly random projections, theorem 1.1 (after Johnson and Lindenstrauss 1984);
        as a baseline for sentence encoders: Wieting and Kiela 2019, No Training Required, which projects word vectors
        instead of words.
    """

    def __init__(self, nlp: Language | None = None, width: int = _WIDTH, seed: int = 0):
        """Use the tokenizer of nlp (Language), by default the English one; width, seed (int): of the projection.

        RAISES (ValueError): if width is below 1.
        """
        check("width", width, Width)
        self.words, self.width, self.seed = _Words(nlp), width, seed
        self.name = f"random-projection ({width}, seed {seed})"
        self.digest = digest_of_parts("random-projection", width, seed, self.words.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """Return the vectors of n texts, float32 (n, width); fit_on is ignored."""
        rows = numpy.zeros((len(texts), self.width), dtype="float32")
        signs: dict[str, numpy.ndarray] = {}
        for row, text in zip(rows, texts, strict=True):
            for word in self.words(text):
                if word not in signs:
                    signs[word] = _word_signs(word, self.width, self.seed)
                row += signs[word]
        return rows * numpy.float32(self.width**-0.5)


def _projection(words: Iterable[str], width: int, seed: int) -> numpy.ndarray:
    """Return the matrix whose rows are the r_w of _RandomProjection, float32 (words, width)."""
    return numpy.stack([_word_signs(word, width, seed) for word in words]) * numpy.float32(width**-0.5)


def _word_signs(word: str, width: int, seed: int) -> numpy.ndarray:
    """Return 1 and -1 by the bits of SHAKE-256 of seed and word, int8 (width,).

    They are the same on every machine and with every version of NumPy.
    """
    stream = hashlib.shake_256(f"{seed} {word}".encode("utf8", "surrogatepass")).digest((width + 7) // 8)
    bits = numpy.unpackbits(numpy.frombuffer(stream, dtype="uint8"), count=width)
    return (2 * bits.astype("int8") - 1).astype("int8", copy=False)


class _SmoothInverseFrequency(Source):
    """Smooth inverse frequency (SIF): a weighted mean of static vectors, without its first principal component.

    v(s) = 1 / |s| sum_{w in s} a / (a + p(w)) v_w; then v(s) - u u^T v(s), where u is the first singular vector of the
    v(s) of the corpus, which is not centred. Tokens without a vector are left out; words without a count weigh 1, as in
    the authors' code; 0 where no token has a vector.

    SOURCE: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings, algorithm 1.
    """

    learns = True

    def __init__(self, nlp: Language, counts: Path, a: float = SMOOTHING):
        """Take the vectors of nlp (Language), a pipeline. counts (Path): see read_counts. a (float): the smoothing.

        RAISES (ValueError): if the pipeline has no static vectors, the file is not what it should be, or a is not above
            0.
        """
        self.vectors = _StaticVectors(nlp)
        self.weights = sif_weights(read_counts(counts), a)
        self.name = f"sif ({self.vectors.name})"
        self.digest = digest_of_parts("sif", a, file_digest(counts), self.vectors.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str]) -> numpy.ndarray:
        """Return the vectors of n texts, float32 (n, width), without the principal component of the corpus, fit_on."""
        rows = self.vectors.means(texts, self.weights)
        corpus = rows if list(fit_on) == list(texts) else self.vectors.means(fit_on, self.weights)
        u = first_component(corpus)
        return (rows - numpy.outer(rows @ u, u)).astype("float32")


class _TfIdf(Source):
    """Term frequency times inverse document frequency, as scikit-learn's TfidfVectorizer has it, with spaCy's words.

    v(s)_w = tf(w, s) (ln((1 + n) / (1 + df(w))) + 1), scaled to unit length; n texts in the corpus, df(w) of them with
    w. Words that are not in the corpus do not count; 0 where none is.

    Where the corpus has more than `width` words, vectors are projected to `width` numbers as _RandomProjection does,
    which keeps their inner products on average: a matrix with all words would not fit into memory, and leaving the rare
    words out costs far more.

    SOURCE: Spaerck Jones 1972; Reimers and Gurevych 2019, section 4.3 (tf-idf on argument similarity).
    """

    learns = True

    def __init__(self, nlp: Language | None = None, width: int = _WIDTH, seed: int = 0):
        """Use the tokenizer of a pipeline.

        nlp (Language): by default the English one. width (int): of the vectors, at most. seed (int): of the projection.

        RAISES (ImportError): without scikit-learn. RAISES (ValueError): if width is below 1.
        """
        check("width", width, Width)
        self._vectorizer = sklearn_module("sklearn.feature_extraction.text", "The baseline 'tf-idf'").TfidfVectorizer
        self.words, self.width, self.seed = _Words(nlp), width, seed
        self.name = f"tf-idf (at most {width}, seed {seed})"
        self.digest = digest_of_parts("tf-idf", width, seed, self.words.digest)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str]) -> numpy.ndarray:
        """Return the vectors of n texts, float32 (n, size).

        fit_on: the corpus; size is the number of its words, or width if that is smaller.
        """
        words = {text: self.words(text) for text in dict.fromkeys((*texts, *fit_on))}
        if not any(words[text] for text in fit_on):
            return numpy.zeros((len(texts), 1), dtype="float32")
        vectorizer = self._vectorizer(analyzer=words.__getitem__, dtype=numpy.float32).fit(fit_on)
        vectors = vectorizer.transform(texts)  # sparse, (n, words)
        vocabulary = vectorizer.get_feature_names_out()
        if len(vocabulary) <= self.width:
            return vectors.toarray()
        return vectors @ _projection(vocabulary, self.width, self.seed)


_BASELINES = ("static", "sif", "power-means", "tf-idf", "untuned-mean", "untuned-cls", "random-projection")
_VECTORS = "a pipeline with static vectors (nlp), such as en_core_web_md"
_COUNTS = (
    "word counts (counts): a file with a word and its count on each line, such as enwiki_vocab_min200.txt of "
    "https://github.com/PrincetonML/SIF"
)
_T = TypeVar("_T")


def make_baseline(
    name: str,
    *,
    nlp: Language | None = None,
    counts: Path | None = None,
    encoder: str | None = None,
    powers: Sequence[Any] = _POWERS,
    width: Width = _WIDTH,
    seed: NonNegative = 0,
) -> Source:
    """Make a baseline by its name.

    name (str): one of _BASELINES.
    nlp (Language): the pipeline with static vectors of "static", "sif" and "power-means"; whose tokenizer "tf-idf" and
        "random-projection" use, by default the English one.
    counts (Path): the word counts of "sif", see read_counts.
    encoder (str): the transformer of "untuned-mean" and "untuned-cls", by default BERT base.
    powers (Sequence[float]): of "power-means". width, seed (int): of "tf-idf" and "random-projection".
    RAISES (ValueError): for an unknown name, or if something is missing that the baseline needs; (ImportError): if a
        package is.
    """
    if name not in _BASELINES:
        raise ValueError(f"Unknown baseline '{name}': expected one of {', '.join(_BASELINES)}.")
    if name.startswith("untuned"):
        return _UntunedTransformer(encoder or _BERT, name.removeprefix("untuned-"))
    if name in ("tf-idf", "random-projection"):
        return (_TfIdf if name == "tf-idf" else _RandomProjection)(nlp, width, seed)
    nlp = _needed(nlp, name, _VECTORS)
    if name == "sif":
        return _SmoothInverseFrequency(nlp, _needed(counts, name, _COUNTS))
    return _AverageStaticVectors(nlp) if name == "static" else _PowerMeans(nlp, powers)


def _needed(value: _T | None, name: str, needs: str) -> _T:
    if value is None:
        raise ValueError(f"The baseline '{name}' needs {needs}.")
    return value
