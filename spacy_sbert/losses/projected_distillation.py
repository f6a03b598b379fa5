"""The distillation objective for a teacher whose vectors are of another width."""

from spacy.util import registry
from thinc.api import Model, uniform_init
from thinc.types import Floats2d

from ..errors.checks import NonNegativeFloat, validated
from .distillation import mean_squared_error
from .errors import Errors
from .parts.layer import Backprop, LossLayer, Members, check_inputs


@registry.layers("spacy-sbert.ProjectedDistillationLoss.v1")
@validated
def ProjectedDistillationLoss(learn_rate_factor: NonNegativeFloat = 1.0) -> Model[tuple[Members, Floats2d], float]:
    """Mean squared error between the teacher's vectors and a linear projection of those to learn, which is trained too.

    loss = 1/(M n nO) sum_m sum_i ||W x_mi - t_i||^2

    learn_rate_factor (float): how many times faster than the encoder W learns.
    Input: [x] or [x_1, x_2], each float (n, nI), and t, float (n, nO), the teacher's vectors.
    Output: the loss, a float. Its backprop takes a factor on the loss, returns one dx a member, and adds to the
        gradient of W, float (nO, nI).
    RAISES (ValueError): if members and t do not have the same number of rows, or the layer was not initialized, or for
        other widths.
    SOURCE: Jiao et al. 2020, TinyBERT, section 3 (hidden states based distillation).
    """
    return LossLayer(
        "ProjectedDistillationLoss",
        forward,
        init=init,
        n_members=[1, 2],
        gold="vector",
        dims={"nO": None, "nI": None},
        params={"W": None},
        learn_rate_factor=learn_rate_factor,
    )


def init(model: LossLayer, X: tuple[Members, Floats2d] | None = None, Y: None = None) -> None:
    """Make W for the widths of the members and of the teacher."""
    if X is None:
        return
    members, teacher = X
    nO, nI = teacher.shape[1], members[0].shape[1]
    model.set_dim("nO", nO)
    model.set_dim("nI", nI)
    if not model.has_param("W"):
        model.set_param("W", uniform_init(model.ops, (nO, nI), lo=-(nI**-0.5), hi=nI**-0.5))


def forward(model: LossLayer, inputs: tuple[Members, Floats2d], is_train: bool) -> tuple[float, Backprop]:
    members, teacher = inputs
    check_inputs(model, members, len(teacher))
    given = (teacher.shape[1], members[0].shape[1])
    if not model.has_param("W") or model.get_param("W").shape != given:
        known = model.get_param("W").shape if model.has_param("W") else "none"
        raise ValueError(Errors.PROJECTION_WIDTHS.format(loss=model.name, given=given, known=known))
    W = model.get_param("W")
    value, back_to_projected = mean_squared_error([member @ W.T for member in members], teacher)

    def backprop(d_loss: float = 1.0) -> Members:
        d_projected = back_to_projected(d_loss)
        for member, d in zip(members, d_projected, strict=True):
            model.inc_grad("W", d.T @ member)
        return [d @ W for d in d_projected]

    return value, backprop
