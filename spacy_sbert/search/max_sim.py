"""Rank texts by MaxSim: the vectors of their wordpieces, compared with those of a query."""

from collections.abc import Iterable

from spacy.tokens import Doc, Span

from ..pipeline.doc_vectors import check_one_encoder, encoders_of_vector, wordpiece_vectors
from ..reranker.pair_scoring import Ranked, best_first
from ..similarity import max_sim
from ..validation import Positive, validated


@validated
def rank_by_max_sim(
    query: Doc | Span,
    texts: Iterable[Doc | Span],
    k: Positive | None = None,
    *,
    name: str | None = None,
) -> list[Ranked[Doc | Span]]:
    """Order texts by how well their wordpieces match those of a query, see similarity.max_sim.

    Wordpieces have the vectors that the pipe keeps of them, in the context of what it encoded,
    without special tokens.

    query (Doc or Span), texts (Iterable): processed by an `sbert` pipe with token_vectors = true,
        such as those that a search found.
    k (int): how many to return; all if there are fewer, or None. name (str): the pipe; by default
        that of the pipe that answers `doc.vector`.
    RETURNS (list[Ranked]): the best first, the earlier first of equal ones.
    RAISES (ValueError): if the query or a text has no wordpieces, or no vectors of them.

    Example:
        best = rank_by_max_sim(nlp("Who eats?"), [nlp("It rains."), nlp("A man eats.")], k=1)[0]
        best.text

    """
    texts = list(texts)
    check_one_encoder(*(encoders_of_vector(text, name) for text in (query, *texts)))
    tokens = [wordpiece_vectors(text, name) for text in texts]
    scores = max_sim(wordpiece_vectors(query, name), tokens)
    return best_first(texts, scores, k)
