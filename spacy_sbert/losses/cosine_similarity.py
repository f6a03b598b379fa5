"""The regression objective: the cosine of a pair is to be its gold similarity."""

from collections.abc import Callable

from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats1d, Floats2d
from thinc.util import get_array_module

from ..errors import Errors
from ..similarity import cosine

Members = list[Floats2d]


@registry.layers("spacy-sbert.CosineSimilarityLoss.v1")
def CosineSimilarityLoss() -> Model[tuple[Members, Floats1d], float]:
    """Mean squared error between the cosine of u and v and the gold similarity of each pair.

    loss = 1/n sum_i (cos(u_i, v_i) - y_i)^2

    Input: [u, v], each float (n, width), and y, float (n,), the gold similarities, usually from 0 to 1.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns [du, dv].
    RAISES (ValueError): if u, v and y do not have the same number of rows.
    SOURCE: Reimers and Gurevych 2019, section 3 (Regression Objective Function).
    """
    return Model("CosineSimilarityLoss", forward, attrs={"n_members": 2, "gold": "score"})


def forward(
    model: Model[tuple[Members, Floats1d], float], inputs: tuple[Members, Floats1d], is_train: bool
) -> tuple[float, Callable[[float], Members]]:
    (u, v), gold = inputs
    if not len(u) == len(v) == len(gold):
        raise ValueError(Errors.UNPAIRED_ROWS.format(u=len(u), v=len(v), gold=len(gold)))
    similarity = cosine(u, v)
    error = similarity - gold  # (n,)

    def backprop(d_loss: float = 1.0) -> Members:
        d_similarity = 2 * error * d_loss / len(gold)
        return [d_similarity[:, None] * d for d in _d_cosine(u, v, similarity)]

    return float((error * error).mean()), backprop


def _d_cosine(u: Floats2d, v: Floats2d, similarity: Floats1d) -> Members:
    """d cos/du = v / (||u|| ||v||) - cos u / ||u||^2, and likewise for v; 0 where u or v is the zero vector."""
    xp = get_array_module(u)
    squares = [(x * x).sum(axis=1, keepdims=True) for x in (u, v)]
    kept = xp.minimum(*squares) > 0
    uu, vv = (xp.where(kept, square, xp.ones_like(square)) for square in squares)
    both = xp.sqrt(uu) * xp.sqrt(vv)
    cos = xp.expand_dims(similarity, 1)
    return [xp.where(kept, d, xp.zeros_like(d)) for d in (v / both - cos * u / uu, u / both - cos * v / vv)]
