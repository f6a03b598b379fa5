"""The in-batch ranking objective: an anchor is to find its positive among those of the whole batch."""

from functools import partial

from spacy.util import registry
from thinc.api import Model
from thinc.util import get_array_module

from ..errors import Errors
from ..validation import Positive, PositiveFloat, validated
from ._common import Backprop, LossLayer, Members, check_inputs, choose, label_encode
from ._in_batch import SIMILARITIES, in_batch_cross_entropy

Inputs = tuple[Members, list[list[str]]]


@registry.layers("spacy-sbert.MultipleNegativesRankingLoss.v1")
@validated
def MultipleNegativesRankingLoss(
    scale: PositiveFloat = 20.0, similarity: str = "cosine", symmetric: bool = False
) -> Model[Inputs, float]:
    """Cross-entropy of picking each anchor's positive out of all positives and hard negatives of the batch.

    loss = -1/n sum_i log(exp(scale sim(a_i, p_i)) / sum_c exp(scale sim(a_i, c)))

    c runs over p_1 .. p_n and, where given, n_1 .. n_n. A candidate that is known to be right, too, is left out: one
    with the text of a_i or p_i, and the positive of an anchor with the text of a_i.

    scale (float): the inverse of the temperature.
    similarity (str): "cosine", or "dot" (with a scale of 1).
    symmetric (bool): whether to average with the loss of picking each positive's anchor out of a_1 .. a_n.
    Input: [a, p] or [a, p, n], each float (n, width), and the texts, list[list[str]], n of each member.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns one derivative a member.
    RAISES (ValueError): if the similarity is unknown, members and texts do not have the same number of rows, or the
        batch is one pair.
    SOURCE: Henderson et al. 2017, section 4.4 (Multiple negatives); van den Oord et al. 2018, section 2.3.
    """
    return ranking_layer("MultipleNegativesRankingLoss", scale, similarity, symmetric)


def ranking_layer(
    name: str, scale: float, similarity: str, symmetric: bool, mini_batch_size: int | None = None
) -> LossLayer:
    """The layer behind a name; it holds the scores of mini_batch_size rows at once, None for all."""
    choose(SIMILARITIES, similarity, loss=name, setting="similarity")
    return LossLayer(
        name,
        partial(forward, scale=scale, similarity=similarity, symmetric=symmetric),
        n_members=[2, 3],
        gold="text",
        whole_batch=True,
        mini_batch_size=mini_batch_size,
    )


def forward(
    model: LossLayer, inputs: Inputs, is_train: bool, *, scale: float, similarity: str, symmetric: bool
) -> tuple[float, Backprop]:
    members, texts = inputs
    check_inputs(model, members, *map(len, texts))
    if len(members) == 2 and len(members[0]) < 2:
        raise ValueError(Errors.NO_NEGATIVES.format(loss=model.name))
    xp = get_array_module(members[0])
    ids = label_encode(texts, xp)
    entered = [SIMILARITIES[similarity](member) for member in members]
    searches = [list(range(len(members)))]  # each a query and its answers, by number of the member
    if symmetric:
        searches.append([1, 0])
    gradients = [xp.zeros_like(member) for member in members]
    value = xp.zeros((), dtype=members[0].dtype)
    for query, *answers in searches:
        found, derivatives = in_batch_cross_entropy(
            entered[query][0],
            [entered[answer][0] for answer in answers],
            ids[[query, *answers]],
            scale=scale,
            block_size=model.mini_batch_size or len(members[0]),
        )
        value += found / len(searches)
        for member, derivative in zip([query, *answers], derivatives, strict=True):
            gradients[member] += derivative / len(searches)

    def backprop(d_loss: float = 1.0) -> Members:
        return [back(d_loss * gradient) for (_, back), gradient in zip(entered, gradients, strict=True)]

    return float(value), backprop


@registry.layers("spacy-sbert.CachedMultipleNegativesRankingLoss.v1")
@validated
def CachedMultipleNegativesRankingLoss(
    mini_batch_size: Positive = 32, scale: PositiveFloat = 20.0, similarity: str = "cosine", symmetric: bool = False
) -> Model[Inputs, float]:
    """MultipleNegativesRankingLoss, the same value and gradient, with memory for mini_batch_size rows instead of all.

    loss = -1/n sum_i log(exp(scale sim(a_i, p_i)) / sum_c exp(scale sim(a_i, c)))

    The scores are held block by block. The `sbert` pipe reads mini_batch_size from the layer and has the encoder run
    that many rows at once, too: first without keeping what backpropagation needs, and again once the gradient of the
    vectors is known.

    mini_batch_size (int): how many rows at once.
    scale, similarity, symmetric: as in MultipleNegativesRankingLoss.
    Input: [a, p] or [a, p, n], each float (n, width), and the texts, list[list[str]], n of each member.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns one derivative a member.
    RAISES (ValueError): as MultipleNegativesRankingLoss, and for a setting of another type or range.
    SOURCE: Gao et al. 2021, section 3.
    """
    return ranking_layer("CachedMultipleNegativesRankingLoss", scale, similarity, symmetric, mini_batch_size)
