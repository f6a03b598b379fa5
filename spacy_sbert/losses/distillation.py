"""The distillation objective: vectors are to be those of a teacher."""

from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import get_array_module

from .errors import Errors
from .parts.layer import Backprop, LossLayer, Members, check_inputs
from .parts.squares import squares


@registry.layers("spacy-sbert.DistillationLoss.v1")
def DistillationLoss() -> Model[tuple[Members, Floats2d], float]:
    """Mean squared error between the teacher's vector of each example and the vectors of its members.

    loss = 1/(M n width) sum_m sum_i ||x_mi - t_i||^2

    Two members are a text and its translation: both learn what the teacher says of the text.

    Input: [x] or [x_1, x_2], each float (n, width), and t, float (n, width), the teacher's vectors.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns one dx a member.
    RAISES (ValueError): if members and t do not have the same number of rows, or not the same width.
    SOURCE: Reimers and Gurevych 2020, section 2.
    """
    return LossLayer("DistillationLoss", forward, n_members=[1, 2], gold="vector")


def forward(model: LossLayer, inputs: tuple[Members, Floats2d], is_train: bool) -> tuple[float, Backprop]:
    members, teacher = inputs
    check_inputs(model, members, len(teacher))
    for member in members:
        if member.shape[1] != teacher.shape[1]:
            widths = {"width": member.shape[1], "teacher": teacher.shape[1]}
            raise ValueError(Errors.TEACHER_WIDTH.format(loss=model.name, **widths))
    return mean_squared_error(members, teacher)


def mean_squared_error(members: Members, teacher: Floats2d) -> tuple[float, Backprop]:
    """Over all elements of all members, each float (n, width) as the teacher; and the derivative by each member."""
    errors = get_array_module(teacher).stack(members) - teacher

    def backprop(d_loss: float = 1.0) -> Members:
        return list(errors * (2 * d_loss / errors.size))

    return squares(errors), backprop
