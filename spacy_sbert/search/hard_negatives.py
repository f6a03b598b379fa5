"""Hard negatives: texts that are similar to an anchor, and are none of its positives."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy

from ..pipeline.sbert import SentenceBert
from ..progress import progress_of
from ..reranker.component import SentenceReranker
from ..similarity import cosine
from ..validation import NonNegative, NonNegativeFloat, Positive, short_repr, validated
from .exact import nearest


class MinedPair(NamedTuple):
    """Pair of an anchor and a positive, with its hard negatives.

    negatives (tuple of str): the most similar first; fewer if there are not enough.
    scores (tuple of float): of the positive, and of each negative.
    """

    anchor: str
    positive: str
    negatives: tuple[str, ...]
    scores: tuple[float, ...]


@validated
def mine_hard_negatives(
    pipe: SentenceBert,
    pairs: Sequence[tuple[str, str]],
    corpus: Sequence[str] = (),
    *,
    cross_encoder: SentenceReranker | None = None,
    range_min: NonNegative = 0,
    range_max: Positive | None = None,
    max_score: float = math.inf,
    min_score: float = -math.inf,
    absolute_margin: NonNegativeFloat | None = None,
    relative_margin: NonNegativeFloat | None = None,
    num_negatives: Positive = 3,
    progress: bool = False,
) -> list[MinedPair]:
    """Find hard negatives of each pair among the texts of a corpus, by cosine similarity, exactly.

    Candidates are the texts that are most similar to the anchor, without the anchor itself and all
    of its positives. Of those that the scores and margins leave, ranks range_min to range_max
    count, and the most similar of these are taken. Anchors get the encoder's prompt for queries,
    texts that for documents.

    pipe (SentenceBert): the encoder.
    pairs (Sequence of (str, str)): anchors and positives; an anchor may have several.
    corpus (Sequence[str]): other texts, beside all positives. Blank ones do not count, nor white
        space around the others.
    cross_encoder (SentenceReranker): scores candidates and positives in place of the cosine.
    range_min (int): how many of the most similar candidates to skip.
    range_max (int): how many candidates count, with those. By default range_min + num_negatives +
        the most positives of an anchor, and 9 num_negatives more if a cross-encoder scores, or
        max_score or a margin leaves candidates out.
    max_score, min_score (float): the range of a negative's score.
    absolute_margin (float): by how much its score must be below that of the anchor's positive, of
        several the lowest.
    relative_margin (float): the same as a fraction of the positive's score, in absolute value.
    num_negatives (int): how many of each pair. progress (bool): whether to show progress bars.
    RETURNS (list of MinedPair): each different pair, those of one anchor together.
    RAISES (ValueError): if there are no pairs, a text of one is blank, an anchor is its own
        positive, a setting is out of range, or there are too few texts.
    SOURCE: mine_hard_negatives of sentence-transformers 6.2, which rescores only if there are
        margins, or a range of scores; Moreira et al. 2024 (NV-Retriever), section 3.2 (margins).

    Example:
        for pair in mine_hard_negatives(pipe, [("Who eats?", "A man.")], texts, num_negatives=1):
            print(pair.anchor, pair.negatives, pair.scores)

    """
    by_anchor = _positives_by_anchor(pairs)
    n_positives = max(map(len, by_anchor.values()))
    needed = range_min + num_negatives
    if range_max is None:
        range_max = needed + n_positives
        # With any of these, more candidates are needed
        options = (cross_encoder, max_score, absolute_margin, relative_margin)
        if options != (None, math.inf, None, None):
            range_max += 9 * num_negatives
    others = filter(None, map(str.strip, corpus))
    texts = list(dict.fromkeys(chain(others, *by_anchor.values())))
    # One is the positive
    n_ranks = min(range_max, len(texts) - 1)
    if needed > n_ranks:
        raise ValueError(
            f"There are no num_negatives = {num_negatives} after range_min = {range_min} among "
            f"{n_ranks} ranks. Lower them, or give more texts or a larger range_max."
        )
    queries = pipe.encode(list(by_anchor), prompt=pipe.prompt_of_role("query"), progress=progress)
    vectors = pipe.encode(texts, prompt=pipe.prompt_of_role("document"), progress=progress)
    mined: list[MinedPair] = []
    search = _search(by_anchor, queries, texts, vectors, range_max + n_positives)
    search = progress_of(search, total=len(queries), desc="Mining", unit="anchors", shown=progress)
    for anchor, scores in search:
        if cross_encoder is not None:
            scores = {one.text: one.score for one in cross_encoder.rank(anchor, list(scores))}
        own = by_anchor[anchor]
        lowest = min(scores[positive] for positive in own)
        limit = _limit(lowest, max_score, absolute_margin, relative_margin)
        ranked = [text for text in scores if text not in own and min_score <= scores[text] <= limit]
        negatives = tuple(ranked[range_min:needed])
        for positive in own:
            own_scores = tuple(scores[text] for text in (positive, *negatives))
            mined.append(MinedPair(anchor, positive, negatives, own_scores))
    return mined


def _positives_by_anchor(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the different positives of each anchor, in their order.

    RAISES (ValueError): if there is no pair, a text is blank, or a pair is one text twice.
    """
    by_anchor: dict[str, list[str]] = {}
    for pair in pairs:
        anchor, positive = map(str.strip, pair)
        if not anchor or not positive or anchor == positive:
            raise ValueError(
                f"The pair {short_repr(pair)} has a blank text, or one text twice. Remove it."
            )
        own = by_anchor.setdefault(anchor, [])
        if positive not in own:
            own.append(positive)
    if not by_anchor:
        raise ValueError("There are no pairs of an anchor and its positive. Give one or more.")
    return by_anchor


def _search(
    by_anchor: Mapping[str, Sequence[str]],
    queries: numpy.ndarray,
    texts: Sequence[str],
    vectors: numpy.ndarray,
    k: int,
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each anchor with the scores of its k most similar texts, the best first.

    The anchor itself is left out, and the scores of its positives are added.

    queries, vectors (float32 (n, width)): of the anchors, and of the texts.
    """
    rows = {text: row for row, text in enumerate(texts)}
    # One more, which may be the anchor itself
    best = nearest(queries, vectors, k=min(k + 1, len(texts)))
    for query, (anchor, own), scores, near in zip(queries, by_anchor.items(), *best, strict=True):
        others = [place for place, row in enumerate(near) if texts[row] != anchor][:k]
        found = {texts[near[place]]: float(scores[place]) for place in others}
        own_rows = [rows[positive] for positive in own]
        own_scores = cosine(numpy.stack([query] * len(own)), vectors[own_rows])
        yield anchor, found | dict(zip(own, own_scores.tolist(), strict=True))


def _limit(
    positive: float,
    max_score: float,
    absolute_margin: float | None,
    relative_margin: float | None,
) -> float:
    """Return the highest score that a negative may have. positive: the score of the positive."""
    limits = [max_score]
    if absolute_margin is not None:
        limits.append(positive - absolute_margin)
    if relative_margin is not None:
        limits.append(positive - relative_margin * abs(positive))
    return min(limits)
