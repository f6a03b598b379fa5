"""Measures of rankings: how far up the documents are that answer a query."""

from collections.abc import Mapping, Sequence

import numpy

# How many documents of each query are looked at
DEPTH = 100
_TOP = 10
MEASURES = ("ndcg_at_10", "mrr_at_10", "recall_at_100", "map_at_100")


def ranking_measures(
    ranked: numpy.ndarray, gains: Sequence[Mapping[int, int]]
) -> dict[str, numpy.ndarray]:
    """Return the measures of each ranking.

    nDCG@10 = sum_{i <= 10} gain_i / log2(i + 1), divided by the same of the best ranking there is
    MRR@10 = 1 / (rank of the first relevant document), 0 if it is not among the first 10
    recall@100 = relevant documents among the first 100 / relevant documents
    MAP@100 = sum_{relevant i <= 100} precision@i / min(100, relevant documents)

    A document is relevant if its gain is 1 or more. The order of `ranked` decides between documents
    of equal scores.

    ranked (int64 (n, k)): the documents that were found for each query, the best first.
    gains (Sequence): of each query, the gains, 0 or more, of the documents that were judged, of
        which at least one is relevant.
    RETURNS (dict): MEASURES, float64 (n,) each.
    SOURCE: Järvelin and Kekäläinen 2002 (nDCG); trec_eval, and BEIR (Thakur et al. 2021), section
        3.3; MAP as InformationRetrievalEvaluator of sentence-transformers 6.2: trec_eval divides by
        all relevant documents if there are more than 100.
    """
    per_query = [_measures(row, gain) for row, gain in zip(ranked, gains, strict=True)]
    return dict(zip(MEASURES, numpy.array(per_query).T, strict=True))


def _measures(ranked: numpy.ndarray, judged: Mapping[int, int]) -> list[float]:
    """Return MEASURES of one ranking, (k,)."""
    best = sorted(filter(None, judged.values()), reverse=True)
    found = [judged.get(row, 0) for row in ranked[:DEPTH].tolist()]
    # From 1
    ranks = numpy.flatnonzero(found) + 1
    precisions = numpy.arange(1, len(ranks) + 1) / ranks
    return [
        _discounted(found[:_TOP]) / _discounted(best[:_TOP]),
        (1 / ranks[ranks <= _TOP]).max(initial=0),
        len(ranks) / len(best),
        precisions.sum() / min(DEPTH, len(best)),
    ]


def _discounted(gains: Sequence[int]) -> float:
    """Return the discounted cumulative gain."""
    return (gains / numpy.log2(numpy.arange(2, len(gains) + 2))).sum()
