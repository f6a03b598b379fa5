"""Learning rates."""

from collections.abc import Iterator
from itertools import count

from spacy.util import registry

from ..errors.checks import NonNegative, NonNegativeFloat, Positive, validated
from .errors import Errors


@registry.schedules("spacy-sbert.linear_warmup.v1")
@validated
def linear_warmup(
    initial_rate: NonNegativeFloat, total_steps: Positive, warmup: float = 0.1, start_step: NonNegative = 0
) -> Iterator[float]:
    """Rise linearly from zero over a fraction of the steps, then fall linearly to zero.

    rate_t = initial_rate * t / w                                  while t < w,  w = int(warmup * total_steps)
    rate_t = initial_rate * max(0, (total_steps - t) / (total_steps - w))        afterwards

    initial_rate (float): the highest rate.
    total_steps (int): the steps until the rate is zero, usually those of the whole training.
    warmup (float): the fraction of the steps that warm up.
    start_step (int): the step to begin with, for training that goes on from a checkpoint.
    RETURNS (Iterator[float]): the rate of each step, without end.
    RAISES (ValueError): if warmup is not a fraction below 1, or a rate or a number of steps is negative.
    SOURCE: Reimers and Gurevych 2019, section 3.1 (linear warm-up over 10 % of the training data).
    """
    if not 0 <= warmup < 1:
        raise ValueError(Errors.WARMUP.format(given=warmup))
    rising = int(warmup * total_steps)
    # Thinc's warmup_linear counts from zero, which takes minutes for a step far away
    return (
        initial_rate * t / rising if t < rising else initial_rate * max(total_steps - t, 0) / (total_steps - rising)
        for t in count(start_step)
    )
