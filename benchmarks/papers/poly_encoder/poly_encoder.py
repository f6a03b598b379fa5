"""A poly-encoder (Humeau, Shuster, Lachaux and Weston 2020), as an architecture, a loss and a
scorer of one's own.

    python -m spacy sbert train benchmarks/papers/poly_encoder/poly_encoder.cfg
        --code benchmarks/papers/poly_encoder/poly_encoder.py --output training/poly

The vector of a text is the concatenation of 1 + m vectors: the mean of the states of its
wordpieces, and m others by learned codes, for the text as a context. A context is compared with a
candidate by `poly_scores`, which takes the m vectors of the one and the mean of the other.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy
from sklearn.metrics import average_precision_score
from spacy.training import Example
from spacy.util import registry
from thinc.api import Model, uniform_init
from thinc.types import Ragged
from thinc.util import get_array_module

from spacy_sbert.losses import LossLayer
from spacy_sbert.models.heads import normalization
from spacy_sbert.models.pooling import SentencePooling
from spacy_sbert.models.sentence_encoder import SentenceEncoder

# An array of NumPy or CuPy
Array = Any
# As in MultipleNegativesRankingLoss
SCALE = 20.0


# Architecture


@registry.architectures("poly_encoder.v1")
def poly_encoder(
    encoder: SentenceEncoder, n_codes: int = 16, width: int = 384, learn_rate_factor: float = 50.0
) -> SentenceEncoder:
    """Return a sentence encoder whose vectors have 1 + n_codes parts, each of unit length.

    encoder (SentenceEncoder): whose states are pooled; its own pooling is not used.
    n_codes (int): m, how many vectors a context has beside the mean of its states.
    width (int): the width of the states.
    learn_rate_factor (float): how many times faster than the encoder the codes learn.
    """
    # An Encoder is a Model, too
    source: Any = encoder.source
    return SentenceEncoder(source, PolyPooling(n_codes, width, learn_rate_factor))


class PolyPooling(SentencePooling):
    """Pool the states of a text by their mean, and by m learned codes that attend to them."""

    def __init__(self, n_codes: int, width: int, learn_rate_factor: float):
        super().__init__("mean", normalize=False)
        self.layers[0] = code_attention(n_codes, width, learn_rate_factor)
        # That of SentencePooling leaves its pooling out
        self.init = _initialize_layers
        self.n_codes = n_codes
        # No registered name: what pools by name, such as an export, refuses it
        self.pooling_name = f"poly-{n_codes}"

    def pooled_width(self, hidden: int) -> int:
        return hidden * (1 + self.n_codes)


def _initialize_layers(model: Model, X: object = None, Y: object = None) -> None:
    for layer in model.layers:
        layer.initialize()


def code_attention(n_codes: int, width: int, learn_rate_factor: float) -> Model[Ragged, Array]:
    """Return a layer that makes 1 + m vectors of the states of each sequence.

    y_i = sum_j a_ij x_j,   a_i = softmax_j(c_i . x_j),   c_0 = 0

    The softmax of zeros is uniform, so that y_0 is the mean. Each y_i is scaled to unit length.

    Input: x, float (wordpieces, width). Output: y_0 .. y_m, float (sequences, (1 + m) width).
    Its parameter "codes" is c / learn_rate_factor: a step of Adam has the size of the learning
    rate, so that c moves by learn_rate_factor times as much.
    SOURCE: Humeau et al. 2020, section 4.4 (learned codes).
    """

    def init(model: Model, X: object = None, Y: object = None) -> None:
        if not model.has_param("codes"):
            # States of MiniLM have length 7 to 12: c . x is between -1 and 1, for the most part
            bound = 0.1 / learn_rate_factor
            model.set_param("codes", uniform_init(model.ops, (n_codes, width), lo=-bound, hi=bound))

    def forward(
        model: Model, states: Ragged, is_train: bool
    ) -> tuple[Array, Callable[[Array], Ragged]]:
        xp = model.ops.xp
        lengths: Any = states.lengths
        codes = learn_rate_factor * model.get_param("codes")
        codes = xp.concatenate([xp.zeros_like(codes[:1]), codes])
        borders = numpy.cumsum(lengths)[:-1].tolist()
        texts = xp.split(states.dataXd, borders)
        weights = [_softmax(codes @ x.T) for x in texts]
        parts = xp.concatenate([a @ x for a, x in zip(weights, texts, strict=True)])
        unit_parts: Array
        unit_parts, backprop_length = normalization()(parts, is_train)
        n_texts = len(texts)

        def backprop(d_vectors: Array) -> Ragged:
            d_parts = backprop_length(d_vectors.reshape(parts.shape))
            d_texts = []
            d_codes = xp.zeros_like(codes)
            for x, a, dy in zip(texts, weights, xp.split(d_parts, n_texts), strict=True):
                d_logits = _backprop_softmax(dy @ x.T, a)
                d_texts.append(a.T @ dy + d_logits.T @ codes)
                d_codes += d_logits @ x
            # The first is no parameter
            model.inc_grad("codes", learn_rate_factor * d_codes[1:])
            return Ragged(xp.concatenate(d_texts), lengths)

        return unit_parts.reshape(n_texts, -1), backprop

    return Model("code_attention", forward, init=init, params={"codes": None})


# Score and loss


def poly_scores(
    contexts: Array, candidates: Array, scale: float = SCALE
) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """Return the score of each context with each candidate, float (n, k), and its backprop.

    score = sum_i w_i s_i,   w = softmax(s),   s_i = scale (y_i . c)

    This is y . c of the paper, with y = sum_i w_i y_i and vectors of length sqrt(scale).

    contexts (float (n, m, width)): y_1 .. y_m of each context. candidates (float (k, width)): c.
    SOURCE: Humeau et al. 2020, section 4.4.
    """
    xp = get_array_module(candidates)
    # (n, k, m)
    similarities = scale * xp.swapaxes(contexts @ candidates.T, 1, 2)
    scores, backprop_attention = _attended(similarities)

    def backprop(d_scores: Array) -> tuple[Array, Array]:
        d_products = backprop_attention(scale * d_scores)
        d_contexts = xp.einsum("nkm,kd->nmd", d_products, candidates)
        d_candidates = xp.einsum("nkm,nmd->kd", d_products, contexts)
        return d_contexts, d_candidates

    return scores, backprop


def poly_scores_of_pairs(
    contexts: Array, candidates: Array, scale: float = SCALE
) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """Return the score of each context with its own candidate, float (n,), and its backprop.

    contexts (float (n, m, width)), candidates (float (n, width)): see poly_scores.
    """
    xp = get_array_module(candidates)
    # (n, m)
    similarities = scale * (contexts @ candidates[:, :, None])[..., 0]
    scores, backprop_attention = _attended(similarities)

    def backprop(d_scores: Array) -> tuple[Array, Array]:
        d_products = backprop_attention(scale * d_scores)
        d_contexts = d_products[..., None] * candidates[:, None]
        d_candidates = xp.einsum("nm,nmd->nd", d_products, contexts)
        return d_contexts, d_candidates

    return scores, backprop


def _attended(similarities: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Return the mean of similarities, weighted by their softmax over the last axis."""
    weights = _softmax(similarities)
    scores = (weights * similarities).sum(axis=-1)

    def backprop(d_scores: Array) -> Array:
        return d_scores[..., None] * weights * (1 + similarities - scores[..., None])

    return scores, backprop


@registry.layers("poly_ranking.v1")
def poly_ranking(n_codes: int = 16, scale: float = SCALE) -> LossLayer:
    """Return the cross-entropy of choosing the second text of each pair among those of the batch.

    A candidate that is known to be right, too, is left out, as in MultipleNegativesRankingLoss.

    n_codes (int): m, as in the architecture.
    SOURCE: Humeau et al. 2020, section 4 (in-batch negatives).
    """

    def forward(
        model: LossLayer, inputs: tuple[list[Array], list[list[str]]], is_train: bool
    ) -> tuple[float, Callable]:
        (u, v), (first, second) = inputs
        xp = get_array_module(u)
        n = len(u)
        contexts = context_vectors(u, n_codes)
        candidates = candidate_vectors(v, n_codes)
        scores, backprop_scores = poly_scores(contexts, candidates, scale)
        scores = xp.where(xp.asarray(_also_right(first, second)), -xp.inf, scores)
        probabilities = _softmax(scores)
        loss = -xp.log(xp.diagonal(probabilities)).mean()

        def backprop(d_loss: float = 1.0) -> list[Array]:
            d_scores = (d_loss / n) * (probabilities - xp.eye(n, dtype=scores.dtype))
            return _in_vectors(u, v, n_codes, *backprop_scores(d_scores))

        return float(loss), backprop

    return LossLayer("poly_ranking", forward, n_members=[2], gold="text", whole_batch=True)


@registry.layers("poly_regression.v1")
def poly_regression(n_codes: int = 16, scale: float = SCALE) -> LossLayer:
    """Return the mean squared error of the score of each pair.

    mean((score / scale - y)^2), with the gold score y

    n_codes (int): m, as in the architecture.
    """

    def forward(
        model: LossLayer, inputs: tuple[list[Array], Array], is_train: bool
    ) -> tuple[float, Callable]:
        (u, v), gold = inputs
        scores, backprop_scores = poly_scores_of_pairs(
            context_vectors(u, n_codes), candidate_vectors(v, n_codes), scale
        )
        errors = scores / scale - gold

        def backprop(d_loss: float = 1.0) -> list[Array]:
            d_scores = (2 * d_loss / (scale * len(gold))) * errors
            return _in_vectors(u, v, n_codes, *backprop_scores(d_scores))

        return float((errors**2).mean()), backprop

    return LossLayer("poly_regression", forward, n_members=[2], gold="score")


def _in_vectors(
    u: Array, v: Array, n_codes: int, d_contexts: Array, d_candidates: Array
) -> list[Array]:
    """Return the gradients of the vectors of both texts, which are 0 for the parts not used."""
    xp = get_array_module(u)
    du = xp.zeros_like(u)
    dv = xp.zeros_like(v)
    context_vectors(du, n_codes)[:] = d_contexts
    candidate_vectors(dv, n_codes)[:] = d_candidates
    return [du, dv]


def context_vectors(vectors: Array, n_codes: int) -> Array:
    """Return the vectors y_1 .. y_m of contexts, a view of float (n, m, width)."""
    return vectors.reshape(len(vectors), 1 + n_codes, -1)[:, 1:]


def candidate_vectors(vectors: Array, n_codes: int) -> Array:
    """Return the vectors of candidates, the mean of their states, a view of float (n, width)."""
    return vectors.reshape(len(vectors), 1 + n_codes, -1)[:, 0]


def _also_right(first: Sequence[str], second: Sequence[str]) -> numpy.ndarray:
    """Return which second texts are right for another pair's first text, too: bool (n, n)."""
    queries = numpy.array(first)
    answers = numpy.array(second)
    repeated = queries[:, None] == answers
    repeated |= answers[:, None] == answers
    repeated |= queries[:, None] == queries
    numpy.fill_diagonal(repeated, False)
    return repeated


def _softmax(logits: Array) -> Array:
    """Return the softmax over the last axis."""
    powers = get_array_module(logits).exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _backprop_softmax(d_weights: Array, weights: Array) -> Array:
    """Return the gradient of the logits of a softmax over the last axis."""
    weighted = weights * d_weights
    return weighted - weights * weighted.sum(axis=-1, keepdims=True)


# Scorer


@registry.scorers("poly_scorer.v1")
def poly_scorer(n_codes: int = 16) -> Callable:
    """Return a scorer of pairs with gold scores 0 and 1: "poly_ap", the average precision."""

    def score(
        examples: Iterable[Example], *, name: str, spans_key: str, **kwargs: object
    ) -> dict[str, float | None]:
        scores = []
        gold = []
        for example in examples:
            members = example.predicted.spans.get(spans_key)
            value = example.reference.spans[spans_key].attrs.get("score")
            if members is not None and len(members) == 2 and value is not None:
                vectors = numpy.stack([member.vector for member in members])
                scores.append(score_rows(vectors[:1], vectors[1:], n_codes)[0])
                gold.append(value)
        if set(gold) != {0.0, 1.0}:
            return {"poly_ap": None}
        return {"poly_ap": float(average_precision_score(gold, scores))}

    return score


def score_rows(first: Array, second: Array, n_codes: int) -> Array:
    """Return the score of each context with the candidate of the same row, float (n,).

    first, second (float (n, (1 + n_codes) width)): the vectors of pairs of texts.
    """
    contexts = context_vectors(first, n_codes)
    candidates = candidate_vectors(second, n_codes)
    return poly_scores_of_pairs(contexts, candidates)[0]
