"""Baselines of counted words: bags of words, projected at random, and tf-idf."""

import hashlib
from collections.abc import Iterable, Sequence

import numpy
import spacy
from spacy.language import Language

from ...errors.checks import Width, check
from ...files.digests import digest_of_parts
from ..classifiers import sklearn_module

WIDTH = 2048  # inner products of unit vectors are off by sqrt(2 / WIDTH) = 0.03 at most (one standard deviation)


class Words:
    """Splits texts into lower-cased words with a pipeline's tokenizer; white space is left out."""

    learns = False
    nlp: Language | None = None

    def __init__(self, nlp: Language | None, width: int, seed: int):
        """nlp (Language): whose tokenizer; by default the English one. width, seed (int): of the projection.

        RAISES (ValueError): if width is below 1.
        """
        check("width", width, Width)
        self.pipeline = spacy.blank("en") if nlp is None else nlp
        self.width, self.seed = width, seed
        rules = self.pipeline.tokenizer.to_bytes(exclude=["vocab"])  # type: ignore[union-attr]
        self.digest = hashlib.sha256(str(self.pipeline.lang).encode("utf8") + rules).hexdigest()

    def words(self, text: str) -> list[str]:
        """The words of a text, in order."""
        return [token.lower_ for token in self.pipeline.make_doc(text) if not token.is_space]


class RandomProjection(Words):
    """Counts of words, each word a random direction: what vectors can do that know nothing.

    v(s) = sum_{w in s} r_w, where the numbers of r_w are 1 / sqrt(width) or -1 / sqrt(width), so that u . v is on
    average the inner product of the counts. Nothing is fitted: r_w follows from the word and the seed.

    SOURCE: Achlioptas 2003, Database-friendly random projections, theorem 1.1 (after Johnson and Lindenstrauss 1984);
        as a baseline for sentence encoders: Wieting and Kiela 2019, No Training Required, which projects word vectors
        instead of words.
    """

    def __init__(self, nlp: Language | None = None, width: int = WIDTH, seed: int = 0):
        """nlp (Language): whose tokenizer, by default the English one. width, seed (int): of the projection.

        RAISES (ValueError): if width is below 1.
        """
        super().__init__(nlp, width, seed)
        self.name = f"random-projection ({width}, seed {seed})"
        self.digest = digest_of_parts("random-projection", width, seed, self.digest)

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


class TfIdf(Words):
    """Term frequency times inverse document frequency, as scikit-learn's TfidfVectorizer has it, with spaCy's words.

    v(s)_w = tf(w, s) (ln((1 + n) / (1 + df(w))) + 1), scaled to unit length; n texts in the corpus, df(w) of them with
    w. Words that are not in the corpus do not count; 0 where none is.

    Where the corpus has more than `width` words, the vectors are projected to `width` numbers as RandomProjection does,
    which keeps their inner products on average: a matrix with all words would not fit into memory, and leaving the rare
    words out costs far more.

    SOURCE: Spaerck Jones 1972; Reimers and Gurevych 2019, section 4.3 (tf-idf on argument similarity).
    """

    learns = True

    def __init__(self, nlp: Language | None = None, width: int = WIDTH, seed: int = 0):
        """nlp (Language): whose tokenizer, by default the English one. width (int): of the vectors, at most; seed
        (int): of the projection.

        RAISES (ImportError): without scikit-learn. RAISES (ValueError): if width is below 1.
        """
        super().__init__(nlp, width, seed)
        self._vectorizer = sklearn_module("sklearn.feature_extraction.text", "The baseline 'tf-idf'").TfidfVectorizer
        self.name = f"tf-idf (at most {width}, seed {seed})"
        self.digest = digest_of_parts("tf-idf", width, seed, self.digest)

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
