"""What is said of examples and objectives."""

from .. import errors


class Notes(errors.Messages):
    """Of the log."""

    NOT_EVALUATED = (
        "Steps after the last evaluation: {steps}. model-last has their weights, model-best has not. 'spacy train' "
        "evaluates every training.eval_frequency steps only; 'spacy sbert train' takes the same config, and always "
        "evaluates the last step."
    )
