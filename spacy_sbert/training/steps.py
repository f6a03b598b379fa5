"""How many steps a training has."""

from ..spans.objectives import Reader, count_objectives, reading_pipeline
from .batchers import AnyBatcher, Batcher
from .errors import Errors


def epoch_steps(corpus: Reader, batcher: AnyBatcher) -> int:
    """The steps of an epoch over a corpus that is held in memory: one for each batch.

    corpus (Callable): the reader; see count_objectives.
    batcher (Callable): one of this package has as many batches in every epoch. Any other makes them once, of the
        examples in their order: where batches are filled by the length of texts (spacy.batch_by_words.v1), an epoch,
        whose order is another, may have a few more or less.
    RAISES (ValueError): if there is no batch, or the corpus cannot be read.
    """
    if isinstance(batcher, Batcher):
        counts = count_objectives(corpus, batcher.spans_key)
        steps = batcher.count(list(counts.values()), batcher.size)
    else:
        steps = sum(1 for _ in batcher(corpus(reading_pipeline())))
    if not steps:
        raise ValueError(Errors.NO_BATCHES)
    return steps


def steps_of_rate(epochs: int, max_steps: int, corpus: Reader, batcher: AnyBatcher) -> int:
    """The steps that a learning rate is to take until it is zero.

    epochs, max_steps (int): as spaCy has them, in [training]: no epochs are 0 or -1, no max_steps are 0.
    RAISES (ValueError): if there are neither, or see epoch_steps.
    """
    if epochs < 1 and not max_steps:
        raise ValueError(Errors.NO_END.format(epochs=epochs))
    of_epochs = epochs * epoch_steps(corpus, batcher) if epochs > 0 else max_steps
    return min(of_epochs, max_steps or of_epochs)
