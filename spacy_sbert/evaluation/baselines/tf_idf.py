"""Counts of words, weighted by their rarity in the corpus."""

from collections.abc import Sequence

import numpy
from spacy.language import Language

from ...errors.checks import Width, check
from ...files.digests import digest_of_parts
from ..classifiers import sklearn_module
from ..named import Named
from .random_projection import WIDTH, projection
from .words import Words


class TfIdf(Named):
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
