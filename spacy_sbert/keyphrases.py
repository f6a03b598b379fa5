"""Phrases that name a text: the component `sbert_keyphrases`; terms that name a group of texts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import Annotated, Any, Literal

import numpy
from pydantic import Field
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, SpanGroup, Token
from spacy.util import minibatch
from spacy.vocab import Vocab

from .pipeline import doc_vectors
from .pipeline.components import InPipeline, find_encoding_pipe
from .pipeline.records import names
from .similarity import unit_length
from .validation import Name, Positive, SpansKey, check_docs, validated

Diversity = Annotated[float, Field(ge=0, le=1)]
Candidates = Literal["auto", "noun_chunks", "ngrams"]
NgramSizes = Annotated[Sequence[Positive], Field(min_length=1)]


class KeyphraseExtractor(Pipe):
    """Phrases of a text whose own vectors are near its vector, and far from each other.

    Writes them to doc.spans[spans_key], the first chosen first; attrs["scores"] of that SpanGroup
    holds their cosines to the vector of the text, float32. They are chosen by maximal marginal
    relevance among the candidates. A candidate begins and ends with a word that is no stop word,
    and of equal ones, in any case, the first is taken.

    vocab (Vocab): the pipeline's.
    name (str): the pipe's name.
    top_n (int): the most phrases of a text.
    diversity (float): 1 - lambda of maximal_marginal_relevance.
    candidates (str): "noun_chunks" for those of a parser, "ngrams", or "auto" for noun chunks where
        the text is parsed and its language has them, else n-grams.
    ngram_sizes (list[int]): the numbers of tokens of n-grams, in which no punctuation is but
        hyphens.
    spans_key (str): where phrases are stored.
    upstream (str): the pipe whose vectors are compared; "*" for the nearest before this one.
    nlp (Language): the pipeline that the pipe is made for.
    RAISES (ValueError): if a setting is not what it should be.

    Example:
        nlp.add_pipe("sbert")
        nlp.add_pipe("sbert_keyphrases", config={"top_n": 3})
        [span.text for span in nlp("The library opens at nine.").spans["keyphrases"]]

    """

    @validated
    def __init__(
        self,
        vocab: Vocab,
        name: str = "sbert_keyphrases",
        *,
        top_n: Positive = 5,
        diversity: Diversity = 0.5,
        candidates: Candidates = "auto",
        ngram_sizes: NgramSizes = (1, 2, 3),
        spans_key: SpansKey = "keyphrases",
        upstream: Name = "*",
        nlp: Language | None = None,
    ):
        self.vocab = vocab
        self.name = name
        self.top_n = top_n
        self.diversity = diversity
        self.candidates = candidates
        self.ngram_sizes = list(ngram_sizes)
        self.spans_key = spans_key
        self.upstream = upstream
        self._in_pipeline = InPipeline(nlp)

    def __call__(self, doc: Doc) -> Doc:
        """Store the phrases of a Doc."""
        return next(self.pipe([doc]), doc)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Store the phrases of Docs; the candidates of a batch are encoded at once."""
        handle_error = self.get_error_handler()
        for docs in minibatch(stream, size=batch_size):
            try:
                self._annotate(docs)
            except Exception as error:
                handle_error(self.name, self, docs, error)
            else:
                yield from docs

    def _annotate(self, docs: list[Doc]) -> None:
        check_docs(docs, self.name, "Of a text, nlp(text) is a Doc.")
        encoder = self._encoder(docs[0])
        candidates = [self._candidates(doc) for doc in docs]
        texts = list(dict.fromkeys(span.text for spans in candidates for span in spans))
        vectors = dict(zip(texts, encoder.encode(texts), strict=True))
        own = {encoder.fingerprint(): f"the pipe '{encoder.name}'"}
        for doc, spans in zip(docs, candidates, strict=True):
            doc_vectors.check_one_encoder(doc_vectors.encoders_of_vector(doc, encoder.name), own)
            chosen, scores = maximal_marginal_relevance(
                doc_vectors.vector(doc, encoder.name),
                numpy.array([vectors[span.text] for span in spans]),
                top_n=self.top_n,
                diversity=self.diversity,
            )
            phrases = [spans[place] for place in chosen]
            doc.spans[self.spans_key] = SpanGroup(
                doc, name=self.spans_key, spans=phrases, attrs={"scores": scores}
            )

    def _encoder(self, doc: Doc) -> Any:
        """Return the pipe whose vector a Doc has, and which encodes candidates.

        RAISES (ValueError): if there is none.
        """
        nlp = self._in_pipeline.nlp
        if nlp is None:
            # In another process pipes are without their pipeline: those that encoded the Doc there
            given = [name for name in names(doc) if self.upstream in ("*", name)]
            pipes = [doc_vectors.pipe_of(doc, name) for name in given]
            if pipes and pipes[-1] is not None:
                return pipes[-1]
        return find_encoding_pipe(nlp, self, self.upstream)

    def _candidates(self, doc: Doc) -> list[Span]:
        """Return the phrases that may be chosen, each text once."""
        is_parsed = doc.has_annotation("DEP") and doc.noun_chunks_iterator is not None  # type: ignore[attr-defined]
        if self.candidates == "noun_chunks" or (self.candidates == "auto" and is_parsed):
            found = list(_noun_phrases(doc))
        else:
            found = [span for size in self.ngram_sizes for span in _ngrams(doc, size)]
        distinct: dict[str, Span] = {}
        for span in found:
            distinct.setdefault(span.text.lower(), span)
        return list(distinct.values())


def _noun_phrases(doc: Doc) -> Iterator[Span]:
    """Yield noun chunks from their first to their last word that is no stop word."""
    for chunk in doc.noun_chunks:
        words = [token.i for token in chunk if _is_word(token)]
        if words:
            yield doc[words[0] : words[-1] + 1]


def _ngrams(doc: Doc, size: int) -> Iterator[Span]:
    for end in range(size, len(doc) + 1):
        ngram = doc[end - size : end]
        has_words = all(_has_text(token) or token.text == "-" for token in ngram)
        if has_words and _is_word(ngram[0]) and _is_word(ngram[-1]):
            yield ngram


def _is_word(token: Token) -> bool:
    """Return whether a phrase may begin or end with a token."""
    return _has_text(token) and not token.is_stop


def _has_text(token: Token) -> bool:
    return any(character.isalnum() for character in token.text)


@validated
def maximal_marginal_relevance(
    vector: numpy.ndarray, candidates: numpy.ndarray, *, top_n: Positive, diversity: Diversity
) -> tuple[list[int], numpy.ndarray]:
    """Choose candidates that are near a vector, one after the other, and far from those chosen.

    next = argmax over c of lambda cos(c, d) - (1 - lambda) max over chosen s of cos(c, s)

    The first is the nearest.

    vector (float32 (width,)): d, of a text. candidates (float32 (n, width)): c.
    top_n (int): how many are chosen, if there are as many.
    diversity (float): 1 - lambda, from 0, the nearest, to 1, the most different ones.
    RETURNS (list[int], float32 (chosen,)): the rows of those chosen, in the order of choice, and
        their cos(c, d).
    SOURCE: Carbonell and Goldstein 1998, The Use of MMR, Diversity-Based Reranking for Reordering
        Documents and Producing Summaries, section 2.
    """
    chosen: list[int] = []
    rows = unit_length(candidates.reshape(-1, len(vector)))
    relevance = rows @ unit_length(vector[None])[0]
    scores = relevance
    redundancy = numpy.full_like(relevance, -1.0)
    while len(chosen) < min(top_n, len(rows)):
        chosen.append(int(scores.argmax()))
        redundancy = numpy.maximum(redundancy, rows @ rows[chosen[-1]])
        scores = (1 - diversity) * relevance - diversity * redundancy
        scores[chosen] = -numpy.inf
    return chosen, relevance[chosen]


# Groups of texts


def words_of(text: Doc | Span) -> list[str]:
    """Return the words of a text that can name it, in lower case.

    They have two or more letters, and are no stop words.
    """
    return [
        token.lower_ for token in text if token.is_alpha and not token.is_stop and len(token) > 1
    ]


def class_terms(
    words: Iterable[Sequence[str]], group: Sequence[int], groups: int, *, count: int = 3
) -> list[list[str]]:
    """Return the terms of each group with the highest class-based tf-idf, the highest first.

    W(t, c) = tf(t, c) / |c| log(1 + A / tf(t))

    tf(t, c) is how often the term t occurs in group c, |c| how many words the group has, tf(t) how
    often the term occurs in all groups, and A the mean number of words of a group that has any. Of
    equal terms the first in the alphabet comes first.

    words (Iterable of lists of str): the words of each text. group (Sequence[int]): the group of
        each text, from 0.
    groups (int): the number of groups. count (int): the number of terms for each group.
    RETURNS (list of lists of str): fewer for a group with fewer different words.
    RAISES (ValueError): if the texts and the groups are not as many.
    SOURCE: Grootendorst 2022, BERTopic: Neural topic modeling with a class-based TF-IDF procedure,
        section 3.3; tf divided by |c| as in its software.

    Example:
        words = [words_of(nlp.make_doc(text)) for text in texts]
        class_terms(words, kmeans_clusters(vectors, n_clusters=10), 10)

    """
    counts: list[Counter[str]] = [Counter() for _ in range(groups)]
    for tokens, place in zip(words, group, strict=True):
        counts[place].update(tokens)
    total = sum(counts, Counter())
    n_filled = len(list(filter(None, counts)))
    mean = total.total() / max(1, n_filled)
    terms: list[list[str]] = []
    for own in counts:
        # |c| is the same for all terms of a group, which is all that are compared
        weights = {term: tf * log(1 + mean / total[term]) for term, tf in own.items()}
        terms.append(sorted(weights, key=lambda term: (-weights[term], term))[:count])
    return terms
