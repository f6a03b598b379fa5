"""Baselines beside which encoders are scored: word vectors, tf-idf, untuned transformers."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import numpy
import spacy
from spacy.language import Language

from ..files.checksum import digest_of_bytes, digest_of_parts, file_digest
from ..files.text_lines import read_counts
from ..models.word_layers import (
    SMOOTHING,
    first_component,
    sif_weights,
    static_vectors,
    weighted_mean,
)
from ..pipeline.digest import pipeline_digest
from ..validation import NonNegative, Width, check
from .encoders import PipelineSource, VectorSource, sklearn_module

# Texts and the corpus to vectors, see Source.encode
_Encode = Callable[[Sequence[str], Sequence[str]], numpy.ndarray]


class _Baseline(VectorSource):
    """Baseline that is a function of texts and corpus.

    reads (Language): the pipeline whose static vectors it reads. parts: what its digest depends on
        beside its name and these.
    """

    def __init__(
        self,
        name: str,
        encode: _Encode,
        *parts: object,
        reads: Language | None = None,
        learns: bool = False,
    ):
        self.name = name
        self._encode = encode
        self._parts = parts
        self._reads = reads
        self.learns = learns

    @property
    def digest(self) -> str:
        read = [] if self._reads is None else [pipeline_digest(self._reads)]
        return digest_of_parts(self.name, *read, *self._parts)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        return self._encode(texts, fit_on)


def _means(nlp: Language, texts: Sequence[str], weights: Mapping[str, float]) -> numpy.ndarray:
    """Return the weighted means of the static vectors of the tokens of each text, float (n, width).

    v(s) = 1 / |s| sum_{w in s} a_w v_w; a word without a weight weighs 1, tokens without a vector
    are left out; 0 if no token has one.
    SOURCE: Reimers and Gurevych 2019, section 4.1 (average of GloVe embeddings).
    """
    rows = [weighted_mean(nlp.make_doc(text), weights) for text in texts]
    return numpy.stack(rows) if rows else numpy.zeros((0, nlp.vocab.vectors_length))


def _power_means(nlp: Language, texts: Sequence[str]) -> numpy.ndarray:
    """Return minimum, mean and maximum of the static vectors of each text, float32 (n, 3 width).

    The power means for p = -inf, 1, inf, number by number; 0 if no token has a vector.
    SOURCE: Rueckle et al. 2018, Concatenated Power Mean Word Embeddings as Universal Cross-Lingual
        Sentence Representations, section 3.
    """
    vectors = numpy.zeros((len(texts), 3 * nlp.vocab.vectors_length), dtype="float32")
    for vector, text in zip(vectors, texts, strict=True):
        rows = static_vectors(nlp.make_doc(text))[1].astype("float64")
        if len(rows):
            vector[:] = numpy.concatenate([rows.min(axis=0), rows.mean(axis=0), rows.max(axis=0)])
    return vectors


def _smooth_inverse_frequency(
    nlp: Language, weights: Mapping[str, float], texts: Sequence[str], fit_on: Sequence[str]
) -> numpy.ndarray:
    """Return means of static vectors without their first principal component, float32 (n, width).

    v(s) = 1 / |s| sum_{w in s} a / (a + p(w)) v_w; then v(s) - u u^T v(s), where u is the first
    singular vector of the v(s) of the corpus, which is not centered. Words without a count weigh 1,
    as in the authors' code.
    SOURCE: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings,
        algorithm 1.
    """
    rows = _means(nlp, texts, weights)
    corpus = rows
    if list(fit_on) != list(texts):
        corpus = _means(nlp, fit_on, weights)
    u = first_component(corpus.T @ corpus)
    return (rows - numpy.outer(rows @ u, u)).astype("float32")


def _words(nlp: Language, text: str) -> list[str]:
    return [token.lower_ for token in nlp.make_doc(text) if not token.is_space]


def _random_projection(nlp: Language, width: int, seed: int, texts: Sequence[str]) -> numpy.ndarray:
    """Return counts of words, each word a random direction, float32 (n, width).

    v(s) = sum_{w in s} r_w, where the numbers of r_w are 1 / sqrt(width) or -1 / sqrt(width), so
    that u . v is on average the inner product of the counts. Nothing is fitted: r_w follows from
    the word and the seed.
    SOURCE: Achlioptas 2003, Database-friendly random projections, theorem 1.1; as a baseline for
        sentence encoders: Wieting and Kiela 2019, No Training Required, which projects word vectors
        instead of words.
    """
    rows = numpy.zeros((len(texts), width), dtype="float32")
    signs = cache(partial(_word_signs, width=width, seed=seed))
    for row, text in zip(rows, texts, strict=True):
        for word in _words(nlp, text):
            row += signs(word)
    return rows * numpy.float32(width**-0.5)


def _word_signs(word: str, width: int, seed: int) -> numpy.ndarray:
    """Return 1 and -1 by the bits of SHAKE-256 of seed and word, int8 (width,).

    They are the same on every machine.
    """
    seeded = f"{seed} {word}".encode("utf8", "surrogatepass")
    n_bytes = (width + 7) // 8
    stream = numpy.frombuffer(hashlib.shake_256(seeded).digest(n_bytes), dtype="uint8")
    bits = numpy.unpackbits(stream, count=width)
    return (2 * bits.astype("int8") - 1).astype("int8", copy=False)


def _tf_idf(
    nlp: Language, width: int, seed: int, texts: Sequence[str], fit_on: Sequence[str]
) -> numpy.ndarray:
    """Return term frequency times inverse document frequency of spaCy's words, float32 (n, words).

    v(s)_w = tf(w, s) (ln((1 + n) / (1 + df(w))) + 1), scaled to unit length; n texts in the corpus,
    df(w) of them with w. Words that are not in the corpus do not count; 0 if none is. If the corpus
    has more than `width` words, vectors are projected as by _random_projection, which keeps their
    inner products on average.
    SOURCE: Spaerck Jones 1972; Reimers and Gurevych 2019, section 4.3 (tf-idf on argument
        similarity).
    """
    text_module = sklearn_module("sklearn.feature_extraction.text", "The baseline 'tf-idf'")
    words = {text: _words(nlp, text) for text in dict.fromkeys((*texts, *fit_on))}
    if not any(words[text] for text in fit_on):
        return numpy.zeros((len(texts), 1), dtype="float32")
    vectorizer = text_module.TfidfVectorizer(analyzer=words.__getitem__, dtype=numpy.float32)
    vectorizer.fit(fit_on)
    # A sparse array, (n, words)
    vectors = vectorizer.transform(texts)
    vocabulary = vectorizer.get_feature_names_out()
    if len(vocabulary) <= width:
        return vectors.toarray()
    signs = numpy.stack([_word_signs(word, width, seed) for word in vocabulary])
    return vectors @ (signs * numpy.float32(width**-0.5))


_STATIC = ("static", "sif", "power-means")
_BASELINES = (*_STATIC, "tf-idf", "untuned-mean", "untuned-cls", "random-projection")
# Of Reimers and Gurevych 2019
_UNTUNED = "google-bert/bert-base-uncased"
# Inner products of unit vectors are off by sqrt(2 / width) = 0.03 at most (one standard deviation)
_WIDTH = 2048


def make_baseline(
    name: str,
    *,
    nlp: Language | None = None,
    counts: Path | None = None,
    encoder: str | None = None,
    width: Width = _WIDTH,
    seed: NonNegative = 0,
) -> VectorSource:
    """Make a baseline by its name.

    name (str): "static", "sif", "power-means", "tf-idf", "untuned-mean", "untuned-cls" or
        "random-projection".
    nlp (Language): the pipeline with static vectors of "static", "sif" and "power-means"; whose
        tokenizer "tf-idf" and "random-projection" use, by default the English one.
    counts (Path): the word counts of "sif", see read_counts.
    encoder (str): the transformer of "untuned-mean" and "untuned-cls", by default BERT base.
    width, seed (int): of "tf-idf" and "random-projection".
    RAISES (ValueError): for an unknown name, or if something is missing that the baseline needs;
        (ImportError): if a package is.
    SOURCE: Reimers and Gurevych 2019, section 4.1 (average of BERT embeddings, BERT CLS-vector).
    """
    if name not in _BASELINES:
        raise ValueError(f"Unknown baseline '{name}': expected one of {', '.join(_BASELINES)}.")
    if name in _STATIC:
        return _static_baseline(name, nlp, counts)
    if name.startswith("untuned"):
        return _untuned_baseline(name, encoder or _UNTUNED)
    check("width", width, Width)
    if nlp is None:
        nlp = spacy.blank("en")
    rules = nlp.tokenizer.to_bytes(exclude=["vocab"])  # type: ignore[union-attr]
    tokenizer = digest_of_bytes(str(nlp.lang).encode("utf8") + rules)
    if name == "tf-idf":
        sklearn_module("sklearn.feature_extraction.text", "The baseline 'tf-idf'")
        encode = partial(_tf_idf, nlp, width, seed)
        return _Baseline(f"{name} (at most {width}, seed {seed})", encode, tokenizer, learns=True)
    bags = partial(_random_projection, nlp, width, seed)
    return _Baseline(f"{name} ({width}, seed {seed})", lambda texts, _: bags(texts), tokenizer)


def _untuned_baseline(name: str, encoder: str) -> VectorSource:
    """Return a transformer with the pooling that the name has: mean or cls."""
    nlp = spacy.blank("en")
    model = {"name": encoder, "pooling": name.removeprefix("untuned-"), "normalize": False}
    nlp.add_pipe("sbert", config={"model": model, "token_vectors": False})
    source = PipelineSource(nlp, name=f"{name} ({encoder})")
    source.nlp = None
    return source


def _static_baseline(name: str, nlp: Language | None, counts: Path | None) -> VectorSource:
    if nlp is None:
        raise ValueError(
            f"The baseline '{name}' needs a pipeline with static vectors (nlp), such as "
            "en_core_web_md."
        )
    pipeline = "{lang}_{name}".format(**nlp.meta)
    if not nlp.vocab.vectors.size:
        raise ValueError(
            f"The pipeline {pipeline} has no static vectors. Use one that has them, such as "
            "en_core_web_md, or make one with 'python -m spacy init vectors'."
        )
    title = f"{name} ({pipeline})"
    if name == "static":
        return _Baseline(
            title, lambda texts, _: _means(nlp, texts, {}).astype("float32", copy=False), reads=nlp
        )
    if name == "power-means":
        return _Baseline(title, lambda texts, _: _power_means(nlp, texts), reads=nlp)
    if counts is None:
        raise ValueError(
            "The baseline 'sif' needs word counts (counts): a file with a word and its count on "
            "each line, such as enwiki_vocab_min200.txt of https://github.com/PrincetonML/SIF."
        )
    weights = sif_weights(read_counts(counts), SMOOTHING)
    encode = partial(_smooth_inverse_frequency, nlp, weights)
    return _Baseline(title, encode, SMOOTHING, file_digest(counts), reads=nlp, learns=True)
