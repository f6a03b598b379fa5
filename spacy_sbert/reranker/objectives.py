"""What a cross-encoder is trained on: losses of its logits, each with its gradient."""

from thinc.types import Floats1d, Floats2d, Ints1d
from thinc.util import get_array_module

from ..losses._common import cross_entropy, mean_square
from ..models.heads import sigmoid
from .classifier import SCORE_ACTIVATIONS


def binary_cross_entropy(logits: Floats2d, gold: Floats1d) -> tuple[float, Floats2d]:
    """Return the binary cross-entropy of the one output's sigmoid, and its derivative by s.

    The derivative is float (n, 1).

    loss = -1/n sum_i (y_i log sigmoid(s_i) + (1 - y_i) log(1 - sigmoid(s_i)))

    logits (float (n, 1)): s. gold (float (n,)): y, from 0 to 1.
    """
    xp = get_array_module(logits)
    scores = xp.asarray(logits)[:, 0]
    losses = xp.logaddexp(xp.zeros_like(scores), scores) - gold * scores
    d_scores = (sigmoid(scores) - gold) / len(gold)
    return float(losses.mean()), d_scores[:, None]


def mean_squared_error(
    logits: Floats2d, gold: Floats1d, activation: str = "identity"
) -> tuple[float, Floats2d]:
    """Return the mean squared error of the one output's score, and its derivative by s.

    The derivative is float (n, 1).

    loss = 1/n sum_i (f(s_i) - y_i)^2

    logits (float (n, 1)): s. gold (float (n,)): y, from 0 to 1.
    activation (str): f: "identity", the linear output, or "sigmoid", whose derivative is f(s) (1 -
        f(s)).
    SOURCE: Devlin et al. 2019, section 4.1, on the STS benchmark (identity); Reimers and Gurevych
        2019, section 3, regression by mean squared error.
    """
    scores = SCORE_ACTIVATIONS[activation](logits)[:, 0]
    errors = scores - gold
    slopes = 1.0
    if activation == "sigmoid":
        slopes = scores * (1 - scores)
    d_scores = 2 * errors * slopes / len(gold)
    return mean_square(errors), d_scores[:, None]


def label_cross_entropy(logits: Floats2d, targets: Ints1d) -> tuple[float, Floats2d]:
    """Return the mean of cross_entropy over the pairs, and its derivative by the logits.

    logits, and the derivative (float (n, labels)). targets (int (n,)): the label of each pair.
    """
    losses, d_logits = cross_entropy(logits, targets)
    return float(losses.mean()), d_logits / len(targets)
