"""Learning rates."""

from collections.abc import Iterator
from itertools import count, repeat
from typing import Annotated

import spacy
from pydantic import Field

from ..validation import Epochs, NonNegative, NonNegativeFloat, Positive, validated
from .batchers import AnyBatcher, Batcher
from .examples import Reader, count_objectives

# The name of another setting, in a config
_Variable = Annotated[str, Field(pattern=r"^\$\{.+\}$")]


def epoch_steps(corpus: Reader, batcher: AnyBatcher) -> int:
    """Return the steps of an epoch over a corpus that is held in memory: one for each batch.

    batcher (Callable): those of this package have as many batches in every epoch. Of any other the
        batches are counted once, in the order of the examples: spacy.batch_by_words.v1 may make a
        few more or less in another order.
    """
    if isinstance(batcher, Batcher):
        counts = count_objectives(corpus, batcher.spans_key)
        steps = batcher.count(list(counts.values()), batcher.size)
    else:
        steps = sum(1 for _ in batcher(corpus(spacy.blank("xx"))))
    if not steps:
        raise ValueError(
            "The training corpus makes no batch: expected one example or more. Check [paths] and "
            "[training.batcher]."
        )
    return steps


@validated
def linear_warmup(
    initial_rate: NonNegativeFloat,
    total_steps: Positive,
    warmup: float = 0.1,
    start_step: NonNegative = 0,
) -> Iterator[float]:
    """Rise linearly from zero over a fraction of the steps, then fall linearly to zero.

    rate_t = initial_rate * t / w                                            while t < w
    rate_t = initial_rate * max(0, (total_steps - t) / (total_steps - w))    afterwards

    w = int(warmup * total_steps)

    initial_rate (float): the highest rate. warmup (float): the fraction of the steps that warm up.
    total_steps (int): the steps until the rate is zero, usually those of the whole training.
    start_step (int): the first step, for training that resumes.
    RETURNS (Iterator[float]): the rate of each step, without end.
    SOURCE: Reimers and Gurevych 2019, section 3.1 (linear warm-up over 10 % of the training data).
    """
    if not 0 <= warmup < 1:
        raise ValueError(
            f"Cannot warm up over warmup = {warmup} of the steps: expected a fraction from 0 to 1, "
            "such as 0.1."
        )
    rising = int(warmup * total_steps)
    # Thinc's warmup_linear counts from zero, which takes minutes for a step far away
    return (_rate_at(t, initial_rate, rising, total_steps) for t in count(start_step))


def _rate_at(t: int, initial_rate: float, rising: int, total_steps: int) -> float:
    """Return the rate of step t of linear_warmup."""
    if t < rising:
        return initial_rate * t / rising
    return initial_rate * max(total_steps - t, 0) / (total_steps - rising)


@validated
def linear_warmup_of_epochs(
    initial_rate: NonNegativeFloat,
    epochs: Epochs | _Variable,
    max_steps: NonNegative | _Variable,
    corpus: Reader | _Variable,
    batcher: AnyBatcher | _Variable,
    warmup: float = 0.1,
    start_step: NonNegative = 0,
) -> Iterator[float]:
    """Rise and fall as spacy-sbert.linear_warmup.v1, over the steps of a training.

    They are counted.

    total_steps = epochs * (batches of an epoch), or max_steps if there are no epochs; the smaller
    of both.

    Outside of `spacy train` (nlp.resume_training, nlp.initialize, `spacy assemble`) spaCy does not
    resolve the settings that a config refers to, so the length is unknown: the rate is always the
    highest.

    epochs (int): ${training.max_epochs}; 0 and -1 leave the length to max_steps.
    max_steps (int): ${training.max_steps}; 0 leaves it to the epochs.
    corpus (Callable): what is trained on, ${corpora.train}. It is not read if there are no epochs.
    batcher (Callable): ${training.batcher}; see epoch_steps for those that are not of this package.
    initial_rate, warmup, start_step, and what is returned: as of spacy-sbert.linear_warmup.v1.
    RAISES (ValueError): also if neither epochs nor max_steps are given, or the corpus makes no
        batch.
    SOURCE: Reimers and Gurevych 2019, section 3.1: one epoch, batches of 16, 2e-5, warm-up over 10
        % of the data.
    """
    if (
        isinstance(epochs, str)
        or isinstance(max_steps, str)
        or isinstance(corpus, str)
        or isinstance(batcher, str)
    ):
        return repeat(initial_rate)
    if epochs < 1 and not max_steps:
        raise ValueError(
            "spacy-sbert.linear_warmup.v2 does not know how long the training is: epochs = "
            f"{epochs} and max_steps = 0. Set training.max_epochs to 1 or more, or "
            "training.max_steps."
        )
    total = max_steps
    if epochs > 0:
        of_epochs = epochs * epoch_steps(corpus, batcher)
        total = min(of_epochs, max_steps or of_epochs)
    return linear_warmup(initial_rate, total, warmup, start_step)
