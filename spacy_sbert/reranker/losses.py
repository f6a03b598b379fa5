"""What a cross-encoder learns from: the score of a pair, or its label."""

from thinc.types import Floats1d, Floats2d, Ints1d
from thinc.util import get_array_module

from ..layers.sigmoid import sigmoid
from ..losses.parts.cross_entropy import cross_entropy
from ..losses.parts.squares import squares
from .activation import ACTIVATIONS


def binary_cross_entropy(logits: Floats2d, gold: Floats1d) -> tuple[float, Floats2d]:
    """How far the sigmoid of the one output is from the gold score.

    loss = -1/n sum_i (y_i log sigmoid(s_i) + (1 - y_i) log(1 - sigmoid(s_i)))

    logits (float (n, 1)): s. gold (float (n,)): y, from 0 to 1.
    RETURNS (float, float (n, 1)): the loss, and its derivative by s.
    """
    xp = get_array_module(logits)
    scores = xp.asarray(logits)[:, 0]
    losses = xp.logaddexp(xp.zeros_like(scores), scores) - gold * scores
    return float(losses.mean()), ((sigmoid(scores) - gold) / len(gold))[:, None]


def mean_squared_error(logits: Floats2d, gold: Floats1d, activation: str = "identity") -> tuple[float, Floats2d]:
    """How far the score of the one output is from the gold score, squared.

    loss = 1/n sum_i (f(s_i) - y_i)^2

    logits (float (n, 1)): s. gold (float (n,)): y, from 0 to 1.
    activation (str): f: "identity", the linear output, or "sigmoid", whose derivative is f(s) (1 - f(s)).
    RETURNS (float, float (n, 1)): the loss, and its derivative by s.
    SOURCE: Devlin et al. 2019, section 4.1, on the STS benchmark (identity); Reimers and Gurevych 2019, section 3,
        regression by mean squared error.
    """
    scores = ACTIVATIONS[activation](logits)[:, 0]
    errors = scores - gold
    slopes = scores * (1 - scores) if activation == "sigmoid" else 1.0
    return squares(errors), (2 * errors * slopes / len(gold))[:, None]


def label_cross_entropy(logits: Floats2d, targets: Ints1d) -> tuple[float, Floats2d]:
    """How unlikely the gold label is, by the softmax of the outputs.

    loss = -1/n sum_i log softmax(s_i)[y_i]

    logits (float (n, labels)): s. targets (int (n,)): y, the index of each label.
    RETURNS (float, float (n, labels)): the loss, and its derivative by s.
    """
    losses, d_logits = cross_entropy(logits, targets)
    return float(losses.mean()), d_logits / len(targets)
