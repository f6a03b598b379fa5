"""Sources of sentence vectors under evaluation: pipelines and baselines; and the store of their vectors."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import spacy
from spacy.language import Language
from thinc.util import to_numpy

from ..errors import Errors
from ..files.atomic import atomic_write, check_output
from ..files.serialization import device, digest_of_parts, file_digest, read_arrays, versions
from ..files.text_lines import read_counts
from ..models.digests import pipeline_digest
from ..models.word_layers import SMOOTHING, first_component, sif_weights, token_vectors, weighted_mean
from ..validation import NonNegative, Width, check

Progress = Callable[[Sequence[Any], str], Iterable[Any]]  # items and what is done, to the items behind a bar


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

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
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


_CHUNK = 1024  # texts encoded and saved at once: what an interruption may lose
_KEY = 16  # bytes of the digest of a text
_BAD_CACHE = "{path} does not hold saved vectors of an evaluation: {reason}. Delete it."


class VectorStore:
    """Vectors of texts, each distinct text encoded once, and kept in a folder; called as Run.encode."""

    def __init__(self, source: Source, folder: Path | None, progress: Progress):
        """Keep the vectors of a source in a folder (Path), None to keep them only in memory."""
        made_by = digest_of_parts(source.digest, versions(), device())
        self.source, self.progress = source, progress
        self.folder = None if folder is None else folder / f"vectors-{made_by[:_KEY]}"
        self.width: int | None = None  # of the vectors, once it is known
        self.encoded = 0  # distinct texts encoded, not read from disk
        self.rows: dict[bytes, numpy.ndarray] = {}
        if self.folder is not None:
            check_output(self.folder, is_folder=True)
            for path in sorted(self.folder.glob("*.npz")):
                arrays = read_arrays(path, {"keys": ("uint8", 2), "vectors": ("float32", 2)}, message=_BAD_CACHE)
                if arrays["keys"].shape != (len(arrays["vectors"]), _KEY):
                    raise ValueError(_BAD_CACHE.format(path=path, reason="arrays of another shape"))
                self._add(map(numpy.ndarray.tobytes, arrays["keys"]), arrays["vectors"])

    def __call__(self, texts: Sequence[str], *, fit_on: Sequence[str] | None = None) -> numpy.ndarray:
        """Return the vectors of n texts, float32 (n, width); fit_on: see Run."""
        distinct = list(dict.fromkeys(texts))
        if self.source.learns:
            self.encoded += len(distinct)
            rows = self.source.encode(distinct, list(dict.fromkeys(texts if fit_on is None else fit_on)))
            self.width = rows.shape[1]
            number = {text: i for i, text in enumerate(distinct)}
            return rows[[number[text] for text in texts]]
        # by length: batches of texts of like length waste no work on padding
        new = sorted((text for text in distinct if _key(text) not in self.rows), key=len, reverse=True)
        for start in self.progress(range(0, len(new), _CHUNK), "encoding") if new else []:
            chunk = new[start : start + _CHUNK]
            self._keep(list(map(_key, chunk)), self.source.encode(chunk, ()).astype("float32", copy=False))
        return numpy.stack([self.rows[_key(text)] for text in texts])

    def _keep(self, keys: list[bytes], vectors: numpy.ndarray) -> None:
        self.encoded += len(keys)
        self._add(keys, vectors)
        if self.folder is not None:
            joined = b"".join(keys)
            path = self.folder / f"{hashlib.sha256(joined).hexdigest()[:_KEY]}.npz"  # so that processes may share it
            with atomic_write(path) as file:
                numpy.savez(file, keys=numpy.frombuffer(joined, "uint8").reshape(-1, _KEY), vectors=vectors)

    def _add(self, keys: Iterable[bytes], vectors: numpy.ndarray) -> None:
        self.width = self.width or vectors.shape[1]
        self.rows.update(zip(keys, vectors, strict=True))


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf8")).digest()[:_KEY]


def sklearn_module(name: str, task: str) -> ModuleType:
    """Return a module of scikit-learn. RAISES (ImportError): if it is not installed; the message names the task."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{task} needs scikit-learn, which is not installed: pip install 'spacy-sbert[evaluation]'"
        ) from error


class _StaticSource(Source):
    """Vectors made of the static vectors of the tokens of a pipeline, whose components do not run."""

    kind: str

    def __init__(self, nlp: Language, *parts: object, name: str = ""):
        """Take the vectors of nlp; parts, name: of the digest and the name, what else they depend on."""
        pipeline = "{lang}_{name}".format(**nlp.meta)
        if not nlp.vocab.vectors.size:
            raise ValueError(
                f"The pipeline {pipeline} has no static vectors, which this baseline needs. Use one that has them, "
                "such as en_core_web_md, or make one from a file of word vectors with 'python -m spacy init vectors'."
            )
        self.pipeline = nlp
        self.name = f"{self.kind}{name} ({pipeline})"
        self.digest = digest_of_parts(self.kind, *parts, pipeline_digest(nlp))

    def _means(self, texts: Sequence[str], weights: Mapping[str, float]) -> numpy.ndarray:
        """Return the weighted means of the vectors of the tokens of each text, float (n, width)."""
        rows = [weighted_mean(self.pipeline.make_doc(text), weights) for text in texts]
        return numpy.stack(rows) if rows else numpy.zeros((0, self.pipeline.vocab.vectors_length))


class _AverageStaticVectors(_StaticSource):
    """The mean of the static vectors of the tokens that have one.

    v(s) = 1 / |s| sum_{w in s} v_w, and 0 if no token has a vector.

    SOURCE: Reimers and Gurevych 2019, section 4.1 (average of GloVe embeddings).
    """

    kind = "static"

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        return self._means(texts, {}).astype("float32", copy=False)


_POWERS = (-math.inf, 1, math.inf)


class _PowerMeans(_StaticSource):
    """Several power means of the static vectors of the tokens that have one, one after the other.

    H_p(x_1, ..., x_n) = (1/n sum_i x_i^p)^(1/p), number by number; the minimum for p = -inf, the mean for p = 1, the
    maximum for p = inf; 0 if no token has a vector. Only whole numbers above 0 and -inf and inf have a real mean of
    numbers of either sign.

    SOURCE: Rueckle et al. 2018, Concatenated Power Mean Word Embeddings as Universal Cross-Lingual Sentence
        Representations, section 3.
    """

    kind = "power-means"

    def __init__(self, nlp: Language, powers: Sequence[float] = _POWERS):
        if not powers or not all(math.isinf(power) or (power >= 1 and power == int(power)) for power in powers):
            raise ValueError(f"Cannot take power means, p = {powers}: expected whole numbers above 0, -inf and inf.")
        self.powers = tuple(float(power) for power in powers)
        name = "" if self.powers == _POWERS else " " + ", ".join(f"{power:g}" for power in powers)
        super().__init__(nlp, self.powers, name=name)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        width = self.pipeline.vocab.vectors_length
        vectors = numpy.zeros((len(texts), len(self.powers) * width), dtype="float32")
        for vector, text in zip(vectors, texts, strict=True):
            rows = token_vectors(self.pipeline.make_doc(text))[1].astype("float64")
            if len(rows):
                vector[:] = numpy.concatenate([_power_mean(rows, power) for power in self.powers])
        return vectors


def _power_mean(rows: numpy.ndarray, power: float) -> numpy.ndarray:
    """Compute a power mean, float64 (n, width) -> (width,).

    The root of a negative mean, which odd powers have, is the real one: -|m|^(1/p). (A complex power, as of NumPy's
    complex numbers, has another principal root, whose real part is positive for p = 3.)
    """
    if math.isinf(power):
        return rows.min(axis=0) if power < 0 else rows.max(axis=0)
    mean = (rows**power).mean(axis=0)
    return numpy.sign(mean) * numpy.abs(mean) ** (1 / power)


class _SmoothInverseFrequency(_StaticSource):
    """Smooth inverse frequency (SIF): a weighted mean of static vectors, without its first principal component.

    v(s) = 1 / |s| sum_{w in s} a / (a + p(w)) v_w; then v(s) - u u^T v(s), where u is the first singular vector of the
    v(s) of the corpus, which is not centered. Tokens without a vector are left out; words without a count weigh 1, as
    in the authors' code; 0 if no token has a vector.

    SOURCE: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings, algorithm 1.
    """

    kind = "sif"
    learns = True

    def __init__(self, nlp: Language, counts: Path, a: float = SMOOTHING):
        self.weights = sif_weights(read_counts(counts), a)
        super().__init__(nlp, a, file_digest(counts))

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        rows = self._means(texts, self.weights)
        corpus = rows if list(fit_on) == list(texts) else self._means(fit_on, self.weights)
        u = first_component(corpus)
        return (rows - numpy.outer(rows @ u, u)).astype("float32")


_BERT = "google-bert/bert-base-uncased"  # the paper's


class _UntunedTransformer(PipelineSource):
    """The mean of the states of a transformer's last layer, or the state of its CLS token; not scaled.

    SOURCE: Reimers and Gurevych 2019, section 4.1 (average of BERT embeddings, BERT CLS-vector).
    """

    def __init__(self, encoder: str, pooling: str):
        nlp = spacy.blank("en")
        model = {"name": encoder, "pooling": pooling, "normalize": False}
        nlp.add_pipe("sbert", config={"model": model, "token_vectors": False})
        super().__init__(nlp, name=f"untuned-{pooling} ({encoder})")
        self.nlp = None


_WIDTH = 2048  # inner products of unit vectors are off by sqrt(2 / width) = 0.03 at most (one standard deviation)


class _BagOfWords(Source):
    """Vectors of the lower-cased words of texts, by a pipeline's tokenizer; white space is left out."""

    kind: str

    def __init__(self, nlp: Language | None = None, width: int = _WIDTH, seed: int = 0, *, most: str = ""):
        check("width", width, Width)
        self.pipeline = spacy.blank("en") if nlp is None else nlp
        self.width, self.seed = width, seed
        self.name = f"{self.kind} ({most}{width}, seed {seed})"
        rules = self.pipeline.tokenizer.to_bytes(exclude=["vocab"])  # type: ignore[union-attr]
        tokenizer = hashlib.sha256(str(self.pipeline.lang).encode("utf8") + rules).hexdigest()
        self.digest = digest_of_parts(self.kind, width, seed, tokenizer)

    def _words(self, text: str) -> list[str]:
        return [token.lower_ for token in self.pipeline.make_doc(text) if not token.is_space]


class _RandomProjection(_BagOfWords):
    """Counts of words, each word a random direction.

    v(s) = sum_{w in s} r_w, where the numbers of r_w are 1 / sqrt(width) or -1 / sqrt(width), so that u . v is on
    average the inner product of the counts. Nothing is fitted: r_w follows from the word and the seed.

    SOURCE: Achlioptas 2003, Database-friendly random projections, theorem 1.1 (after Johnson and Lindenstrauss 1984);
        as a baseline for sentence encoders: Wieting and Kiela 2019, No Training Required, which projects word vectors
        instead of words.
    """

    kind = "random-projection"

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        rows = numpy.zeros((len(texts), self.width), dtype="float32")
        signs: dict[str, numpy.ndarray] = {}
        for row, text in zip(rows, texts, strict=True):
            for word in self._words(text):
                if word not in signs:
                    signs[word] = _word_signs(word, self.width, self.seed)
                row += signs[word]
        return rows * numpy.float32(self.width**-0.5)


def _word_signs(word: str, width: int, seed: int) -> numpy.ndarray:
    """Return 1 and -1 by the bits of SHAKE-256 of seed and word, int8 (width,): the same on every machine."""
    stream = hashlib.shake_256(f"{seed} {word}".encode("utf8", "surrogatepass")).digest((width + 7) // 8)
    bits = numpy.unpackbits(numpy.frombuffer(stream, dtype="uint8"), count=width)
    return (2 * bits.astype("int8") - 1).astype("int8", copy=False)


class _TfIdf(_BagOfWords):
    """Term frequency times inverse document frequency, as scikit-learn's TfidfVectorizer has it, with spaCy's words.

    v(s)_w = tf(w, s) (ln((1 + n) / (1 + df(w))) + 1), scaled to unit length; n texts in the corpus, df(w) of them with
    w. Words that are not in the corpus do not count; 0 if none is.

    If the corpus has more than `width` words, vectors are projected to `width` numbers as _RandomProjection does, which
    keeps their inner products on average: a matrix with all words would not fit into memory, and leaving the rare words
    out costs far more.

    SOURCE: Spaerck Jones 1972; Reimers and Gurevych 2019, section 4.3 (tf-idf on argument similarity).
    """

    kind = "tf-idf"
    learns = True

    def __init__(self, nlp: Language | None = None, width: int = _WIDTH, seed: int = 0):
        super().__init__(nlp, width, seed, most="at most ")
        self._vectorizer = sklearn_module("sklearn.feature_extraction.text", "The baseline 'tf-idf'").TfidfVectorizer

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        words = {text: self._words(text) for text in dict.fromkeys((*texts, *fit_on))}
        if not any(words[text] for text in fit_on):
            return numpy.zeros((len(texts), 1), dtype="float32")
        vectorizer = self._vectorizer(analyzer=words.__getitem__, dtype=numpy.float32).fit(fit_on)
        vectors = vectorizer.transform(texts)  # sparse, (n, words)
        vocabulary = vectorizer.get_feature_names_out()
        if len(vocabulary) <= self.width:
            return vectors.toarray()
        signs = numpy.stack([_word_signs(word, self.width, self.seed) for word in vocabulary])
        return vectors @ (signs * numpy.float32(self.width**-0.5))


_BASELINES = ("static", "sif", "power-means", "tf-idf", "untuned-mean", "untuned-cls", "random-projection")


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

    name (str): "static", "sif", "power-means", "tf-idf", "untuned-mean", "untuned-cls" or "random-projection".
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
    if nlp is None:
        raise ValueError(f"The baseline '{name}' needs a pipeline with static vectors (nlp), such as en_core_web_md.")
    if name == "sif":
        if counts is None:
            raise ValueError(
                "The baseline 'sif' needs word counts (counts): a file with a word and its count on each line, such as "
                "enwiki_vocab_min200.txt of https://github.com/PrincetonML/SIF."
            )
        return _SmoothInverseFrequency(nlp, counts)
    return _AverageStaticVectors(nlp) if name == "static" else _PowerMeans(nlp, powers)
