"""BM25: search by the words that a query and a text have in common."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy
import spacy
from pydantic import Field
from spacy.language import Language

from ..errors import import_extra
from ..files.checksum import digest_of_stream
from ..files.serialization import read_arrays, write_arrays
from ..similarity import check_count
from ..validation import NonNegativeFloat, Text, checked_texts, validated
from .exact import Best

_Share = Annotated[float, Field(ge=0, le=1)]
# What bm25s calls the scores of each word, and the words
_ARRAYS = {
    "data": ("float32", 1),
    "indices": ("int32", 1),
    "indptr": ("int64", 1),
    "num_docs": ("int64", 0),
    "words": ("uint8", 1),
}
_NOT_READ = "{path} holds no BM25 ({reason}). Delete it, and build it again."


@dataclass(frozen=True, eq=False, repr=False)
class BM25:
    """Texts that are searched by their words.

    score(q, d) = sum_{t in q} idf(t) f(t, d) / (f(t, d) + k1 (1 - b + b |d| / mean |d|))
    idf(t) = log(1 + (n - n(t) + 0.5) / (n(t) + 0.5))

    q are the words of a query, each as often as it occurs there, f(t, d) how often the text d has
    the word t, |d| how many words it has, n(t) how many of the n texts have t.

    Words are the tokens of the pipeline's tokenizer in lower case, without punctuation and white
    space; their lemmas if the pipeline has a lemmatizer, up to which its pipes run. Stop words
    count in texts, and in a query only if it has no other words.

    index (bm25s.BM25), nlp (Language), digest (str): as build and load make them: the scores of
        each word, the pipeline that makes words, and the SHA-256 of the texts.
    SOURCE: Robertson and Zaragoza 2009, The probabilistic relevance framework, section 3, with the
        idf of Lucene: Kamphuis et al. 2020, Which BM25 do you mean?, table 1 (Lucene accurate). By
        bm25s, Lù 2024.

    Example:
        bm25 = BM25.build(texts, nlp=nlp)
        scores, rows = bm25.search(["A man eats."], k=3)
        print(texts[rows[0, 0]], scores[0, 0])

    """

    index: Any
    nlp: Language
    digest: str

    def __len__(self) -> int:
        return int(self.index.scores["num_docs"])

    @classmethod
    @validated
    def build(
        cls,
        texts: Iterable[Text],
        *,
        nlp: Language | None = None,
        k1: NonNegativeFloat = 1.5,
        b: _Share = 0.75,
    ) -> "BM25":
        """Index texts by their words.

        texts (Iterable): str, Docs or Spans, at least one with a word.
        nlp (Language): the pipeline that makes the words, see BM25; spacy.blank("en") if None.
        k1 (float): how much it adds if a word occurs again; nothing if 0. b (float): how much the
            scores of long texts are lowered, from 0 to 1.
        RAISES (ValueError): if no text has a word. (TypeError): see checked_texts. (ImportError):
            if bm25s is not installed.
        """
        index = _new_index(k1=k1, b=b)
        nlp = nlp or spacy.blank("en")
        plain = list(checked_texts(texts))
        words = list(_words_of(plain, nlp))
        if not any(words):
            raise ValueError(
                f"Cannot index {len(plain)} texts by their words: they have none. Give texts with "
                "words."
            )
        index.index(words, create_empty_token=False, show_progress=False)
        return cls(index, nlp, digest_of_stream(plain))

    def search(self, queries: Iterable[Text], *, k: int) -> Best:
        """Find the k texts with the highest scores for each query, the lower row first of equal.

        queries (Iterable): str, Docs or Spans. k (int): how many to find of each, from 1 to the
            number of texts.
        RETURNS (float32 array of shape (n, k), int64 array of shape (n, k)): the scores, and the
            rows of the texts. A text without a word of the query scores 0, every other more: for a
            query whose words are in no text, all scores are 0.
        RAISES (ValueError): if there are fewer than k texts. (TypeError): see checked_texts.
        """
        check_count(k, len(self), f"nearest of {len(self)} texts")
        asked = list(checked_texts(queries))
        best_scores = numpy.empty((len(asked), k), dtype="float32")
        best_rows = numpy.empty((len(asked), k), dtype="int64")
        for i, words in enumerate(_words_of(asked, self.nlp, are_queries=True)):
            scores = self.index.get_scores_from_ids(self.index.get_tokens_ids(words))
            best_rows[i] = numpy.argsort(-scores, kind="stable")[:k]
            best_scores[i] = scores[best_rows[i]]
        return best_scores, best_rows

    def save(self, path: str | Path) -> None:
        """Write the scores of each word as plain arrays (.npz), whole or not at all."""
        content = json.dumps([_kind_of_words(self.nlp), self.digest, *self.index.vocab_dict])
        words = numpy.frombuffer(content.encode(), dtype="uint8")
        write_arrays(Path(path), {**self.index.scores, "words": words})

    @classmethod
    def load(cls, path: str | Path, *, nlp: Language | None = None) -> "BM25":
        """Read what `save` wrote.

        nlp (Language): the pipeline that makes the words of queries, see build.
        RAISES (ValueError): if the file is damaged, or the pipeline makes other words. (OSError):
            if there is none. (ImportError): if bm25s is not installed.
        """
        index = _new_index()
        nlp = nlp or spacy.blank("en")
        arrays = read_arrays(Path(path), _ARRAYS, message=_NOT_READ)
        kind, digest, *words = json.loads(arrays.pop("words").tobytes())
        if kind != _kind_of_words(nlp):
            raise ValueError(
                f"{path} has {kind}, and the pipeline makes {_kind_of_words(nlp)}. Give the "
                "pipeline that it was built with, or build it again."
            )
        index.scores = arrays
        index.vocab_dict = {word: number for number, word in enumerate(words)}
        index.nonoccurrence_array = None
        return cls(index, nlp, digest)


def saved_bm25(path: Path, texts: Sequence[str], nlp: Language | None) -> BM25:
    """Return the BM25 of texts that a file holds, or build it and save it there.

    The file is replaced if it is of other texts. If it cannot be written, nothing is saved.
    """
    if path.exists():
        bm25 = BM25.load(path, nlp=nlp)
        if bm25.digest == digest_of_stream(texts):
            return bm25
    bm25 = BM25.build(texts, nlp=nlp)
    with suppress(OSError):
        bm25.save(path)
    return bm25


def _new_index(**settings: float) -> Any:
    """Return an empty index of bm25s. RAISES (ImportError): if it is not installed."""
    return import_extra("bm25s", "BM25 needs bm25s", "search").BM25(method="lucene", **settings)


def _words_of(
    texts: Iterable[str], nlp: Language, *, are_queries: bool = False
) -> Iterator[list[str]]:
    """Yield the words of each text, see BM25."""
    # Pipes after the lemmatizer do not run
    unused = nlp.pipe_names[len(_lemma_pipes(nlp)) :]
    for doc in nlp.pipe(texts, disable=unused):
        tokens = [token for token in doc if not (token.is_punct or token.is_space)]
        if are_queries:
            tokens = [token for token in tokens if not token.is_stop] or tokens
        # A token has no lemma without a lemmatizer
        yield [(token.lemma_ or token.text).lower() for token in tokens]


def _kind_of_words(nlp: Language) -> str:
    """Return which words a pipeline makes, as messages name them."""
    kind = "lemmas" if _lemma_pipes(nlp) else "words"
    return f"{kind} of '{nlp.lang}'"


def _lemma_pipes(nlp: Language) -> list[str]:
    """Return the names of the pipes up to the last lemmatizer; none if there is none."""
    names = list(nlp.pipe_names)
    while names and "token.lemma" not in nlp.get_pipe_meta(names[-1]).assigns:
        names.pop()
    return names
