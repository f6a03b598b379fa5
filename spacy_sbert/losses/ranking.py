"""In-batch ranking: an anchor should find its positive among those of the whole batch."""

import sys
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy
from thinc.types import Floats2d, FloatsXd, Ints1d, Ints2d
from thinc.util import get_array_module

from ..models.load_pipeline import Teacher
from ..validation import Name, NonNegativeFloat, Positive, PositiveFloat, validated
from ._common import (
    DISTANCES,
    LossAndBackprop,
    LossLayer,
    Members,
    Similarity,
    compared,
    cross_entropy,
    normalize,
)
from .contrastive import hinge_of_rows, label_encode

_Inputs = tuple[Members, list[list[str]]]
_MarginStrategy = Literal["absolute", "relative"]


@validated
def MultipleNegativesRankingLoss(
    scale: PositiveFloat = 20.0, similarity: Similarity = "cosine", symmetric: bool = False
) -> LossLayer:
    """Cross-entropy of choosing each anchor's positive among all candidates of the batch.

    Candidates are all positives and hard negatives.

    loss = -1/n sum_i log(exp(scale sim(a_i, p_i)) / sum_c exp(scale sim(a_i, c)))

    c runs over p_1 .. p_n and, if there are any, all negatives of all anchors. A candidate that is
    known to be right, too, is left out: one with the text of a_i or p_i, and the positive of an
    anchor with the text of a_i.

    scale (float): the inverse of the temperature.
    similarity (str): "cosine", or "dot" (with a scale of 1).
    symmetric (bool): whether to average with the loss of choosing each positive's anchor among a_1
        .. a_n.
    Input: [a, p] or [a, p, n_1 .. n_k], each float (n, width), and the texts, list[list[str]], n of
        each member.
    RAISES (ValueError): if the batch is one pair.
    SOURCE: Henderson et al. 2017, section 4.4 (Multiple negatives); van den Oord et al. 2018,
        section 2.3.
    """
    forward = partial(_rank, scale=scale, similarity=similarity, symmetric=symmetric)
    return LossLayer(
        "MultipleNegativesRankingLoss",
        forward,
        n_members=range(2, sys.maxsize),
        gold="text",
        whole_batch=True,
    )


@validated
def CachedMultipleNegativesRankingLoss(
    mini_batch_size: Positive = 32,
    scale: PositiveFloat = 20.0,
    similarity: Similarity = "cosine",
    symmetric: bool = False,
) -> LossLayer:
    """MultipleNegativesRankingLoss with memory for mini_batch_size rows instead of all.

    Value and gradient are the same.

    The scores are computed block by block. The `sbert` pipe runs the encoder on mini_batch_size
    rows at once, too, and again when their gradient is known.

    mini_batch_size (int): how many rows at once.
    scale, similarity, symmetric, input: as of MultipleNegativesRankingLoss.
    SOURCE: Gao et al. 2021, section 3.
    """
    loss = MultipleNegativesRankingLoss(scale, similarity, symmetric)
    loss.name = "CachedMultipleNegativesRankingLoss"
    loss.mini_batch_size = mini_batch_size
    return loss


def _rank(
    model: LossLayer,
    inputs: _Inputs,
    is_train: bool,
    *,
    scale: float,
    similarity: Similarity,
    symmetric: bool,
) -> LossAndBackprop:
    members, texts = inputs
    _check_pairs(model, members, texts)
    xp = get_array_module(members[0])
    ids = xp.asarray(label_encode(texts))
    rows, back_to_members = compared(members, similarity)
    # The numbers of the query and of its answers among the members
    searches = [list(range(len(members)))]
    if symmetric:
        searches.append([1, 0])
    gradients = [xp.zeros_like(member) for member in members]
    value = xp.zeros((), dtype=members[0].dtype)
    for search in searches:
        query, *answers = (rows[number] for number in search)
        loss, derivatives = _in_batch_cross_entropy(
            query,
            answers,
            ids[search],
            scale=scale,
            block_size=model.mini_batch_size or len(members[0]),
        )
        value += loss / len(searches)
        for number, derivative in zip(search, derivatives, strict=True):
            gradients[number] += derivative / len(searches)

    def backprop(d_loss: float = 1.0) -> Members:
        return back_to_members([d_loss * gradient for gradient in gradients])

    return float(value), backprop


def _check_pairs(model: LossLayer, members: Members, texts: list[list[str]]) -> None:
    """Check the inputs, and that pairs have others in the batch."""
    model.check_inputs(members, *map(len, texts))
    if len(members) == 2 and len(members[0]) < 2:
        raise ValueError(
            f"The loss '{model.name}' got a batch of one pair, which has no negatives to rank. Set "
            "training.batcher.size to at least 2, or give each example a third member, its hard "
            "negative."
        )


def _in_batch_cross_entropy(
    queries: Floats2d, answers: list[Floats2d], ids: Ints2d, *, scale: float, block_size: int
) -> tuple[FloatsXd, list[Floats2d]]:
    """Return the mean cross-entropy of the queries' scores, and its derivatives.

    These are by the queries, and by each of the answers.

    queries, answers (each float (n, width)): the right answer has the same row; there may be hard
        negatives, too.
    ids (int (1 + len(answers), n)): equal numbers for equal texts, of the queries and of each
        answer.
    block_size (int): how many rows of the scores, (n, n len(answers)), are held at once.
    """
    xp = get_array_module(queries)
    n = len(queries)
    candidates = xp.concatenate(answers)
    d_queries = xp.zeros_like(queries)
    d_candidates = xp.zeros_like(candidates)
    total = xp.zeros((), dtype=queries.dtype)
    for start in range(0, n, block_size):
        rows = xp.arange(start, min(start + block_size, n))
        scores = scale * (queries[rows] @ candidates.T)
        scores = xp.where(_false_negatives(ids, rows), -xp.inf, scores)
        losses, d_scores = cross_entropy(scores, rows)
        d_scores = d_scores * (scale / n)
        total += xp.sum(losses)
        d_queries[rows] = d_scores @ candidates
        d_candidates += d_scores.T @ queries[rows]
    return total / n, [d_queries, *xp.split(d_candidates, len(answers))]


def _false_negatives(ids: Ints2d, rows: Ints1d) -> Ints2d:
    """Return which answers to leave out of the scores of some queries.

    RETURNS (bool (rows, n (members - 1))).

    These are answers in other rows with the text of the query or of its own answer, or to a query
    of the same text, and hard negatives in any row for the first two reasons. ids (int (members,
    n)): numbers of the texts.
    """
    xp = get_array_module(ids)
    query, answer, *hard_negatives = xp.asarray(ids)

    def same(first: Ints1d, second: Ints1d) -> Ints2d:
        return xp.expand_dims(first[rows], 1) == xp.expand_dims(second, 0)

    repeated = same(query, answer) | same(answer, answer) | same(query, query)
    elsewhere = ~same(xp.arange(len(query)), xp.arange(len(query)))
    of_hard = [same(query, hard) | same(answer, hard) for hard in hard_negatives]
    return xp.concatenate([repeated & elsewhere, *of_hard], axis=1)


@validated
def GISTEmbedLoss(
    guide: Name,
    temperature: PositiveFloat = 0.01,
    margin_strategy: _MarginStrategy = "absolute",
    margin: NonNegativeFloat = 0.0,
    contrast_anchors: bool = True,
    contrast_positives: bool = True,
) -> LossLayer:
    """Cross-entropy of choosing each anchor's positive, without negatives that may be right.

    Which these are, a guide decides: another encoder, whose vectors are not trained.

    loss = -1/n sum_i log(exp(cos(a_i, p_i) / T) / sum_(x, c) exp(cos(x, c) / T))

    (x, c) runs over (a_i, p_j), over (a_i, n) for all negatives of all anchors, and over (a_i, a_j)
    and (p_i, p_j), j != i. A pair is left out if cos_g(x, c) > cos_g(a_i, p_i) - m, where g are the
    guide's vectors; (a_i, p_i) stays. Equal texts are left out too if m is above 0.

    guide (str): a pipeline, a folder or an installed package, or the name of an encoder. It is
        loaded with the first batch, and not saved.
    temperature (float): T.
    margin_strategy (str): "absolute" for m = margin, "relative" for m = margin |cos_g(a_i, p_i)|.
    margin (float): by how much the guide should find a negative less similar.
    contrast_anchors, contrast_positives (bool): whether the pairs (a_i, a_j), and (p_i, p_j), are
        among the negatives.
    Input: [a, p] or [a, p, n_1 .. n_k], each float (n, width), and the texts, list[list[str]], n of
        each member.
    RAISES (ValueError): if the batch is one pair, or the guide has no vector of a text. (OSError):
        if there is no such guide.
    SOURCE: Solatorio 2024 (GISTEmbed), section 3; the margin as in sentence-transformers.
    """
    forward = partial(
        _guided,
        guide=Teacher(guide),
        temperature=temperature,
        margin_strategy=margin_strategy,
        margin=margin,
        contrast_anchors=contrast_anchors,
        contrast_positives=contrast_positives,
    )
    return LossLayer(
        "GISTEmbedLoss",
        forward,
        n_members=range(2, sys.maxsize),
        gold="text",
        whole_batch=True,
    )


def _guided(
    model: LossLayer,
    inputs: _Inputs,
    is_train: bool,
    *,
    guide: Teacher,
    temperature: float,
    margin_strategy: _MarginStrategy,
    margin: float,
    contrast_anchors: bool,
    contrast_positives: bool,
) -> LossAndBackprop:
    members, texts = inputs
    _check_pairs(model, members, texts)
    # The numbers of the members whose rows are compared
    pairs = [(0, number) for number in range(1, len(members))]
    if contrast_anchors:
        pairs.append((0, 0))
    if contrast_positives:
        pairs.append((1, 1))
    n = len(members[0])
    xp = get_array_module(members[0])
    of_guide = xp.asarray(guide.vectors(tuple(chain(*texts))))
    left_out = _left_out(xp.split(of_guide, len(texts)), pairs, margin_strategy, margin)
    rows, back_to_members = compared(members, "cosine")
    scores = [rows[query] @ rows[answer].T / temperature for query, answer in pairs]
    scores = xp.where(left_out, -xp.inf, xp.concatenate(scores, axis=1))
    losses, d_scores = cross_entropy(scores, xp.arange(n))
    d_blocks = xp.split(d_scores / (n * temperature), len(pairs), axis=1)
    gradients = [xp.zeros_like(member) for member in members]
    for (query, answer), d_block in zip(pairs, d_blocks, strict=True):
        gradients[query] += d_block @ rows[answer]
        gradients[answer] += d_block.T @ rows[query]

    def backprop(d_loss: float = 1.0) -> Members:
        return back_to_members([d_loss * gradient for gradient in gradients])

    return float(losses.mean()), backprop


def _left_out(
    guide: Members,
    pairs: Sequence[tuple[int, int]],
    margin_strategy: _MarginStrategy,
    margin: float,
) -> Ints2d:
    """Return which rows of pairs of members are no negatives for a guide, bool (n, n len(pairs)).

    An anchor's own positive is left in, and a text is no negative of itself.

    guide (each float (n, width)): the guide's vectors of the members.
    """
    rows, _ = compared(guide, "cosine")
    xp = get_array_module(rows[0])
    similarities = [rows[query] @ rows[answer].T for query, answer in pairs]
    # Of the anchors and their positives, the first pair
    limits = xp.diagonal(similarities[0])
    if margin_strategy == "relative":
        margin = margin * abs(limits)
    limits = xp.expand_dims(limits - margin, 1)
    blocks = []
    for (query, answer), similarity in zip(pairs, similarities, strict=True):
        block = similarity > limits
        if answer < 2:
            xp.fill_diagonal(block, query == answer)
        blocks.append(block)
    return xp.concatenate(blocks, axis=1)


@validated
def MegaBatchMarginLoss(margin: NonNegativeFloat = 0.4) -> LossLayer:
    """Penalize the most similar wrong positive if it is not a margin less similar than the right.

    loss = 1/n sum_i max(margin - cos(a_i, p_i) + cos(a_i, p_(t_i)), 0), t_i = argmax_(j wrong for
    i) cos(a_i, p_j)

    Wrong are all but those known to be right, too, as in MultipleNegativesRankingLoss; a pair
    without a wrong one counts nothing. A batch of hundreds of pairs is a mega-batch of the source,
    and one step here.

    margin (float): by how much the right one should be more similar.
    Input: [a, p], each float (n, width), and the texts, list[list[str]], n of each member; more
        than one pair.
    SOURCE: Wieting and Gimpel 2018 (ParaNMT-50M), section 4.
    """
    forward = partial(_mega_batch, margin=margin)
    return LossLayer("MegaBatchMarginLoss", forward, n_members=[2], gold="text", whole_batch=True)


def _mega_batch(
    model: LossLayer, inputs: _Inputs, is_train: bool, *, margin: float
) -> LossAndBackprop:
    members, texts = inputs
    _check_pairs(model, members, texts)
    n = len(members[0])
    xp = get_array_module(members[0])
    rows, hardest = _hardest_negatives(members[0], members[1], label_encode(texts))
    triplets = [rows, n + rows, n + hardest]
    value, backprop = hinge_of_rows(
        xp.concatenate(members), triplets, measure=DISTANCES["cosine"], margin=margin
    )

    def backprop_to_members(d_loss: float = 1.0) -> Members:
        (d_both,) = backprop(d_loss * len(rows) / n)
        return xp.split(d_both, 2)

    return value * len(rows) / n, backprop_to_members


def _hardest_negatives(
    anchors: Floats2d, positives: Floats2d, ids: Ints2d
) -> tuple[Ints1d, Ints1d]:
    """Return the rows of anchors that have a wrong positive, and of the most similar of these.

    RETURNS (two of int (m,)).

    ids (int (2, n)): equal numbers for equal texts, on the host, so that the anchors are known at
        once.
    """
    xp = get_array_module(anchors)
    all_rows: Any = numpy.arange(len(anchors))
    right = _false_negatives(ids, all_rows) | numpy.eye(len(anchors), dtype=bool)
    cosines = normalize(anchors, True)[0] @ normalize(positives, True)[0].T
    similar = xp.where(xp.asarray(right), -xp.inf, cosines)
    rows = xp.asarray(numpy.flatnonzero(~right.all(axis=1)))
    return rows, similar[rows].argmax(axis=1)
