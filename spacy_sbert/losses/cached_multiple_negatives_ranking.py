"""The in-batch ranking objective for batches that are larger than the device."""

from spacy.util import registry
from thinc.api import Model

from ..errors.checks import Positive, PositiveFloat, validated
from .multiple_negatives_ranking import Inputs, ranking_layer


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
